//! Figures of `heaptoll delay`, `frequency`, `proximity` and `minheap`, as estimates with the commands' own intervals.
//! A ratio of too few runs has a value and no interval that claims anything, and is a single figure here. What such a
//! command itself keeps out of its means, a program that hardly collects, is no figure.

use crate::definition::{Step, StepKind};
use crate::figures::Cell;
use serde::Deserialize;

use super::cell_writer::CellWriter;
use super::json::{ReadError, shaped};
use super::reading::{Absent, Reading};

mod minheap;
mod proximity;
mod ratio;

use ratio::Ratio;

/// The figures of one of the four.
///
/// # Errors
/// The JSON is not what the command writes.
pub fn read(kind: StepKind, json: &serde_json::Value, step: &Step) -> Result<Reading, ReadError> {
    let mut reading = Reading::default();
    let cells = &mut reading.cells;
    match kind {
        StepKind::Delay => delay(&shaped(kind, json)?, step, cells),
        StepKind::Frequency => {
            let found = shaped(kind, json)?;
            frequency(&found, step, cells);
            reading.absent = seldom(&found);
        }
        StepKind::Proximity => proximity::cells(&shaped(kind, json)?, step, cells),
        StepKind::Minheap => {
            let found = shaped(kind, json)?;
            minheap::cells(&found, step, cells);
            reading.absent = minheap::without(&found);
        }
        StepKind::Run | StepKind::Instructions | StepKind::Locality | StepKind::Lifetimes => {}
    }
    Ok(reading)
}

#[derive(Deserialize)]
struct Delay {
    curves: Vec<Curve>,
}

#[derive(Deserialize)]
struct Curve {
    program: String,
    manager: String,
    layer: DelayRatios,
    points: Vec<Point>,
}

#[derive(Deserialize)]
struct Point {
    size_bytes: u64,
    over_no_delay: DelayRatios,
}

#[derive(Deserialize)]
struct DelayRatios {
    cpu: Option<Ratio>,
    peak_rss: Option<Ratio>,
}

fn delay(found: &Delay, step: &Step, cells: &mut Vec<Cell>) {
    for curve in &found.curves {
        let mut writer =
            CellWriter { step: &step.id, program: &curve.program, manager: &curve.manager, cells };
        writer.ratio("layer_time_ratio", None, curve.layer.cpu.as_ref());
        for point in &curve.points {
            let at = Some(point.size_bytes as f64);
            writer.ratio("time_ratio", at, point.over_no_delay.cpu.as_ref());
            writer.ratio("space_ratio", at, point.over_no_delay.peak_rss.as_ref());
        }
    }
}

#[derive(Deserialize)]
struct Frequency {
    programs: Vec<Periods>,
}

#[derive(Deserialize)]
struct Periods {
    program: String,
    collector: String,
    often_enough: bool,
    ratios: Vec<PeriodRatio>,
}

#[derive(Deserialize)]
struct PeriodRatio {
    question: String,
    period: Period,
    mutator_wall: Option<Ratio>,
    mutator_cpu: Option<Ratio>,
}

#[derive(Deserialize)]
struct Period {
    every_bytes: u64,
    reclaim: u64,
}

/// Programs that collect too seldom to show anything about the frequency.
fn seldom(found: &Frequency) -> Vec<Absent> {
    let why = "collected too seldom, or failed, at the shortest period to show anything about the frequency";
    let seldom = found.programs.iter().filter(|program| !program.often_enough);
    seldom.map(|one| (one.program.clone(), Some(one.collector.clone()), why.to_owned())).collect()
}

fn frequency(found: &Frequency, step: &Step, cells: &mut Vec<Cell>) {
    for program in found.programs.iter().filter(|program| program.often_enough) {
        let mut writer =
            CellWriter { step: &step.id, program: &program.program, manager: &program.collector, cells };
        for one in &program.ratios {
            // Collections and identifications are listed by their period, reclamations by their share of collections.
            let (name, at) = match one.question.as_str() {
                "collections" => ("mutator", one.period.every_bytes),
                "identifications" => ("identifying_mutator", one.period.every_bytes),
                "reclamations" => ("reclaiming_mutator", one.period.reclaim),
                _ => continue,
            };
            let at = Some(at as f64);
            writer.ratio(&format!("{name}_wall_ratio"), at, one.mutator_wall.as_ref());
            writer.ratio(&format!("{name}_cpu_ratio"), at, one.mutator_cpu.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::figures::Value;
    use serde_json::json;

    use super::*;

    pub fn step(kind: &str) -> Step {
        toml::from_str(&format!("id = \"s\"\nkind = \"{kind}\"\nprograms = [\"cfrac\"]")).expect("a step")
    }

    fn ratio(ratio: f64, pairs: u32) -> serde_json::Value {
        json!({"ratio": ratio, "low": ratio * 0.9, "high": ratio * 1.1, "differs": false, "pairs": pairs})
    }

    pub fn one<'a>(cells: &'a [Cell], metric: &str, at: Option<f64>) -> &'a Value {
        let mut found = cells.iter().filter(|cell| cell.metric == metric && cell.at == at);
        let first = found.next().unwrap_or_else(|| panic!("no {metric} at {at:?}: {cells:#?}"));
        assert!(found.next().is_none(), "{metric} at {at:?} is there twice");
        &first.value
    }

    pub fn value(of: &Value) -> f64 {
        match of {
            Value::Estimate { value, .. } | Value::Single(value) => *value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn delays_are_read_by_size_and_the_layer_apart() {
        let ratios = |cpu: f64| json!({"cpu": ratio(cpu, 8), "wall": null, "peak_rss": ratio(1.2, 8)});
        let none = json!({"cpu": null, "wall": null, "peak_rss": null});
        let found = json!({"curves": [{
            "program": "cfrac", "manager": "tcmalloc", "plain": null, "layer": ratios(1.06),
            "points": [{"size_bytes": 1, "good": 8, "medians": null, "over_no_delay": none},
                       {"size_bytes": 2097152, "good": 8, "medians": null, "over_no_delay": ratios(1.41)}],
        }]});
        let cells = read(StepKind::Delay, &found, &step("delay")).expect("it is read").cells;
        assert_eq!(value(one(&cells, "time_ratio", Some(2_097_152.0))), 1.41);
        assert_eq!(value(one(&cells, "space_ratio", Some(2_097_152.0))), 1.2);
        assert_eq!(value(one(&cells, "layer_time_ratio", None)), 1.06);
        assert!(cells.iter().all(|cell| cell.program == "cfrac" && cell.manager == "tcmalloc"));
        assert!(cells.iter().all(|cell| cell.at != Some(1.0)), "a size has no ratio to itself");
    }

    #[test]
    fn collections_identifications_and_reclamations_are_three_metrics() {
        let of = |question: &str, every: u64, reclaim: u64| {
            json!({"question": question, "period": {"every_bytes": every, "reclaim": reclaim},
                   "over": {"every_bytes": 1 << 20, "reclaim": 1}, "mutator_wall": ratio(0.98, 10),
                   "mutator_cpu": null, "wall": null, "peak_rss": null})
        };
        let found = json!({"programs": [{"program": "gawk", "collector": "sweep/mimalloc3", "settings": [],
            "often_enough": true, "ratios": [of("collections", 4 << 20, 1), of("identifications", 4 << 20, 16),
            of("reclamations", 1 << 20, 16)]}]});
        let cells = read(StepKind::Frequency, &found, &step("frequency")).expect("it is read").cells;
        let mib4 = Some(f64::from(4 << 20));
        assert_eq!(value(one(&cells, "mutator_wall_ratio", mib4)), 0.98);
        assert_eq!(value(one(&cells, "identifying_mutator_wall_ratio", mib4)), 0.98);
        assert_eq!(value(one(&cells, "reclaiming_mutator_wall_ratio", Some(16.0))), 0.98);
        assert_eq!(cells.len(), 3);
    }

    #[test]
    fn a_program_that_hardly_collects_has_no_figures_and_is_named() {
        let found = json!({"programs": [{"program": "gawk", "collector": "sweep/mimalloc3",
            "often_enough": false, "ratios": [{"question": "collections",
            "period": {"every_bytes": 4 << 20, "reclaim": 1}, "mutator_wall": ratio(0.68, 10), "mutator_cpu": null}]}]});
        let Reading { cells, absent, .. } =
            read(StepKind::Frequency, &found, &step("frequency")).expect("it is read");
        assert_eq!(cells, []);
        let [(program, Some(manager), why)] = absent.as_slice() else { panic!("{absent:?}") };
        assert_eq!((program.as_str(), manager.as_str()), ("gawk", "sweep/mimalloc3"));
        assert!(why.contains("too seldom"), "{why}");
    }

    #[test]
    fn json_of_another_command_is_refused() {
        let refused = read(StepKind::Delay, &json!({"programs": []}), &step("delay"));
        assert!(refused.is_err_and(|error| error.to_string().contains("heaptoll delay")));
    }
}
