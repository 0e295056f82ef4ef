//! The words by which the layer frees objects: see `schedule` and `unreachable` in [`heaptoll_oracle_file`].

use heaptoll_oracle_file::FREE;

use crate::recording::Object;

/// The words, and the slots that they use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The section.
    pub words: Vec<u32>,
    /// Slots: the most objects at once that are not freed.
    pub slots: u32,
}

impl Schedule {
    /// Each object is freed before the first allocation after the last one that `end` allows: its number, or more for an
    /// object that is not freed.
    pub fn of(objects: &[Object], end: fn(&Object) -> u64) -> Schedule {
        let count = objects.len();
        let dying = Dying::of(objects, end);
        let mut slot_of = vec![0u32; count];
        let mut empty: Vec<u32> = Vec::new();
        let mut schedule = Schedule { words: Vec::with_capacity(2 * count), slots: 0 };
        for at in 0..count {
            for object in dying.before(at as u64) {
                let free = slot_of[*object as usize];
                schedule.words.push(FREE | free);
                empty.push(free);
            }
            let own = empty.pop().unwrap_or_else(|| {
                schedule.slots += 1;
                schedule.slots - 1
            });
            slot_of[at] = own;
            schedule.words.push(own);
        }
        schedule
    }
}

/// Objects by when they are freed.
struct Dying {
    /// By number of allocations: the first of them in `objects`.
    first: Vec<u32>,
    objects: Vec<u32>,
}

impl Dying {
    fn of(all: &[Object], end: fn(&Object) -> u64) -> Dying {
        let count = all.len();
        let mut first = vec![0u32; count + 2];
        for object in all {
            first[place(end(object), count) + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let mut next = first.clone();
        let mut objects = vec![0; count];
        for (index, object) in all.iter().enumerate() {
            let next = &mut next[place(end(object), count)];
            objects[*next as usize] = index as u32;
            *next += 1;
        }
        Dying { first, objects }
    }

    /// Objects that are freed before the allocation of this index, and not before the one before it.
    fn before(&self, allocation: u64) -> &[u32] {
        let at = allocation as usize;
        &self.objects[self.first[at] as usize..self.first[at + 1] as usize]
    }
}

/// Objects that are not freed before the last allocation share a place after it.
fn place(end: u64, count: usize) -> usize {
    usize::try_from(end).unwrap_or(usize::MAX).min(count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recording::Object;

    /// What the layer does with the words: by allocation, the objects freed before it.
    fn followed(schedule: &Schedule) -> Vec<Vec<usize>> {
        let mut table = vec![None; schedule.slots as usize];
        let (mut freed, mut all) = (Vec::new(), Vec::new());
        for word in &schedule.words {
            if word & FREE != 0 {
                let slot: &mut Option<usize> = &mut table[(word & !FREE) as usize];
                freed.push(slot.take().expect("a slot that is freed has an object"));
            } else {
                let slot = &mut table[*word as usize];
                assert_eq!(*slot, None, "a slot is empty before it is used");
                *slot = Some(all.len());
                all.push(std::mem::take(&mut freed));
            }
        }
        all
    }

    proptest! {
        #[test]
        fn each_object_is_freed_once_before_the_first_allocation_after_its_last_use(
            after in prop::collection::vec(1u64..20, 1..200)
        ) {
            let objects: Vec<Object> = after
                .iter()
                .enumerate()
                .map(|(at, after)| Object { size: 1, site: 0, resized: None, last_use: at as u64 + after, freed: None, unreachable: None })
                .collect();
            let schedule = Schedule::of(&objects, |object| object.last_use);
            let freed = followed(&schedule);
            let mut most = 0;
            prop_assert_eq!(freed.len(), objects.len());
            for (at, mut before) in freed.into_iter().enumerate() {
                before.sort_unstable();
                let expected: Vec<usize> = (0..at).filter(|index| objects[*index].last_use == at as u64).collect();
                prop_assert_eq!(&before, &expected);
                let alive = (0..=at).filter(|index| *index == at || objects[*index].last_use > at as u64).count();
                most = most.max(alive);
            }
            prop_assert_eq!(schedule.slots as usize, most);
        }
    }
}
