//! The product's commands: one file and one word in these lists a command, in the order of the help. Commands gather
//! arguments, call the library, and hand values to the report. No command uses another: what several need is a module of
//! the crate.

pub mod bound;
pub mod choose;
pub mod diff;
pub mod drag;
pub mod export;
pub mod gate;
pub mod import;
pub mod instructions;
pub mod lab;
pub mod leaks;
pub mod ledger;
pub mod lifetimes;
pub mod locality;
pub mod managers;
pub mod programs;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
#[cfg(feature = "full")]
pub mod shell_files;
pub mod stat;

use crate::entry::entries;
use crate::registry::{Group, Registry, Section};

/// The commands that the help lists; the laboratory lists its own after them.
pub const LISTED: [Section; 4] = [
    ("Compare", entries![run, gate, choose, report, diff]),
    ("Record", entries![record, leaks, ledger, stat, lifetimes, bound, replay, export, import]),
    ("Count exactly, under Valgrind", entries![instructions, locality, drag]),
    ("Lists", entries![managers, programs]),
];

/// The words that only begin the names of others.
pub const GROUPS: [Group; 2] = [
    ("trace", "What a trace holds: stat, lifetimes, bound, replay, export, import"),
    ("exact", "Figures that repeat on a noisy machine: instructions, locality, drag"),
];

/// The product's.
pub static REGISTRY: Registry = Registry {
    binary: "heaptoll",
    listed: &[LISTED[0], LISTED[1], LISTED[2], LISTED[3], ("Laboratory", entries![lab])],
    hidden: &[
        #[cfg(feature = "full")]
        shell_files::ENTRY,
    ],
    groups: &GROUPS,
};
