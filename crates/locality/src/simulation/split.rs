//! A figure for each of those who make references.

use heaptoll_reference::Owner;
use serde::{Deserialize, Serialize};

/// Who made a reference: the owner of the instruction, or the kernel in a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Maker {
    /// The program.
    Program = 0,
    /// A routine of the malloc family.
    Allocator = 1,
    /// A collection that the manager announced.
    Collector = 2,
    /// The kernel, for a system call of any of them. No tool that only sees instructions counts these.
    System = 3,
}

impl Maker {
    /// How many there are.
    pub const COUNT: usize = 4;
    /// All, in the order of their numbers.
    pub const ALL: [Maker; Maker::COUNT] =
        [Maker::Program, Maker::Allocator, Maker::Collector, Maker::System];

    /// As a user reads it.
    pub fn name(self) -> &'static str {
        match self {
            Maker::System => "system calls",
            Maker::Program => Owner::Program.name(),
            Maker::Allocator => Owner::Allocator.name(),
            Maker::Collector => Owner::Collector.name(),
        }
    }
}

impl From<Owner> for Maker {
    fn from(owner: Owner) -> Maker {
        match owner {
            Owner::Program => Maker::Program,
            Owner::Allocator => Maker::Allocator,
            Owner::Collector => Maker::Collector,
        }
    }
}

/// One value for each maker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split<T> {
    /// The program's.
    pub program: T,
    /// The malloc family's.
    pub allocator: T,
    /// The collector's.
    pub collector: T,
    /// The kernel's.
    pub system: T,
}

impl<T> Split<T> {
    /// Of a value for each maker.
    pub fn of(mut value: impl FnMut(Maker) -> T) -> Split<T> {
        Split {
            program: value(Maker::Program),
            allocator: value(Maker::Allocator),
            collector: value(Maker::Collector),
            system: value(Maker::System),
        }
    }

    /// One maker's.
    pub fn get(&self, maker: Maker) -> &T {
        match maker {
            Maker::Program => &self.program,
            Maker::Allocator => &self.allocator,
            Maker::Collector => &self.collector,
            Maker::System => &self.system,
        }
    }

    /// One maker's, to be changed.
    pub fn get_mut(&mut self, maker: Maker) -> &mut T {
        match maker {
            Maker::Program => &mut self.program,
            Maker::Allocator => &mut self.allocator,
            Maker::Collector => &mut self.collector,
            Maker::System => &mut self.system,
        }
    }
}

impl Split<u64> {
    /// All of them together.
    pub fn total(&self) -> u64 {
        self.program + self.allocator + self.collector + self.system
    }

    /// What the instructions of the process did: all but the kernel's.
    pub fn process(&self) -> u64 {
        self.program + self.allocator + self.collector
    }
}
