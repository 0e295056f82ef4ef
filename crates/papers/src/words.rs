//! Places of a study as sentences hold them.

use heaptoll_units::size_text;

use super::definition::{Step, StepKind};

/// A place of a metric that has many: `at 2M`.
pub(super) fn place(step: &Step, metric: &str, at: f64) -> String {
    let bytes = |bytes: f64| size_text(bytes.round() as u64);
    match step.kind {
        StepKind::Frequency if metric.starts_with("reclaiming") => {
            format!("reclaiming at one in {}", plain(at))
        }
        StepKind::Lifetimes if metric == "surviving_instructions" => {
            format!("at {} instructions", heaptoll_units::count(at))
        }
        StepKind::Delay
        | StepKind::Frequency
        | StepKind::Minheap
        | StepKind::Lifetimes
        | StepKind::Reclamation => {
            format!("at {}", bytes(at))
        }
        StepKind::Locality if metric.starts_with("tight_") => {
            format!("in {} % of its pages", plain(100.0 * at))
        }
        StepKind::Locality => format!("at {}", bytes(at * 1024.0)),
        StepKind::Graph => format!("at {} times the smallest heap", plain(at)),
        StepKind::Proximity => format!("at {} collections a run", plain(at)),
        StepKind::Run | StepKind::Instructions | StepKind::Ledger => format!("at {}", plain(at)),
    }
}

/// A number that someone chose, as it was written: `4`, `0.75`.
fn plain(number: f64) -> String {
    format!("{}", (number * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_written_as_it_was_chosen() {
        let step = |kind: &str| -> Step {
            toml::from_str(&format!("id = \"t\"\nkind = \"{kind}\"\nprograms = [\"lua\"]")).expect("a step")
        };
        assert_eq!(place(&step("run"), "cpu_s", 4.0), "at 4");
        assert_eq!(place(&step("locality"), "tight_faults", 0.07), "in 7 % of its pages");
        assert_eq!(place(&step("graph"), "cpu_ratio", 1.5), "at 1.5 times the smallest heap");
    }
}
