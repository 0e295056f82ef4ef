//! Simulated programs, sampled as the layer samples: the estimates are right on average, and their intervals hold the
//! truth as often as they state. All random numbers come from fixed seeds.

use heaptoll_sampling::{Estimate, Random, Weight};
use proptest::prelude::*;

/// A thread's countdown, as in the layer.
struct Thread {
    random: Random,
    left: u64,
    mean: u64,
}

impl Thread {
    fn new(seed: u64, mean: u64) -> Thread {
        let mut random = Random::of_thread(seed, 0);
        let left = random.gap(mean) - 1;
        Thread { random, left, mean }
    }

    /// Whether an allocation of `bytes` is sampled.
    fn allocate(&mut self, bytes: u64) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => {
                self.left = self.random.gap(self.mean) - 1;
                return true;
            }
        }
        false
    }
}

/// Samples a list of sizes.
fn estimate(sizes: &[u64], thread: &mut Thread) -> Estimate {
    let mut sum = Estimate::default();
    for &bytes in sizes {
        if thread.allocate(bytes) {
            sum = sum.with(&Weight::of(bytes, thread.mean));
        }
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        rng_seed: proptest::test_runner::RngSeed::Fixed(4),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever the sizes and the rate: the mean of 2000 estimates is within five of its standard errors of the truth.
    #[test]
    fn estimates_are_unbiased(
        sizes in prop::collection::vec(prop_oneof![1_u64..100, 1_u64..20_000, 1_u64..1_000_000], 1..60),
        mean in prop_oneof![2_u64..50, 50_u64..5000, 5000_u64..1_000_000],
        seed in any::<u64>(),
    ) {
        let runs = 2000;
        let (mut bytes, mut objects) = (0.0, 0.0);
        for run in 0..runs {
            let sum = estimate(&sizes, &mut Thread::new(seed.wrapping_add(run), mean));
            bytes += sum.bytes;
            objects += sum.objects;
        }
        // The true variance of one estimate.
        let variance = |of: fn(&Weight) -> f64, value: fn(u64) -> f64| {
            sizes.iter().map(|&size| {
                let share = of(&Weight::of(size, mean)) / value(size);
                value(size).powi(2) * (share - 1.0)
            }).sum::<f64>()
        };
        let (runs, truth) = (runs as f64, sizes.iter().sum::<u64>() as f64);
        let error = 5.0 * (variance(|weight| weight.bytes, |size| size as f64) / runs).sqrt();
        prop_assert!((bytes / runs - truth).abs() <= error + truth * 1e-9, "{} of {truth}", bytes / runs);
        let (truth, error) = (sizes.len() as f64, 5.0 * (variance(|weight| weight.objects, |_| 1.0) / runs).sqrt());
        prop_assert!((objects / runs - truth).abs() <= error + truth * 1e-9, "{} of {truth}", objects / runs);
    }
}

/// In how many of 1000 runs the interval holds the live bytes of a site that has a share of them. Objects are freed in
/// random order, so that what is live is a part of what was sampled.
fn held(share: f64, live_bytes: f64, largest: u64) -> usize {
    const MEAN: u64 = 512 << 10;
    let held = |seed: u64| {
        let mut sizes = Random::new(seed ^ 0x5EED);
        let mut thread = Thread::new(seed, MEAN);
        let (mut truth, mut live) = ([0.0_f64; 2], Estimate::default());
        while truth[0] + truth[1] < live_bytes {
            let bytes = 1 + sizes.number() % largest;
            let is_site = (sizes.number() % 10_000) < (share * 10_000.0) as u64;
            let is_freed = sizes.number().is_multiple_of(2);
            let is_sampled = thread.allocate(bytes);
            if is_freed {
                continue;
            }
            truth[usize::from(is_site)] += bytes as f64;
            if is_sampled && is_site {
                live = live.with(&Weight::of(bytes, MEAN));
            }
        }
        let (low, high) = live.bytes_interval();
        live.samples > 0 && (low..=high).contains(&truth[1])
    };
    (0..1000).filter(|&seed| held(seed)).count()
}

#[test]
fn the_interval_of_a_site_with_a_twentieth_of_the_live_bytes_holds_the_truth_95_times_in_100() {
    // 100 MiB live: ten samples of the site. 400 MiB: forty; and some with objects larger than the mean.
    for (live_mib, largest) in [(100.0, 200_000), (400.0, 100_000), (400.0, 2 << 20)] {
        let held = held(0.05, live_mib * 1048576.0, largest);
        assert!((920..=980).contains(&held), "{live_mib} MiB, up to {largest} bytes: {held} of 1000");
    }
}
