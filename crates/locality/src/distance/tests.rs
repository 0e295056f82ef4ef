use proptest::prelude::*;

use super::front::{Lanes, Portable};
use super::*;
#[cfg(target_arch = "x86_64")]
use crate::distance::front::{Avx2, Avx512};

/// A list in the order of use: the model.
#[derive(Default)]
pub(crate) struct List(Vec<u32>);

impl List {
    pub(crate) fn touch(&mut self, entry: u32) -> u32 {
        let at = self.0.iter().position(|&other| other == entry);
        if let Some(at) = at {
            self.0.remove(at);
        }
        self.0.insert(0, entry);
        at.map_or(COLD, |at| at as u32)
    }
}

fn agrees(stream: &[u32]) {
    let (mut distances, mut list) = (Distances::new(), List::default());
    for &entry in stream {
        assert_eq!(distances.touch(entry), list.touch(entry));
    }
    distances.check().unwrap();
}

/// In batches of different lengths, with every accessor.
fn agrees_in_batches(lanes: impl Lanes, stream: &[u32], length: usize) {
    let (mut distances, mut list) = (Distances::new(), List::default());
    let mut histograms = vec![[0_u64; Accessor::COUNT]; stream.len() + 1];
    let mut cold = [0; Accessor::COUNT];
    let mut scratch = vec![Fallen::default(); length];
    for (turn, batch) in stream.chunks(length).enumerate() {
        let accessor = Accessor::ALL[turn % Accessor::COUNT];
        distances.references(lanes, accessor, batch, &mut scratch);
        for &entry in batch {
            match list.touch(entry) {
                COLD => cold[accessor as usize] += 1,
                distance => histograms[distance as usize][accessor as usize] += 1,
            }
        }
    }
    distances.check().unwrap();
    let curve = distances.curve(64);
    assert_eq!(curve.distinct, list.0.len() as u64);
    assert_eq!(curve.references.total(), stream.len() as u64);
    let mut hits = [0; Accessor::COUNT];
    for entries in 0..=list.0.len() as u64 + 1 {
        let misses = curve.misses(entries);
        for accessor in Accessor::ALL {
            let made = *curve.references.get(accessor);
            assert_eq!(
                misses.by.get(accessor),
                &Estimate::exact(made - hits[accessor as usize]),
                "{entries}"
            );
            assert_eq!(*curve.cold.get(accessor), cold[accessor as usize]);
        }
        assert_eq!(misses.total.value, stream.len() as u64 - hits.iter().sum::<u64>());
        let at = histograms.get(entries as usize).copied().unwrap_or_default();
        hits.iter_mut().zip(at).for_each(|(hits, more)| *hits += more);
    }
}

use curve::Estimate;

fn agrees_everywhere(stream: &[u32], length: usize) {
    agrees(stream);
    agrees_in_batches(Portable, stream, length);
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(avx2) = Avx2::find() {
            agrees_in_batches(avx2, stream, length);
        }
        if let Some(avx512) = Avx512::find() {
            agrees_in_batches(avx512, stream, length);
        }
    }
}

#[test]
fn a_sweep_misses_always_below_its_length_and_only_cold_at_it() {
    for length in [1, 2, 15, 16, 17, 18, 63, 64, 65, 1000, 5000] {
        let mut distances = Distances::new();
        for _ in 0..3 {
            for entry in 0..length {
                let distance = distances.touch(entry);
                distances.record(Accessor::Program, distance);
            }
        }
        distances.check().unwrap();
        let curve = distances.curve(64);
        let all = 3 * u64::from(length);
        assert_eq!(curve.misses(u64::from(length) - 1).total.value, all);
        assert_eq!(curve.misses(u64::from(length)).total.value, u64::from(length));
        assert_eq!(curve.fewest(u64::from(length)), Some(u64::from(length)));
        assert_eq!(curve.fewest(u64::from(length) - 1), None);
    }
}

#[test]
fn slots_are_moved_together_many_times() {
    let mut state = 1_u64;
    let stream: Vec<u32> = (0..60_000)
        .map(|step: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = (state >> 33) as u32;
            if step.is_multiple_of(5) { random % 3000 } else { step / 7 % 1100 }
        })
        .collect();
    agrees_everywhere(&stream, 1024);
}

#[test]
fn a_seam_below_all_of_the_array_keeps_only_followed_entries() {
    let sampling = Sampling { shift: 2, exact_lines: 16, seed: 5 };
    let mut distances = Distances::sampled(sampling);
    let mut list = List::default();
    for step in 0..40_000_u32 {
        let entry = step.wrapping_mul(step) % 997;
        let (found, truth) = (distances.touch(entry), list.touch(entry));
        distances.record(Accessor::Program, found);
        assert_eq!(found, if truth >= 16 && truth != COLD { BEYOND } else { truth });
    }
    distances.check().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn distances_are_those_of_a_list(
        stream in prop::collection::vec(prop_oneof![0_u32..20, 0_u32..200, 0_u32..3000], 1..2000),
        length in 1_usize..300,
    ) {
        agrees_everywhere(&stream, length);
    }

    #[test]
    fn loops_and_strides_have_the_distances_of_a_list(
        loops in prop::collection::vec((1_u32..400, 1_u32..9, 1_u32..5, 0_u32..50), 1..6),
        length in 1_usize..300,
    ) {
        let mut stream = Vec::new();
        for (count, stride, times, from) in loops {
            for _ in 0..times {
                stream.extend((0..count).map(|at| from + at * stride));
            }
        }
        agrees_everywhere(&stream, length);
    }

    /// With sampling, exact distances are the same as without, and all others are beyond the seam.
    #[test]
    fn up_to_the_seam_sampling_changes_nothing(
        stream in prop::collection::vec(prop_oneof![0_u32..20, 0_u32..200, 0_u32..3000], 1..2000),
        exact_lines in 16_u32..300,
        shift in 1_u32..6,
        seed in any::<u64>(),
    ) {
        let mut distances = Distances::sampled(Sampling { shift, exact_lines, seed });
        let (mut exact, mut list) = (Distances::new(), List::default());
        for &entry in &stream {
            let (found, truth) = (distances.touch(entry), list.touch(entry));
            distances.record(Accessor::Allocator, found);
            let same = exact.touch(entry);
            exact.record(Accessor::Allocator, same);
            let wanted = if truth == COLD || truth < exact_lines { truth } else { BEYOND };
            prop_assert_eq!(found, wanted);
        }
        distances.check().unwrap();
        let (curve, exact) = (distances.curve(64), exact.curve(64));
        prop_assert_eq!(curve.references, exact.references);
        prop_assert_eq!((curve.cold, curve.distinct), (exact.cold, exact.distinct));
        for entries in 0..=u64::from(exact_lines) {
            prop_assert_eq!(curve.misses(entries), exact.misses(entries));
        }
        // The seam joins both parts, and the misses at the end are exact.
        let all = curve.distinct.max(u64::from(exact_lines));
        prop_assert_eq!(curve.misses(all).total, exact.misses(all).total);
        let mut before = u64::MAX;
        for entries in curve.sizes(8) {
            let misses = curve.misses(entries).total;
            prop_assert!(misses.low <= misses.value && misses.value <= misses.high);
            prop_assert!(misses.value <= before, "{} after {before}", misses.value);
            before = misses.value;
        }
    }

    /// Followed lines between the touches of a followed line are counted exactly.
    #[test]
    fn followed_lines_beyond_the_seam_are_counted_as_in_a_list(
        stream in prop::collection::vec(prop_oneof![0_u32..60, 0_u32..400], 1..3000),
        exact_lines in 16_u32..64,
        seed in any::<u64>(),
    ) {
        let sampling = Sampling { shift: 2, exact_lines, seed };
        let following = Following::new(sampling, TOP as u32, 64);
        let (mut distances, mut list) = (Distances::sampled(sampling), List::default());
        for &entry in &stream {
            let before = list.0.clone();
            let (found, truth) = (distances.touch(entry), list.touch(entry));
            let seen = distances.following.as_mut().and_then(|following| following.found.take());
            if found == BEYOND {
                let between = before[exact_lines as usize..truth as usize].iter();
                let between = between.filter(|&&other| following.follows(other)).count() as u32;
                let wanted = following.follows(entry).then_some((entry, between));
                prop_assert_eq!(seen, Some(wanted));
            }
        }
    }
}
