//! When objects lived, in groups: those of one stack that were allocated within the same interval and freed within the
//! same. When there are too many groups, intervals become twice as long. So the sums are exact, and memory does not grow
//! with the trace.
//!
//! An object that grows is made of pieces, each with the time of its allocation; one that shrinks loses the youngest.

use std::collections::HashMap;

use heaptoll_callsites::Sum;
use heaptoll_profiles::{Life, Lives};

use super::live::Live;
use crate::site_sums::SITES;

/// First length of an interval, ns.
const INTERVAL_NS: u64 = 1 << 20;
/// Groups that are always kept; of a trace with many stacks, [`GROUPS_EACH`] a stack.
const GROUPS: usize = 1 << 18;
const GROUPS_EACH: usize = 4;

/// Site, and by interval allocation and free.
type Key = (u32, u32, Option<u32>);

/// The groups so far.
#[derive(Debug)]
pub struct LifeGroups {
    interval_ns: u64,
    groups: HashMap<Key, Sum>,
    /// By slot: times and bytes of pieces that were added later.
    pieces: HashMap<u32, Vec<(u64, u64)>>,
    highest_site: u32,
    /// Groups that are always kept.
    groups_kept: usize,
}

impl Default for LifeGroups {
    fn default() -> LifeGroups {
        LifeGroups {
            interval_ns: INTERVAL_NS,
            groups: HashMap::new(),
            pieces: HashMap::new(),
            highest_site: 0,
            groups_kept: GROUPS,
        }
    }
}

impl LifeGroups {
    /// An object changed its size, of which `before` and `after` bytes count.
    pub fn resize(&mut self, slot: u32, site: u32, before: u64, after: u64, born_ns: u64, now_ns: u64) {
        if after > before {
            let pieces = self.pieces.entry(slot).or_default();
            match pieces.last_mut() {
                Some(last) if last.0 / self.interval_ns == now_ns / self.interval_ns => {
                    last.1 += after - before;
                }
                _ => pieces.push((now_ns, after - before)),
            }
            return;
        }
        let mut less = before - after;
        while less > 0 {
            let last = self.pieces.get_mut(&slot).and_then(|pieces| {
                let last = pieces.last_mut()?;
                let taken = last.1.min(less);
                last.1 -= taken;
                let found = (last.0, taken);
                if last.1 == 0 {
                    pieces.pop();
                }
                Some(found)
            });
            let (piece_born, taken) = last.unwrap_or((born_ns, less));
            self.add(site, piece_born, Some(now_ns), 0, taken);
            less -= taken;
        }
    }

    /// An object ended, or is alive at the end.
    pub fn end(&mut self, slot: u32, live: &Live, died_ns: Option<u64>) {
        let mut first = live.bytes();
        for (born_ns, bytes) in self.pieces.remove(&slot).unwrap_or_default() {
            first = first.saturating_sub(bytes);
            self.add(live.site, born_ns, died_ns, 0, bytes);
        }
        self.add(live.site, live.born_ns, died_ns, u64::from(live.counts), first);
    }

    fn add(&mut self, site: u32, born_ns: u64, died_ns: Option<u64>, objects: u64, bytes: u64) {
        if objects == 0 && bytes == 0 {
            return;
        }
        let site = site.min(SITES - 1);
        self.highest_site = self.highest_site.max(site);
        let at = |ns: u64| u32::try_from(ns / self.interval_ns).unwrap_or(u32::MAX);
        let sum = self.groups.entry((site, at(born_ns), died_ns.map(at))).or_default();
        sum.objects += objects;
        sum.bytes = sum.bytes.saturating_add(bytes);
        while self.groups.len() > self.most() {
            self.merge();
        }
    }

    fn most(&self) -> usize {
        self.groups_kept.max(self.highest_site as usize * GROUPS_EACH)
    }

    #[cold]
    fn merge(&mut self) {
        self.interval_ns = self.interval_ns.saturating_mul(2);
        for ((site, born, died), sum) in std::mem::take(&mut self.groups) {
            let into = self.groups.entry((site, born / 2, died.map(|died| died / 2))).or_default();
            *into = into.plus(sum);
        }
    }

    /// The groups in order, with the stacks of sites.
    pub fn finish(self, stacks: &HashMap<u32, u32>) -> Lives {
        let mut lives: Vec<Life> = self
            .groups
            .into_iter()
            .filter_map(|((site, born, died), sum)| {
                let stack = *stacks.get(&site)?;
                Some(Life { stack, born, died, objects: sum.objects, bytes: sum.bytes })
            })
            .collect();
        lives.sort_unstable();
        Lives { interval_ns: self.interval_ns, lives }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(site: u32, size: u64) -> Live {
        Live { size, site, counts: true, is_alive: true, ..Live::default() }
    }

    #[test]
    fn however_many_groups_are_merged_the_sums_stay() {
        let mut groups = LifeGroups { groups_kept: 100, ..LifeGroups::default() };
        let count = 3000;
        for object in 0..count {
            let born_ns = object * INTERVAL_NS;
            let live = Live { born_ns, ..live(1, 8) };
            groups.end(0, &live, (object % 3 > 0).then_some(born_ns + 5 * INTERVAL_NS));
        }
        let lives = groups.finish(&HashMap::from([(1, 0)]));
        assert!(lives.interval_ns > INTERVAL_NS && lives.lives.len() <= 100);
        let sum = |kept: bool| lives.lives.iter().filter(|l| l.died.is_none() == kept).map(|l| l.bytes).sum();
        assert_eq!((sum(true), sum(false)), (count / 3 * 8, count / 3 * 2 * 8));
        assert!(lives.lives.iter().all(|life| life.died.is_none_or(|died| died >= life.born)));
    }

    #[test]
    fn an_object_that_shrinks_loses_its_youngest_bytes() {
        let mut groups = LifeGroups::default();
        let ms = INTERVAL_NS;
        groups.resize(0, 1, 100, 150, 0, 2 * ms);
        groups.resize(0, 1, 150, 170, 0, 4 * ms);
        groups.resize(0, 1, 170, 90, 0, 6 * ms); // 20 of 4 ms, 50 of 2 ms, 10 of the first
        groups.end(0, &live(1, 90), None);
        let lives = groups.finish(&HashMap::from([(1, 7)])).lives;
        let life = |born, died, objects, bytes| Life { stack: 7, born, died, objects, bytes };
        assert_eq!(
            lives,
            [life(0, None, 1, 90), life(0, Some(6), 0, 10), life(2, Some(6), 0, 50), life(4, Some(6), 0, 20)]
        );
    }
}
