//! Time and memory over the size of a quarantine (Sareen and Blackburn 2022, §7).
//!
//! A quarantine holds what the program frees until it is full, a number of bytes, and then frees it all. At one byte it
//! delays nothing and costs what it costs at any size, so ratios to it are those of the delay alone; what the layer
//! itself costs is the quarantine of one byte over the same manager without any.

use std::collections::BTreeSet;

use heaptoll_experiment::comparison::{Metric, Ratios};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::setting::Settings;
use heaptoll_experiment::side::Side;
use heaptoll_experiment::sweep::{self, Sweep, Swept, sweep};
use heaptoll_statistics::median;

use super::figures::{Curve, Delay, Mean, Medians, Point};
use crate::axis::{RATIOS, between};
use crate::layered;

/// The quarantine that delays nothing.
pub const NO_DELAY: u64 = 1;

/// The axis of sizes, bytes.
pub type Sizes = Settings<u64, Medians>;

/// A stack's part in this study: its manager, and the size of the quarantine in front of it, if there is one. `None`
/// for a stack that has other layers or settings.
pub fn part(stack: &str) -> Option<(String, Option<u64>)> {
    let (manager, layer) = layered::part(stack, |kind| kind.name == "quarantine")?;
    let Some(layer) = layer else { return Some((manager, None)) };
    let size = layer.setting("size")?.parse().ok()?;
    // Further settings make another subject: `mimalloc3, evict=random`.
    let subject = [&*manager].into_iter().chain(layer.word.split(',').skip(1)).collect::<Vec<_>>();
    Some((subject.join(", "), Some(size)))
}

fn medians(side: &Side) -> Option<Medians> {
    let held: Vec<f64> =
        side.timed.values().filter_map(|row| row.held_high_bytes).map(|bytes| bytes as f64).collect();
    (!side.timed.is_empty()).then(|| Medians {
        cpu_s: median(&side.values(Metric::Cpu)),
        wall_s: median(&side.values(Metric::Wall)),
        peak_rss_kib: median(&side.values(Metric::PeakRss)),
        held_high_bytes: (!held.is_empty()).then(|| median(&held)),
    })
}

/// What was found in an experiment's rows. Call [`heaptoll_experiment::compare::judge_outputs`] first.
pub fn swept(experiment: &Experiment) -> Sweep<Sizes> {
    sweep(&Sizes { part: Box::new(part), base: Some(NO_DELAY), medians }, experiment)
}

/// The same as figures.
pub fn figures(found: &Sweep<Sizes>) -> Delay {
    let curves: Vec<Curve> = found.programs.iter().filter_map(curve).collect();
    let means = found.means.iter().map(|mean| mean_of(found, mean)).collect();
    let sizes: BTreeSet<u64> =
        curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.size_bytes)).collect();
    Delay { sizes_bytes: sizes.into_iter().collect(), managers: found.subjects.clone(), curves, means }
}

fn curve(swept: &Swept<Sizes>) -> Option<Curve> {
    let points: Vec<Point> = swept
        .settings()
        .map(|(size_bytes, good, medians, over_no_delay)| Point { size_bytes, good, medians, over_no_delay })
        .collect();
    (!points.is_empty()).then(|| Curve {
        program: swept.program.clone(),
        manager: swept.subject.clone(),
        plain: swept.plain(),
        layer: Ratios::of(swept.of(None)),
        points,
    })
}

fn mean_of(found: &Sweep<Sizes>, mean: &sweep::Mean<Sizes>) -> Mean {
    let [cpu, wall, peak_rss] = RATIOS.map(|figure| between(found, mean, figure));
    Mean {
        manager: mean.subject.clone(),
        size_bytes: mean.ratios.0,
        programs: mean.programs,
        ratios: Ratios::of(Some(&mean.ratios.1)),
        between_programs: Ratios { cpu, wall, peak_rss },
    }
}

#[cfg(test)]
mod tests;
