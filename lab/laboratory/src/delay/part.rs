//! Which stacks are of this study: a manager alone, or with one quarantine in front of it.

use crate::layered;

/// A stack's part in this study: its manager, and the size of the quarantine in front of it, if there is one. `None`
/// for a stack that has other layers or settings.
pub fn part(stack: &str) -> Option<(String, Option<u64>)> {
    let (manager, layer) = layered::part(stack, |kind| kind.name == "quarantine")?;
    let Some(layer) = layer else { return Some((manager, None)) };
    let size = layer.setting("size")?.parse().ok()?;
    // Further settings make another subject: `mimalloc3, evict=random`.
    let subject = [&*manager].into_iter().chain(layer.word.split(',').skip(1)).collect::<Vec<_>>();
    Some((subject.join(", "), Some(size)))
}
