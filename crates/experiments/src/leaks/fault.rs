//! What makes a gate fail.

use std::path::Path;

use heaptoll_trace_analysis::leaks::LeakFigures as Figures;

use crate::failure::Failure;

/// A kind of leak that a gate looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Definitely lost objects.
    Definite,
    /// Possibly lost objects.
    Possible,
    /// Call sites that grow without bound.
    Growing,
    /// Anything that was never freed.
    NeverFreed,
}

impl Fault {
    /// Whether there is such a leak that is not suppressed. One that is in a damaged trace is; that there is none, only a
    /// whole one shows.
    ///
    /// # Errors
    /// The trace does not show it.
    pub fn is_in(self, figures: &Figures, trace: &Path) -> Result<bool, Failure> {
        let undecided = |why: &str| {
            Err(Failure::Usage(format!("{} does not show what --fail-on names: {why}", trace.display())))
        };
        let is_lost = |objects: u64| match figures.judged_at_bytes {
            None if figures.pointers => undecided("it has no whole root point"),
            None => undecided("it has no pointers; record with `heaptoll record --graph --sites`"),
            Some(_) => Ok(objects > 0),
        };
        let found = match self {
            Fault::Definite => is_lost(figures.kinds.definite.objects),
            Fault::Possible => is_lost(figures.kinds.possible.objects),
            Fault::Growing if !figures.sites => undecided("it has no call stacks; record with --sites"),
            Fault::Growing => Ok(!figures.growing.is_empty()),
            Fault::NeverFreed => Ok(figures.kinds.never_freed().objects > 0),
        }?;
        let subject = &figures.subject;
        let is_whole = subject.ended.is_some() && subject.gaps.is_empty() && subject.warnings.is_empty();
        if found || is_whole {
            Ok(found)
        } else {
            undecided("it is not whole, and has none up to where it is")
        }
    }
}
