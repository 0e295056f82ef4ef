//! Time and memory by point of reclamation, over the program's own free with the same layer and the same manager.

use std::collections::BTreeSet;
use std::path::Path;

use heaptoll_experiment::comparison::{Metric, Ratios};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::setting::Settings;
use heaptoll_experiment::side::Side;
use heaptoll_experiment::sweep::{self, Sweep, Swept, sweep};
use heaptoll_oracle::{FreePoint, file};
use heaptoll_statistics::median;

use super::figures::{Alive, Curve, Mean, Medians, Reclamation, Row};
use super::part::part;
use crate::oracle;

/// The axis of points at which objects are freed.
pub type Points = Settings<FreePoint, Medians>;

fn medians(side: &Side) -> Option<Medians> {
    let faults: Vec<f64> = side.timed.values().map(|row| row.minor_faults as f64).collect();
    (!side.timed.is_empty()).then(|| Medians {
        cpu_s: median(&side.values(Metric::Cpu)),
        peak_rss_kib: median(&side.values(Metric::PeakRss)),
        minor_faults: median(&faults),
    })
}

/// What was found in an experiment's rows. Call [`heaptoll_experiment::compare::judge_outputs`] first.
pub fn swept(experiment: &Experiment) -> Sweep<Points> {
    sweep(&Points { part: Box::new(part), base: Some(FreePoint::Free), medians }, experiment)
}

/// The same as figures, with the bytes alive.
pub fn figures(found: &Sweep<Points>, experiment: &Experiment) -> Reclamation {
    let curves: Vec<Curve> = found.programs.iter().filter_map(curve).collect();
    let points: BTreeSet<FreePoint> =
        curves.iter().flat_map(|curve| curve.rows.iter().map(|row| row.point)).collect();
    let mean = |mean: &sweep::Mean<Points>| {
        let (point, ratios) = &mean.ratios;
        let (manager, ratios) = (mean.subject.clone(), Ratios::of(Some(ratios)));
        Mean { manager, point: *point, programs: mean.programs, ratios }
    };
    let means = found.means.iter().map(mean).collect();
    let alive = alive(experiment, &points);
    let managers = found.subjects.clone();
    Reclamation { points: points.into_iter().collect(), managers, curves, means, alive }
}

fn curve(swept: &Swept<Points>) -> Option<Curve> {
    let rows: Vec<Row> = swept
        .settings()
        .map(|(point, good, medians, over_free)| Row { point, good, medians, over_free })
        .collect();
    (!rows.is_empty()).then(|| Curve {
        program: swept.program.clone(),
        manager: swept.subject.clone(),
        plain: swept.plain(),
        layer: Ratios::of(swept.of(None)),
        rows,
    })
}

/// Requested bytes alive, from the recordings that the stacks name.
fn alive(experiment: &Experiment, points: &BTreeSet<FreePoint>) -> Vec<Alive> {
    let mut alive = Vec::new();
    for program in &experiment.programs {
        let settings =
            experiment.stacks.iter().filter(|stack| stack.program == program.name).find_map(|stack| {
                stack.environment.iter().find(|(name, _)| name == oracle::VARIABLE).map(|(_, value)| value)
            });
        let path = settings.and_then(|value| value.split(',').find_map(|pair| pair.strip_prefix("file=")));
        // A recording that is gone, or another by now, has no figures.
        let Some(recorded) = path.and_then(|path| file::read(Path::new(path)).ok()) else { continue };
        if recorded.about.command == program.command {
            let has = |point: &&FreePoint| {
                **point != FreePoint::Unreachable || recorded.about.unreachable.is_some()
            };
            alive.extend(points.iter().filter(has).map(|point| Alive {
                program: program.name.clone(),
                point: *point,
                live: recorded.live(*point),
            }));
        }
    }
    alive
}
