//! LRU stack distances in one pass (Mattson et al. 1970): for each reference, how many other entries were touched since
//! its own was. The caller decides what an entry is (a line, a page), and numbers entries densely.
//!
//! The most recent entries are in a move-to-front array; most references end there. The others have a slot in a bitmap
//! in the order of their last touch, and a distance is the number of set bits after a slot: a Fenwick tree over the
//! words of the bitmap counts them (Bennett & Kruskal 1975 with a tree of counters; Olken 1981 keeps a balanced tree
//! instead). When the slots are used up the set ones are compacted.
//!
//! Memory: 4 bytes for each number in use, up to 16 for the histograms of the four accessors, and under 2 for the
//! slots.
//!
//! With sampling (see [`crate::sampled`]) the bitmap keeps all entries up to the seam and beyond it only the followed
//! ones, so that one structure yields exact and sampled distances.

pub mod curve;
pub mod front;
pub mod histogram;

use crate::sampled::{Following, Sampling};
use crate::split::{Accessor, Split};
use curve::Curve;
use front::{Fallen, Lanes, Row, to_front};
use histogram::Histogram;

/// Entries of the array.
pub const TOP: usize = 16;
/// Distance of a first touch.
pub const COLD: u32 = u32::MAX;
/// A distance beyond the seam.
pub const BEYOND: u32 = u32::MAX - 1;

/// No entry.
const NONE: u32 = u32::MAX;
/// Value in `slots` of an entry that was never touched, or never left the array.
const NEVER: u32 = 0;
/// Value in `slots` of an entry without a slot: it is beyond the seam and not followed.
const AWAY: u32 = 1;
/// Otherwise `slots` holds the slot plus this.
const FIRST: u32 = 2;

const FEWEST_SLOTS: usize = 1 << 12;

/// The LRU stack of entries, and the distances seen.
#[derive(Debug, Clone)]
pub struct Distances {
    /// Most recent first.
    top: Row<TOP>,
    /// By number of the entry. Undefined for one in `top`.
    slots: Vec<u32>,
    order: Order,
    following: Option<Box<Following>>,
    histograms: [Histogram; Accessor::COUNT],
    cold: [u64; Accessor::COUNT],
    distinct: u64,
}

/// Slots in the order of last touches.
#[derive(Debug, Clone)]
struct Order {
    /// Slot `i` is bit `i % 64` of word `i / 64`.
    bits: Vec<u64>,
    /// Word `i` counts in the nodes of a Fenwick tree, which begin at 1.
    nodes: Vec<u32>,
    /// The next slot to assign.
    head: usize,
    /// Set bits.
    live: u32,
}

impl Order {
    fn new(slots: usize) -> Order {
        Order { bits: vec![0; slots / 64], nodes: vec![0; slots / 64 + 1], head: 0, live: 0 }
    }

    #[inline(always)]
    fn is_set(&self, slot: usize) -> bool {
        self.bits[slot / 64] >> (slot % 64) & 1 != 0
    }

    #[inline(always)]
    fn push(&mut self) -> usize {
        let slot = self.head;
        self.head += 1;
        self.bits[slot / 64] |= 1 << (slot % 64);
        let mut node = slot / 64 + 1;
        while let Some(count) = self.nodes.get_mut(node) {
            *count += 1;
            node += node & node.wrapping_neg();
        }
        self.live += 1;
        slot
    }

    #[inline(always)]
    fn remove(&mut self, slot: usize) {
        self.bits[slot / 64] &= !(1 << (slot % 64));
        let mut node = slot / 64 + 1;
        while let Some(count) = self.nodes.get_mut(node) {
            *count -= 1;
            node += node & node.wrapping_neg();
        }
        self.live -= 1;
    }

    /// Set bits after a slot.
    #[inline(always)]
    fn after(&self, slot: usize) -> u32 {
        let word = slot / 64;
        let mut count = (self.bits[word] & (!0 << (slot % 64) << 1)).count_ones();
        let last = (self.head - 1) / 64;
        if last - word <= 8 {
            for bits in &self.bits[word + 1..=last] {
                count += bits.count_ones();
            }
            return count;
        }
        let mut node = word + 1;
        let mut up_to = 0;
        while node != 0 {
            up_to += self.nodes[node];
            node &= node - 1;
        }
        count + self.live - up_to
    }

    /// The first set bit at or after a slot.
    fn next(&self, slot: usize) -> Option<usize> {
        let mut word = slot / 64;
        let mut bits = *self.bits.get(word)? & (!0 << (slot % 64));
        while bits == 0 {
            word += 1;
            bits = *self.bits.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    fn is_full(&self) -> bool {
        self.head == self.bits.len() * 64
    }

    /// Compacts set bits to the front of this many slots, and returns the map from old slots to new ones.
    fn compact(&mut self, slots: usize) -> Moved {
        let mut moved =
            Moved { bits: std::mem::take(&mut self.bits), before: std::mem::take(&mut self.nodes) };
        let mut sum = 0;
        for (word, bits) in moved.bits.iter().enumerate() {
            moved.before[word] = sum;
            sum += bits.count_ones();
        }
        debug_assert!(sum == self.live && slots > sum as usize);
        let full = sum as usize / 64;
        self.bits = vec![0; slots / 64];
        self.bits[..full].fill(!0);
        self.bits[full] = (1 << (sum % 64)) - 1;
        self.nodes = vec![0; slots / 64 + 1];
        for node in 1..self.nodes.len() {
            let from = node - (node & node.wrapping_neg());
            let set = |words: usize| (words * 64).min(sum as usize);
            self.nodes[node] = (set(node) - set(from)) as u32;
        }
        self.head = sum as usize;
        moved
    }

    fn bytes(&self) -> u64 {
        self.bits.len() as u64 * 12
    }
}

/// The map from slots before a compaction to slots after it.
struct Moved {
    bits: Vec<u64>,
    /// Set bits before each word.
    before: Vec<u32>,
}

impl Moved {
    /// The new slot; `None` for one that was not set.
    #[inline(always)]
    fn slot(&self, old: usize) -> Option<u32> {
        let (word, bit) = (old / 64, 1_u64 << (old % 64));
        let bits = self.bits[word];
        (bits & bit != 0).then(|| self.before[word] + (bits & (bit - 1)).count_ones())
    }

    /// Moves the bits of another bitmap likewise, into this many slots.
    fn carry(&self, old: &[u64], slots: usize) -> Vec<u64> {
        let mut new = vec![0; slots / 64];
        for (word, &marked) in old.iter().enumerate() {
            let mut marked = marked & self.bits[word];
            while marked != 0 {
                let below = (marked & marked.wrapping_neg()) - 1;
                let slot = (self.before[word] + (self.bits[word] & below).count_ones()) as usize;
                new[slot / 64] |= 1 << (slot % 64);
                marked &= marked - 1;
            }
        }
        new
    }
}

impl Default for Distances {
    fn default() -> Distances {
        Distances::new()
    }
}

impl Distances {
    /// No entries, exact for every distance.
    pub fn new() -> Distances {
        Distances {
            top: Row([NONE; TOP]),
            slots: Vec::new(),
            order: Order::new(FEWEST_SLOTS),
            following: None,
            histograms: Default::default(),
            cold: [0; Accessor::COUNT],
            distinct: 0,
        }
    }

    /// Exact up to a seam, sampled beyond.
    pub fn sampled(sampling: Sampling) -> Distances {
        let following = Following::new(sampling, TOP as u32, FEWEST_SLOTS);
        Distances { following: Some(Box::new(following)), ..Distances::new() }
    }

    /// Touches an entry and returns its distance: [`COLD`] for the first touch, [`BEYOND`] beyond the seam. Numbers of
    /// entries should be dense: memory grows with the largest.
    pub fn touch(&mut self, entry: u32) -> u32 {
        let last = self.top.0[TOP - 1];
        let at = to_front(&mut self.top, entry);
        if at < TOP { at as u32 } else { self.below_top(entry, last) }
    }

    /// Touches entries for an accessor, one after the other, and counts each with its distance. `scratch` receives what
    /// is not in the array: it is at least as long as the entries, and its content before and after is undefined.
    #[inline(always)]
    pub fn references(
        &mut self,
        lanes: impl Lanes,
        accessor: Accessor,
        entries: &[u32],
        scratch: &mut [Fallen],
    ) {
        let mut places = [0; TOP + 1];
        let missing = lanes.row(&mut self.top, entries, &mut places, scratch);
        for (distance, &times) in places[..TOP].iter().enumerate().filter(|(_, times)| **times > 0) {
            self.histograms[accessor as usize].add(distance as u32, times);
        }
        for fallen in &scratch[..missing] {
            let distance = self.below_top(fallen.came, fallen.fell);
            self.record(accessor, distance);
        }
    }

    /// Touches an entry that is not in the array; `out` leaves the array for it.
    #[inline(always)]
    fn below_top(&mut self, entry: u32, out: u32) -> u32 {
        if entry as usize >= self.slots.len() {
            self.grow(entry as usize);
        }
        let distance = match self.slots[entry as usize] {
            NEVER => {
                self.distinct += 1;
                if let Some(following) = &mut self.following {
                    following.begin(entry);
                }
                COLD
            }
            AWAY => BEYOND,
            slot => self.take(entry, (slot - FIRST) as usize),
        };
        if distance == BEYOND
            && let Some(following) = &mut self.following
        {
            following.found.get_or_insert(None);
        }
        if out != NONE {
            self.put(out);
        }
        distance
    }

    /// Removes an entry from its slot: its distance.
    #[inline(always)]
    fn take(&mut self, entry: u32, slot: usize) -> u32 {
        match &mut self.following {
            None => {
                let after = self.order.after(slot);
                self.order.remove(slot);
                TOP as u32 + after
            }
            // It was removed since slots were compacted last.
            Some(_) if !self.order.is_set(slot) => BEYOND,
            Some(following) => {
                let after = self.order.after(slot);
                self.order.remove(slot);
                if slot >= following.boundary {
                    following.recent -= 1;
                    return TOP as u32 + after;
                }
                following.found.get_or_insert(Some((entry, after - following.recent)));
                BEYOND
            }
        }
    }

    /// Assigns the newest slot to an entry.
    #[inline(always)]
    fn put(&mut self, entry: u32) {
        if self.order.is_full() {
            self.compact();
        }
        let slot = self.order.push();
        self.slots[entry as usize] = slot as u32 + FIRST;
        if let Some(following) = &mut self.following {
            if following.follows(entry) {
                following.marks[slot / 64] |= 1 << (slot % 64);
            }
            following.recent += 1;
            if following.recent > following.most {
                following.recent -= 1;
                // There is one: all recent entries are after the boundary.
                if let Some(oldest) = self.order.next(following.boundary) {
                    following.boundary = oldest + 1;
                    if following.marks[oldest / 64] >> (oldest % 64) & 1 == 0 {
                        self.order.remove(oldest);
                    }
                }
            }
        }
    }

    #[cold]
    fn grow(&mut self, entry: usize) {
        // An eighth more, and not twice as much: untouched memory costs nothing, but copying does.
        let wanted = (entry + 1).next_multiple_of(64) + self.slots.len() / 8;
        self.slots.reserve_exact(wanted - self.slots.len());
        self.slots.resize(wanted, NEVER);
    }

    #[cold]
    fn compact(&mut self) {
        // Half of the numbers, so that as many touches pay for the pass over all of them.
        let wanted = (self.order.live as usize * 4).max(self.slots.len() / 2).max(FEWEST_SLOTS);
        let slots = wanted.next_power_of_two();
        let moved = self.order.compact(slots);
        for slot in self.slots.iter_mut().filter(|slot| **slot >= FIRST) {
            *slot = moved.slot((*slot - FIRST) as usize).map_or(AWAY, |new| new + FIRST);
        }
        if let Some(following) = &mut self.following {
            following.marks = moved.carry(&following.marks, slots);
            following.boundary = (self.order.live - following.recent) as usize;
        }
    }

    /// Counts a reference of an accessor with the distance that [`Distances::touch`] returned.
    #[inline(always)]
    pub fn record(&mut self, accessor: Accessor, distance: u32) {
        if distance < BEYOND {
            self.histograms[accessor as usize].count(distance);
        } else {
            self.record_long(accessor, distance);
        }
    }

    fn record_long(&mut self, accessor: Accessor, distance: u32) {
        let found = self.following.as_mut().and_then(|following| following.found.take());
        if distance == COLD {
            self.cold[accessor as usize] += 1;
        } else if let Some(following) = &mut self.following {
            following.record(accessor, found.flatten());
        }
    }

    /// Counts references of an accessor with a distance of 0, which change nothing else.
    pub fn record_same(&mut self, accessor: Accessor, times: u64) {
        self.histograms[accessor as usize].add(0, times);
    }

    /// Different entries touched.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// The curve of all references recorded, for entries of this many bytes.
    pub fn curve(self, entry_bytes: u64) -> Curve {
        let cold = Split::of(|accessor| self.cold[accessor as usize]);
        let mut histograms = self.histograms;
        let distances = Split::of(|accessor| {
            let mut histogram = std::mem::take(&mut histograms[accessor as usize]);
            histogram.seal();
            histogram
        });
        let tail = self.following.map(|following| following.tail(self.distinct));
        let references = Split::of(|accessor| {
            let beyond = tail.as_ref().map_or(0, |tail| *tail.beyond().get(accessor));
            cold.get(accessor) + distances.get(accessor).total() + beyond
        });
        Curve { entry_bytes, references, cold, distinct: self.distinct, distances, tail }
    }

    /// Memory of the structure, bytes.
    pub fn bytes(&self) -> u64 {
        self.slots.capacity() as u64 * 4
            + self.order.bytes()
            + self.histograms.iter().map(Histogram::bytes).sum::<u64>()
            + self.following.as_ref().map_or(0, |following| following.bytes())
    }

    /// Checks that all parts agree with each other.
    ///
    /// # Errors
    /// The disagreement.
    pub fn check(&self) -> Result<(), String> {
        let order = &self.order;
        let set = |words: &[u64]| words.iter().map(|word| word.count_ones()).sum::<u32>();
        if set(&order.bits) != order.live {
            return Err(format!("{} slots are set, not {}", set(&order.bits), order.live));
        }
        if order.next(order.head).is_some() {
            return Err("a slot is set that was not given".to_string());
        }
        for node in 1..order.nodes.len() {
            let words = &order.bits[node - (node & node.wrapping_neg())..node];
            if order.nodes[node] != set(words) {
                return Err(format!("node {node} is {}, not {}", order.nodes[node], set(words)));
            }
        }
        let mut owners = 0;
        for (entry, &slot) in self.slots.iter().enumerate() {
            let in_top = self.top.0.contains(&(entry as u32));
            if slot >= FIRST && !in_top && order.is_set((slot - FIRST) as usize) {
                owners += 1;
            } else if slot >= FIRST && !in_top && self.following.is_none() {
                return Err(format!("entry {entry} has slot {}, which is not set", slot - FIRST));
            }
        }
        if owners != order.live {
            return Err(format!("{owners} entries have the {} slots", order.live));
        }
        let mut sorted = self.top.0.to_vec();
        sorted.retain(|&entry| entry != NONE);
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(format!("an entry is twice in {:?}", self.top));
        }
        let Some(following) = &self.following else { return Ok(()) };
        let recent = (following.boundary..order.head).filter(|&slot| order.is_set(slot)).count();
        if recent as u32 != following.recent || following.recent > following.most {
            return Err(format!("{recent} entries are recent, not {}", following.recent));
        }
        for slot in (0..following.boundary).filter(|&slot| order.is_set(slot)) {
            if following.marks[slot / 64] >> (slot % 64) & 1 == 0 {
                return Err(format!("slot {slot} is beyond the seam and not followed"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
