//! `heaptoll frequency`: what collections cost the program besides their pauses.

use clap::Args;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::observation::{Observation, Phase};
use heaptoll_experiment::places::Places;
use heaptoll_experiment::stack::LayerKind;
use heaptoll_studies::frequency::{FIXED, Period, part, study};
use heaptoll_units::size;

use crate::stand_ins;
use crate::studied::{self, StudyArguments, size_label};
use heaptoll_experiments::failure::Failure;

mod document;
mod published;
mod sections;

/// What collections cost the program besides their pauses: the mutator's time over the frequency of collections.
///
/// The program runs over a collector that stops it after so many bytes, with several such periods, in interleaved
/// random order. What is compared is the mutator's time: elapsed time less pauses, and CPU less the collector's. The
/// same is done with collections that only identify what is dead, and with reclamation at some collections only (Sareen
/// and Blackburn 2022, section 5), which separates the disturbance of a collection from the delay of reuse. Marking has
/// one thread, and a collection is over when its pause is.
///
/// Exit status: 0 all well; 1 a stack failed, gave wrong output or was refused, or an output file could not be written;
/// 2 the request cannot be carried out; 130 interrupted (what was measured is shown and kept).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll frequency -- gawk -f report.awk data.txt\n  \
    heaptoll frequency -m tithe-collect -p gawk -p lua --size demo\n  \
    heaptoll frequency -m sweep/tcmalloc --every 64K,1M,8M --reclaim 1 -p cfrac    (small heaps: short periods)\n  \
    heaptoll frequency -p gawk --html frequency.html --json frequency.json")]
pub struct Arguments {
    /// A collector: a sweep layer in front of a manager, or a collector that takes `every=` (`heaptoll managers`); may
    /// be given several times [default: sweep/mimalloc3]
    #[arg(short, long, value_name = "COLLECTOR", conflicts_with = "resume")]
    manager: Vec<String>,
    /// Bytes allocated between collections; ratios are to the shortest
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = period,
        default_value = "8M,16M,32M", conflicts_with = "resume")]
    every: Vec<u64>,
    /// Reclaim at one collection in K only; the largest K is run with every period, all with the shortest
    #[arg(long, value_name = "K,...", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1 << 32),
        default_value = "1,4,16", conflicts_with = "resume")]
    reclaim: Vec<u64>,
    #[command(flatten)]
    study: StudyArguments,
}

/// The paper's own: mark and sweep over mimalloc.
const PAPERS: &str = "sweep/mimalloc3";

fn period(text: &str) -> Result<u64, String> {
    size(text).filter(|bytes| *bytes > 0).ok_or_else(|| "give sizes above 0, such as 64K or 8M".into())
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let places = Places::find()?;
    let stacks = if arguments.study.resume.is_some() { vec![] } else { stacks(arguments, &places)? };
    let most_often = arguments.every.iter().min().copied();
    let outcome = studied::carry_out(&arguments.study, &places, &stacks, &subject, &|row| {
        without_collections(row, most_often?)
    })?;
    let found = study(&outcome.experiment);
    if found.collectors.is_empty() {
        return Err(Failure::Usage(format!(
            "{} has no stack with a collection period: it is not of this study; `heaptoll report` shows it",
            outcome.path.display()
        )));
    }
    let document = document::document(&found, &outcome);
    let figures = outcome.figures(&found, published::published_pairs(&found));
    outcome.deliver(&arguments.study.outputs, "frequency", &document, &figures)
}

/// The collector, without its period.
fn subject(stack: &str) -> Option<String> {
    part(stack).map(|(collector, _)| collector)
}

/// The reason to stop when the run with the shortest period made no collection: the others make none either.
fn without_collections(row: &Observation, most_often: u64) -> Option<String> {
    let of_shortest = row.stack.contains(&format!("every={}", size_label(most_often)));
    let ran = row.phase != Phase::Startup && row.outcome.is_ok();
    let none = row.collections.is_some_and(|collections| collections.count == 0);
    (ran && of_shortest && none).then(|| {
        format!(
            "not one collection in a whole run of {} under {}: it allocates less than {} between its beginning and its \
             end, so their frequency cannot be studied. Give it more to do, or collect more often: --every {}",
            row.program,
            row.stack,
            size_label(most_often),
            size_label((most_often / 16).max(1))
        )
    })
}

/// The periods of the three experiments.
fn periods(every: &[u64], reclaim: &[u64]) -> Vec<Period> {
    let mut every = every.to_vec();
    every.sort_unstable();
    let most = reclaim.iter().copied().max().unwrap_or(1);
    let of = |reclaim: u64| every.iter().map(move |&every_bytes| Period { every_bytes, reclaim });
    let shortest = every.first().copied();
    let rarer = reclaim.iter().filter_map(|&reclaim| Some(Period { every_bytes: shortest?, reclaim }));
    let mut all: Vec<Period> = of(1).chain(of(most)).chain(rarer).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Every collector with every period.
fn stacks(arguments: &Arguments, places: &Places) -> Result<Vec<Manager>, Failure> {
    let known = manager::known(places)?;
    let words = if arguments.manager.is_empty() { vec![PAPERS.into()] } else { arguments.manager.clone() };
    stand_ins::note(&known, &words);
    let chosen = studied::without_repeats(manager::choose(&known, words.iter().map(String::as_str))?);
    let mut stacks = Vec::new();
    for collector in chosen {
        for period in periods(&arguments.every, &arguments.reclaim) {
            stacks.push(manager::find(&known, &word(&collector, period)?)?);
        }
    }
    Ok(stacks)
}

/// The stack of a collector with a period.
fn word(collector: &Manager, period: Period) -> Result<String, Failure> {
    let refuse = |why: &str| Failure::Usage(format!("-m {}: {why}", collector.name));
    let head = match collector.layers.as_slice() {
        [] if collector.options.contains_key("every") => collector.name.clone(),
        [only] if only.kind == LayerKind::Sweep => only.word.clone(),
        [] => {
            return Err(refuse(
                "it has no collection period (option every=); put the sweep layer in front of a manager: sweep/MANAGER",
            ));
        }
        _ => return Err(refuse("name one sweep layer and a manager, or a collector that takes every=")),
    };
    let is_set = |name: &str| head.split(',').skip(1).any(|word| word.split('=').next() == Some(name));
    if is_set("every") || is_set("reclaim") {
        return Err(refuse(
            "every= and reclaim= are what the study varies; give them by --every and --reclaim",
        ));
    }
    let has = |name: &str| !collector.layers.is_empty() || collector.options.contains_key(name);
    let mut word = format!("{head},every={}", size_label(period.every_bytes));
    if period.reclaim > 1 {
        word += &format!(",reclaim={}", period.reclaim);
    }
    for (name, value) in FIXED {
        if has(name) && !is_set(name) {
            word += &format!(",{name}={value}");
        }
    }
    let rest = collector.name.strip_prefix(&head).filter(|_| !collector.layers.is_empty());
    Ok(word + rest.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::stack::{ManagerOption, Values};

    use super::*;

    fn named(name: &str, options: &[&str]) -> Manager {
        let option = |_: &&str| ManagerOption {
            variable: "X".into(),
            values: Values::Size(1),
            with: Default::default(),
        };
        let options = options.iter().map(|name| (name.to_string(), option(name))).collect();
        Manager { name: name.into(), base: name.into(), options, ..manager::glibc() }
    }

    const EIGHT: Period = Period { every_bytes: 8 << 20, reclaim: 4 };

    #[test]
    fn the_paper_has_seven_settings() {
        let all = periods(&[8, 16, 32], &[1, 4, 16]);
        let pairs: Vec<(u64, u64)> = all.iter().map(|at| (at.every_bytes, at.reclaim)).collect();
        assert_eq!(pairs, [(8, 1), (8, 4), (8, 16), (16, 1), (16, 16), (32, 1), (32, 16)]);
        assert_eq!(periods(&[32, 8], &[1]).len(), 2);
    }

    #[test]
    fn collectors_get_their_periods_as_their_own_options() {
        let known = [named("m", &[])];
        let sweep = manager::find(&known, "sweep,free=honour/m").expect("a stack");
        let made = word(&sweep, EIGHT).expect("a word");
        assert_eq!(made, "sweep,free=honour,every=8M,reclaim=4,markers=1,sweep=eager/m");
        assert!(manager::find(&known, &made).is_ok_and(|stack| stack.name == made));
        let collector = named("c", &["every", "reclaim", "markers"]);
        assert_eq!(word(&collector, EIGHT).expect("a word"), "c,every=8M,reclaim=4,markers=1");
    }

    #[test]
    fn what_cannot_be_given_a_period_is_refused() {
        let known = [named("m", &[])];
        for stack in ["m", "sweep,every=4M/m", "quarantine=1B/m", "forward/sweep/m"] {
            let manager = manager::find(&known, stack).expect("a stack");
            assert!(word(&manager, EIGHT).is_err(), "{stack}");
        }
    }
}
