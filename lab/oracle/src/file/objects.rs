//! The objects of a file, with the points that its sections state.

use std::collections::HashMap;

use heaptoll_oracle_file::{AllocationWord, FREE, Header, NEVER, Section, Unreachable};

use crate::recording::Object;

/// The objects of a file; `None` where its sections contradict one another.
pub(super) fn of(content: &[u8], header: &Header, unreachable: Option<Unreachable>) -> Option<Vec<Object>> {
    let bytes = |section: Section, entry: u64| {
        content.get(section.start as usize..(section.start + section.count * entry) as usize)
    };
    let schedule = |section: Section| {
        let words = bytes(section, 4)?.as_chunks::<4>().0;
        freed(words.iter().map(|word| u32::from_le_bytes(*word)), usize::try_from(header.allocations).ok()?)
    };
    let mut words = bytes(header.words, 8)?.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let frees = bytes(header.frees, 4)?.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let last_uses = schedule(header.schedule)?;
    let unreachable = match unreachable {
        Some(unreachable) => schedule(unreachable.schedule)?,
        None => vec![None; last_uses.len()],
    };
    if header.frees.count != header.allocations {
        return None;
    }
    let mut objects = Vec::with_capacity(last_uses.len());
    for ((freed, last_use), unreachable) in frees.zip(last_uses).zip(unreachable) {
        let word = AllocationWord::of(words.next()?);
        let resized = if word.resized { Some(words.next()?) } else { None };
        let freed = (freed != NEVER).then_some(freed.into());
        // What the schedule does not free is used to the end.
        let last_use = last_use.unwrap_or(header.allocations);
        if unreachable.is_some_and(|point| point < last_use) {
            return None;
        }
        objects.push(Object { size: word.size, site: 0, resized, last_use, freed, unreachable });
    }
    Some(objects)
}

/// Follows a schedule of so many allocations as the layer does: before which one each object is freed.
fn freed(words: impl Iterator<Item = u32>, allocations: usize) -> Option<Vec<Option<u64>>> {
    let mut objects = Vec::new();
    let mut in_slot: HashMap<u32, usize> = HashMap::new();
    for word in words {
        if word & FREE == 0 {
            in_slot.insert(word, objects.len());
            objects.push(None);
        } else {
            let now = objects.len() as u64;
            let dead = in_slot.remove(&(word & !FREE))?;
            *objects.get_mut(dead)? = Some(now);
        }
    }
    (objects.len() == allocations).then_some(objects)
}
