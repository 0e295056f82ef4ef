//! Figures and places as sentences hold them.

use super::definition::{Step, StepKind};

/// Three digits that count: `1.62`, `0.0831`, `12345`.
pub(super) fn figure(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size == 0.0 => "0".into(),
        _ if size >= 100.0 => format!("{value:.0}"),
        _ if size >= 10.0 => format!("{value:.1}"),
        _ if size >= 1.0 => format!("{value:.2}"),
        _ if size >= 0.1 => format!("{value:.3}"),
        _ if size >= 0.01 => format!("{value:.4}"),
        _ if size >= 0.001 => format!("{value:.5}"),
        _ => format!("{value:.2e}"),
    }
}

/// A place of a metric that has many: `at 2M`.
pub(super) fn place(step: &Step, metric: &str, at: f64) -> String {
    let bytes = |bytes: f64| heaptoll_units::size_text(bytes.round() as u64);
    match step.kind {
        StepKind::Frequency if metric.starts_with("reclaiming") => {
            format!("reclaiming at one in {}", figure(at))
        }
        StepKind::Delay | StepKind::Frequency | StepKind::Minheap | StepKind::Lifetimes => {
            format!("at {}", bytes(at))
        }
        StepKind::Locality if metric == "tight_faults" => format!("in {} of its pages", figure(at)),
        StepKind::Locality => format!("at {}", bytes(at * 1024.0)),
        StepKind::Proximity => format!("at {} collections a run", figure(at)),
        StepKind::Run | StepKind::Instructions => format!("at {}", figure(at)),
    }
}

/// `1 program`, `2 programs`.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `a, b and c`.
pub(super) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let words: Vec<String> = [0.0, 1.6249, 0.08312, 12345.4, -0.5, 56.78].map(figure).into();
        assert_eq!(words, ["0", "1.62", "0.0831", "12345", "-0.500", "56.8"]);
    }

    #[test]
    fn lists_and_counts_read_as_sentences() {
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!((count(1, "program"), count(3, "program")), ("1 program".into(), "3 programs".into()));
    }
}
