//! Words through the decoder into the sink: with sums by hand, and against a model that keeps every call.

use std::collections::BTreeMap;

use heaptoll_reftrace::Decoder;
use heaptoll_reftrace::word::EventKind;
use proptest::prelude::*;

use super::*;
use crate::class::SizeClass;
use crate::figures::{ClassFigures, Figures, RoutineFigures};

/// Writes words as the tracer does, with one clock for each thread.
#[derive(Default)]
struct Words {
    words: Vec<u64>,
    clocks: BTreeMap<u32, u64>,
    thread: u32,
}

impl Words {
    fn event(&mut self, kind: EventKind, payload: u64, more: &[u64]) {
        self.words.push(kind.word(payload));
        self.words.extend(more);
    }

    /// Advances the running thread's clock; every second instruction loads, every third one stores.
    fn run(&mut self, instructions: u64) -> &mut Words {
        *self.clocks.entry(self.thread).or_default() += instructions;
        self
    }

    fn clock(&self) -> [u64; 2] {
        let now = self.clocks.get(&self.thread).copied().unwrap_or(0);
        [now, (now / 2) | ((now / 3) << 32)]
    }

    fn thread(&mut self, thread: u32) -> &mut Words {
        self.thread = thread;
        self.event(EventKind::Thread, thread.into(), &[]);
        self
    }

    fn enter(&mut self, routine: Routine, arguments: [u64; 3]) -> &mut Words {
        let [now, memory] = self.clock();
        self.event(
            EventKind::Enter,
            routine as u64,
            &[now, memory, arguments[0], arguments[1], arguments[2]],
        );
        self
    }

    fn leave(&mut self, routine: Routine, result: u64) -> &mut Words {
        let [now, memory] = self.clock();
        self.event(EventKind::Leave, routine as u64, &[now, memory, result]);
        self
    }

    fn at(&mut self, kind: EventKind, payload: u64, more: &[u64]) -> &mut Words {
        let [now, memory] = self.clock();
        let more: Vec<u64> = [now, memory].into_iter().chain(more.iter().copied()).collect();
        self.event(kind, payload, &more);
        self
    }

    fn map(&mut self, address: u64, length: u64) -> &mut Words {
        self.event(EventKind::Map, 3 | (1 << 3), &[address, length]);
        self
    }

    fn call(&mut self, routine: Routine, arguments: [u64; 3], cost: u64, result: u64) -> &mut Words {
        self.enter(routine, arguments).run(cost).leave(routine, result)
    }

    fn figures(&mut self) -> Figures {
        self.at(EventKind::End, 0, &[]);
        let (mut decoder, mut costs) = (Decoder::new(), Costs::new());
        decoder.decode(&self.words, &mut costs).expect("whole words");
        costs.figures(decoder.totals())
    }
}

fn routine<'a>(figures: &'a Figures, name: &str) -> &'a RoutineFigures {
    figures.routines.iter().find(|one| one.routine == name).expect("it was called")
}

fn sized(up_to: u64) -> impl Fn(&&ClassFigures) -> bool {
    move |one| one.class.up_to() == Some(up_to)
}

#[test]
fn the_tables_are_those_of_the_paper() {
    let mut words = Words::default();
    words.run(1000);
    words.call(Routine::Malloc, [24, 0, 0], 50, 0x1000).run(300);
    words.call(Routine::Calloc, [3, 8, 0], 90, 0x2000).run(200);
    words.call(Routine::Realloc, [0x1000, 100, 0], 70, 0x3000).run(100);
    words.call(Routine::Free, [0x3000, 0, 0], 20, 0).call(Routine::Free, [0x2000, 0, 0], 10, 0).run(160);
    let figures = words.figures();
    let tables = figures.tables;
    assert_eq!(figures.amounts.objects, 2);
    assert_eq!(tables.instructions_per_malloc, Some(70.0));
    assert_eq!(tables.instructions_per_free, Some(15.0));
    assert_eq!(tables.instructions_per_realloc, Some(70.0));
    assert_eq!(tables.instructions_per_object, Some(120.0), "240 instructions, two objects");
    assert_eq!(figures.amounts.owners.program.instructions, 1760);
    assert_eq!(tables.percent_of_application, Some(100.0 * 240.0 / 1760.0));
    assert_eq!(tables.percent_in_malloc, Some(7.0), "140 of 2000");
    assert_eq!(tables.percent_in_free, Some(5.0), "100 of 2000");
    assert_eq!(figures.heap.most_live_bytes, 124, "100 and 24");
}

#[test]
fn frees_are_counted_by_the_requested_size() {
    let mut words = Words::default();
    words.call(Routine::Malloc, [24, 0, 0], 5, 0x1000).call(Routine::Malloc, [1000, 0, 0], 6, 0x2000);
    words.call(Routine::Free, [0x2000, 0, 0], 30, 0).call(Routine::Free, [0x1000, 0, 0], 20, 0);
    words.call(Routine::Free, [0, 0, 0], 3, 0).call(Routine::Free, [0x9000, 0, 0], 40, 0);
    let figures = words.figures();
    let free = routine(&figures, "free");
    assert_eq!((free.calls, free.null_calls, free.unknown_calls), (4, 1, 1));
    let mean =
        |class: SizeClass| free.classes.iter().find(|one| one.class == class).map(|one| one.per_call.mean);
    assert_eq!(mean(SizeClass::Null), Some(3.0));
    assert_eq!(mean(SizeClass::Unknown), Some(40.0));
    assert_eq!(free.classes.iter().find(sized(24)).map(|one| one.per_call.max), Some(20));
    assert_eq!(free.classes.iter().find(sized(1024)).map(|one| one.per_call.p50), Some(30));
}

#[test]
fn a_failed_realloc_leaves_its_block_and_one_to_nothing_frees_it() {
    let mut words = Words::default();
    words.call(Routine::Malloc, [24, 0, 0], 5, 0x1000);
    words.call(Routine::Realloc, [0x1000, 1 << 50, 0], 5, 0);
    words.call(Routine::Realloc, [0x1000, 48, 0], 5, 0x1000);
    words.call(Routine::Realloc, [0x1000, 0, 0], 5, 0);
    words.call(Routine::Free, [0x1000, 0, 0], 5, 0);
    words.call(Routine::Realloc, [0, 8, 0], 5, 0x4000);
    words.call(Routine::Malloc, [u64::MAX, 0, 0], 5, 0).call(Routine::Calloc, [u64::MAX, 2, 0], 5, 0);
    let figures = words.figures();
    let realloc = routine(&figures, "realloc");
    assert_eq!(
        (realloc.calls, realloc.failed_calls, realloc.null_calls, realloc.unknown_calls),
        (4, 1, 1, 0)
    );
    assert_eq!(routine(&figures, "free").unknown_calls, 1);
    assert_eq!((routine(&figures, "malloc").failed_calls, routine(&figures, "calloc").failed_calls), (1, 1));
    assert_eq!((figures.amounts.objects, figures.amounts.object_bytes), (2, 32));
    assert_eq!(figures.heap.most_live_bytes, 48);
    let groups = &figures.amounts.groups;
    assert_eq!((groups.allocate.calls, groups.resize.calls), (4, 3), "a realloc of nothing makes a block");
    assert_eq!(figures.by_size.allocate.iter().filter(sized(8)).map(|one| one.calls).sum::<u64>(), 1);
}

#[test]
fn collections_are_part_of_the_call_and_reported_separately() {
    let mut words = Words::default();
    words.enter(Routine::Malloc, [16, 0, 0]).run(30).at(EventKind::Announced, 1, &[0]).run(5000);
    words.map(0x10_0000, 0x1000).at(EventKind::Announced, 2, &[0]).run(10).leave(Routine::Malloc, 0x1000);
    words.call(Routine::Malloc, [16, 0, 0], 20, 0x2000);
    let figures = words.figures();
    let malloc = routine(&figures, "malloc");
    assert_eq!((malloc.cost.instructions, malloc.collector_instructions), (5060, 5000));
    assert_eq!(figures.amounts.owners.allocator.instructions, 60);
    assert_eq!(figures.amounts.owners.collector.instructions, 5000);
    assert_eq!((figures.amounts.collections, malloc.per_call.p50), (1, 20));
    assert_eq!(figures.heap.high_water_bytes, 0x1000);
}

#[test]
fn an_abandoned_call_is_in_no_class() {
    let mut words = Words::default();
    words
        .enter(Routine::Malloc, [16, 0, 0])
        .run(30)
        .at(EventKind::Abandon, Routine::Malloc as u64, &[])
        .run(5);
    words.call(Routine::Malloc, [16, 0, 0], 20, 0x2000).enter(Routine::Free, [0x2000, 0, 0]).run(4);
    let figures = words.figures();
    let malloc = routine(&figures, "malloc");
    assert_eq!((malloc.calls, malloc.abandoned_calls, malloc.abandoned_instructions), (1, 1, 30));
    assert_eq!((figures.unfinished_calls, figures.amounts.objects), (1, 1));
    assert_eq!(figures.amounts.owners.allocator.instructions, 54, "all that was in routines");
}

#[test]
fn another_thread_may_have_the_address_before_the_free_ends() {
    let mut words = Words::default();
    words.thread(1).call(Routine::Malloc, [16, 0, 0], 20, 0x2000).enter(Routine::Free, [0x2000, 0, 0]);
    words.thread(2).call(Routine::Malloc, [400, 0, 0], 20, 0x2000);
    words.thread(1).run(7).leave(Routine::Free, 0);
    words.thread(2).call(Routine::Free, [0x2000, 0, 0], 9, 0);
    let figures = words.figures();
    let free = routine(&figures, "free");
    assert_eq!((free.unknown_calls, free.classes.len()), (0, 2));
    assert_eq!(free.classes.iter().find(sized(448)).map(|one| one.cost.instructions), Some(9));
}

#[test]
fn the_heap_is_what_routines_map_and_what_holds_objects() {
    let mut words = Words::default();
    words.map(0x10_0000, 0x4000).map(0x20_0000, 0x8000).map(0x30_0000, 0x1000);
    words.enter(Routine::New, [16, 0, 0]).map(0x40_0000, 0x2000).run(9).leave(Routine::New, 0x20_0010);
    let heap = words.figures().heap;
    assert_eq!((heap.high_water_bytes, heap.pages_with_blocks_bytes), (0xa000, 0x1000));
    assert_eq!(heap.expansion, Some(f64::from(0x1000) / 16.0));
}

#[test]
fn amounts_of_images_add_up() {
    let one = Words::default().run(10).call(Routine::Malloc, [8, 0, 0], 6, 0x1000).figures().amounts;
    let other = Words::default().run(20).call(Routine::Malloc, [8, 0, 0], 10, 0x1000).figures().amounts;
    let both = one.plus(other);
    assert_eq!((both.instructions(), both.allocation(), both.objects), (46, 16, 2));
    assert_eq!(both.tables().instructions_per_malloc, Some(8.0));
}

/// A call of the model.
#[derive(Debug, Clone, Copy)]
struct TestCall {
    thread: u32,
    routine: Routine,
    size: u64,
    block: usize,
    cost: u64,
    between: u64,
}

fn test_call() -> impl Strategy<Value = TestCall> {
    let routine = prop_oneof![
        4 => Just(Routine::Malloc),
        1 => Just(Routine::Calloc),
        1 => Just(Routine::PosixMemalign),
        1 => Just(Routine::New),
        2 => Just(Routine::Realloc),
        4 => Just(Routine::Free),
        1 => Just(Routine::Delete),
        1 => Just(Routine::UsableSize),
    ];
    let cost = prop_oneof![8 => 1u64..200, 1 => 1u64..4000];
    (1u32..4, routine, 0u64..3000, 0usize..12, cost, 0u64..50).prop_map(
        |(thread, routine, size, block, cost, between)| TestCall {
            thread,
            routine,
            size,
            block,
            cost,
            between,
        },
    )
}

/// What the model expects of every call: routine, size requested or of the block, cost.
type ExpectedCalls = Vec<(Routine, Option<u64>, u64)>;

/// Makes the calls on blocks at twelve addresses: the words, what each call should be counted as, and the most bytes
/// live.
fn perform(calls: &[TestCall]) -> (Words, ExpectedCalls, u64) {
    let (mut words, mut expected) = (Words::default(), ExpectedCalls::new());
    let (mut live, mut most) = (BTreeMap::new(), 0);
    for call in calls {
        let address = 0x1000 * (call.block as u64 + 1);
        words.thread(call.thread).run(call.between);
        let (arguments, result, counted) = match call.routine {
            Routine::Free | Routine::Delete => ([address, 0, 0], 0, live.remove(&address)),
            Routine::UsableSize => ([address, 0, 0], 0, live.get(&address).copied()),
            Routine::Realloc => ([address, call.size, 0], address, Some(call.size)),
            Routine::Calloc => ([1, call.size, 0], address, Some(call.size)),
            Routine::PosixMemalign => ([7, 64, call.size], address, Some(call.size)),
            _ => ([call.size, 0, 0], address, Some(call.size)),
        };
        if result != 0 {
            live.insert(address, call.size);
        }
        most = most.max(live.values().sum());
        words.call(call.routine, arguments, call.cost, result);
        expected.push((call.routine, counted, call.cost));
    }
    (words, expected, most)
}

proptest! {
    #[test]
    fn tallies_are_those_of_the_model(calls in proptest::collection::vec(test_call(), 1..200)) {
        let (mut words, expected, most) = perform(&calls);
        let figures = words.figures();
        prop_assert_eq!(figures.heap.most_live_bytes, most);
        let allocator = figures.amounts.owners.allocator.instructions;
        prop_assert_eq!(allocator, expected.iter().map(|call| call.2).sum::<u64>());
        prop_assert_eq!(figures.amounts.owners.program.instructions, calls.iter().map(|call| call.between).sum::<u64>());
        for one in &figures.routines {
            let of: Vec<_> = expected.iter().filter(|call| call.0.name() == one.routine).collect();
            prop_assert_eq!(one.calls, of.len() as u64);
            prop_assert_eq!(one.cost.instructions, of.iter().map(|call| call.2).sum::<u64>());
            prop_assert_eq!(one.classes.iter().map(|class| class.calls).sum::<u64>(), one.calls);
            for class in &one.classes {
                let inside = |size: Option<u64>| match (class.class, size) {
                    (SizeClass::Size { from_bytes, up_to_bytes }, Some(size)) => {
                        (from_bytes..=up_to_bytes).contains(&size)
                    }
                    (SizeClass::Unknown, None) => true,
                    _ => false,
                };
                let mut costs: Vec<u64> = of.iter().filter(|call| inside(call.1)).map(|call| call.2).collect();
                costs.sort_unstable();
                let rank = |percent: usize| costs[(costs.len() * percent).div_ceil(100) - 1];
                let reported = class.per_call;
                prop_assert_eq!((reported.p50, reported.p90, reported.p99, reported.max), (rank(50), rank(90), rank(99), rank(100)));
                prop_assert_eq!(class.calls, costs.len() as u64);
            }
        }
        prop_assert_eq!(figures.routines.iter().map(|one| one.calls).sum::<u64>(), calls.len() as u64);
        {
            let (fine, coarse, groups) = (&figures.by_size, &figures.by_doubling, &figures.amounts.groups);
            let pairs = [
                (&fine.allocate, &coarse.allocate, groups.allocate),
                (&fine.free, &coarse.free, groups.free),
                (&fine.resize, &coarse.resize, groups.resize),
            ];
            for (fine, coarse, counts) in pairs {
                for classes in [fine, coarse] {
                    prop_assert_eq!(classes.iter().map(|one| one.calls).sum::<u64>(), counts.calls);
                    let sum: u64 = classes.iter().map(|one| one.cost.instructions).sum();
                    prop_assert_eq!(sum, counts.instructions);
                }
                prop_assert_eq!(
                    fine.iter().map(|one| one.per_call.max).max(),
                    coarse.iter().map(|one| one.per_call.max).max()
                );
            }
        }
    }
}
