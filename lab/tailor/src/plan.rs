//! The plan of an allocator: which sizes get a class of their own, where the others go, and how memory is taken from
//! the system and given back.

use crate::profile::{GRANULE, LARGEST_EXACT, Profile, granules};

/// Classes at most, with the one that is none: the tables of a thread stay small.
const MOST_CLASSES: usize = 64;
/// Sizes above this have no class, bytes: a request of one costs more than finding its block.
const LARGEST_CLASS: u64 = 8 << 10;
/// Classes are added until they serve so many of a thousand requests.
const ENOUGH_PER_MILLE: u64 = 998;
/// Sizes with fewer requests than one in so many get no class.
const RARE: u64 = 10_000;
/// When the heap is largest, one class may hold so much of it idle, one part in so many, or one part in so many of its
/// share of the requests; and all classes together so much of the heap.
const IDLE: u64 = 100;
const IDLE_OF_SHARE: u64 = 4;
const ALL_IDLE: u64 = 16;
/// Heaps below this use small units, bytes.
const SMALL_HEAP: u64 = 16 << 20;
/// The page of the system, bytes.
pub const PAGE: u64 = 4096;
/// Largest chunk, bytes.
const LARGEST_CHUNK: u64 = 64 << 10;

/// A class: blocks of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Units of a chunk.
    pub chunk_units: u64,
    /// Blocks that a thread keeps when it has freed many and others run.
    pub kept_blocks: u64,
    /// Bytes whose pages are requested from the system together; 0 where each is when it is touched.
    pub populate_bytes: u64,
    /// Requests of the trace that it serves.
    pub requests: u64,
    /// Requests of the trace for its own size.
    pub exact_requests: u64,
    /// Of these, those with short lives.
    pub short_lives: u64,
    /// Most blocks of its own size that were live at once.
    pub peak_blocks: u64,
}

/// The plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Bytes of a unit, by which chunks are placed: a power of two.
    pub unit_bytes: u64,
    /// Classes by rising size; class 1 is the first.
    pub classes: Vec<Class>,
    /// The class of each number of granules up to the largest class; 0 for the general heap.
    pub class_of: Vec<u8>,
    /// Requests of so many bytes have mappings of their own.
    pub map_from_bytes: u64,
    /// So many free bytes in one piece go back to the system.
    pub give_back_bytes: u64,
    /// The heap grows by so many bytes at least.
    pub growth_bytes: u64,
    /// Reserved addresses, bytes.
    pub region_bytes: u64,
    /// Requests that the general heap serves.
    pub general_requests: u64,
    /// Requests with mappings of their own.
    pub mapped_requests: u64,
}

impl Plan {
    /// The plan for a profile.
    pub fn new(profile: &Profile) -> Plan {
        let unit_bytes = if profile.peak_bytes < SMALL_HEAP { 512 } else { PAGE };
        let sizes = class_sizes(profile);
        let class_of = table(profile, &sizes);
        let mut classes: Vec<Class> = sizes.iter().map(|&size| class(profile, size, unit_bytes)).collect();
        let mut general_requests = 0;
        for (granules, size) in profile.sizes.iter().enumerate() {
            match class_of.get(granules).copied().unwrap_or(0) {
                0 => general_requests += size.requests,
                class => classes[class as usize - 1].requests += size.requests,
            }
        }
        let map_from_bytes = map_from(profile);
        let large = profile.large.iter().enumerate();
        let (mapped, general): (Vec<_>, Vec<_>) = large.partition(|(log, _)| 1 << log >= map_from_bytes);
        let count = |some: &[(usize, &crate::profile::LargeProfile)]| {
            some.iter().map(|(_, one)| one.requests).sum::<u64>()
        };
        Plan {
            unit_bytes,
            classes,
            class_of,
            map_from_bytes,
            give_back_bytes: give_back(profile),
            growth_bytes: (profile.peak_bytes / 16).next_power_of_two().clamp(64 << 10, 1 << 20),
            region_bytes: 64 << 30,
            general_requests: general_requests + count(&general),
            mapped_requests: count(&mapped),
        }
    }
}

/// The sizes that get a class, rising.
fn class_sizes(profile: &Profile) -> Vec<usize> {
    let mut often: Vec<(usize, u64)> = profile
        .sizes
        .iter()
        .enumerate()
        .take(granules(LARGEST_CLASS) + 1)
        .filter(|(_, size)| size.requests * RARE >= profile.requests && size.requests > 0)
        .map(|(granules, size)| (granules, size.requests))
        .collect();
    often.sort_by_key(|&(granules, requests)| (std::cmp::Reverse(requests), granules));
    let (mut served, mut idle) = (0, 0);
    let mut sizes = Vec::new();
    for (granules, requests) in often {
        if sizes.len() + 1 == MOST_CLASSES || served * 1000 >= profile.requests * ENOUGH_PER_MILLE {
            break;
        }
        let more = idle_bytes(profile, granules);
        let share = profile.peak_bytes as f64 * requests as f64 / profile.requests as f64;
        let is_earned = more * IDLE <= profile.peak_bytes || more as f64 * IDLE_OF_SHARE as f64 <= share;
        if is_earned && (idle + more) * ALL_IDLE <= profile.peak_bytes {
            idle += more;
            served += requests;
            sizes.push(granules);
        }
    }
    sizes.sort_unstable();
    sizes
}

/// What blocks of a size would hold when the heap is largest and then serves nothing: the general heap uses it for
/// other sizes.
fn idle_bytes(profile: &Profile, granules: usize) -> u64 {
    let size = &profile.sizes[granules];
    (size.peak_live - size.live_at_peak) * granules as u64 * GRANULE
}

/// The class of each size: its own, or the next one where that wastes little.
fn table(profile: &Profile, sizes: &[usize]) -> Vec<u8> {
    let largest = sizes.last().copied().unwrap_or(0);
    let mut table = vec![0; largest + 1];
    for (granules, entry) in table.iter_mut().enumerate() {
        // Nothing is requested too.
        let granules = granules.max(1);
        let next = sizes.partition_point(|&size| size < granules);
        let Some(&size) = sizes.get(next) else { continue };
        if size == granules || wastes_little(profile, granules, size) {
            *entry = next as u8 + 1;
        }
    }
    table
}

/// Whether a rare size may go into a larger class: by a fifth, or a granule, larger, and the waste of all its blocks
/// at once is nothing to the heap.
fn wastes_little(profile: &Profile, granules: usize, class: usize) -> bool {
    let more = (class - granules) as u64;
    let peak = profile.sizes[granules].peak_live * more * GRANULE;
    (more == 1 || more * 5 <= granules as u64) && peak * 500 <= profile.peak_bytes
}

fn class(profile: &Profile, granules: usize, unit_bytes: u64) -> Class {
    let size = &profile.sizes[granules];
    let block_bytes = granules as u64 * GRANULE;
    let peak = size.peak_live * block_bytes;
    Class {
        block_bytes,
        chunk_units: chunk_units(block_bytes, size.peak_live, unit_bytes),
        kept_blocks: ((16 << 10) / block_bytes).clamp(8, 256),
        populate_bytes: match peak / 256 {
            bytes if bytes < 4 * PAGE => 0,
            bytes => (bytes / 2 + 1).next_power_of_two().min(LARGEST_CHUNK),
        },
        requests: 0,
        exact_requests: size.requests,
        short_lives: size.short_lives,
        peak_blocks: size.peak_live,
    }
}

/// The units of a chunk: the fewest that the class's peak fits in, and for larger peaks those of which least is left
/// over. 8 bytes of a chunk are the word in front of what is behind it.
fn chunk_units(block_bytes: u64, peak_blocks: u64, unit_bytes: u64) -> u64 {
    let one = (block_bytes + 8).div_ceil(unit_bytes);
    let most = (LARGEST_CHUNK / unit_bytes).min(255).max(one);
    let all = (block_bytes * peak_blocks.max(1) + 8).div_ceil(unit_bytes).max(one);
    if all <= most {
        return all;
    }
    let waste = |units: u64| ((units * unit_bytes - 8) % block_bytes + 8) * most / units;
    (one.max(most / 2)..=most).min_by_key(|&units| waste(units)).unwrap_or(most)
}

/// From which size on blocks have mappings of their own: the smallest from 128 KiB on at which the mappings cost about
/// a hundredth of what all requests do.
fn map_from(profile: &Profile) -> u64 {
    /// Time of a request, and of mapping, clearing and unmapping, ns.
    const REQUEST_NS: u64 = 20;
    const MAPPING_NS: u64 = 3000;
    const BYTES_PER_NS: u64 = 8;
    let mut cost = 0;
    for log in (17..25).rev() {
        let large = &profile.large[log];
        cost += large.requests * MAPPING_NS + large.bytes / BYTES_PER_NS;
        if cost * 100 > profile.requests * REQUEST_NS {
            return 1 << (log + 1);
        }
    }
    128 << 10
}

/// How much free memory in one piece goes back: more than the program takes again and again.
fn give_back(profile: &Profile) -> u64 {
    let often = |requests: u64| requests >= 100;
    let large = profile.large.iter().rposition(|large| often(large.requests)).map_or(0, |log| 2 << log);
    let exact = if profile.sizes.iter().any(|size| often(size.requests)) { LARGEST_EXACT } else { 0 };
    (2 * large.max(exact)).clamp(1 << 20, 64 << 20)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::LargeProfile;

    /// A profile of so many requests for each size, of which so many live at once, at the peak too.
    fn profile(sizes: &[(u64, u64, u64)]) -> Profile {
        let mut profile = Profile::default();
        for &(bytes, requests, live) in sizes {
            let size = &mut profile.sizes[granules(bytes)];
            size.requests += requests;
            size.peak_live = size.peak_live.max(live);
            size.live_at_peak = size.peak_live;
            profile.requests += requests;
            profile.peak_bytes += live * granules(bytes) as u64 * GRANULE;
        }
        profile
    }

    fn sizes(plan: &Plan) -> Vec<u64> {
        plan.classes.iter().map(|class| class.block_bytes).collect()
    }

    /// The size of the blocks that serve a request; 0 for the general heap.
    fn served_by(plan: &Plan, bytes: u64) -> u64 {
        let class = plan.class_of.get(bytes.div_ceil(GRANULE) as usize).copied().unwrap_or(0);
        if class == 0 { 0 } else { plan.classes[class as usize - 1].block_bytes }
    }

    #[test]
    fn sizes_that_make_the_requests_have_classes_and_rare_ones_do_not() {
        let plan = Plan::new(&profile(&[(24, 500_000, 10), (100, 499_900, 10), (3000, 100, 10)]));
        assert_eq!(sizes(&plan), [32, 112]);
        assert_eq!((served_by(&plan, 24), served_by(&plan, 100), served_by(&plan, 3000)), (32, 112, 0));
        assert_eq!(plan.general_requests, 100);
        assert_eq!(served_by(&plan, 0), 32, "nothing is a request too");
    }

    #[test]
    fn large_sizes_have_no_class_however_often_they_are_requested() {
        let plan = Plan::new(&profile(&[(16, 100_000, 1), (9000, 100_000, 1)]));
        assert_eq!((sizes(&plan), plan.general_requests), (vec![16], 100_000));
    }

    #[test]
    fn a_size_that_lived_at_another_time_than_the_peak_has_no_class() {
        let classes = |requests, live_at_peak| {
            let mut other_phase = profile(&[(64, 500_000, 100_000), (512, requests, 200)]);
            other_phase.sizes[granules(512)].live_at_peak = live_at_peak;
            sizes(&Plan::new(&other_phase))
        };
        assert_eq!(classes(10_000, 150), [64, 512]);
        assert_eq!(classes(10_000, 0), [64], "more than a hundredth of the heap is idle");
        assert_eq!(classes(50_000, 0), [64, 512], "a tenth of the requests earns it");
    }

    #[test]
    fn many_classes_that_each_hold_little_idle_do_not_hold_much_together() {
        let some: Vec<(u64, u64, u64)> = (1..=20).map(|size| (size * 16, 10_000, 100)).collect();
        let mut profile = profile(&some);
        // At most 1/120 of the heap each, and less than 1/16 all eight.
        profile.peak_bytes = 120 * 320;
        for granules in 1..=20 {
            profile.sizes[granules].peak_live = 320 / granules as u64 / 16;
            profile.sizes[granules].live_at_peak = 0;
        }
        assert_eq!(Plan::new(&profile).classes.len(), 8);
    }

    #[test]
    fn a_rare_size_goes_to_a_larger_class_only_where_the_waste_is_small() {
        let all = [(128, 1_000_000, 1000), (208, 1_000_000, 1000)];
        let few = Plan::new(&profile(&[all[0], all[1], (112, 5, 5), (96, 5, 5)]));
        assert_eq!((served_by(&few, 112), served_by(&few, 96)), (128, 0), "a granule more, not a third");
        let many = Plan::new(&profile(&[all[0], all[1], (112, 150, 150)]));
        assert_eq!(served_by(&many, 112), 0, "150 blocks waste more than a five-hundredth of the heap");
        assert_eq!((served_by(&few, 176), served_by(&few, 170)), (208, 208), "a size that the trace has not");
    }

    #[test]
    fn a_chunk_is_no_larger_than_the_peak_of_its_class() {
        let plan = Plan::new(&profile(&[(48, 500_000, 2), (2048, 500_000, 3)]));
        let chunks: Vec<u64> = plan.classes.iter().map(|class| class.chunk_units * plan.unit_bytes).collect();
        assert_eq!(chunks, [512, 6656], "three blocks of 2 KiB, and the word of the next block");
    }

    #[test]
    fn pages_are_mapped_together_only_for_classes_that_will_fill_them() {
        let pages = |live| Plan::new(&profile(&[(64, 1_000_000, live)])).classes[0].populate_bytes;
        assert_eq!((pages(1000), pages(50_000)), (0, 0));
        assert!((4 * PAGE..=LARGEST_CHUNK).contains(&pages(100_000)));
        assert_eq!(pages(10_000_000), LARGEST_CHUNK);
    }

    #[test]
    fn large_requests_are_mapped_from_where_mappings_cost_little() {
        let mut some = profile(&[(64, 1_000_000, 10)]);
        some.large[17] = LargeProfile { requests: 10, bytes: 10 << 17 };
        assert_eq!(Plan::new(&some).map_from_bytes, 128 << 10);
        some.large[17] = LargeProfile { requests: 1000, bytes: 1000 << 17 };
        let plan = Plan::new(&some);
        assert_eq!((plan.map_from_bytes, plan.mapped_requests, plan.general_requests), (256 << 10, 0, 1000));
        some.large[24] = LargeProfile { requests: 1000, bytes: 1000 << 24 };
        assert_eq!(Plan::new(&some).map_from_bytes, 32 << 20);
    }

    #[test]
    fn memory_that_the_program_takes_again_and_again_does_not_go_back() {
        let mut some = profile(&[(64, 1_000_000, 10)]);
        assert_eq!(Plan::new(&some).give_back_bytes, 1 << 20);
        some.large[22] = LargeProfile { requests: 100, bytes: 100 << 22 };
        assert_eq!(Plan::new(&some).give_back_bytes, 16 << 20);
        some.large[22] = LargeProfile { requests: 99, bytes: 99 << 22 };
        assert_eq!(Plan::new(&some).give_back_bytes, 1 << 20);
    }

    proptest! {
        /// What the C code relies on, whatever the trace.
        #[test]
        fn every_plan_fits_the_tables_and_the_code(
            some in prop::collection::vec((0_u64..40_000, 1_u64..2_000_000, 1_u64..200_000), 0..200),
        ) {
            let known: Vec<_> = some.into_iter().filter(|one| one.0 <= LARGEST_EXACT).collect();
            let profile = profile(&known);
            let plan = Plan::new(&profile);
            prop_assert!(plan.classes.len() < MOST_CLASSES);
            prop_assert!(plan.classes.is_sorted_by(|a, b| a.block_bytes < b.block_bytes));
            for class in &plan.classes {
                prop_assert!(class.chunk_units * plan.unit_bytes >= class.block_bytes + 8, "a block fits a chunk");
                prop_assert!(class.chunk_units <= 255 && class.block_bytes <= LARGEST_CLASS);
                prop_assert!(class.kept_blocks >= 8);
            }
            for bytes in 0..=LARGEST_CLASS {
                let block = served_by(&plan, bytes);
                prop_assert!(block == 0 || block >= bytes.max(1), "{} bytes in {}", bytes, block);
            }
            let served: u64 = plan.classes.iter().map(|class| class.requests).sum();
            prop_assert_eq!(served + plan.general_requests + plan.mapped_requests, profile.requests);
        }
    }
}
