//! The command that a step runs.

use heaptoll_studies::paper::definition::StepKind;

/// The command's name.
pub const fn command_name(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Run => "run",
        StepKind::Instructions => "instructions",
        StepKind::Locality => "locality",
        StepKind::Lifetimes => "lifetimes",
        StepKind::Delay => "delay",
        StepKind::Frequency => "frequency",
        StepKind::Proximity => "proximity",
        StepKind::Minheap => "minheap",
    }
}
