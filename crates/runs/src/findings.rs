//! What a command that makes runs found: its figures, the document that shows them, and how the runs ended.

use heaptoll_report::document::Document;

/// Figures, and how they came about.
pub struct Findings<F> {
    /// The figures, as in the JSON.
    pub figures: F,
    /// The document that shows them.
    pub document: Document,
    /// How the runs ended.
    pub ending: Ending,
}

/// How the runs of a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All were made, and all are good.
    Complete,
    /// All were made; some are not good, or could not be kept, or a requested manager was refused.
    Trouble,
    /// Ctrl-C; the run that it ended is not whole.
    Interrupted,
}

impl Ending {
    /// Of whether all runs were made, and whether something is wrong with one.
    pub fn of(complete: bool, trouble: bool) -> Ending {
        match (complete, trouble) {
            (false, _) => Ending::Interrupted,
            (true, true) => Ending::Trouble,
            (true, false) => Ending::Complete,
        }
    }
}
