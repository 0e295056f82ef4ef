//! Stores of heap pointers: what the write barrier of a generational collector would see.

use heaptoll_reftrace::Owner;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Stores of pointers by one owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stores {
    /// All stores of a value in the heap's address range.
    pub all: u64,
    /// Of an object's address into an older object: a write barrier must remember these.
    pub older_to_younger: u64,
    /// Of an object's address into a younger object.
    pub younger_to_older: u64,
    /// Of an object's address into itself.
    pub to_itself: u64,
    /// Of an object's address to memory outside of objects: stacks, globals, a manager's own data.
    pub from_elsewhere: u64,
    /// Of an address in no object: of a freed one, or a number that could be an address.
    pub to_none: u64,
}

/// Stores of pointers by owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pointers {
    /// By the program.
    pub program: Stores,
    /// By the malloc family.
    pub allocator: Stores,
    /// By collections.
    pub collector: Stores,
}

impl Pointers {
    /// Counts a store by the number of the object that contains it and of the object to which it points, if any.
    pub fn add(&mut self, owner: Owner, into: Option<u64>, to: Option<u64>) {
        let stores = match owner {
            Owner::Program => &mut self.program,
            Owner::Allocator => &mut self.allocator,
            Owner::Collector => &mut self.collector,
        };
        stores.all += 1;
        *match (into, to) {
            (_, None) => &mut stores.to_none,
            (None, Some(_)) => &mut stores.from_elsewhere,
            (Some(into), Some(to)) if into < to => &mut stores.older_to_younger,
            (Some(into), Some(to)) if into > to => &mut stores.younger_to_older,
            _ => &mut stores.to_itself,
        } += 1;
    }
}
