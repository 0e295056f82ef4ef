//! The laboratory's commands, after the product's: one file and one word in this list a command, in the order of the help.

pub mod artifact;
pub mod conservatism;
pub mod delay;
pub mod frequency;
pub mod merge;
pub mod minheap;
pub mod oracle;
pub mod plan;
pub mod proximity;
pub mod reclamation;
pub mod replay_graph;
pub mod study;
pub mod tailor;
pub mod work;

use heaptoll::command::{GROUPS, HIDDEN, LISTED, lab};
use heaptoll::entry::entries;
use heaptoll::registry::Registry;

/// The product's commands and the laboratory's.
pub static REGISTRY: Registry = Registry {
    listed: &[
        LISTED[0],
        LISTED[1],
        LISTED[2],
        LISTED[3],
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
    ],
    hidden: HIDDEN,
    groups: &[
        GROUPS[0],
        GROUPS[1],
        ("lab", lab::ABOUT),
        ("shards", "Cut an experiment into shards for many machines, measure them, and merge them"),
    ],
};
