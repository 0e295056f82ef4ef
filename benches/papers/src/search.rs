//! How many blocks a manager examined to find a fit, as it reports on its statistics page when a process ends.

use std::path::Path;

use heaptoll_catalog::Prepared;
use heaptoll_stats_page::{SlotRecord, WriterKind};

use crate::Error;
use crate::installation::{Installation, RunRequest, SelectedManager};

/// The searches of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Searches {
    /// Searches made.
    pub searches: u64,
    /// Blocks examined in all of them.
    pub steps: u64,
    /// Blocks examined in the longest.
    pub longest: u64,
}

impl Searches {
    fn of(slot: &SlotRecord) -> Option<Searches> {
        let SlotRecord { searches, search_steps: steps, search_longest: longest, .. } = *slot;
        (slot.kind == WriterKind::Manager && searches > 0).then_some(Searches { searches, steps, longest })
    }

    /// Those of the process that searched most; none when the manager does not search, or does not report.
    pub fn most(slots: &[SlotRecord]) -> Option<Searches> {
        slots.iter().filter_map(Searches::of).max_by_key(|found| found.searches)
    }

    /// Blocks examined a search.
    pub fn mean(&self) -> f64 {
        self.steps as f64 / self.searches as f64
    }
}

/// A process's searches, with its calls for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerMalloc {
    /// The searches.
    pub found: Searches,
    /// Calls of `malloc`, `calloc` and the like, counted in front of the manager.
    pub mallocs: u64,
}

impl PerMalloc {
    /// Of the process that searched most. The page has a slot of the manager and one of the live layer for it.
    fn of(slots: &[SlotRecord]) -> Option<PerMalloc> {
        let manager = slots
            .iter()
            .filter(|slot| Searches::of(slot).is_some())
            .max_by_key(|slot| Searches::of(slot).map(|found| found.searches))?;
        let layer = slots.iter().filter(|slot| {
            slot.kind == WriterKind::Layer
                && slot.writer == "live"
                && slot.pid == manager.pid
                && slot.exe == manager.exe
        });
        let mallocs = layer.map(|slot| slot.malloc_calls).max().filter(|calls| *calls > 0)?;
        Some(PerMalloc { found: Searches::of(manager)?, mallocs })
    }

    /// Searches a malloc. Above 1 where a free searches too.
    pub fn searches(&self) -> f64 {
        self.found.searches as f64 / self.mallocs as f64
    }

    /// Blocks examined a malloc, those of its free included.
    pub fn steps(&self) -> f64 {
        self.found.steps as f64 / self.mallocs as f64
    }
}

/// One run of its own, with a statistics page and the live layer, which counts the calls and takes no memory of the
/// heap. None when the manager does not search, or does not report.
///
/// # Errors
/// The program fails, or the page cannot be made.
pub fn measure(
    installation: &Installation,
    program: &Prepared,
    manager: &SelectedManager,
    layer: &Path,
) -> Result<Option<PerMalloc>, Error> {
    let preload = std::iter::once(layer).chain(manager.object.as_deref()).map(Path::to_path_buf).collect();
    let slots = installation.run_with_page(
        program,
        &manager.name,
        RunRequest { preload, environment: manager.environment.clone(), ..RunRequest::default() },
    )?;
    Ok(PerMalloc::of(&slots))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(
        kind: WriterKind,
        pid: i32,
        searches: u64,
        steps: u64,
        longest: u64,
        malloc_calls: u64,
    ) -> SlotRecord {
        SlotRecord {
            kind,
            pid,
            parent_pid: 1,
            writer: if kind == WriterKind::Layer { "live".into() } else { "knuth".into() },
            exe: "/bin/program".into(),
            malloc_calls,
            searches,
            search_steps: steps,
            search_longest: longest,
            ..SlotRecord::default()
        }
    }

    #[test]
    fn the_process_that_searched_most_is_shown_with_its_own_calls() {
        let slots = [
            slot(WriterKind::Manager, 10, 5, 500, 400, 0),
            slot(WriterKind::Layer, 10, 0, 0, 0, 7),
            slot(WriterKind::Manager, 11, 100, 250, 9, 0),
            slot(WriterKind::Layer, 11, 0, 0, 0, 200),
        ];
        let found = PerMalloc::of(&slots).expect("two processes that searched");
        assert_eq!(
            found,
            PerMalloc { found: Searches { searches: 100, steps: 250, longest: 9 }, mallocs: 200 }
        );
        assert_eq!((found.found.mean(), found.searches(), found.steps()), (2.5, 0.5, 1.25));
        assert_eq!(Searches::most(&slots), Some(found.found));
    }

    #[test]
    fn without_a_search_or_a_count_of_calls_there_is_no_figure() {
        assert_eq!(
            PerMalloc::of(&[
                slot(WriterKind::Manager, 10, 0, 0, 0, 0),
                slot(WriterKind::Layer, 10, 0, 0, 0, 7)
            ]),
            None
        );
        assert_eq!(
            PerMalloc::of(&[
                slot(WriterKind::Manager, 10, 5, 5, 1, 0),
                slot(WriterKind::Layer, 11, 0, 0, 0, 7)
            ]),
            None
        );
        assert_eq!(Searches::most(&[slot(WriterKind::Layer, 10, 3, 3, 1, 7)]), None);
    }
}
