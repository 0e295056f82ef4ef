//! What the frequency of collections costs, and what rarer reclamation does (Sareen and Blackburn 2022, §8).

mod comparison;
mod document;
mod facts;
mod figures;
mod period;
mod published;
mod published_gain;

use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::observation::{Observation, Phase};
use heaptoll_units::size_label;

use self::period::part;
use crate::{collecting, layered};
use heaptoll_command::collector_options;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::studied::{self, Findings};

pub use comparison::FEWEST_COLLECTIONS;
pub use figures::{Frequency, Mean, Medians, Ratio, Setting, Study};
pub use period::{Period, Question};
pub use published::PublishedPair;
pub use published_gain::Gain;

schemars::labelled!(Frequency, "heaptoll-frequency/1");
/// The paper's own: mark and sweep over mimalloc.
const PAPERS: &str = "sweep/mimalloc3";

/// What to run.
#[derive(Debug, Clone)]
pub struct FrequencyRequest {
    /// Collectors, as stacks; the paper's without any.
    pub manager: Vec<String>,
    /// Bytes allocated between two collections.
    pub every_bytes: Vec<u64>,
    /// Every how many collections garbage is reclaimed.
    pub reclaim: Vec<u64>,
    /// The programs, and how often they run.
    pub study: studied::Request,
}

/// The figures, as in the JSON.
pub type FrequencyFigures = studied::Figures<Frequency, PublishedPair>;

/// Runs every program under every collector and every period.
///
/// # Errors
/// See [`studied::carry_out`]; a resumed file of another study.
pub fn run(
    request: &FrequencyRequest,
    context: &Context,
) -> Result<Findings<Frequency, PublishedPair>, Failure> {
    let stacks = if request.study.resume.is_some() { vec![] } else { stacks(request, context)? };
    let workload = &request.study.workload;
    // Of several programs one without collections is shown, and is in no mean; the others go on.
    let is_only = !workload.is_many() && workload.program.len() < 2;
    let most_often = request.every_bytes.iter().min().copied().filter(|_| is_only);
    let subject = |stack: &str| part(stack).map(|part| part.0);
    let outcome = studied::carry_out(&request.study, context, &stacks, &subject, &|row| {
        without_collections(row, most_often?)
    })?;
    let sweep = comparison::swept(&outcome.experiment);
    let found = comparison::figures(&sweep);
    let published = published::published_pairs(&found);
    let document = document::document(&found, &sweep, &outcome);
    Findings::of(outcome, ("frequency", "a collection period"), &sweep.subjects, found, published, document)
}

/// The reason to stop when the run with the shortest period made no collection: the others make none either.
fn without_collections(row: &Observation, most_often: u64) -> Option<String> {
    let of_shortest = row.stack.contains(&format!("every={}", size_label(most_often)));
    let ran = row.phase != Phase::Startup && row.outcome.is_ok();
    let none = row.collections.is_some_and(|collections| collections.count == 0);
    (ran && of_shortest && none).then(|| {
        format!(
            "a whole run of {} under {} has no collection: it allocates less than {} from beginning to end, \
             so their frequency cannot be studied. Give it more to do, or collect more often: --every {}",
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
fn stacks(request: &FrequencyRequest, context: &Context) -> Result<Vec<Manager>, Failure> {
    let known = manager::known(context.places)?;
    let words = if request.manager.is_empty() { vec![PAPERS.into()] } else { request.manager.clone() };
    let chosen = layered::chosen(&known, &words, &[], context)?;
    let mut stacks = Vec::new();
    for collector in chosen {
        for period in periods(&request.every_bytes, &request.reclaim) {
            stacks.push(with_period(&known, &collector, period)?);
        }
    }
    Ok(stacks)
}

/// A collector with a period.
fn with_period(known: &[Manager], collector: &Manager, period: Period) -> Result<Manager, Failure> {
    if collector.layers.len() > 1 || collector.layers.iter().any(|layer| !layer.kind.collects) {
        return Err(Failure::Usage(format!(
            "-m {}: name one sweep layer and a manager, or a collector that takes every=",
            collector.name
        )));
    }
    collecting::check(collector, &[("every", "--every"), ("reclaim", "--reclaim")])
        .map_err(|why| Failure::Usage(format!("-m {why}")))?;
    let reclaim = if period.reclaim > 1 { format!(",reclaim={}", period.reclaim) } else { String::new() };
    let varied = format!("every={}{reclaim}", size_label(period.every_bytes));
    Ok(collector_options::with(known, collector, &collecting::options(collector, &varied))?)
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::stack::{ManagerOption, Values};

    use super::*;

    fn named(name: &str, options: &[&str]) -> Manager {
        let option = |name: &&str| ManagerOption {
            variable: "X".into(),
            key: None,
            between: ",".into(),
            values: if *name == "every" { Values::Size(1) } else { Values::Number(1, 64) },
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
        let known = [named("m", &[]), named("c", &["every", "reclaim", "markers"])];
        let made = |stack: &str| {
            let collector = manager::find(&known, stack).expect("a stack");
            with_period(&known, &collector, EIGHT).expect("a stack").name
        };
        let sweep = "sweep,free=honour,every=8M,reclaim=4,markers=1,sweep=eager/m";
        assert_eq!(made("sweep,free=honour/m"), sweep);
        assert_eq!(made("c"), "c,every=8M,reclaim=4,markers=1");
    }

    #[test]
    fn what_cannot_be_given_a_period_is_refused() {
        let known = [named("m", &[])];
        for stack in ["m", "sweep,every=4M/m", "quarantine=1B/m", "forward/sweep/m"] {
            let manager = manager::find(&known, stack).expect("a stack");
            let why = with_period(&known, &manager, EIGHT).map_err(|why| why.to_string()).expect_err(stack);
            assert!(why.starts_with(&format!("-m {stack}: ")), "{why}");
        }
    }
}
