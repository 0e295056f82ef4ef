//! A set of addresses, kept as the fewest ranges in their order: which of the process's memory is the manager's.

use core::ops::Range;

use heaptoll_roots::{Buffer, NoMemory};

/// A set of addresses.
#[derive(Debug, Default)]
pub struct Ranges {
    /// Apart from one another and not empty.
    list: Buffer<(usize, usize)>,
}

impl Ranges {
    /// The empty set.
    pub const fn new() -> Ranges {
        Ranges { list: Buffer::new() }
    }

    /// Its ranges as start and end, in order; between two of them are addresses that are not in it.
    pub fn as_slice(&self) -> &[(usize, usize)] {
        self.list.as_slice()
    }

    /// Where it is kept.
    pub fn memory(&self) -> Range<usize> {
        self.list.range()
    }

    /// The ranges that touch or overlap `range`: their places.
    fn touching(&self, range: &Range<usize>) -> Range<usize> {
        let all = self.list.as_slice();
        let first = all.partition_point(|&(_, end)| end < range.start);
        let last = all.partition_point(|&(start, _)| start <= range.end);
        first..last.max(first)
    }

    /// Adds a range.
    ///
    /// # Errors
    /// [`NoMemory`]: nothing has changed.
    pub fn add(&mut self, range: Range<usize>) -> Result<(), NoMemory> {
        if range.is_empty() {
            return Ok(());
        }
        let touching = self.touching(&range);
        match &mut self.list.as_mut_slice()[touching.clone()] {
            [] => self.list.insert(touching.start, (range.start, range.end)),
            &mut [ref mut first, ..] => {
                first.0 = first.0.min(range.start);
                let last = self.list.as_slice()[touching.end - 1].1;
                self.list.as_mut_slice()[touching.start].1 = last.max(range.end);
                self.list.remove(touching.start + 1..touching.end);
                Ok(())
            }
        }
    }

    /// Takes a range out.
    ///
    /// # Errors
    /// [`NoMemory`]: a range would have to be split and there is no space for its second half, which is then out too.
    pub fn remove(&mut self, range: Range<usize>) -> Result<(), NoMemory> {
        if range.is_empty() {
            return Ok(());
        }
        let mut at = self.touching(&range).start;
        while let Some(&(start, end)) = self.list.as_slice().get(at)
            && start < range.end
        {
            let (before, after) = (start < range.start, end > range.end);
            match (before && end > range.start, after) {
                _ if end <= range.start => at += 1,
                (true, true) => {
                    self.list.as_mut_slice()[at].1 = range.start;
                    return self.list.insert(at + 1, (range.end, end));
                }
                (true, false) => {
                    self.list.as_mut_slice()[at].1 = range.start;
                    at += 1;
                }
                (false, true) => {
                    self.list.as_mut_slice()[at].0 = range.end;
                    return Ok(());
                }
                (false, false) => self.list.remove(at..at + 1),
            }
        }
        Ok(())
    }

    /// Whether some address of `range` is in the set.
    pub fn overlaps(&self, range: &Range<usize>) -> bool {
        let all = self.list.as_slice();
        let at = all.partition_point(|&(_, end)| end <= range.start);
        !range.is_empty() && all.get(at).is_some_and(|&(start, _)| start < range.end)
    }

    /// The range that an address lies in.
    pub fn containing(&self, address: usize) -> Option<Range<usize>> {
        let all = self.list.as_slice();
        let at = all.partition_point(|&(_, end)| end <= address);
        all.get(at).filter(|&&(start, _)| start <= address).map(|&(start, end)| start..end)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.list.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    fn range() -> impl Strategy<Value = Range<usize>> {
        (0..120_usize, 0..20_usize).prop_map(|(start, length)| start..start + length)
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_addresses_in_the_fewest_ranges(
            steps in prop::collection::vec((any::<bool>(), range()), 1..200),
            queried in range(),
        ) {
            let (mut ranges, mut model) = (Ranges::new(), BTreeSet::new());
            for (adds, range) in steps {
                if adds {
                    prop_assert_eq!(ranges.add(range.clone()), Ok(()));
                    model.extend(range);
                } else {
                    prop_assert_eq!(ranges.remove(range.clone()), Ok(()));
                    model.retain(|address| !range.contains(address));
                }
                let expected: Vec<usize> = model.iter().copied().collect();
                let found: Vec<usize> = ranges.as_slice().iter().flat_map(|&(start, end)| start..end).collect();
                prop_assert_eq!(found, expected);
                let apart = ranges.as_slice().windows(2).all(|pair| pair[0].1 < pair[1].0);
                prop_assert!(apart && ranges.as_slice().iter().all(|(start, end)| start < end));
            }
            prop_assert_eq!(ranges.overlaps(&queried), queried.clone().any(|address| model.contains(&address)));
            let containing = ranges.containing(queried.start);
            prop_assert_eq!(containing.is_some(), model.contains(&queried.start));
            if let Some(found) = containing {
                prop_assert!(found.contains(&queried.start));
                prop_assert!(found.clone().all(|address| model.contains(&address)));
                prop_assert!(!model.contains(&found.end));
            }
        }
    }
}
