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
/// A class may hold so much of the peak idle at the peak of the heap, one part in so many.
const IDLE: u64 = 100;
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
        let count = |some: &[(usize, &crate::profile::LargeProfile)]| some.iter().map(|(_, one)| one.requests).sum::<u64>();
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
    let mut served = 0;
    let mut sizes = Vec::new();
    for (granules, requests) in often {
        if sizes.len() + 1 == MOST_CLASSES || served * 1000 >= profile.requests * ENOUGH_PER_MILLE {
            break;
        }
        if !is_idle(profile, granules) {
            served += requests;
            sizes.push(granules);
        }
    }
    sizes.sort_unstable();
    sizes
}

/// Whether blocks of a size would hold much memory when the heap is largest that then serves nothing: the general heap
/// uses it for other sizes.
fn is_idle(profile: &Profile, granules: usize) -> bool {
    let size = &profile.sizes[granules];
    let idle = (size.peak_live - size.live_at_peak) * granules as u64 * GRANULE;
    idle * IDLE > profile.peak_bytes
}

/// The class of each size: its own, or the next one where that wastes little.
fn table(profile: &Profile, sizes: &[usize]) -> Vec<u8> {
    let largest = sizes.last().copied().unwrap_or(0);
    let mut table = vec![0; largest + 1];
    for (granules, entry) in table.iter_mut().enumerate() {
        let next = sizes.partition_point(|&size| size < granules.max(1));
        let Some(&size) = sizes.get(next) else { continue };
        if size == granules.max(1) || wastes_little(profile, granules, size) {
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
