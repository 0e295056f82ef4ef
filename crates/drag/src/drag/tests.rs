use std::collections::BTreeMap;

use heaptoll_reftrace::Decoder;
use heaptoll_reftrace::word::EventKind;
use proptest::prelude::*;

use super::*;
use crate::figures::{FigureOptions, Figures};
use crate::space::Space;

/// Writes the words of a process.
#[derive(Default)]
struct Process {
    words: Vec<u64>,
    instructions: u64,
}

impl Process {
    /// The program executes instructions, which no event has recorded yet.
    fn runs(&mut self, instructions: u64) -> &mut Process {
        self.instructions += instructions;
        self
    }

    fn event(&mut self, kind: EventKind, payload: u64, more: &[u64]) -> &mut Process {
        self.words.extend([kind.word(payload), self.instructions, 0]);
        self.words.extend(more);
        self
    }

    fn loads(&mut self, address: u64) -> &mut Process {
        self.words.push(Reference::new(address, 8, false).0);
        self
    }

    /// A load in the middle of ten instructions.
    fn touches(&mut self, address: u64) -> &mut Process {
        self.loads(address).runs(10).event(EventKind::Tick, 0, &[])
    }

    fn calls(&mut self, routine: Routine, arguments: [u64; 3], result: u64) -> &mut Process {
        // Accesses of the routine to the block are no touches.
        let block = if result == 0 { arguments[0] } else { result };
        self.event(EventKind::Enter, routine as u64, &arguments).loads(block).runs(100);
        self.event(EventKind::Leave, routine as u64, &[result])
    }

    fn malloc(&mut self, size: u64, address: u64) -> &mut Process {
        self.calls(Routine::Malloc, [size, 0, 0], address)
    }

    fn free(&mut self, address: u64) -> &mut Process {
        self.calls(Routine::Free, [address, 0, 0], 0)
    }

    fn collects(&mut self) -> &mut Process {
        self.event(EventKind::Announced, 1, &[1]).runs(1000).event(EventKind::Announced, 2, &[0])
    }

    fn decoded(&self, manager: ManagerInfo) -> Drag {
        let (mut drag, mut decoder) = (Drag::new(manager), Decoder::new());
        decoder.decode(&self.words, &mut drag).expect("sound words");
        drag
    }

    fn figures(&self, collector: bool) -> Figures {
        let options =
            FigureOptions { clock: Clock::Instructions, sites: true, depth: 12, pointers: true, frames: 3 };
        let figures = self.decoded(ManagerInfo { collector }).figures(options);
        closes(&figures);
        figures
    }
}

/// Asserts that classes, sites and curves sum to the same objects.
fn closes(figures: &Figures) {
    let clocks = [(Clock::Instructions, figures.instructions), (Clock::Bytes, figures.bytes_allocated)];
    for (clock, end) in clocks {
        let all = *figures.all.space(clock);
        for groups in [&figures.classes, &figures.sites] {
            let sum = groups.iter().fold(Space::default(), |sum, group| sum.plus(group.space(clock)));
            assert_eq!(sum, all);
        }
        let intervals = figures.over_time.on(clock);
        assert_eq!(intervals.last().map_or(0, |interval| interval.to), end);
        let near = |curve: f64, space: u128| {
            assert!((curve - space as f64).abs() <= space as f64 * 1e-9, "{curve} is not {space}");
        };
        let area = |bytes: fn(&crate::timeline::Interval) -> f64| -> f64 {
            intervals.iter().map(|interval| bytes(interval) * (interval.to - interval.from) as f64).sum()
        };
        near(area(|interval| interval.lag_bytes), all.lag);
        near(area(|interval| interval.use_bytes), all.in_use);
        near(area(|interval| interval.drag_bytes), all.drag);
        near(area(|interval| interval.void_bytes), all.void);
        near(area(|interval| interval.unreclaimed_bytes), all.unreclaimed);
    }
}

fn space(lag: u128, in_use: u128, drag: u128, void: u128, unreclaimed: u128) -> Space {
    Space { lag, in_use, drag, void, unreclaimed }
}

#[test]
fn lag_use_drag_and_void_are_distinguished() {
    let mut process = Process::default();
    process.malloc(100, 0x1000).malloc(10, 0x2000).runs(50);
    // First touch at 55 on the clock of instructions, last at 55 + 60 + 10.
    process.event(EventKind::Tick, 0, &[]).touches(0x1000).malloc(7, 0x3000).runs(60);
    process.event(EventKind::Tick, 0, &[]).touches(0x1063).touches(0x1064).malloc(3, 0x4000).runs(25);
    process.free(0x1000).free(0x2000);
    let figures = process.figures(false);
    assert_eq!(figures.instructions, 50 + 10 + 60 + 20 + 25);
    assert_eq!(figures.bytes_allocated, 120);
    let class = |name: &str| figures.classes.iter().find(|class| class.name == name).expect("it is there");
    let touched = class("65 to 128");
    assert_eq!(touched.space_instructions, space(5500, 7000, 4000, 0, 0));
    // Made at 100, touched at 110 and 117, freed at 120.
    assert_eq!(touched.space_bytes, space(1000, 700, 300, 0, 0));
    let void = class("9 to 16");
    assert_eq!(void.space_instructions, space(0, 0, 0, 1650, 0));
    assert_eq!((void.never_touched.objects, void.not_freed.objects), (1, 0));
    assert_eq!((figures.all.not_freed.objects, figures.all.never_touched.objects), (2, 3));
    assert_eq!(figures.references.program_in_objects, 2);
    assert_eq!((figures.most_bytes, figures.collector), (120, None));
}

#[test]
fn what_system_calls_read_and_write_is_touched() {
    let mut process = Process::default();
    process.malloc(64, 0x1000).runs(10).event(EventKind::Tick, 0, &[]);
    process.words.extend([EventKind::KernelStore.word(64), 0x1000]);
    process.runs(10).event(EventKind::Tick, 0, &[]).free(0x1000);
    assert_eq!(process.figures(false).all.space_instructions, space(15 * 64, 0, 5 * 64, 0, 0));
}

#[test]
fn a_realloc_keeps_the_object_and_its_copy_is_no_touch() {
    let mut process = Process::default();
    process.malloc(10, 0x1000).touches(0x1000).runs(5);
    process.calls(Routine::Realloc, [0x1000, 20, 0], 0x2000).runs(30);
    process.calls(Routine::Realloc, [0x2000, 5, 0], 0x2000).touches(0x2004).touches(0x2005);
    process.free(0x2000).free(0x1000);
    let figures = process.figures(false);
    // Lag 5; use: 10 more at 10 bytes, 30 at 20, 5 at 5; drag: 15 at 5.
    assert_eq!(figures.all.space_instructions, space(50, 100 + 600 + 25, 75, 0, 0));
    assert_eq!((figures.all.all.objects, figures.all.all.bytes, figures.bytes_allocated), (1, 5, 20));
    assert_eq!(figures.unknown_frees, 1);
}

#[test]
fn a_realloc_that_fails_or_is_left_changes_nothing() {
    let mut process = Process::default();
    process.malloc(10, 0x1000).runs(10).calls(Routine::Realloc, [0x1000, 1 << 60, 0], 0).runs(10);
    process.event(EventKind::Enter, Routine::Realloc as u64, &[0x1000, 90, 0]).runs(3);
    process.event(EventKind::Abandon, Routine::Realloc as u64, &[]).runs(10);
    process.calls(Routine::Realloc, [0x1000, 0, 0], 0).runs(10).event(EventKind::Tick, 0, &[]);
    let figures = process.figures(false);
    assert_eq!(figures.all.space_instructions, space(0, 0, 0, 300, 0));
    assert_eq!((figures.all.not_freed.objects, figures.unknown_frees), (0, 0));
}

#[test]
fn a_realloc_in_one_thread_leaves_its_place_to_another() {
    let mut process = Process::default();
    process.malloc(10, 0x1000).event(EventKind::Enter, Routine::Realloc as u64, &[0x1000, 90, 0]);
    process.words.push(EventKind::Thread.word(2));
    let instructions = std::mem::take(&mut process.instructions);
    process.malloc(10, 0x1000);
    process.words.push(EventKind::Thread.word(0));
    process.instructions = instructions;
    process.event(EventKind::Leave, Routine::Realloc as u64, &[0x2000]);
    let figures = process.figures(false);
    assert_eq!((figures.all.all.objects, figures.all.lost.objects, figures.most_bytes), (2, 0, 100));
}

#[test]
fn what_is_there_at_the_end_was_not_freed() {
    let mut process = Process::default();
    process.malloc(10, 0x1000).touches(0x1000).runs(95).event(EventKind::Tick, 0, &[]);
    let figures = process.figures(false);
    assert_eq!(figures.all.not_freed_space_instructions, space(50, 0, 1000, 0, 0));
    assert_eq!(figures.all.not_freed.objects, 1);
}

/// The free was not seen: the address is allocated again.
#[test]
fn a_block_given_out_twice_was_lost() {
    let mut process = Process::default();
    process.malloc(10, 0x1000).runs(10).malloc(10, 0x1008).runs(10).free(0x1008);
    let figures = process.figures(false);
    assert_eq!((figures.all.lost.objects, figures.all.space_instructions), (1, space(0, 0, 0, 200, 0)));
}

#[test]
fn a_collector_that_ignores_frees_makes_blocks_wait() {
    let mut process = Process::default();
    process.malloc(10, 0x1000).malloc(20, 0x2000).touches(0x1000).free(0x1000).runs(100);
    // The collection comes 100 after the free, the reuse later still: it was reclaimed at 100.
    process.event(EventKind::Enter, Routine::Malloc as u64, &[10, 0, 0]).collects();
    process.event(EventKind::Leave, Routine::Malloc as u64, &[0x3000]).runs(40);
    // What was not freed existed at the collection, and was reclaimed by it at the latest.
    process.malloc(4, 0x1000).malloc(4, 0x2000).runs(7).free(0x1000).runs(13).event(EventKind::Tick, 0, &[]);
    let figures = process.figures(true);
    let collector = figures.collector.expect("it collects");
    assert_eq!((collector.collections, collector.reclaims_at_free), (1, false));
    let blocks = collector.freed_blocks;
    assert_eq!((blocks.by_free.objects, blocks.after_collection.objects, blocks.never.objects), (0, 1, 1));
    assert_eq!(figures.all.reclaimed, Sum { objects: 1, bytes: 20 });
    let void = 20 * 110 + 10 * 60 + 4 * 7 + 4 * 20;
    assert_eq!(figures.all.space_instructions, space(50, 0, 50, void, 10 * 100 + 4 * 13));
}

#[test]
fn a_collector_that_gives_out_freed_blocks_at_once_makes_none_wait() {
    let mut process = Process::default();
    process.malloc(10, 0x1000).runs(10).free(0x1000).runs(10).malloc(10, 0x1000).runs(10).free(0x1000);
    process.collects().runs(30).malloc(1, 0x1000);
    let figures = process.figures(true);
    let collector = figures.collector.expect("it collects");
    assert!(collector.reclaims_at_free);
    assert_eq!(figures.all.space_instructions, space(0, 0, 0, 200, 0));
}

#[test]
fn what_is_touched_after_a_collection_was_not_reclaimed_by_it() {
    let mut process = Process::default();
    process.malloc(10, 0x1000).collects().touches(0x1000).runs(5).malloc(10, 0x1000);
    let figures = process.figures(true);
    assert_eq!((figures.all.reclaimed.objects, figures.all.lost.objects), (0, 1));
}

#[test]
fn memory_that_is_unmapped_ends_what_lies_in_it() {
    let mut process = Process::default();
    process.malloc(10, 0x1000).free(0x1000).runs(10).collects().runs(10).event(EventKind::Tick, 0, &[]);
    process.words.extend([EventKind::Unmap.word(0), 0, 0x10_0000]);
    process.runs(100).event(EventKind::Tick, 0, &[]);
    let figures = process.figures(true);
    assert_eq!(figures.all.space_instructions.unreclaimed, 100);
}

#[test]
fn pointer_stores_are_counted_by_age_of_both_objects() {
    let mut process = Process::default();
    process.malloc(16, 0x1000).malloc(16, 0x2000);
    let mut store = |into: u64, value: u64| {
        process.words.push(Reference::new(into, 8, true).0);
        process.words.push(EventKind::Pointer.word(value));
    };
    [(0x1000, 0x2008), (0x2000, 0x1000), (0x2008, 0x2000), (0x9000, 0x1000), (0x1000, 0x2010)]
        .into_iter()
        .for_each(|(into, value)| store(into, value));
    process.runs(2000).event(EventKind::Tick, 0, &[]);
    let pointers = process.figures(false).pointers.expect("they were requested");
    let program = pointers.stores.program;
    assert_eq!((program.all, program.older_to_younger, program.younger_to_older), (5, 1, 1));
    assert_eq!((program.to_itself, program.from_elsewhere, program.to_none), (1, 1, 1));
    assert_eq!(pointers.older_to_younger_per_1000_instructions, 0.5);
}

#[test]
fn sites_have_the_objects_that_they_made() {
    let mut process = Process::default();
    let frame = u64::from_le_bytes(*b"main (m.");
    process.words.extend([EventKind::Text.word((1 << 32) | 8), 77, frame]);
    process.words.extend([EventKind::SiteDefinition.word(1 + 256 * 5), 77, EventKind::Site.word(5)]);
    process.malloc(16, 0x1000).runs(10).free(0x1000).malloc(1, 0x1000);
    let figures = process.figures(false);
    let names: Vec<(&str, u64)> =
        figures.sites.iter().map(|site| (site.name.as_str(), site.all.bytes)).collect();
    assert_eq!(names, [("main", 16), ("not known", 1)]);
    assert_eq!(figures.sites[0].stacks, Some(1));
    assert_eq!(figures.sites[0].frames, ["main (m."]);
}

#[derive(Debug, Clone)]
enum Step {
    Malloc(u64),
    Free(prop::sample::Index),
    Realloc(prop::sample::Index, u64),
    Touch(prop::sample::Index, u64),
    Run(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let any = any::<prop::sample::Index>;
    prop_oneof![
        3 => (0_u64..300).prop_map(Step::Malloc),
        2 => any().prop_map(Step::Free),
        2 => (any(), 1_u64..400).prop_map(|(which, size)| Step::Realloc(which, size)),
        4 => (any(), 0_u64..310).prop_map(|(which, at)| Step::Touch(which, at)),
        1 => (0_u64..500).prop_map(Step::Run),
    ]
}

/// An object of the model: sizes with their start, touches, and its end.
#[derive(Default)]
struct ModelObject {
    pieces: Vec<(u64, Stamp)>,
    touches: Vec<Stamp>,
    end: Stamp,
}

impl ModelObject {
    fn spaces(&self) -> Spaces {
        let mut spaces = Spaces::default();
        for (number, (size, from)) in self.pieces.iter().enumerate() {
            let to = self.pieces.get(number + 1).map_or(self.end, |next| next.1);
            for clock in Clock::ALL {
                let (from, to) = (from[clock], to[clock]);
                let clip = |at: &Stamp| at[clock].clamp(from, to);
                let mut add = |phase: Phase, length: u64| {
                    spaces.0[clock as usize].add(phase, u128::from(*size) * u128::from(length));
                };
                match (self.touches.first().map(clip), self.touches.last().map(clip)) {
                    (Some(first), Some(last)) => {
                        add(Phase::Lag, first - from);
                        add(Phase::Use, last - first);
                        add(Phase::Drag, to - last);
                    }
                    _ => add(Phase::Void, to - from),
                }
            }
        }
        spaces
    }
}

proptest! {
    /// Any order of calls and touches gives the result of a model that keeps everything.
    #[test]
    fn space_is_as_in_a_model_that_keeps_everything(steps in prop::collection::vec(step(), 0..120)) {
        let mut process = Process::default();
        let mut live: BTreeMap<u64, ModelObject> = BTreeMap::new();
        let mut ended: Vec<ModelObject> = Vec::new();
        let (mut now, mut next) = (Stamp::default(), 0x10_000_u64);
        let mut address = |size: u64| {
            let address = next;
            next += size.max(1);
            address
        };
        for step in steps {
            let which = |which: prop::sample::Index| live.keys().nth(which.index(live.len().max(1))).copied();
            match step {
                Step::Malloc(size) => {
                    let at = address(size);
                    process.malloc(size, at);
                    now[Clock::Bytes] += size;
                    live.insert(at, ModelObject { pieces: vec![(size, now)], ..ModelObject::default() });
                }
                Step::Free(index) => if let Some(at) = which(index) {
                    process.free(at);
                    let known = live.remove(&at).map(|known| ModelObject { end: now, ..known });
                    ended.extend(known);
                },
                Step::Realloc(index, size) => if let Some(at) = which(index)
                    && let Some(mut known) = live.remove(&at)
                {
                    let before = known.pieces.last().map_or(0, |piece| piece.0);
                    let to = if size > before { address(size) } else { at };
                    process.calls(Routine::Realloc, [at, size, 0], to);
                    now[Clock::Bytes] += size.saturating_sub(before);
                    known.pieces.push((size, now));
                    live.insert(to, known);
                },
                Step::Touch(index, offset) => if let Some(at) = which(index)
                    && let Some(known) = live.get_mut(&at)
                {
                    process.touches(at + offset);
                    let mut touched_at = now;
                    touched_at[Clock::Instructions] += 5;
                    now[Clock::Instructions] += 10;
                    let size = known.pieces.last().map_or(0, |piece| piece.0);
                    if offset < size.max(1) {
                        known.touches.push(touched_at);
                    } else if let Some((start, other)) = live.range_mut(..=at + offset).next_back() {
                        // The address is in another object.
                        let size = other.pieces.last().map_or(0, |piece| piece.0);
                        if at + offset < start + size.max(1) {
                            other.touches.push(touched_at);
                        }
                    }
                },
                Step::Run(instructions) => {
                    process.runs(instructions).event(EventKind::Tick, 0, &[]);
                    now[Clock::Instructions] += instructions;
                }
            }
        }
        let objects = live.len() + ended.len();
        ended.extend(live.into_values().map(|known| ModelObject { end: now, ..known }));
        let expected = ended.iter().fold(Spaces::default(), |sum, known| sum.plus(&known.spaces()));
        let figures = process.figures(false);
        prop_assert_eq!(figures.all.all.objects, objects as u64);
        prop_assert_eq!(figures.all.space_instructions, *expected.on(Clock::Instructions));
        prop_assert_eq!(figures.all.space_bytes, *expected.on(Clock::Bytes));
        prop_assert_eq!(figures.all.lost.objects, 0);
    }
}
