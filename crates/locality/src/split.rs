//! A figure for each accessor.

use heaptoll_reftrace::{Owner, numbered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

numbered! {
    /// Whose code made a reference: the owner of the instruction, or the kernel in a system call.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Accessor {
        /// The program.
        Program = 0 => Owner::Program.name(),
        /// A routine of the malloc family.
        Allocator = 1 => Owner::Allocator.name(),
        /// A collection that the manager announced, but for its sweep.
        Collector = 2 => Owner::Collector.name(),
        /// The kernel, in a system call of any of them. Tools that only see instructions do not count these.
        System = 3 => "system calls",
        /// The sweep of such a collection, where the manager announces where it begins.
        Sweeper = 4 => "sweep",
    }
}

impl Accessor {
    /// Number of accessors.
    pub const COUNT: usize = Accessor::ALL.len();
}

impl From<Owner> for Accessor {
    fn from(owner: Owner) -> Accessor {
        match owner {
            Owner::Program => Accessor::Program,
            Owner::Allocator => Accessor::Allocator,
            Owner::Collector => Accessor::Collector,
        }
    }
}

/// One value for each accessor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Split<T> {
    /// The program's.
    pub program: T,
    /// The malloc family's.
    pub allocator: T,
    /// The collector's, but for its sweep.
    pub collector: T,
    /// The kernel's.
    pub system: T,
    /// The sweep's, where it is part of a collection.
    pub sweeper: T,
}

impl<T> Split<T> {
    /// Makes a value for each accessor.
    pub fn of(mut value: impl FnMut(Accessor) -> T) -> Split<T> {
        Split {
            program: value(Accessor::Program),
            allocator: value(Accessor::Allocator),
            collector: value(Accessor::Collector),
            system: value(Accessor::System),
            sweeper: value(Accessor::Sweeper),
        }
    }

    /// The value of an accessor.
    pub fn get(&self, accessor: Accessor) -> &T {
        match accessor {
            Accessor::Program => &self.program,
            Accessor::Allocator => &self.allocator,
            Accessor::Collector => &self.collector,
            Accessor::System => &self.system,
            Accessor::Sweeper => &self.sweeper,
        }
    }

    /// The value of an accessor, to change.
    pub fn get_mut(&mut self, accessor: Accessor) -> &mut T {
        match accessor {
            Accessor::Program => &mut self.program,
            Accessor::Allocator => &mut self.allocator,
            Accessor::Collector => &mut self.collector,
            Accessor::System => &mut self.system,
            Accessor::Sweeper => &mut self.sweeper,
        }
    }
}

impl Split<u64> {
    /// The sum.
    pub fn total(&self) -> u64 {
        self.process() + self.system
    }

    /// The sum of collections, their sweep included.
    pub fn collections(&self) -> u64 {
        self.collector + self.sweeper
    }

    /// The sum of accesses by instructions of the process: all but the kernel's.
    pub fn process(&self) -> u64 {
        self.program + self.allocator + self.collections()
    }
}
