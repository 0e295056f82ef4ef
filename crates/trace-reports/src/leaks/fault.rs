//! What makes a gate fail, and when it cannot be decided.

use std::path::Path;

use heaptoll_preflight::hidden_heap_of_trace;
use heaptoll_trace_analysis::leaks::LeakFigures as Figures;
use heaptoll_trace_analysis::subject::Subject;

use super::sentence;
use heaptoll_command::failure::Failure;

/// A kind of leak that a gate looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Definitely lost objects.
    Definite,
    /// Possibly lost objects.
    Possible,
    /// A call site that grows over the whole run, or all live bytes together.
    Growing,
    /// Anything that was never freed.
    NeverFreed,
}

/// What a gate decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There is such a leak that is not suppressed.
    Found,
    /// There is none.
    None,
    /// The trace cannot show that there is none: why.
    Undecided(String),
}

impl Fault {
    /// Whether there is such a leak that is not suppressed. One that is in a damaged trace is; that there is none, only a
    /// whole one shows.
    ///
    /// # Errors
    /// Traces of this kind do not show it.
    pub fn judge(self, figures: &Figures, trace: &Path) -> Result<Verdict, Failure> {
        let too_short = sentence::too_short(figures).unwrap_or_default();
        let why = |why: &str| format!("{} does not show what --fail-on names: {why}", trace.display());
        let is_lost = |objects: u64| match figures.judged_at_bytes {
            // A child between fork and exec: what allocates nothing loses nothing.
            None if figures.pointers && figures.allocated.objects == 0 && figures.subject.is_whole() => {
                Ok(Ok(false))
            }
            None if figures.pointers => Ok(Err("it has no complete root point")),
            None => {
                Err(Failure::Usage(why("it has no pointers; record with `heaptoll record --graph --sites`")))
            }
            Some(_) => Ok(Ok(objects > 0)),
        };
        let grows = !figures.growing.is_empty() || figures.rise_of_all.is_some();
        let unseen = own_heap(&figures.subject).unwrap_or_default();
        let found = match self {
            Fault::Definite => is_lost(figures.kinds.definite.objects)?,
            Fault::Possible => is_lost(figures.kinds.possible.objects)?,
            Fault::Growing if !figures.sites => {
                return Err(Failure::Usage(why("it has no call stacks; record with --sites")));
            }
            Fault::Growing if !grows && figures.is_short => Err(too_short.as_str()),
            Fault::Growing if !grows && !unseen.is_empty() => Err(unseen.as_str()),
            Fault::Growing => Ok(grows),
            Fault::NeverFreed => Ok(figures.kinds.never_freed().objects > 0),
        };
        Ok(match found {
            Ok(true) => Verdict::Found,
            Ok(false) if figures.subject.is_whole() => Verdict::None,
            Ok(false) => Verdict::Undecided(why("it is incomplete, and its whole part has none")),
            Err(reason) => Verdict::Undecided(why(reason)),
        })
    }
}

/// The heap of a runtime that grows unseen by malloc. Python's arenas are seen: they are blocks of malloc's, or mappings.
fn own_heap(subject: &Subject) -> Option<String> {
    let heap = hidden_heap_of_trace(Path::new(&subject.exe))?;
    Some(format!("{heap}: growth in it is not in the trace"))
}

#[cfg(test)]
mod tests {
    use heaptoll_trace_analysis::leaks::Rise;

    use super::*;

    /// Before, arrays that double failed no gate: each block is replaced, and no call site of them grows.
    #[test]
    fn all_live_bytes_that_grow_fail_the_gate_though_no_call_site_does() {
        let subject = Subject { ended: Some("exited with status 0".into()), ..Subject::default() };
        let all = Figures { sites: true, subject, rise_of_all: Some(Rise::default()), ..Figures::default() };
        assert_eq!(Fault::Growing.judge(&all, Path::new("t")).expect("has stacks"), Verdict::Found);
    }

    /// Before, a clean program that started a child was undecided: the child allocates nothing before it execs.
    #[test]
    fn a_whole_process_image_that_allocates_nothing_loses_nothing() {
        let subject = Subject { ended: Some("exited with status 0".into()), ..Subject::default() };
        let mut figures = Figures { pointers: true, subject, ..Figures::default() };
        let judged =
            |figures: &Figures| Fault::Definite.judge(figures, Path::new("t")).expect("has pointers");
        assert_eq!(judged(&figures), Verdict::None);
        figures.allocated.objects = 1;
        assert!(matches!(judged(&figures), Verdict::Undecided(_)));
    }

    #[test]
    fn a_run_too_short_to_show_growth_is_undecided() {
        let subject = Subject { ended: Some("exited with status 0".into()), ..Subject::default() };
        let long = Figures { sites: true, subject, ..Figures::default() };
        let judged = |figures: &Figures| Fault::Growing.judge(figures, Path::new("t")).expect("has stacks");
        assert_eq!(judged(&long), Verdict::None);
        let short = Figures { is_short: true, ..long };
        assert!(matches!(judged(&short), Verdict::Undecided(why) if why.contains("too short")));
    }

    /// Before, a program of Node that grew without bound passed: its objects are in V8's heap.
    #[test]
    fn growth_is_undecided_where_a_runtime_has_a_heap_of_its_own() {
        let ended = Some("exited with status 0".into());
        let judged = |exe: &str, grows: bool| {
            let subject = Subject { exe: exe.into(), ended: ended.clone(), ..Subject::default() };
            let rise_of_all = grows.then(Rise::default);
            let figures = Figures { sites: true, subject, rise_of_all, ..Figures::default() };
            Fault::Growing.judge(&figures, Path::new("t")).expect("has stacks")
        };
        assert!(
            matches!(judged("/usr/bin/node", false), Verdict::Undecided(why) if why.contains("V8's own heap"))
        );
        assert_eq!(judged("/usr/bin/node", true), Verdict::Found);
        for of_blocks in ["/usr/bin/python3", "/usr/bin/tclsh8.6", "/bin/ls"] {
            assert_eq!(judged(of_blocks, false), Verdict::None, "{of_blocks}");
        }
    }
}
