//! A collector is a curve and not a point: CPU against memory over heap sizes, ours and Boehm's, all with every free
//! ignored.

use heaptoll_experiment::comparison::{Costs, HeapCurve, HeapPoint, ProgramHeaps};
use heaptoll_report::format;
use heaptoll_statistics::geometric_mean;

use super::document::Outputs;
use super::frontier::{Cost, MatchedPoint, hold, verdict};
use super::measured::{Measured, Plan, Source};
use super::summary::over;
use super::targets::{COLLECT, LIBGC};
use crate::Error;
use crate::table::table;

const PLAN: Plan = Plan {
    sets: &["twenty"],
    added: &[],
    words: "-p ghostscript --heaps=1.25,1.5,2,3,4 --size demo -n 10 --pairing lockstep --seed 20261130 \
            -m tithe-collect -m bdw-nofree -m bdw-nofree,incremental=on",
};
const DASH: &str = "–";

/// The command line of `curve`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    outputs: Outputs,
}

/// Runs it. False when a program failed at some heap size in which it completed before.
///
/// # Errors
/// Nothing could be measured, no heap was fixed, or the files cannot be written.
pub fn run(options: &Options) -> Result<bool, Error> {
    let measured = options.source.measured(&PLAN)?;
    if measured.comparison.heaps.programs.is_empty() {
        return Err(Error::failed("curve", "no heap was fixed; make the run with `heaptoll run --heaps`"));
    }
    options.outputs.write("curve", &section(&measured))?;
    Ok(measured.not_well().is_empty())
}

/// The section of the page: means at each heap size, and a verdict a program.
pub fn section(measured: &Measured) -> String {
    let heaps = &measured.comparison.heaps;
    let mut text = format!("{}\n\n", measured.heading());
    let points = heaps.overall.iter().flat_map(|curve| curve.heaps.iter().map(move |heap| (curve, heap)));
    let rows = points.map(|(curve, heap)| mean(measured, curve, heap));
    let headings = ["means over programs", "heap", "programs", "CPU", "peak RSS", "mean RSS"];
    text.push_str(&table(&headings, 1, rows).markdown());
    for theirs in LIBGC {
        let held: Vec<(&str, Vec<MatchedPoint>)> = heaps
            .programs
            .iter()
            .filter_map(|one| Some((one.program.as_str(), held(one, theirs)?)))
            .collect();
        if held.is_empty() {
            continue;
        }
        let below = held.iter().filter(|(_, points)| points.iter().all(MatchedPoint::is_below)).count();
        let rows =
            held.iter().map(|(program, points)| vec![(*program).into(), verdict(points, COLLECT, theirs)]);
        text.push_str(&format!(
            "\n**Against {theirs}**\n\n{}",
            table(&["program", "verdict"], 2, rows).markdown()
        ));
        text.push_str(&format!(
            "\n{COLLECT} lies below {theirs} at all heap sizes of {below} of {} programs.\n",
            held.len()
        ));
    }
    text + &measured.outputs()
}

/// The means of a collector in one heap size.
fn mean(measured: &Measured, curve: &HeapCurve, heap: &HeapPoint) -> Vec<String> {
    let interval = |value| Option::map_or(value, DASH.into(), |value| format::interval(&value));
    let stack = &heap.costs.stack;
    let means = measured.programs().filter_map(|program| over(measured, program, stack).mean);
    vec![
        curve.collector.clone(),
        format!("{}x", heap.factor),
        heap.programs.to_string(),
        interval(heap.costs.cpu),
        interval(heap.costs.peak_rss),
        geometric_mean(means).map_or(DASH.into(), format::ratio),
    ]
}

/// Ours at each heap size of another collector, on one program; none where the other was not measured.
fn held(program: &ProgramHeaps, theirs: &str) -> Option<Vec<MatchedPoint>> {
    let curve = |name: &str| {
        let found = program.curves.iter().find(|curve| curve.collector == name)?;
        let fixed = found.heaps.iter().filter(|heap| heap.fits);
        let fixed = fixed.filter_map(|heap| cost(format!("{}x", heap.factor), &heap.costs));
        let own = program.points.iter().filter(|point| point.stack == name);
        Some(fixed.chain(own.filter_map(|costs| cost("its own size".into(), costs))).collect::<Vec<Cost>>())
    };
    Some(hold(&curve(COLLECT)?, &curve(theirs)?)).filter(|points| !points.is_empty())
}

fn cost(setting: String, costs: &Costs) -> Option<Cost> {
    Some(Cost { setting, memory_mib: costs.peak_rss_kib? / 1024.0, cpu: costs.cpu?.ratio })
}

#[cfg(test)]
mod tests {
    use heaptoll_statistics::Interval;

    use super::*;

    fn costs(stack: &str, mib: f64, ratio: f64) -> Costs {
        let cpu = Interval { ratio, low: ratio, high: ratio, differs: true, pairs: 10 };
        Costs { stack: stack.into(), cpu: Some(cpu), peak_rss_kib: Some(mib * 1024.0), ..Costs::default() }
    }

    fn curve(collector: &str, heaps: &[(f64, f64, f64)]) -> HeapCurve {
        let heap = |&(factor, mib, cpu): &(f64, f64, f64)| HeapPoint {
            factor,
            fits: true,
            costs: costs(collector, mib, cpu),
            ..HeapPoint::default()
        };
        HeapCurve {
            collector: collector.into(),
            heaps: heaps.iter().map(heap).collect(),
            ..HeapCurve::default()
        }
    }

    #[test]
    fn ours_is_read_at_the_memory_of_each_of_their_heaps_and_at_their_own() {
        let mut program = ProgramHeaps {
            curves: vec![
                curve(COLLECT, &[(1.25, 10.0, 3.0), (2.0, 20.0, 2.0)]),
                curve(LIBGC[0], &[(1.25, 15.0, 2.6), (2.0, 20.0, 1.9)]),
            ],
            points: vec![costs(COLLECT, 40.0, 1.0), costs(LIBGC[0], 30.0, 1.6), costs("glibc", 9.0, 1.0)],
            ..ProgramHeaps::default()
        };
        let found = held(&program, LIBGC[0]).expect("both are there");
        let read: Vec<(&str, Option<f64>)> =
            found.iter().map(|point| (point.setting.as_str(), point.ours)).collect();
        assert_eq!(read, [("1.25x", Some(2.5)), ("2x", Some(2.0)), ("its own size", Some(1.5))]);
        // A heap in which it does not complete each time is no point.
        program.curves[1].heaps[0].fits = false;
        assert_eq!(held(&program, LIBGC[0]).map(|points| points.len()), Some(2));
        assert!(held(&program, LIBGC[1]).is_none());
        program.curves[1].heaps.clear();
        program.points.clear();
        assert!(held(&program, LIBGC[0]).is_none(), "what has no point is nowhere above");
    }
}
