//! The figures that managers and layers of a run reported in the slots of its statistics page.
//!
//! A stack has several writers in each process: its manager, if that reports, and layers. Each figure is taken from
//! those that can know it: a collector's from the manager or from the layer in front of it that stops the program, a
//! quarantine's from the layer that delays frees.

use std::collections::BTreeSet;
use std::path::Path;

use heaptoll_stats_page::{AbandonCause, SlotRecord, StatsPage, UnreadPlaces, WriterKind};

use crate::extension::extension;
use crate::launch::Finished;
use crate::observation::{Collections, Observation};
use crate::stack::{self, LayerKind};

/// The figures of a run, of all its processes; `None` where no part of the stack can know them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportedFigures {
    /// The most memory a manager had mapped at once, of any process, bytes.
    pub heap_high_water_bytes: Option<u64>,
    /// Collections, of a manager that collects or of a layer that stops the program as one.
    pub collections: Option<Collections>,
    /// Processor time of collections on all threads that took part, ns, sum over all processes.
    pub collector_cpu_ns: Option<u64>,
    /// The most bytes of pages that held a live block at once, of any process.
    pub used_high_bytes: Option<u64>,
    /// Calls that failed because the heap has a limit, of all processes.
    pub refused_calls: Option<u64>,
    /// The most bytes that a quarantine held back at once, of any process.
    pub held_high_bytes: Option<u64>,
    /// Blocks that were found changed when they left a quarantine, of all processes.
    pub written_after_free: Option<u64>,
}

impl ReportedFigures {
    /// Reads the slots of a run.
    pub fn of(slots: &[SlotRecord]) -> ReportedFigures {
        let managers = || slots.iter().filter(|slot| slot.kind == WriterKind::Manager);
        let layers = || slots.iter().filter(|slot| slot.kind == WriterKind::Layer);
        let of_kind = |is: fn(&LayerKind) -> bool| {
            layers().filter(move |slot| stack::named(&slot.writer).is_some_and(is))
        };
        let sweeps = || of_kind(|kind| kind.pauses);
        let swept = sweeps().next().is_some();
        let collectors = || managers().chain(sweeps());
        // A quarantine has checked blocks also where none was held.
        let quarantines = || {
            let delays = |slot: &&SlotRecord| {
                slot.kind == WriterKind::Layer
                    && stack::named(&slot.writer).is_some_and(|kind| kind.delays && !kind.collects)
            };
            slots.iter().filter(move |slot| slot.held_high_bytes > 0 || delays(slot))
        };
        // Any figure may stand in a page that processes share.
        let sum = |figure: fn(&SlotRecord) -> u64| collectors().map(figure).fold(0, u64::saturating_add);
        let most = |figure: fn(&SlotRecord) -> u64| collectors().map(figure).max();
        let longest = most(|slot| slot.pause_max_ns);
        let collections = longest.map(|pause_max_ns| Collections {
            count: sum(|slot| slot.collections),
            pause_total_ns: sum(|slot| slot.pause_total_ns),
            pause_max_ns,
            reclaimed_bytes: sum(|slot| slot.collected_bytes),
            processes: collectors()
                .filter(|slot| slot.collections > 0)
                .map(|slot| slot.pid)
                .collect::<BTreeSet<_>>()
                .len() as u32,
            unread_places: UnreadPlaces::of_bits(
                collectors().fold(0, |places, slot| places | slot.unread_places),
            )
            .bits(),
            abandon_causes: collectors()
                .flat_map(|slot| AbandonCause::of_bits(slot.abandon_causes))
                .fold(0, |causes, cause| causes | cause.bit()),
        });
        // A manager may leave alone a counter that it does not keep: a zero is then unknown, except that no collections
        // take no processor time.
        let counted = |figure: u64| (figure > 0 || swept).then_some(figure);
        let cpu = sum(|slot| slot.collector_cpu_ns);
        let idle = collections.is_some_and(|collections| collections.count == 0);
        ReportedFigures {
            heap_high_water_bytes: managers().map(|slot| slot.mapped_high_bytes).max(),
            collections,
            collector_cpu_ns: if idle { Some(cpu) } else { counted(cpu) },
            used_high_bytes: most(|slot| slot.used_high_bytes).and_then(counted),
            refused_calls: collections.map(|_| sum(|slot| slot.refused_calls)),
            held_high_bytes: quarantines().map(|slot| slot.held_high_bytes).max(),
            written_after_free: quarantines()
                .next()
                .map(|_| quarantines().map(|slot| slot.written_after_free).fold(0, u64::saturating_add)),
        }
    }

    /// The row with these figures.
    pub fn added_to(self, row: Observation) -> Observation {
        Observation {
            heap_high_water_bytes: self.heap_high_water_bytes,
            collections: self.collections,
            collector_cpu_ns: self.collector_cpu_ns,
            used_high_bytes: self.used_high_bytes,
            refused_calls: self.refused_calls,
            held_high_bytes: self.held_high_bytes,
            written_after_free: self.written_after_free,
            ..row
        }
    }
}

/// The row with what the managers and layers of the run wrote on its statistics page, and Java's virtual machines in its scratch folder.
pub(crate) fn with_page(
    row: Observation,
    page: Option<&StatsPage>,
    scratch: &Path,
    finished: &Finished,
) -> Observation {
    let mut slots = page.and_then(|page| page.read().ok()).unwrap_or_default();
    let (of_java, unreadable) =
        extension().slots(scratch).map_or_else(|why| (vec![], Some(why)), |slots| (slots, None));
    slots.extend(of_java);
    let reported = ReportedFigures::of(&slots);
    // The tail of standard error holds what a checking quarantine found, so it is kept of a good run, too.
    let found = reported.written_after_free.is_some_and(|found| found > 0);
    let row = if found { Observation { stderr_tail: finished.error_tail.clone(), ..row } } else { row };
    let row = match unreadable {
        Some(why) => Observation { stderr_tail: format!("{}\nheaptoll: {why}", row.stderr_tail), ..row },
        None => row,
    };
    reported.added_to(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(kind: WriterKind, writer: &str) -> SlotRecord {
        SlotRecord { kind, pid: 1, writer: writer.into(), ..SlotRecord::default() }
    }

    fn layer(writer: &str) -> SlotRecord {
        slot(WriterKind::Layer, writer)
    }

    #[test]
    fn a_foreign_manager_reports_nothing() {
        assert_eq!(ReportedFigures::of(&[]), ReportedFigures::default());
        assert_eq!(ReportedFigures::of(&[layer("count"), layer("record")]), ReportedFigures::default());
    }

    #[test]
    fn a_sweep_layer_collects_for_a_manager_that_reports_nothing_and_for_one_that_does() {
        let swept = |pid, collections, pause_max_ns, used_high_bytes| SlotRecord {
            pid,
            collections,
            pause_total_ns: 10 * pause_max_ns,
            pause_max_ns,
            collected_bytes: 100,
            used_high_bytes,
            collector_cpu_ns: 7,
            refused_calls: 1,
            unread_places: 1 << pid | 1 << 40,
            abandon_causes: 1 << pid | 1 << 40,
            ..layer("sweep")
        };
        let two = [swept(1, 2, 30, 4096), swept(2, 3, 20, 8192)];
        let reported = ReportedFigures::of(&two);
        let collections = Collections {
            count: 5,
            pause_total_ns: 500,
            pause_max_ns: 30,
            reclaimed_bytes: 200,
            processes: 2,
            unread_places: 1 << 1 | 1 << 2,
            abandon_causes: 1 << 1 | 1 << 2,
        };
        assert_eq!(
            reported,
            ReportedFigures {
                collections: Some(collections),
                collector_cpu_ns: Some(14),
                used_high_bytes: Some(8192),
                refused_calls: Some(2),
                ..ReportedFigures::default()
            }
        );
        let manager = SlotRecord { mapped_high_bytes: 9, ..slot(WriterKind::Manager, "lea") };
        let with = ReportedFigures::of(&[two[0].clone(), two[1].clone(), manager]);
        assert_eq!(with, ReportedFigures { heap_high_water_bytes: Some(9), ..reported });
    }

    #[test]
    fn a_manager_that_leaves_a_counter_alone_has_not_counted_none() {
        let tithe = SlotRecord { collections: 3, pause_total_ns: 5, ..slot(WriterKind::Manager, "tithe") };
        let reported = ReportedFigures::of(std::slice::from_ref(&tithe));
        assert_eq!((reported.collector_cpu_ns, reported.used_high_bytes), (None, None));
        assert_eq!(reported.collections.map(|collections| collections.count), Some(3));
        // No collections take no time, even uncounted.
        assert_eq!(ReportedFigures::of(&[slot(WriterKind::Manager, "lea")]).collector_cpu_ns, Some(0));
        let counting = SlotRecord { collector_cpu_ns: 8, used_high_bytes: 4096, ..tithe };
        let reported = ReportedFigures::of(&[counting]);
        assert_eq!((reported.collector_cpu_ns, reported.used_high_bytes), (Some(8), Some(4096)));
    }

    #[test]
    fn figures_that_no_run_can_have_are_summed_without_overflow() {
        let corrupted = |writer| SlotRecord {
            collections: u64::MAX,
            collected_bytes: u64::MAX,
            collector_cpu_ns: u64::MAX,
            written_after_free: u64::MAX,
            ..layer(writer)
        };
        let reported = ReportedFigures::of(&[
            corrupted("sweep"),
            corrupted("sweep"),
            corrupted("quarantine"),
            corrupted("quarantine"),
        ]);
        assert_eq!(reported.collections.map(|collections| collections.count), Some(u64::MAX));
        assert_eq!(
            (reported.collector_cpu_ns, reported.written_after_free),
            (Some(u64::MAX), Some(u64::MAX))
        );
    }

    #[test]
    fn a_guard_reports_its_passes_and_what_waited() {
        let guard =
            SlotRecord { collections: 3, held_high_bytes: 100, written_after_free: 1, ..layer("guard") };
        let reported = ReportedFigures::of(&[guard]);
        assert_eq!(reported.collections.map(|collections| collections.count), Some(3));
        assert_eq!((reported.held_high_bytes, reported.written_after_free), (Some(100), Some(1)));
    }

    #[test]
    fn a_quarantine_reports_what_it_held() {
        let held = |held_high_bytes, written_after_free| SlotRecord {
            held_high_bytes,
            written_after_free,
            ..layer("quarantine")
        };
        let reported = ReportedFigures::of(&[held(100, 1), held(50, 2), layer("count")]);
        assert_eq!(
            reported,
            ReportedFigures {
                held_high_bytes: Some(100),
                written_after_free: Some(3),
                ..ReportedFigures::default()
            }
        );
        assert_eq!(ReportedFigures::of(&[held(0, 0)]).written_after_free, Some(0));
    }

    #[test]
    fn a_manager_that_holds_freed_blocks_reports_them_too() {
        let tithe = || SlotRecord { kind: WriterKind::Manager, ..layer("tithe") };
        let guard = SlotRecord { held_high_bytes: 70, written_after_free: 2, ..tithe() };
        let reported = ReportedFigures::of(&[guard]);
        assert_eq!((reported.held_high_bytes, reported.written_after_free), (Some(70), Some(2)));
        assert_eq!(ReportedFigures::of(&[tithe()]).written_after_free, None);
    }
}
