//! What a collection begins from and what it reports, by the replay's table of objects. The table stands in place of
//! stacks and static data, so the time of passing over it is bookkeeping.

use crate::world::World;

/// Addresses of the roots.
pub fn roots(world: &mut World) -> Vec<usize> {
    world.bookkeeping(|world| world.table.present(true).map(|entry| entry.address).collect())
}

/// Addresses of objects whose last touch lies ahead and that are no roots.
pub fn held(world: &mut World) -> Vec<usize> {
    world.bookkeeping(|world| {
        world.table.present(false).filter(|entry| entry.is_held()).map(|entry| entry.address).collect()
    })
}

/// Objects that only their last touch ahead keeps: no root, and not among those that a collection has found live.
/// Counts them.
pub fn hidden(world: &mut World, is_live: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut hidden = held(world);
    hidden.retain(|&address| !is_live(address));
    world.count_hidden(hidden.len() as u64);
    hidden
}

/// Has the table forget the dead, to which the new address is 0.
pub fn forget_dead(world: &mut World, new_address: impl FnMut(usize) -> usize) {
    world.bookkeeping(|world| world.forget_dead(new_address));
}
