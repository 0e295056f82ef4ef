//! How often does a table claim a difference between managers that are the same?
//!
//! Nine stacks that are all glibc are measured together. Within a repetition their labels mean nothing, so each
//! resampling draws repetitions and shuffles the labels: a table of "managers" that are equal by construction, on
//! this machine's real noise. The share of tables with any claim should be the family-wise 5 %.

use heaptoll_lab::compare::ALPHA;
use heaptoll_lab::observation::{Observation, Phase};
use heaptoll_lab::places::Places;
use heaptoll_lab::statistics::paired;
use rand::seq::{IteratorRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::rig::{self, Stack};
use crate::{BenchError, say};

const STACKS: usize = 9;

/// Measures and resamples.
pub fn run(repetitions: u32, resamplings: u32, n: usize) -> Result<(), BenchError> {
    let places = Places::find()?;
    let stacks: Vec<Stack> = (0..STACKS)
        .map(|i| Stack { name: format!("glibc#{i}"), preload: vec![], environment: vec![] })
        .collect();
    let experiment = rig::run(&places, rig::cfrac(&places)?, &stacks, repetitions, 1992)?;
    // rows[r][stack]
    let rows: Vec<Vec<&Observation>> = (0..repetitions)
        .map(|r| {
            experiment
                .observations
                .iter()
                .filter(|row| row.phase == Phase::Timed && row.repetition == r && row.outcome.is_ok())
                .collect()
        })
        .filter(|rows: &Vec<_>| rows.len() == STACKS)
        .collect();
    println!(
        "{} rows of cfrac under glibc; {resamplings} tables of n = {n} resampled from them",
        rows.len() * STACKS
    );

    let metrics: [fn(&Observation) -> f64; 3] =
        [Observation::cpu_s, |row| row.wall_s, |row| row.peak_rss_kib as f64];
    let mut rng = ChaCha8Rng::seed_from_u64(1994);
    let (mut whole, mut single, mut percentile) = (0u32, 0u32, 0u32);
    for round in 0..resamplings {
        let mut table: Vec<Vec<&Observation>> = rows.iter().cloned().choose_multiple(&mut rng, n);
        table.shuffle(&mut rng);
        for repetition in &mut table {
            repetition.shuffle(&mut rng);
        }
        let ratio = |stack: usize, metric: fn(&Observation) -> f64| -> Vec<Option<f64>> {
            table
                .iter()
                .map(|repetition| Some((metric(repetition[stack]) / metric(repetition[0])).ln()))
                .collect()
        };
        let family: Vec<Vec<Option<f64>>> =
            (1..STACKS).flat_map(|stack| metrics.map(|metric| ratio(stack, metric))).collect();
        let claims = |series: &[Vec<Option<f64>>]| {
            paired(series, ALPHA, u64::from(round)).iter().flatten().any(|interval| interval.differs)
        };
        whole += u32::from(claims(&family));
        single += u32::from(claims(&family[..1]));
        let plain: Vec<f64> = family[0].iter().flatten().copied().collect();
        percentile += u32::from(percentile_bootstrap_claims(&plain, &mut rng));
    }
    let percent = |count: u32| 100.0 * f64::from(count) / f64::from(resamplings);
    let within = |share: f64| (4.0..=6.0).contains(&share);
    let (whole, single) = (percent(whole), percent(single));
    say(
        "tables of 8 equal managers x 3 metrics with any claim",
        format!("{whole:.1} %"),
        "4 to 6 %",
        within(whole),
    );
    say(
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
