//! The words by which the layer frees objects at their last use: see `deaths` in [`heaptoll_oracle_file`].

use heaptoll_oracle_file::FREE;

use crate::recording::Recording;

/// The words, and the slots that they use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deaths {
    /// The section.
    pub words: Vec<u32>,
    /// Slots: the most objects alive at once, before their last use.
    pub slots: u32,
}

impl Deaths {
    /// Of a recording: each object is freed before the first allocation after its last use.
    pub fn of(recording: &Recording) -> Deaths {
        let count = recording.objects.len();
        let dying = Dying::of(recording);
        let mut slot_of = vec![0u32; count];
        let mut empty: Vec<u32> = Vec::new();
        let mut deaths = Deaths { words: Vec::with_capacity(2 * count), slots: 0 };
        for at in 0..count {
            for object in dying.before(at as u64) {
                let free = slot_of[*object as usize];
                deaths.words.push(FREE | free);
                empty.push(free);
            }
            let own = empty.pop().unwrap_or_else(|| {
                deaths.slots += 1;
                deaths.slots - 1
            });
            slot_of[at] = own;
            deaths.words.push(own);
        }
        deaths
    }
}

/// Objects by their last use.
struct Dying {
    /// By number of allocations: the first of them in `objects`.
    first: Vec<u32>,
    objects: Vec<u32>,
}

impl Dying {
    fn of(recording: &Recording) -> Dying {
        let count = recording.objects.len();
        let mut first = vec![0u32; count + 2];
        for object in &recording.objects {
            first[place(object.last_use, count) + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let mut next = first.clone();
        let mut objects = vec![0; count];
        for (index, object) in recording.objects.iter().enumerate() {
            let next = &mut next[place(object.last_use, count)];
            objects[*next as usize] = index as u32;
            *next += 1;
        }
        Dying { first, objects }
    }

    /// Objects that are used for the last time before the allocation of this index, and not before the one before it.
    fn before(&self, allocation: u64) -> &[u32] {
        let at = allocation as usize;
        &self.objects[self.first[at] as usize..self.first[at + 1] as usize]
    }
}

/// Objects that are used after the last allocation share a place after it.
fn place(last_use: u64, count: usize) -> usize {
    usize::try_from(last_use).unwrap_or(usize::MAX).min(count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recording::Object;

    /// What the layer does with the words: by allocation, the objects freed before it.
    fn followed(deaths: &Deaths) -> Vec<Vec<usize>> {
        let mut table = vec![None; deaths.slots as usize];
        let (mut freed, mut all) = (Vec::new(), Vec::new());
        for word in &deaths.words {
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
                .map(|(at, after)| Object { size: 1, site: 0, resized: None, last_use: at as u64 + after, freed: None })
                .collect();
            let recording = Recording { objects: objects.clone(), sites: vec![] };
            let deaths = Deaths::of(&recording);
            let freed = followed(&deaths);
            let mut most = 0;
            for at in 0..objects.len() {
                let mut before = freed[at].clone();
                before.sort_unstable();
                let expected: Vec<usize> = (0..at).filter(|index| objects[*index].last_use == at as u64).collect();
                prop_assert_eq!(&before, &expected);
                let alive = (0..=at).filter(|index| *index == at || objects[*index].last_use > at as u64).count();
                most = most.max(alive);
            }
            prop_assert_eq!(deaths.slots as usize, most);
        }
    }
}
