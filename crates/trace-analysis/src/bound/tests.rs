//! Bounds against what can be proven: no two live blocks overlap, and on tiny traces the optimum is known.

use heaptoll_trace::{Allocation, Ending, Header, Settings, Writer};
use proptest::prelude::*;

use super::*;

const OPTIONS: Options = Options { small_blocks_of_8: false };

#[derive(Debug, Clone)]
enum Step {
    Allocate(u64, u8),
    Resize(prop::sample::Index, u64),
    Free(prop::sample::Index),
    FreeLast,
}

fn steps(count: usize, sizes: std::ops::Range<u64>) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (sizes.clone(), prop_oneof![6 => Just(0), 1 => 5..8_u8]).prop_map(|(size, align)| Step::Allocate(size, align)),
        1 => (any::<prop::sample::Index>(), sizes).prop_map(|(which, size)| Step::Resize(which, size)),
        4 => any::<prop::sample::Index>().prop_map(Step::Free),
    ];
    prop::collection::vec(step, 0..count)
}

fn call(kind: EventKind, size: u64, align_log2: u8) -> Allocation {
    Allocation { kind, thread: 0, size, usable: size + 3, align_log2, site: 0, latency_ns: 0 }
}

fn trace(steps: &[Step], ending: &Ending) -> Vec<u8> {
    let mut writer =
        Writer::new(Vec::new(), &Header::default(), &Settings { level: 0, events_per_chunk: 64 }).unwrap();
    let mut live = Vec::new();
    for step in steps {
        match step {
            Step::Allocate(size, align) => {
                let kind = if *align == 0 { EventKind::Malloc } else { EventKind::Aligned };
                live.push(writer.allocate(&call(kind, *size, *align)).unwrap());
            }
            Step::Resize(which, size) if !live.is_empty() => {
                let slot = live[which.index(live.len())];
                writer.resize(slot, &call(EventKind::Realloc, *size, 0), true).unwrap();
            }
            Step::Free(which) if !live.is_empty() => {
                let slot = live.swap_remove(which.index(live.len()));
                writer.free(slot, EventKind::Free, 0, 0).unwrap();
            }
            Step::FreeLast => {
                if let Some(slot) = live.pop() {
                    writer.free(slot, EventKind::Free, 0, 0).unwrap();
                }
            }
            Step::Resize(..) | Step::Free(_) => {}
        }
    }
    writer.finish(ending).unwrap()
}

fn rectangles_of(bytes: &[u8]) -> (Demand, Lifetimes, Vec<Rectangle>) {
    let (demand, lifetimes, _) = first_pass(Reader::new(bytes).unwrap(), OPTIONS).unwrap();
    let rectangles = gather(Reader::new(bytes).unwrap(), &lifetimes, OPTIONS).unwrap();
    (demand, lifetimes, rectangles)
}

/// Panics when two blocks that live at the same time overlap, or one is not aligned.
fn check(rectangles: &[Rectangle], starts: &[u64]) {
    for (at, (one, start)) in rectangles.iter().zip(starts).enumerate() {
        assert!(start.is_multiple_of(one.align));
        for (other, other_start) in rectangles.iter().zip(starts).skip(at + 1) {
            let together = one.birth < other.death && other.birth < one.death;
            let overlap = *start < other_start + other.length && *other_start < start + one.length;
            assert!(!(together && overlap), "{one:?} at {start} and {other:?} at {other_start}");
        }
    }
}

/// The load: most bytes live at once.
fn load(rectangles: &[Rectangle]) -> u64 {
    let at = |event| {
        rectangles
            .iter()
            .filter(|block| block.birth <= event && event < block.death)
            .map(|block| block.length)
            .sum()
    };
    rectangles.iter().map(|block| at(block.birth)).max().unwrap_or(0)
}

/// The smallest heap, by trying: whether the blocks from `at` on can be placed below `limit`.
fn fits(rectangles: &[Rectangle], starts: &mut Vec<u64>, limit: u64) -> bool {
    let at = starts.len();
    let Some(block) = rectangles.get(at) else { return true };
    for start in (0..=limit.saturating_sub(block.length)).step_by(block.align as usize) {
        let free = rectangles[..at].iter().zip(starts.iter()).all(|(other, &other_start)| {
            block.birth >= other.death
                || other.birth >= block.death
                || start >= other_start + other.length
                || other_start >= start + block.length
        });
        if free && start + block.length <= limit {
            starts.push(start);
            if fits(rectangles, starts, limit) {
                return true;
            }
            starts.pop();
        }
    }
    false
}

fn optimum(rectangles: &[Rectangle]) -> u64 {
    (load(rectangles)..).step_by(16).find(|&limit| fits(rectangles, &mut Vec::new(), limit)).unwrap()
}

fn rules(demand: &Demand) -> Vec<Rule> {
    let limit = demand.lower_bound_bytes();
    let mut rules = vec![Rule::FirstFit, Rule::BestFit];
    for threshold in [1, 2, 5, 20, 1000] {
        for tight in [false, true] {
            rules.push(Rule::TwoEnds { threshold, limit, tight });
        }
    }
    rules
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_two_live_blocks_overlap(steps in steps(400, 0..3000)) {
        let bytes = trace(&steps, &Ending::default());
        let (demand, lifetimes, rectangles) = rectangles_of(&bytes);
        prop_assert_eq!(demand.lower_bound_bytes(), load(&rectangles));
        for order in [Order::Size, Order::Area, Order::Lifetime] {
            let starts = rectangles::pack(&rectangles, order);
            check(&rectangles, &starts);
        }
        let rules = rules(&demand);
        let mut starts = vec![vec![0; rectangles.len()]; rules.len()];
        let reader = Reader::new(&bytes[..]).unwrap();
        let results = pack(reader, &rules, &lifetimes, OPTIONS, |rule, block, start, length| {
            assert_eq!(length, rectangles[block].length);
            starts[rule][block] = start;
        }).unwrap();
        for ((_, heap_bytes), starts) in results.iter().zip(&starts) {
            check(&rectangles, starts);
            prop_assert_eq!(*heap_bytes, Some(rectangles::heap_bytes(&rectangles, starts)));
        }
    }

    #[test]
    fn the_optimum_lies_between_the_bounds(steps in steps(9, 1..70)) {
        let bytes = trace(&steps, &Ending::default());
        let (_, _, rectangles) = rectangles_of(&bytes);
        let best = optimum(&rectangles);
        let figures = bound(&|| Reader::new(&bytes[..]), OPTIONS).unwrap();
        prop_assert!(figures.lower_bound_bytes <= best);
        prop_assert!(figures.best_bytes() >= best);
        prop_assert!(figures.max_live_bytes <= figures.lower_bound_bytes);
        prop_assert!(figures.packings.iter().all(|packing| packing.factor >= 1.0));
    }
}

#[test]
fn a_stack_is_packed_without_loss() {
    let mut steps: Vec<Step> = (0..100).map(|n| Step::Allocate(n * 7 % 200 + 1, 0)).collect();
    steps.extend((0..50).map(|_| Step::FreeLast));
    let bytes = trace(&steps, &Ending::default());
    let figures = bound(&|| Reader::new(&bytes[..]), OPTIONS).unwrap();
    assert_eq!(figures.best_bytes(), figures.lower_bound_bytes);
    assert!((figures.packings[0].factor - 1.0).abs() < 1e-12);
}

/// Robson's way to break first fit: every second block is freed, and the next ones fit into no gap. With knowledge of
/// the lifetimes they are packed into the least.
#[test]
fn knowing_lifetimes_beats_first_fit() {
    let mut writer = Writer::new(Vec::new(), &Header::default(), &Settings::default()).unwrap();
    let slots: Vec<u32> =
        (0..1000).map(|_| writer.allocate(&call(EventKind::Malloc, 32, 0)).unwrap()).collect();
    for slot in slots.iter().step_by(2) {
        writer.free(*slot, EventKind::Free, 0, 0).unwrap();
    }
    for _ in 0..300 {
        writer.allocate(&call(EventKind::Malloc, 48, 0)).unwrap();
    }
    let bytes = writer.finish(&Ending { peak_heap_bytes: Some(64_000), ..Ending::default() }).unwrap();
    let figures = bound(&|| Reader::new(&bytes[..]), OPTIONS).unwrap();
    assert_eq!(figures.lower_bound_bytes, 32_000);
    assert_eq!(figures.max_live_bytes, 32_000);
    assert_eq!(figures.best_bytes(), 32_000);
    let first = figures.packings.iter().find(|packing| packing.rule == "first fit").unwrap();
    assert_eq!(first.heap_bytes, 32_000 + 300 * 48);
    assert_eq!(figures.recorded.over_lower_bound, Some(2.0));
    assert_eq!(figures.recorded.over_best_packing, Some(2.0));
    assert_eq!(figures.recorded.max_usable_bytes, Some(1000 * 35));
}

#[test]
fn small_blocks_take_eight_bytes_when_requested() {
    let bytes = trace(&vec![Step::Allocate(5, 0); 10], &Ending::default());
    let figures = bound(&|| Reader::new(&bytes[..]), Options { small_blocks_of_8: true }).unwrap();
    assert_eq!((figures.lower_bound_bytes, figures.best_bytes()), (80, 80));
    let figures = bound(&|| Reader::new(&bytes[..]), OPTIONS).unwrap();
    assert_eq!((figures.lower_bound_bytes, figures.max_live_bytes), (160, 50));
}

#[test]
fn an_empty_trace_needs_no_heap() {
    let bytes = trace(&[], &Ending::default());
    let figures = bound(&|| Reader::new(&bytes[..]), OPTIONS).unwrap();
    assert_eq!((figures.lower_bound_bytes, figures.best_bytes()), (0, 0));
    assert_eq!(figures.recorded.max_usable_bytes, None);
}

#[test]
fn the_curve_holds_the_peak_however_long_the_trace() {
    let steps: Vec<Step> =
        (0..5000).map(|n| if n % 5 < 3 { Step::Allocate(n + 1, 0) } else { Step::FreeLast }).collect();
    let bytes = trace(&steps, &Ending::default());
    let figures = bound(&|| Reader::new(&bytes[..]), OPTIONS).unwrap();
    let most = figures.curve.iter().map(|point| point.rounded_bytes).max();
    assert_eq!(most, Some(figures.lower_bound_bytes));
    assert!((512..=1024).contains(&figures.curve.len()), "{}", figures.curve.len());
}

#[test]
fn a_heap_that_stays_large_after_the_peak_is_found() {
    let mut writer = Writer::new(Vec::new(), &Header::default(), &Settings::default()).unwrap();
    writer.stamp(600);
    let slots: Vec<u32> =
        (0..100).map(|_| writer.allocate(&call(EventKind::Malloc, 4096, 0)).unwrap()).collect();
    let sample = |time_ns, kib| Sample { time_ns, rss_kib: kib + 100, anon_kib: kib, heap_kib: kib + 50 };
    writer.sample(&sample(500, 9000));
    writer.stamp(1000);
    slots[1..].iter().for_each(|&slot| writer.free(slot, EventKind::Free, 0, 0).unwrap());
    writer.stamp(2_000_000);
    writer.allocate(&call(EventKind::Malloc, 16, 0)).unwrap();
    [(1_500_000, 450), (3_000_000, 440)].iter().for_each(|&(at, kib)| writer.sample(&sample(at, kib)));
    let bytes = writer.finish(&Ending::default()).unwrap();
    let after = bound(&|| Reader::new(&bytes[..]), OPTIONS).unwrap().after_peak.expect("sampled");
    assert_eq!(
        (after.held_bytes, after.time_ns),
        (450 << 10, 1_500_000),
        "the sample before the peak is none after it"
    );
    assert!(after.live_bytes >= 4096 && after.live_bytes < 450 << 10, "{after:?}");
}
