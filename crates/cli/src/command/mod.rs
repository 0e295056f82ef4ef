//! The product's commands: one file and one word in these lists a command, in the order of the help. Commands gather
//! arguments, call the library, and hand values to the report. No command uses another: what several need is a module of
//! the crate.

pub mod choose;
pub mod lab;
pub mod managers;
pub mod programs;
pub mod report;
pub mod run;

/// What a build without `full` leaves out.
#[cfg(feature = "full")]
#[path = "."]
mod full {
    pub mod bound;
    pub mod diff;
    pub mod drag;
    pub mod export;
    pub mod gate;
    pub mod import;
    pub mod instructions;
    pub mod leaks;
    pub mod ledger;
    pub mod lifetimes;
    pub mod locality;
    pub mod record;
    pub mod replay;
    pub mod shell_files;
    pub mod stat;
}

#[cfg(feature = "full")]
pub use full::*;

use crate::entry::entries;
use crate::registry::{Group, Registry, Section};

/// The commands that the help lists; the laboratory lists its own in place of the last.
pub const LISTED: &[Section] = &[
    #[cfg(feature = "full")]
    ("Compare", entries![run, gate, choose, report, diff]),
    #[cfg(not(feature = "full"))]
    ("Compare", entries![run, choose, report]),
    #[cfg(feature = "full")]
    ("Record", entries![record, leaks, ledger, stat, lifetimes, bound, replay, export, import]),
    #[cfg(feature = "full")]
    ("Count exactly, under Valgrind", entries![instructions, locality, drag]),
    ("Lists", entries![managers, programs]),
    ("Laboratory", entries![lab]),
];

/// The first words of the commands that a build without `full` leaves out, and the names that they had before.
#[cfg(any(test, not(feature = "full")))]
pub const LEFT_OUT: [&str; 17] = [
    "gate",
    "diff",
    "compare",
    "record",
    "leaks",
    "ledger",
    "trace",
    "stat",
    "lifetimes",
    "bound",
    "replay",
    "export",
    "import",
    "exact",
    "instructions",
    "locality",
    "drag",
];

/// The words that only begin the names of others.
pub const GROUPS: [Group; 2] = [
    ("trace", "What a trace holds: stat, lifetimes, bound, replay, export, import"),
    ("exact", "Figures that repeat on a noisy machine: instructions, locality, drag"),
];

/// The product's.
pub static REGISTRY: Registry = Registry {
    binary: "heaptoll",
    listed: LISTED,
    hidden: &[
        #[cfg(feature = "full")]
        shell_files::ENTRY,
    ],
    groups: &GROUPS,
};
