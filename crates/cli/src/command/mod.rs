//! The registry of commands: one file and one word in these lists a command, in the order of the help. Commands gather
//! arguments, call the library, and hand values to the report. No command uses another: what several need is a module of
//! the crate.

pub mod artifact;
pub mod bound;
pub mod choose;
pub mod conservatism;
pub mod delay;
pub mod diff;
pub mod drag;
pub mod export;
pub mod frequency;
pub mod gate;
pub mod import;
pub mod instructions;
pub mod leaks;
pub mod ledger;
pub mod lifetimes;
pub mod locality;
pub mod managers;
pub mod merge;
pub mod minheap;
pub mod oracle;
pub mod plan;
pub mod programs;
pub mod proximity;
pub mod reclamation;
pub mod record;
pub mod replay;
pub mod replay_graph;
pub mod report;
pub mod run;
#[cfg(feature = "full")]
pub mod shell_files;
pub mod smoke;
pub mod stat;
pub mod study;
pub mod tailor;
pub mod work;

use crate::entry::Entry;

macro_rules! entries {
    ($($(#[$condition:meta])? $command:ident),+ $(,)?) => {
        &[$($(#[$condition])? Entry::of::<$command::Arguments>()),+]
    };
}

/// The commands that the help lists, under its titles.
pub static LISTED: [(&str, &[Entry]); 5] = [
    ("Compare", entries![run, gate, choose, report, diff]),
    ("Record", entries![record, leaks, ledger, stat, lifetimes, bound, replay, export, import]),
    ("Count exactly, under Valgrind", entries![instructions, locality, drag]),
    ("Lists", entries![managers, programs]),
    (
        "Laboratory",
        entries![
            study,
            delay,
            frequency,
            proximity,
            reclamation,
            oracle,
            minheap,
            conservatism,
            replay_graph,
            tailor,
            artifact,
            plan,
            work,
            merge,
        ],
    ),
];

/// The commands that it does not list.
pub static HIDDEN: &[Entry] = entries![
    #[cfg(feature = "full")]
    shell_files,
    smoke
];

/// What the help says of the words that only begin the names of others.
pub const GROUPS: [(&str, &str); 4] = [
    ("trace", "What a trace holds: stat, lifetimes, bound, replay, export, import"),
    ("exact", "Figures that repeat on a noisy machine: instructions, locality, drag"),
    ("lab", "Papers repeated, collectors and experiments: `heaptoll lab help` lists them"),
    ("shards", "Cut an experiment into shards for many machines, measure them, and merge them"),
];
