//! Places of a study as sentences hold them.

use heaptoll_units::{figure, size_text};

use super::definition::{Step, StepKind};

/// A place of a metric that has many: `at 2M`.
pub(super) fn place(step: &Step, metric: &str, at: f64) -> String {
    let bytes = |bytes: f64| size_text(bytes.round() as u64);
    match step.kind {
        StepKind::Frequency if metric.starts_with("reclaiming") => {
            format!("reclaiming at one in {}", figure(at))
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
        StepKind::Locality if metric.starts_with("tight_") => format!("in {} of its pages", figure(at)),
        StepKind::Locality => format!("at {}", bytes(at * 1024.0)),
        StepKind::Graph => format!("at {} times the smallest heap", figure(at)),
        StepKind::Proximity => format!("at {} collections a run", figure(at)),
        StepKind::Run | StepKind::Instructions | StepKind::Ledger => format!("at {}", figure(at)),
    }
}
