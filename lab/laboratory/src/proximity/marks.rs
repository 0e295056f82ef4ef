//! What a run marked, as its row's file keeps it: when each request and each collection was, process by process. A row has
//! figures, and the groups of a scale need each request of all its runs.

use std::path::Path;

use crate::java::JavaLog;
use heaptoll_event_log::{EventsError, EventsFile, ProcessEvents};
use heaptoll_experiment::launch::Invocation;
use heaptoll_experiment::observation::Observation;
use heaptoll_experiment::runner::{Around, Left, RunError};

use super::distance::{Distances, Marked, Span, distances};
use super::java_pauses;
use super::packed::{Packed, Unpacked};

/// The variable that names the file of events.
const VARIABLE: &str = "HEAPTOLL_EVENTS";
/// Its name in the scratch folder: collectors leave such files out of their roots.
const FILE: &str = "heaptoll-run.events";
/// Bytes that a run's events may take; the file is sparse.
const LIMIT: u64 = 2 << 30;

/// The marks of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// By process.
    pub processes: Vec<OfProcess>,
    /// Events that the file had no space for.
    pub lost: u64,
    /// Bytes that the program requested, or that Java's virtual machines allocated while requests went on; of the process
    /// that has most.
    pub allocated: u64,
    /// Why the events or the logs of virtual machines could not be read.
    pub unreadable: Option<String>,
}

/// The marks of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfProcess {
    /// In order of their start.
    pub requests: Vec<Marked>,
    /// In order of their start.
    pub collections: Vec<Span>,
    /// Whether collections were reported to another listener.
    pub unreported: bool,
}

impl From<&ProcessEvents> for OfProcess {
    fn from(process: &ProcessEvents) -> OfProcess {
        let requests = process.requests.iter().map(|request| Marked {
            span: Span { start_ns: request.start_ns, end_ns: request.end_ns },
            cpu_ns: request.cpu_ns,
        });
        let collections =
            process.collections.iter().map(|one| Span { start_ns: one.start_ns, end_ns: one.end_ns });
        OfProcess {
            requests: requests.collect(),
            collections: collections.collect(),
            unreported: process.unobserved > 0,
        }
    }
}

impl OfProcess {
    /// Its collections. Java's log also has collections of the start: only those between the first and the last request
    /// count.
    pub fn counted(&self, is_java: bool) -> impl Iterator<Item = &Span> {
        let first = self.requests.iter().map(|one| one.span.start_ns).min().filter(|_| is_java);
        let last = self.requests.iter().map(|one| one.span.end_ns).max().filter(|_| is_java);
        self.collections.iter().filter(move |one| {
            first.is_none_or(|from| from < one.end_ns) && last.is_none_or(|to| one.start_ns < to)
        })
    }
}

impl Marks {
    /// The requests of all processes by their distance to a collection. A client's requests wait for a server's
    /// collections; a program's for its own.
    pub fn distances(&self, is_served: bool, run: u32) -> Distances {
        let everywhere: Vec<Span> =
            self.processes.iter().flat_map(|process| process.collections.iter().copied()).collect();
        let mut all = Distances::default();
        for process in &self.processes {
            let collections = if is_served { &everywhere } else { &process.collections };
            let found = distances(&process.requests, collections, run);
            all.whole.extend(found.whole);
            all.interrupted.extend(found.interrupted);
            all.before_first += found.before_first;
            all.within += found.within;
        }
        all
    }

    /// As bytes. A mark takes five or six of them: times are differences.
    pub fn packed(&self) -> Vec<u8> {
        let mut packed = Packed::default();
        packed.number(self.lost);
        packed.number(self.allocated);
        packed.text(self.unreadable.as_deref());
        packed.number(self.processes.len() as u64);
        for process in &self.processes {
            packed.number(process.unreported.into());
            packed.number(process.requests.len() as u64);
            packed.number(process.collections.len() as u64);
            let mut before = 0;
            for Marked { span, cpu_ns } in &process.requests {
                packed.span(*span, &mut before);
                packed.number(cpu_ns.map_or(0, |ns| ns.saturating_add(1)));
            }
            let mut before = 0;
            process.collections.iter().for_each(|span| packed.span(*span, &mut before));
        }
        packed.0
    }

    /// What [`Marks::packed`] gave; `None` of other bytes.
    pub fn unpacked(bytes: &[u8]) -> Option<Marks> {
        let mut rest = Unpacked(bytes);
        let (lost, allocated) = (rest.number()?, rest.number()?);
        let mut marks = Marks { lost, allocated, unreadable: rest.text()?, processes: vec![] };
        for _ in 0..rest.number()? {
            let unreported = rest.number()? > 0;
            let (requests, collections) = (rest.number()?, rest.number()?);
            let mut process = OfProcess { unreported, ..OfProcess::default() };
            let mut before = 0;
            for _ in 0..requests {
                let span = rest.span(&mut before)?;
                process.requests.push(Marked { span, cpu_ns: rest.number()?.checked_sub(1) });
            }
            let mut before = 0;
            for _ in 0..collections {
                process.collections.push(rest.span(&mut before)?);
            }
            marks.processes.push(process);
        }
        Some(marks)
    }
}

/// Has a run mark its requests: the events layer is preloaded into the program, and into a server's loads, whose requests
/// are a client's.
pub struct Marking<'a> {
    /// The events layer.
    pub layer: &'a Path,
    /// Whether the processor time of requests is recorded.
    pub cpu: bool,
    /// Whether bytes are those that virtual machines state.
    pub is_java: bool,
    /// The file of the run under way.
    pub events: Option<EventsFile>,
}

fn failed(error: EventsError) -> RunError {
    RunError::Around(Box::new(error))
}

/// The events of each process, how many were lost, and why the file is damaged: that is one run's failure, and no reason
/// to end the study.
fn readable(events: &EventsFile) -> (Vec<ProcessEvents>, u64, Option<String>) {
    match events.read().and_then(|all| Ok((all, events.lost()?))) {
        Ok((all, lost)) => (all, lost.requests + lost.collections, None),
        Err(why) => (vec![], 0, Some(why.to_string())),
    }
}

impl Around for Marking<'_> {
    fn begins(
        &mut self,
        scratch: &Path,
        program: &mut Invocation,
        loads: &mut [Invocation],
    ) -> Result<(), RunError> {
        let create = if self.cpu { EventsFile::create_with_cpu } else { EventsFile::create };
        let path = scratch.join(FILE);
        self.events = Some(create(&path, LIMIT).map_err(failed)?);
        for invocation in std::iter::once(program).chain(loads) {
            invocation.environment.push((VARIABLE.into(), path.display().to_string()));
            invocation.preload.insert(0, self.layer.into());
        }
        Ok(())
    }

    fn ended(&mut self, left: &Left, _row: &mut Observation) -> Result<Option<Vec<u8>>, RunError> {
        let Some(events) = self.events.take() else { return Ok(None) };
        let (mut processes, lost, damaged) = readable(&events);
        let (logs, unreadable): (Vec<JavaLog>, _) = crate::java::logs(left.scratch)
            .map_or_else(|why| (vec![], Some(why.to_string())), |logs| (logs, None));
        java_pauses::add_pauses(&mut processes, &logs);
        let slots = left.page.and_then(|page| page.read().ok()).unwrap_or_default();
        let marks = Marks {
            processes: processes.iter().map(OfProcess::from).collect(),
            lost,
            allocated: match self.is_java {
                true => java_pauses::allocated(&processes, &logs),
                // Of several processes each counts its own period, so the one that allocates most decides.
                false => slots.iter().map(|slot| slot.requested_bytes).max().unwrap_or(0),
            },
            unreadable: damaged.or(unreadable),
        };
        Ok(Some(marks.packed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(start_ns: u64, length: u64) -> Span {
        Span { start_ns, end_ns: start_ns + length }
    }

    proptest! {
        #[test]
        fn marks_are_the_same_after_they_were_kept(
            requests in prop::collection::vec((0u64..1 << 50, 0u64..1 << 40, prop::option::of(0u64..1 << 40)), 0..50),
            collections in prop::collection::vec((0u64..1 << 50, 0u64..1 << 40), 0..20),
            lost: u64, allocated: u64, unreported: bool, unreadable in prop::option::of("[a-zé]{0,9}"),
        ) {
            let marked = |(start, length, cpu_ns): &(u64, u64, Option<u64>)|
                Marked { span: span(*start, *length), cpu_ns: *cpu_ns };
            let process = OfProcess {
                requests: requests.iter().map(marked).collect(),
                collections: collections.iter().map(|(start, length)| span(*start, *length)).collect(),
                unreported,
            };
            let marks = Marks { processes: vec![process.clone(), OfProcess::default(), process], lost, allocated, unreadable };
            prop_assert_eq!(Marks::unpacked(&marks.packed()), Some(marks));
        }

        #[test]
        fn other_bytes_are_no_marks_and_end_somewhere(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Marks::unpacked(&bytes);
        }
    }

    #[test]
    fn half_of_the_bytes_are_no_marks() {
        let requests = vec![Marked::from(span(5, 7)); 9];
        let whole =
            Marks { processes: vec![OfProcess { requests, ..OfProcess::default() }], ..Marks::default() };
        let bytes = whole.packed();
        assert_eq!(Marks::unpacked(&bytes[..bytes.len() / 2]), None);
    }

    /// Before, it ended the study.
    #[test]
    fn a_damaged_file_of_events_is_a_failure_of_its_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let events = EventsFile::create(&folder.path().join(FILE), LIMIT).expect("creates");
        assert_eq!(readable(&events), (vec![], 0, None));
        std::fs::write(events.path(), "no events").expect("writes");
        assert!(readable(&events).2.is_some());
    }

    #[test]
    fn the_collections_of_a_virtual_machines_start_do_not_count() {
        let process = OfProcess {
            requests: vec![Marked::from(span(100, 10)), Marked::from(span(200, 10))],
            collections: vec![span(10, 20), span(120, 5), span(250, 5)],
            unreported: false,
        };
        assert_eq!((process.counted(true).count(), process.counted(false).count()), (1, 3));
    }
}
