//! The free runs of units against a model of which units are taken.

extern crate std;

use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::prelude::*;

use super::lists::EXACT;
use super::*;
use crate::class::LARGE;
use crate::reservation::HeapReservation;

/// The units, with a model: first unit and length of every run that was taken.
struct UnitsModel {
    reservation: HeapReservation,
    units: Units,
    taken: BTreeMap<UnitIndex, u32>,
}

impl UnitsModel {
    fn new(fail_every: u64) -> UnitsModel {
        let mut units = Units::new();
        units.memory.heap.fail_every(fail_every);
        UnitsModel { reservation: HeapReservation::new(), units, taken: BTreeMap::new() }
    }

    /// The free runs: the gaps between taken runs.
    fn free_runs(&self) -> Vec<(UnitIndex, u32)> {
        let mut runs = Vec::new();
        let mut at = 0;
        for (&first, &count) in &self.taken {
            if first > at {
                runs.push((at, first - at));
            }
            at = first + count;
        }
        if (at as usize) < self.reservation.units() {
            runs.push((at, self.reservation.units() as u32 - at));
        }
        runs
    }

    fn is_aligned(&self, unit: UnitIndex, alignment: u32) -> bool {
        self.reservation.address(unit).is_multiple_of(alignment as usize * UNIT)
    }

    /// Whether some free run has this many aligned units.
    fn fits(&self, units: u32, alignment: u32) -> bool {
        self.free_runs().iter().any(|&(first, count)| {
            (first..first + count).any(|at| at + units <= first + count && self.is_aligned(at, alignment))
        })
    }

    /// The first and the last word of each unit.
    fn words(&self, first: UnitIndex, count: u32) -> impl Iterator<Item = *mut usize> {
        let start = self.reservation.address(first);
        (0..count as usize).flat_map(move |unit| {
            [(start + unit * UNIT) as *mut usize, (start + (unit + 1) * UNIT - 8) as *mut usize]
        })
    }

    fn took(&mut self, got: TakenUnits, count: u32) {
        let end = got.first + count;
        assert!(end as usize <= self.reservation.units());
        let before = self.taken.range(..end).next_back();
        assert!(before.is_none_or(|(&first, &count)| first + count <= got.first), "units are taken once");
        for word in self.words(got.first, count) {
            // SAFETY: a word of units that were just taken.
            unsafe {
                assert!(!got.clean || word.read() == 0, "clean units read as zeros");
                word.write(0x5151);
            }
        }
        self.reservation.assign(got.first, count, LARGE);
        self.taken.insert(got.first, count);
    }

    fn take(&mut self, count: u32, alignment: u32, avoid: bool) -> Option<UnitIndex> {
        let got = self.units.take(&self.reservation, count, alignment, avoid);
        let Some(got) = got else {
            assert!(!self.fits(count, alignment), "what is there is found");
            return None;
        };
        assert!(self.is_aligned(got.first, alignment), "unit {} by {alignment}", got.first);
        self.took(got, count);
        Some(got.first)
    }

    fn release(&mut self, first: UnitIndex) {
        let count = self.taken.remove(&first).expect("a run that was taken");
        for word in self.words(first, count) {
            // SAFETY: a word of units that are still taken.
            assert_eq!(unsafe { word.read() }, 0x5151, "no other code writes");
        }
        self.units.release(&self.reservation, first, count, false);
    }

    fn check(&self) {
        assert_eq!(self.units.check(&self.reservation), Ok(()));
        let free = self.free_runs();
        let all: u32 = free.iter().map(|&(_, count)| count).sum();
        assert_eq!(self.units.free_bytes(), all as usize * UNIT);
        let mut kept = [0; KEPT_BINS];
        for (mut first, mut count) in free {
            let mut was_kept = true;
            while count > 0 {
                let (units, is_kept) = self.run_at(first);
                assert!(
                    units <= count && (was_kept || is_kept),
                    "free neighbours are one run, but kept ones"
                );
                if is_kept {
                    kept[units as usize - 1] += 1;
                }
                (first, count, was_kept) = (first + units, count - units, is_kept);
            }
        }
        assert_eq!(kept, self.units.kept.count);
        assert!(self.units.dirty <= self.units.free);
    }

    /// The length of the free run that begins at a unit, and whether it is kept.
    fn run_at(&self, first: UnitIndex) -> (u32, bool) {
        // SAFETY: a unit of the heap; the test is its only thread.
        let run = unsafe { &*self.reservation.span(first) };
        (run.units, run.kept)
    }

    /// Keeps a run that was taken, if enough of its length were needed.
    fn keep(&mut self, first: UnitIndex) -> bool {
        let kept = self.units.keep(&self.reservation, first, self.taken[&first]);
        if kept {
            self.taken.remove(&first);
        }
        kept
    }

    fn take_kept(&mut self, count: u32, avoid: bool) -> Option<UnitIndex> {
        let got = self.units.take_kept(&self.reservation, count, 1, avoid)?;
        for word in self.words(got.first, count) {
            // SAFETY: a word of units that were just taken.
            assert_eq!(unsafe { word.read() }, 0x5151, "the pages of what is kept stay");
        }
        self.took(got, count);
        Some(got.first)
    }

    fn add_to_blacklist(&self, unit: UnitIndex) {
        // SAFETY: the table has a row for every unit and more.
        unsafe { self.reservation.blacklist().add(unit as usize).write(blacklist_mark(self.units.epoch)) };
    }
}

#[derive(Debug, Clone)]
enum Step {
    Take {
        units: u32,
        alignment: u32,
        avoid: bool,
    },
    Give(usize),
    /// Releases the end of a taken run.
    Shorten(usize, u32),
    /// Takes units directly after a taken run.
    Extend(usize, u32),
    Purge,
    Blacken(usize),
    Collected,
    Keep(usize),
    TakeKept(u32, bool),
    Period,
}

fn length() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 1..6_u32, 3 => 1..40_u32, 1 => 1..400_u32]
}

fn step() -> impl Strategy<Value = Step> {
    let alignment = prop_oneof![4 => Just(1_u32), 1 => (1..9_u32).prop_map(|shift| 1 << shift)];
    prop_oneof![
        5 => (length(), alignment, any::<bool>())
            .prop_map(|(units, alignment, avoid)| Step::Take { units, alignment, avoid }),
        4 => any::<usize>().prop_map(Step::Give),
        1 => (any::<usize>(), 1..20_u32).prop_map(|(at, units)| Step::Shorten(at, units)),
        2 => (any::<usize>(), 1..20_u32).prop_map(|(at, units)| Step::Extend(at, units)),
        1 => Just(Step::Purge),
        1 => any::<usize>().prop_map(Step::Blacken),
        1 => Just(Step::Collected),
        3 => any::<usize>().prop_map(Step::Keep),
        3 => (1..6_u32, any::<bool>()).prop_map(|(units, avoid)| Step::TakeKept(units, avoid)),
        1 => Just(Step::Period),
    ]
}

fn run(model: &mut UnitsModel, steps: &[Step], faults: bool) {
    for step in steps {
        let nth = |at: usize| {
            let at = at.checked_rem(model.taken.len())?;
            model.taken.iter().nth(at).map(|(&first, &count)| (first, count))
        };
        match *step {
            Step::Take { units, alignment, avoid } => {
                let got = model.take(units, alignment, avoid);
                assert!(got.is_some() || faults);
            }
            Step::Give(at) => {
                if let Some((first, _)) = nth(at) {
                    model.release(first);
                }
            }
            Step::Shorten(at, units) => {
                if let Some((first, count)) = nth(at)
                    && units < count
                {
                    model.taken.insert(first, count - units);
                    model.units.release(&model.reservation, first + count - units, units, false);
                }
            }
            Step::Extend(at, units) => {
                if let Some((first, count)) = nth(at) {
                    let after = first + count;
                    let fits = model.free_runs().iter().any(|&(at, free)| at == after && free >= units);
                    let any_kept = model.units.kept.count != [0; KEPT_BINS];
                    let got = model.units.take_at(&model.reservation, after, units);
                    assert!(got.is_some() == fits || any_kept && fits);
                    if let Some(got) = got {
                        assert_eq!(got.first, after);
                        model.took(got, units);
                        // One piece from now on.
                        model.taken.remove(&after);
                        model.taken.insert(first, count + units);
                    }
                }
            }
            Step::Purge => {
                model.units.purge(&model.reservation);
                assert_eq!(model.units.dirty, 0);
                for (first, count) in model.free_runs() {
                    // SAFETY: free units, readable.
                    assert!(model.words(first, count).all(|word| unsafe { word.read() } == 0));
                }
            }
            Step::Blacken(at) => {
                if let Some(unit) = at.checked_rem(model.reservation.units()) {
                    model.add_to_blacklist(unit as u32);
                }
            }
            Step::Collected => model.units.epoch += 1,
            Step::Keep(at) => {
                if let Some((first, _)) = nth(at) {
                    model.keep(first);
                }
            }
            Step::TakeKept(units, avoid) => {
                model.take_kept(units, avoid);
            }
            Step::Period => {
                model.units.begin_period();
                model.units.release_surplus(&model.reservation);
            }
        }
        model.check();
    }
    for first in model.taken.keys().copied().collect::<Vec<_>>() {
        model.release(first);
    }
    model.units.purge(&model.reservation);
    model.check();
    let all = model.reservation.units() as u32;
    assert_eq!(model.free_runs(), if all == 0 { Vec::new() } else { std::vec![(0, all)] });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_unit_is_taken_once_or_free(steps in prop::collection::vec(step(), 1..80)) {
        run(&mut UnitsModel::new(0), &steps, false);
    }

    #[test]
    fn a_refusal_leaves_the_runs_as_they_were(
        steps in prop::collection::vec(step(), 1..80),
        every in 1..5_u64,
    ) {
        run(&mut UnitsModel::new(every), &steps, true);
    }

    #[test]
    fn a_list_holds_the_lengths_of_its_number(units in 1..1_000_000_u32) {
        let bin = bin_of(units);
        assert!(bin < BINS);
        if units <= EXACT {
            assert_eq!(bin, units as usize - 1);
        }
        assert!(bin_of(units + 1) >= bin, "longer runs are in later lists");
    }
}

#[test]
fn the_heap_grows_by_steps_and_by_what_is_requested() {
    let mut model = UnitsModel::new(0);
    let first = model.take(1, 1, false).expect("memory");
    assert_eq!((first, model.reservation.units()), (0, 64), "low addresses first");
    assert_eq!(model.take(63, 1, false), Some(1));
    assert_eq!(model.take(900, 1, false), Some(64));
    assert_eq!(model.reservation.units(), 964);
    // A free run at the end is part of the requested run.
    model.release(64);
    assert_eq!(model.take(910, 1, false), Some(64));
    assert_eq!(model.reservation.units(), 1152, "a sixteenth at least, and up to the end of a huge page");
    model.check();
}

#[test]
fn where_a_full_step_is_refused_the_exact_one_is_tried() {
    let mut model = UnitsModel::new(2);
    // The first request for memory succeeds, the second fails, the third succeeds.
    assert_eq!(model.take(64, 1, false), Some(0));
    assert_eq!(model.take(3, 1, false), Some(64));
    assert_eq!(model.reservation.units(), 67);
    model.check();
}

#[test]
fn large_alignments_hold_wherever_the_heap_begins() {
    // The heap begins at a multiple of 2 MiB, at random.
    let mut model = UnitsModel::new(0);
    for alignment in [256, 1 << 10, 1 << 12, 1 << 14] {
        let at = model.take(3, alignment, false).expect("memory");
        assert!(model.is_aligned(at, alignment));
    }
    model.check();
}

/// Units with free runs of one unit, separated by taken ones, and nothing else free.
fn with_single_holes(count: u32) -> (UnitsModel, Vec<UnitIndex>) {
    let mut model = UnitsModel::new(0);
    let all: Vec<_> = (0..2 * count).map(|_| model.take(1, 1, false).expect("memory")).collect();
    while let Some(&(first, free)) = model.free_runs().first() {
        let got = model.units.take_at(&model.reservation, first, free).expect("a free run");
        model.took(got, free);
    }
    let holes: Vec<_> = all.into_iter().skip(1).step_by(2).collect();
    for &hole in &holes {
        model.release(hole);
    }
    (model, holes)
}

#[test]
fn many_short_runs_do_not_hide_a_long_one() {
    let (mut model, _) = with_single_holes(200);
    for _ in 0..50 {
        assert!(model.take(1, 512, false).is_some(), "there is memory");
    }
    model.check();
    let units = model.reservation.units();
    assert!(units < 50 * 1024 + 1024, "what grew for one request serves the next: {units} units");
}

#[test]
fn many_blacklisted_runs_do_not_exhaust_the_search() {
    let (mut model, holes) = with_single_holes(200);
    holes.iter().for_each(|&hole| model.add_to_blacklist(hole));
    let before = model.reservation.units();
    for _ in 0..60 {
        let got = model.take(1, 1, true).expect("memory");
        assert!(!holes.contains(&got), "blacklisted units are avoided");
    }
    assert_eq!(model.reservation.units(), before + 64, "the heap grew once");
    assert!(model.units.avoided > 0);
    // A request that need not avoid them takes them.
    assert!(holes.contains(&model.take(1, 1, false).expect("memory")));
    // Two collections later they are not avoided any more.
    model.units.epoch += 1;
    assert!(holes.iter().all(|&hole| model.units.is_blacklisted(&model.reservation, hole)));
    model.units.epoch += 1;
    assert!(!holes.iter().any(|&hole| model.units.is_blacklisted(&model.reservation, hole)));
}

#[test]
fn a_blacklisted_unit_is_skipped_in_its_run() {
    let mut model = UnitsModel::new(0);
    let first = model.take(20, 1, false).expect("memory");
    model.release(first);
    model.add_to_blacklist(first + 4);
    assert_eq!(model.take(4, 1, true), Some(first));
    assert_eq!(model.take(4, 1, true), Some(first + 5));
    // A unit blacklisted beyond the heap's end is avoided when the heap reaches it.
    model.add_to_blacklist(64);
    let rest = model.free_runs().iter().map(|&(_, count)| count).max().expect("a rest");
    model.take(rest, 1, false).expect("memory");
    assert_eq!(model.take(2, 1, true), Some(65));
    model.check();
}

#[test]
fn blacklisted_units_are_taken_when_nothing_else_is_left() {
    let mut model = UnitsModel::new(0);
    model.take(64, 1, false).expect("memory");
    model.release(0);
    (0..64).for_each(|unit| model.add_to_blacklist(unit));
    model.units.memory.heap.fail_every(1);
    assert_eq!(model.take(2, 1, true), Some(0));
    model.check();
}

#[test]
fn free_memory_beyond_a_share_goes_back_to_the_system() {
    let mut model = UnitsModel::new(0);
    let all: Vec<_> = (0..40).map(|_| model.take(32, 1, false).expect("memory")).collect();
    for first in all {
        let start = model.reservation.address(first);
        // SAFETY: units that the test has taken; the model has written the first and the last word of each.
        (0..32).for_each(|unit| unsafe { ((start + unit * UNIT + 8) as *mut u8).write_bytes(1, UNIT - 16) });
        model.release(first);
        // How much is resident is found out whenever as much again may be.
        assert!(model.units.resident_bytes(&model.reservation) <= 2 * RESIDENT_MIN);
    }
    model.check();
}

/// Dirty units that are hardly touched stay: to release them would cost a page fault each.
#[test]
fn free_memory_that_is_hardly_resident_is_kept() {
    let mut model = UnitsModel::new(0);
    let all: Vec<_> = (0..15).map(|_| model.take(32, 1, false).expect("memory")).collect();
    // The model has written two words of each unit.
    all.into_iter().for_each(|first| model.release(first));
    assert!(model.units.dirty as usize * UNIT > RESIDENT_MIN);
    assert_eq!(model.units.resident_bytes(&model.reservation), 15 * 32 * 2 * heaptoll_runtime::PAGE);
    model.check();
}

/// Runs of these lengths that were kept, after a period in which as many were needed.
fn with_kept(lengths: &[u32]) -> (UnitsModel, Vec<UnitIndex>) {
    let mut model = UnitsModel::new(0);
    let firsts: Vec<_> = lengths
        .iter()
        .map(|&count| {
            assert_eq!(model.take_kept(count, true), None, "none is kept yet");
            model.take(count, 1, true).expect("memory")
        })
        .collect();
    model.units.begin_period();
    model.units.release_surplus(&model.reservation);
    for &first in &firsts {
        assert!(model.keep(first));
    }
    model.check();
    (model, firsts)
}

#[test]
fn a_kept_run_is_for_blocks_of_its_length_alone() {
    let (mut model, firsts) = with_kept(&[11, 11]);
    assert!(!firsts.contains(&model.take(11, 1, true).expect("memory")), "what is kept is not searched");
    assert_eq!(model.take_kept(10, true), None);
    let got = [model.take_kept(11, true), model.take_kept(11, true), model.take_kept(11, true)];
    assert_eq!(got, [Some(firsts[1]), Some(firsts[0]), None]);
    model.check();
}

#[test]
fn no_more_runs_are_kept_than_blocks_of_their_length_were_needed() {
    let (mut model, firsts) = with_kept(&[11, 11, 7]);
    let other = model.take(11, 1, true).expect("memory");
    assert!(!model.keep(other), "two were needed, and two are kept");
    model.release(other);
    // Since the last collection one was needed of one length, and none of the other.
    assert_eq!(model.take_kept(11, true), Some(firsts[1]));
    model.units.begin_period();
    model.units.release_surplus(&model.reservation);
    assert_eq!(model.units.kept.count[10], 1);
    assert_eq!(model.units.kept.count[6], 0, "what was not needed is kept no longer");
    model.check();
}

#[test]
fn a_kept_run_that_is_released_loses_its_pages() {
    let (mut model, firsts) = with_kept(&[11]);
    model.units.begin_period();
    model.units.release_surplus(&model.reservation);
    model.check();
    for word in model.words(firsts[0], 11) {
        // SAFETY: free units, readable.
        assert_eq!(unsafe { word.read() }, 0);
    }
}

#[test]
fn kept_runs_are_used_where_no_other_memory_is_left() {
    let (mut model, _) = with_kept(&[32, 32]);
    model.units.memory.heap.fail_every(1);
    while model.units.find(&model.reservation, 1, 1, false, u32::MAX).is_some_and(|taken| {
        model.took(taken, 1);
        true
    }) {}
    assert!(model.take(64, 1, false).is_some(), "both, joined");
    model.check();
}

#[test]
fn a_blacklisted_kept_run_is_passed_over() {
    let (mut model, firsts) = with_kept(&[3, 3]);
    model.add_to_blacklist(firsts[1] + 1);
    assert_eq!(model.take_kept(3, true), Some(firsts[0]));
    assert_eq!(model.take_kept(3, true), None);
    assert_eq!(model.take_kept(3, false), Some(firsts[1]));
    model.check();
}

#[test]
fn a_block_grows_into_a_kept_run_after_it() {
    let (mut model, firsts) = with_kept(&[3, 5]);
    assert_eq!(model.take_kept(3, true), Some(firsts[0]));
    assert_eq!(firsts[1], firsts[0] + 3);
    let got = model.units.take_at(&model.reservation, firsts[1], 2).expect("units of the run that was kept");
    model.took(got, 2);
    model.check();
}

#[test]
fn blacklist_marks_are_never_that_of_an_unlisted_unit() {
    for epoch in [0, 1, 253, 254, 255, 256, 1_000_000] {
        assert_ne!(blacklist_mark(epoch), 0);
        assert_ne!(blacklist_mark(epoch), blacklist_mark(epoch.wrapping_add(1)), "{epoch}");
    }
}
