//! Which stacks are of this study: a manager alone, or with one quarantine in front of it.

use heaptoll_experiment::stack::{LayerKind, layers};

/// A stack's part in this study: its manager, and the size of the quarantine in front of it, if there is one. `None`
/// for a stack that has other layers or settings.
pub fn part(stack: &str) -> Option<(String, Option<u64>)> {
    let (in_front, manager) = layers(stack).ok()?;
    match in_front.as_slice() {
        [] => Some((manager.into(), None)),
        [only] if only.kind == LayerKind::Quarantine => {
            let size = only.settings.iter().find(|(name, _)| name == "size")?.1.parse().ok()?;
            // Further settings make another subject: `mimalloc3, evict=random`.
            let others: Vec<&str> = only.word.split(',').skip(1).collect();
            let subject = std::iter::once(manager).chain(others).collect::<Vec<_>>().join(", ");
            Some((subject, Some(size)))
        }
        _ => None,
    }
}
