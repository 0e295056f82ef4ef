//! The laboratory's commands, after the product's: one file and one word in this list a command, in the order of the help.

mod adding;
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
mod smoke;
pub mod study;
pub mod tailor;
pub mod work;

use clap::ArgMatches;
#[cfg(feature = "full")]
use heaptoll::command::shell_files;
use heaptoll::command::{GROUPS, LISTED, diff, lab, report};
use heaptoll::entry::{Entry, entries};
use heaptoll::registry::{Registry, Section};
use heaptoll_command::failure::Failure;
use heaptoll_laboratory::comparative::ALL;

/// The product's commands that compare; `report` and `diff` know the laboratory's results, too.
const COMPARING: Section = {
    let (title, [run, gate, choose, report, diff]) = LISTED[0] else { panic!("diff is not the fifth") };
    (title, &[*run, *gate, *choose, Entry { run: any_report, ..*report }, Entry { run: any_diff, ..*diff }])
};

fn any_report(matches: &ArgMatches, _: &dyn Fn() -> clap::Command) -> Result<u8, Failure> {
    report::run(&adding::read(matches)?, &ALL)
}

fn any_diff(matches: &ArgMatches, _: &dyn Fn() -> clap::Command) -> Result<u8, Failure> {
    diff::run(&adding::read(matches)?, &ALL)
}

/// The product's lists, to which the laboratory adds.
const LISTS: Section = {
    let (title, [managers, programs]) = LISTED[3] else { panic!("there are other lists") };
    (title, &[Entry { run: adding::managers, ..*managers }, Entry { run: adding::programs, ..*programs }])
};

/// The product's commands and the laboratory's.
pub static REGISTRY: Registry = Registry {
    binary: "heaptoll-lab",
    listed: &[
        COMPARING,
        LISTED[1],
        LISTED[2],
        LISTS,
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
    hidden: &[
        #[cfg(feature = "full")]
        shell_files::ENTRY,
        Entry::of::<smoke::Arguments>(),
    ],
    groups: &[
        GROUPS[0],
        GROUPS[1],
        ("lab", lab::ABOUT),
        ("shards", "Cut an experiment into shards for many machines, measure them, and merge them"),
    ],
};
