//! The product's commands: one file and one word in these lists a command, in the order of the help. Commands gather
//! arguments, call the library, and hand values to the report. No command uses another: what several need is a module of
//! the crate.

#[cfg(feature = "full")]
pub mod bound;
pub mod choose;
#[cfg(feature = "full")]
pub mod diff;
#[cfg(feature = "full")]
pub mod drag;
#[cfg(feature = "full")]
pub mod export;
#[cfg(feature = "full")]
pub mod gate;
#[cfg(feature = "full")]
pub mod import;
#[cfg(feature = "full")]
pub mod instructions;
pub mod lab;
#[cfg(feature = "full")]
pub mod leaks;
#[cfg(feature = "full")]
pub mod ledger;
#[cfg(feature = "full")]
pub mod lifetimes;
#[cfg(feature = "full")]
pub mod locality;
pub mod managers;
pub mod programs;
#[cfg(feature = "full")]
pub mod record;
#[cfg(feature = "full")]
pub mod replay;
pub mod report;
pub mod run;
#[cfg(feature = "full")]
pub mod shell_files;
#[cfg(feature = "full")]
pub mod stat;

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
