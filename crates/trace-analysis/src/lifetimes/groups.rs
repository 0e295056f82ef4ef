//! Objects by size, call site or thread, and the ages of each group.
//!
//! Groups are a partition, so the ages of all objects are the sum over groups and need no histogram of their own while
//! events pass. Call sites that read alike share a group from the first where that is known before the events. There
//! may be too many groups all the same: then those with the fewest bytes so far are merged for good.

use std::collections::HashMap;

use heaptoll_callsites::Sum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ages::Ages;
use super::birth::Birth;
use crate::stat::size_class;

/// The key by which objects are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The power of two that the last size is rounded up to.
    #[default]
    Size,
    /// The call site that allocated the object.
    Site,
    /// The thread that allocated the object.
    Thread,
}

/// Groups that are kept; half of them are merged when there are more.
const GROUPS: usize = 1 << 13;
/// Keys (site and thread numbers) that can have a group of their own: a recorder's numbers of sites have 24 bits.
const KEYS: usize = 1 << 24;
/// The group into which others are merged.
const REST: u32 = 0;
/// A key without a group.
const NONE: u32 = u32::MAX;

/// One group.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Site or thread number or size class; meaningless for the first group. Of sites that read alike the number of one.
    pub key: u32,
    /// Number of keys that read alike.
    pub alike: u64,
    /// Ages in bytes.
    pub bytes: Ages,
    /// Ages in time.
    pub time: Ages,
    /// Never freed.
    pub still_live: Sum,
}

/// All groups.
#[derive(Debug, Clone)]
pub struct Groups {
    by: By,
    /// Group by key.
    of: Vec<u32>,
    /// By site, where it is known: the first site that reads alike.
    first_alike: Vec<u32>,
    /// Group by first site.
    of_first: HashMap<u32, u32>,
    /// The first is [`REST`].
    groups: Vec<Group>,
    /// Keys that are in the first.
    lumped: u64,
}

impl Groups {
    /// No groups yet.
    pub fn new(by: By) -> Groups {
        Groups {
            by,
            of: Vec::new(),
            first_alike: Vec::new(),
            of_first: HashMap::new(),
            groups: vec![Group::default()],
            lumped: 0,
        }
    }

    /// States, before there are groups, for each site the first one that reads alike.
    pub fn alike(&mut self, first_alike: Vec<u32>) {
        if self.by == By::Site {
            self.first_alike = first_alike;
        }
    }

    /// The group of an object.
    #[inline(always)]
    pub fn of(&mut self, birth: &Birth) -> &mut Group {
        let key = match self.by {
            By::Size => size_class(birth.size()) as u32,
            By::Site => birth.site,
            By::Thread => birth.thread,
        };
        let group = match self.of.get(key as usize) {
            Some(&group) if group != NONE => group,
            _ => self.found(key),
        };
        &mut self.groups[group as usize]
    }

    #[cold]
    fn found(&mut self, key: u32) -> u32 {
        let index = key as usize;
        if index >= KEYS {
            return REST;
        }
        if index >= self.of.len() {
            self.of.resize(index + 1, NONE);
        }
        let group = match self.first_alike.get(index) {
            None => self.add(key),
            Some(&first) => match self.of_first.get(&first) {
                Some(&group) => group,
                None => {
                    let group = self.add(key);
                    self.of_first.insert(first, group);
                    group
                }
            },
        };
        self.groups[group as usize].alike += 1;
        self.of[index] = group;
        group
    }

    fn add(&mut self, key: u32) -> u32 {
        if self.groups.len() == GROUPS {
            self.put_together();
        }
        self.groups.push(Group { key, ..Group::default() });
        self.groups.len() as u32 - 1
    }

    /// Merges the half with the fewest bytes into the first group.
    fn put_together(&mut self) {
        let mut others: Vec<(usize, Group)> = self.groups.drain(1..).enumerate().collect();
        others.sort_by_cached_key(|(_, group)| std::cmp::Reverse(group.all().bytes));
        let small = others.split_off(others.len() / 2);
        let mut moved = vec![REST; GROUPS];
        for (_, group) in &small {
            self.lumped += group.alike;
            self.groups[0].merge(group);
        }
        for (before, group) in others {
            moved[before + 1] = self.groups.len() as u32;
            self.groups.push(group);
        }
        for group in self.of.iter_mut().chain(self.of_first.values_mut()).filter(|group| **group != NONE) {
            *group = moved[*group as usize];
        }
    }

    /// Merges groups whose keys have the same row, where that was not known before the events. Those that are in the
    /// first group stay there.
    pub fn merge_alike(&mut self, mut row: impl FnMut(u32) -> usize) {
        let mut others = self.groups.split_off(1);
        others.sort_by_cached_key(|group| (std::cmp::Reverse(group.all().bytes), group.key));
        let mut index_by_row: HashMap<usize, usize> = HashMap::new();
        for group in others {
            let next = self.groups.len();
            let index = *index_by_row.entry(row(group.key)).or_insert(next);
            match self.groups.get_mut(index) {
                Some(first) => {
                    first.merge(&group);
                    first.alike += group.alike;
                }
                None => self.groups.push(group),
            }
        }
        // Groups are no longer found by key from here on.
        self.of.clear();
    }

    /// The groups that hold something, with the most bytes first, all others (merged), and how many those are.
    pub fn finish(mut self, most: usize) -> (Vec<Group>, Option<(Group, u64)>) {
        let mut rest = self.groups.remove(0);
        let mut groups = self.groups;
        if self.by == By::Size {
            groups.sort_by_key(|group| group.key);
        } else {
            groups.sort_by_cached_key(|group| (std::cmp::Reverse(group.all().bytes), group.key));
        }
        let mut lumped = self.lumped;
        for group in groups.drain(most.min(groups.len())..) {
            rest.merge(&group);
            lumped += 1;
        }
        let has_rest = rest.all().objects > 0;
        (groups, has_rest.then_some((rest, lumped)))
    }
}

impl Group {
    /// All its objects.
    pub fn all(&self) -> Sum {
        self.bytes.all().plus(self.still_live)
    }

    /// Adds another group's objects.
    pub fn merge(&mut self, other: &Group) {
        self.bytes.merge(&other.bytes);
        self.time.merge(&other.time);
        self.still_live = self.still_live.plus(other.still_live);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_sites_are_merged_but_not_the_largest() {
        let mut groups = Groups::new(By::Site);
        let count = GROUPS as u32 * 2;
        for site in 0..count {
            let size = if site == 17 { 1 << 20 } else { 8 };
            let birth = Birth::new(0, 0, size, site, 0);
            groups.of(&birth).bytes.add(100, size);
        }
        let (top, rest) = groups.finish(10);
        assert_eq!((top[0].key, top[0].all().bytes), (17, 1 << 20));
        let (rest, lumped) = rest.expect("there is a rest");
        assert_eq!(
            (top.len() as u64 + lumped, top.len() as u64 + rest.all().objects),
            (count.into(), count.into())
        );
    }

    #[test]
    fn sites_that_read_alike_are_one_group() {
        let mut groups = Groups::new(By::Site);
        for site in 1..=6 {
            let size = 100 * u64::from(site);
            let birth = Birth::new(0, 0, size, site, 0);
            groups.of(&birth).bytes.add(100, size);
        }
        groups.merge_alike(|site| (site % 2) as usize);
        let (all, rest) = groups.finish(9);
        let seen: Vec<_> = all.iter().map(|group| (group.key, group.alike, group.all().bytes)).collect();
        assert_eq!(seen, [(6, 3, 1200), (5, 3, 900)]);
        assert!(rest.is_none());
    }

    /// A recursive program has a call stack for each node of its tree: all but a few thousand of them were lost.
    #[test]
    fn sites_that_are_known_to_read_alike_are_merged_before_there_are_too_many() {
        let mut groups = Groups::new(By::Site);
        let count = GROUPS as u32 * 4;
        groups.alike((0..count).map(|site| site % 3).collect());
        for site in 0..count {
            groups.of(&Birth::new(0, 0, 8, site, 0)).still_live.add(8);
        }
        let (all, rest) = groups.finish(9);
        assert!(rest.is_none());
        let seen: Vec<_> = all.iter().map(|group| (group.alike, group.still_live.objects)).collect();
        let third = u64::from(count / 3);
        assert_eq!(seen, [(third + 1, third + 1), (third + 1, third + 1), (third, third)]);
    }

    #[test]
    fn a_site_that_reads_as_one_of_the_merged_ones_is_merged() {
        let mut groups = Groups::new(By::Site);
        let count = GROUPS as u32 * 2;
        groups.alike((0..=count).map(|site| if site == count { 1 } else { site }).collect());
        for site in 0..count {
            groups.of(&Birth::new(0, 0, 8, site, 0)).bytes.add(100, if site == 1 { 1 } else { 8 });
        }
        groups.of(&Birth::new(0, 0, 8, count, 0)).bytes.add(100, 8);
        groups.of(&Birth::new(0, 0, 8, 2, 0)).bytes.add(100, 8);
        let (all, rest) = groups.finish(GROUPS);
        let objects = all.iter().map(|group| group.all().objects).sum::<u64>()
            + rest.map_or(0, |(rest, _)| rest.all().objects);
        assert_eq!(objects, u64::from(count) + 2);
        assert!(all.iter().all(|group| group.key != count), "it went where site 1 is");
    }

    #[test]
    fn groups_by_size_come_by_size_and_by_thread_by_bytes() {
        for (by, keys) in [(By::Size, [4, 11]), (By::Thread, [0, 1])] {
            let mut groups = Groups::new(by);
            for (size, thread) in [(1024, 0), (8, 1), (7, 1)] {
                let birth = Birth::new(0, 0, size, 0, thread);
                groups.of(&birth).still_live.add(size);
            }
            let (all, rest) = groups.finish(9);
            assert_eq!(all.iter().map(|group| group.key).collect::<Vec<_>>(), keys);
            assert!(rest.is_none());
        }
    }

    #[test]
    fn numbers_out_of_all_bounds_take_no_memory() {
        let mut groups = Groups::new(By::Thread);
        groups.of(&Birth::new(0, 0, 8, 0, u32::MAX)).still_live.add(8);
        assert_eq!(groups.finish(9).1.map(|(rest, _)| rest.all().objects), Some(1));
    }
}
