//! How often does a table claim a difference between managers that are the same?
//!
//! Nine stacks that are all glibc are measured together, with their start-up runs. Within a repetition their labels
//! mean nothing, so each resampling draws repetitions and shuffles the labels: an experiment with "managers" that are
//! equal by construction, on this machine's real noise, which goes through the same comparison as any other. The
//! share of tables with any claim should be the family-wise 5 %.

use std::collections::BTreeMap;

use heaptoll_catalog::Size;
use heaptoll_experiment::compare::compare;
use heaptoll_experiment::experiment::{Experiment, Pairing};
use heaptoll_experiment::observation::{Observation, Phase};
use heaptoll_statistics::{ALPHA, paired};
use rand::seq::{IteratorRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::protocol::protocol;
use crate::installation::Installation;
use crate::table::print_figure;
use crate::{Error, NoProgress, Stack};

const STACKS: usize = 9;

/// A run and its start-up run.
type Pair = (Observation, Observation);

/// The complete repetitions of the measurement.
fn repetitions(experiment: &Experiment) -> Vec<Vec<Pair>> {
    let mut starts: BTreeMap<(u32, &str), &Observation> = BTreeMap::new();
    let mut timed: BTreeMap<u32, Vec<&Observation>> = BTreeMap::new();
    for row in experiment.observations.iter().filter(|row| row.outcome.is_ok()) {
        match row.phase {
            Phase::Startup => drop(starts.insert((row.repetition, &row.stack), row)),
            Phase::Timed => timed.entry(row.repetition).or_default().push(row),
            _ => {}
        }
    }
    let pair = |row: &Observation| {
        Some((row.clone(), (*starts.get(&(row.repetition, row.stack.as_str()))?).clone()))
    };
    timed
        .into_values()
        .map(|rows| rows.into_iter().filter_map(pair).collect::<Vec<Pair>>())
        .filter(|rows| rows.len() == STACKS)
        .collect()
}

/// An experiment of `n` of the repetitions with their labels shuffled.
fn relabelled(measured: &Experiment, rows: &[Vec<Pair>], n: usize, rng: &mut ChaCha8Rng) -> Experiment {
    let mut drawn: Vec<&Vec<Pair>> = rows.iter().choose_multiple(rng, n);
    drawn.shuffle(rng);
    let mut made = Experiment { observations: vec![], tracks: vec![], ..measured.clone() };
    for (number, pairs) in drawn.into_iter().enumerate() {
        let mut pairs = pairs.clone();
        pairs.shuffle(rng);
        for (stack, (run, start)) in measured.stacks.iter().zip(pairs) {
            let label = |row: Observation| Observation {
                stack: stack.name.clone(),
                repetition: number as u32,
                ..row
            };
            made.observations.extend([label(run), label(start)]);
        }
    }
    made
}

/// Measures and resamples.
pub fn run(pairing: Pairing, repetitions_made: u32, resamplings: u32, n: usize) -> Result<(), Error> {
    let installation = Installation::find()?;
    let stacks: Vec<Stack> = (0..STACKS).map(|i| Stack::plain(format!("glibc#{i}"))).collect();
    let cfrac = installation.program("cfrac", Size::Quick)?;
    let measured =
        installation.run(&cfrac, &stacks, protocol(repetitions_made, 1992, pairing), &mut NoProgress)?;
    let rows = repetitions(&measured);
    if rows.len() < n {
        return Err(Error::Unexpected(format!("{} repetitions are complete, {n} are drawn", rows.len())));
    }
    println!(
        "{} rows of cfrac under glibc; {resamplings} experiments of n = {n} resampled from them",
        rows.len() * STACKS
    );
    // Stack 0 is the baseline; the fields are read from the measurement's own description.
    let measured = Experiment { observations: vec![], tracks: vec![], ..measured };
    let mut rng = ChaCha8Rng::seed_from_u64(1994);
    let (mut whole, mut single, mut percentile) = (0u32, 0u32, 0u32);
    for round in 0..resamplings {
        let mut made = relabelled(&measured, &rows, n, &mut rng);
        made.settings.seed = u64::from(round);
        let comparison = compare(&made);
        let mut ratios = comparison.tables[0].rows.iter().flat_map(|row| row.figures.values());
        whole += u32::from(ratios.any(|figure| figure.ratio.is_some_and(|ratio| ratio.differs)));
        let cpu = |stack: &str| -> Vec<f64> {
            made.observations
                .iter()
                .filter(|row| row.stack == stack && row.phase == Phase::Timed)
                .map(Observation::cpu_s)
                .collect()
        };
        let (base, other) = (cpu(&stacks[0].name), cpu(&stacks[1].name));
        let plain: Vec<f64> = base.iter().zip(&other).map(|(base, other)| (other / base).ln()).collect();
        let series = [plain.iter().map(|ratio| Some(*ratio)).collect()];
        single += u32::from(paired(&series, ALPHA, 1).iter().flatten().any(|interval| interval.differs));
        percentile += u32::from(percentile_bootstrap_claims(&plain, &mut rng));
    }
    let percent = |count: u32| 100.0 * f64::from(count) / f64::from(resamplings);
    let within = |share: f64| (4.0..=6.0).contains(&share);
    let (whole, single) = (percent(whole), percent(single));
    print_figure(
        "tables of 8 equal managers x 3 metrics with any claim",
        format!("{whole:.1} %"),
        "4 to 6 %",
        within(whole),
    );
    print_figure(
        "one ratio of a manager to itself that is claimed",
        format!("{single:.1} %"),
        "4 to 6 %",
        within(single),
    );
    println!(
        "{:<58} {:>20.1} %   (for contrast)",
        "the same ratio by a percentile bootstrap",
        percent(percentile)
    );
    Ok(())
}

/// The interval that is too narrow: percentiles of resampled means.
fn percentile_bootstrap_claims(values: &[f64], rng: &mut ChaCha8Rng) -> bool {
    const DRAWS: usize = 1000;
    let n = values.len();
    let mut means: Vec<f64> =
        (0..DRAWS).map(|_| (0..n).map(|_| values[rng.random_range(0..n)]).sum::<f64>() / n as f64).collect();
    means.sort_by(f64::total_cmp);
    let edge = (DRAWS as f64 * ALPHA / 2.0) as usize;
    means[edge] > 0.0 || means[DRAWS - 1 - edge] < 0.0
}
