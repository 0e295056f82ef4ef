//! Effects of calls on kept objects: a free has none, and a realloc makes a copy.

use heaptoll_drag::objects::Index;
use heaptoll_trace::Output;
use heaptoll_trace::graph::{Allocation, AllocationKind};

use crate::recorder::Recorder;

impl<W: Output> Recorder<W> {
    /// Records a program of which nothing is freed that it allocates from `main` on.
    pub fn keeping(mut self) -> Recorder<W> {
        self.kept.is_on = true;
        self
    }

    /// The kept object that begins at an address.
    pub(crate) fn kept_at(&mut self, address: u64) -> Option<Index> {
        let index = self.objects.find(address).filter(|index| self.objects.start(*index) == address)?;
        self.kept.has(self.objects.get(index).number).then_some(index)
    }

    /// A realloc of a kept object has made another one, with a copy of its words.
    pub(crate) fn resized_kept(&mut self, old: Index, size: u64, site: u32, result: u64) {
        if result == 0 {
            return;
        }
        let (start, copied) = (self.objects.start(old), size.min(self.objects.get(old).size));
        let thread = self.thread_index();
        self.allocated(
            result,
            Allocation { size, site, thread, kind: AllocationKind::Resized, align_log2: 0 },
        );
        for word in self.words.within(start, start + copied) {
            let cell = self.words.get(word).filter(|_| word >= start && word + 8 <= start + copied);
            if let Some(cell) = cell
                && self.leads_to(cell).is_some()
            {
                self.hold(result + (word - start), Some(cell.value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_reftrace::{Clock, Event, Routine, Sink};
    use heaptoll_trace::graph::{Batch, Event as Recorded, Reader, Writer};
    use heaptoll_trace::{Ending, Header, Settings};

    use super::*;

    /// A recorder, and the calls and stores that tests make of it.
    struct Run(Recorder<Vec<u8>>);

    impl Run {
        fn new() -> Run {
            let writer = Writer::new(Vec::new(), &Header::default(), &Settings::default()).expect("memory");
            Run(Recorder::new(writer, false).keeping())
        }

        fn call(&mut self, routine: Routine, arguments: [u64; 3], result: u64) {
            let (family, clock, site) = (0, Clock::default(), 1);
            self.0.event(&Event::Enter { routine, family, clock, arguments, site });
            let (cost, collector, served_by) = (clock, clock, None);
            let left =
                Event::Leave { routine, family, clock, arguments, site, result, cost, collector, served_by };
            self.0.event(&left);
        }

        fn store(&mut self, address: u64, value: u64) {
            self.0.event(&Event::WordAt { address, value });
        }

        /// All events but those of the end.
        fn events(self) -> Vec<Recorded> {
            let (bytes, ..) = self.0.finish(&Ending::default()).expect("memory");
            let mut reader = Reader::with_name(&bytes[..], "the trace").expect("a trace");
            let (mut batch, mut all) = (Batch::default(), Vec::new());
            while reader.read(&mut batch).expect("memory") {
                all.extend(batch.events.iter().filter(|event| !matches!(event, Recorded::Kept { .. })));
            }
            all
        }
    }

    fn edges(events: &[Recorded]) -> Vec<(u64, u64, u64)> {
        let edge = |event: &Recorded| match *event {
            Recorded::Edge { from, offset, to, .. } => Some((from, offset, to)),
            _ => None,
        };
        events.iter().filter_map(edge).collect()
    }

    #[test]
    fn from_main_on_a_free_ends_nothing_and_before_it_does() {
        let mut run = Run::new();
        run.call(Routine::Malloc, [32, 0, 0], 0x1000);
        run.call(Routine::Malloc, [32, 0, 0], 0x2000);
        run.0.event(&Event::Main { before: Default::default() });
        run.call(Routine::Malloc, [32, 0, 0], 0x3000);
        run.call(Routine::Free, [0x1000, 0, 0], 0);
        run.call(Routine::Free, [0x3000, 0, 0], 0);
        run.store(0x2008, 0x3000);
        run.store(0x2010, 0x1000);
        let events = run.events();
        let freed = |event: &Recorded| match *event {
            Recorded::Free { object, .. } => Some(object),
            _ => None,
        };
        assert_eq!(events.iter().filter_map(freed).collect::<Vec<u64>>(), [0]);
        assert_eq!(edges(&events), [(1, 8, 2)]);
    }

    #[test]
    fn a_realloc_makes_a_copy_with_the_edges_and_the_old_object_keeps_its_own() {
        let mut run = Run::new();
        run.0.event(&Event::Main { before: Default::default() });
        run.call(Routine::Malloc, [32, 0, 0], 0x1000);
        run.call(Routine::Malloc, [32, 0, 0], 0x2000);
        run.store(0x1000, 0x2000);
        run.store(0x1018, 0x1000);
        run.call(Routine::Realloc, [0x1000, 24, 0], 0x3000);
        run.call(Routine::Realloc, [0x2000, 1 << 60, 0], 0);
        run.store(0x1008, 0x3000);
        let events = run.events();
        assert!(!events.iter().any(|event| matches!(event, Recorded::Free { .. })), "{events:?}");
        assert_eq!(edges(&events), [(0, 0, 1), (0, 24, 0), (2, 0, 1), (0, 8, 2)]);
    }
}
