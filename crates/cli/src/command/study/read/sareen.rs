//! What `heaptoll delay`, `frequency`, `proximity` and `minheap` found, as estimates with the commands' own intervals.
//! A ratio of too few runs has a value and no interval that claims anything, and is a single figure here.

use heaptoll_lab::statistics::FEWEST_PAIRS;
use heaptoll_studies::paper::definition::{Kind, Step};
use heaptoll_studies::paper::figures::{Cell, Value};
use serde::Deserialize;

use super::{Maker, ReadError, shaped};

/// The stretch just after a collection, as `heaptoll proximity` calls it.
const NEAR: &str = "first 10 %";

/// A ratio and its interval; of what repetitions or runs say `pairs` or `runs`.
#[derive(Deserialize)]
struct Ratio {
    ratio: f64,
    low: f64,
    high: f64,
    #[serde(alias = "runs")]
    pairs: u32,
}

impl From<&Ratio> for Value {
    fn from(ratio: &Ratio) -> Value {
        if (ratio.pairs as usize) < FEWEST_PAIRS {
            Value::Single(ratio.ratio)
        } else {
            Value::Estimate { value: ratio.ratio, low: ratio.low, high: ratio.high }
        }
    }
}

impl Maker<'_> {
    fn ratio(&mut self, metric: &str, at: Option<f64>, ratio: Option<&Ratio>) {
        if let Some(ratio) = ratio {
            self.put(metric, at, ratio.into());
        }
    }
}

/// The figures of one of the four.
///
/// # Errors
/// The JSON is not what the command writes.
pub fn read(kind: Kind, json: &serde_json::Value, step: &Step) -> Result<Vec<Cell>, ReadError> {
    let mut cells = Vec::new();
    match kind {
        Kind::Delay => delay(&shaped(kind, json)?, step, &mut cells),
        Kind::Frequency => frequency(&shaped(kind, json)?, step, &mut cells),
        Kind::Proximity => proximity(&shaped(kind, json)?, step, &mut cells),
        Kind::Minheap => minheap(&shaped(kind, json)?, step, &mut cells),
        Kind::Run | Kind::Instructions | Kind::Locality | Kind::Lifetimes => {}
    }
    Ok(cells)
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
        let mut maker = Maker { step: &step.id, program: &curve.program, manager: &curve.manager, cells };
        maker.ratio("layer_time_ratio", None, curve.layer.cpu.as_ref());
        for point in &curve.points {
            let at = Some(point.size_bytes as f64);
            maker.ratio("time_ratio", at, point.over_no_delay.cpu.as_ref());
            maker.ratio("space_ratio", at, point.over_no_delay.peak_rss.as_ref());
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

fn frequency(found: &Frequency, step: &Step, cells: &mut Vec<Cell>) {
    for program in &found.programs {
        let mut maker =
            Maker { step: &step.id, program: &program.program, manager: &program.collector, cells };
        for one in &program.ratios {
            // Collections and identifications are told by their period, reclamations by their share of collections.
            let (name, at) = match one.question.as_str() {
                "collections" => ("mutator", one.period.every_bytes),
                "identifications" => ("identifying_mutator", one.period.every_bytes),
                "reclamations" => ("reclaiming_mutator", one.period.reclaim),
                _ => continue,
            };
            let at = Some(at as f64);
            maker.ratio(&format!("{name}_wall_ratio"), at, one.mutator_wall.as_ref());
            maker.ratio(&format!("{name}_cpu_ratio"), at, one.mutator_cpu.as_ref());
        }
    }
}

#[derive(Deserialize)]
struct Proximity {
    programs: Vec<Near>,
}

#[derive(Deserialize)]
struct Near {
    program: String,
    stacks: Vec<NearStack>,
}

#[derive(Deserialize)]
struct NearStack {
    stack: String,
    scales: Vec<Scale>,
}

#[derive(Deserialize)]
struct Scale {
    aimed_at: u64,
    stretches: Vec<Stretch>,
}

#[derive(Deserialize)]
struct Stretch {
    name: String,
    distance_ns: u64,
    mean: Option<Ratio>,
}

fn proximity(found: &Proximity, step: &Step, cells: &mut Vec<Cell>) {
    for program in &found.programs {
        for stack in &program.stacks {
            let mut maker =
                Maker { step: &step.id, program: &program.program, manager: &stack.stack, cells };
            for scale in &stack.scales {
                let at = Some(scale.aimed_at as f64);
                for stretch in &scale.stretches {
                    if stretch.name == NEAR {
                        maker.ratio("near_ratio", at, stretch.mean.as_ref());
                        maker.put("near_us", at, Value::Single(stretch.distance_ns as f64 / 1e3));
                    }
                }
                // The stretch that is farthest from the middle, in either direction.
                let far = |ratio: &&Ratio| ratio.ratio.ln().abs();
                let ratios = scale.stretches.iter().filter_map(|stretch| stretch.mean.as_ref());
                let farthest = ratios.max_by(|a, b| far(a).total_cmp(&far(b)));
                maker.ratio("spread_ratio", at, farthest);
            }
        }
    }
}

#[derive(Deserialize)]
struct Minheap {
    programs: Vec<Heaps>,
}

#[derive(Deserialize)]
struct Heaps {
    program: String,
    baselines: Vec<Baseline>,
    overheads: Vec<Over>,
}

#[derive(Deserialize)]
struct Baseline {
    stack: String,
    allocator: String,
    every: Option<u64>,
    frees_honoured: bool,
}

#[derive(Deserialize)]
struct Over {
    collector: String,
    baseline: String,
    ratio: f64,
    low: f64,
    high: f64,
}

fn minheap(found: &Minheap, step: &Step, cells: &mut Vec<Cell>) {
    for program in &found.programs {
        for over in &program.overheads {
            let Some(baseline) = program.baselines.iter().find(|baseline| baseline.stack == over.baseline)
            else {
                continue;
            };
            let mut maker =
                Maker { step: &step.id, program: &program.program, manager: &over.collector, cells };
            let value = Value::Estimate { value: over.ratio, low: over.low, high: over.high };
            let allocator = &baseline.allocator;
            match baseline.every {
                Some(every) if !baseline.frees_honoured => {
                    maker.put(&format!("heap_ratio_over_{allocator}"), Some(every as f64), value);
                }
                _ => maker.put(&format!("heap_ratio_over_frees_{allocator}"), None, value),
            }
        }
    }
}
