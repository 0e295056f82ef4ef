//! `heaptoll minheap`: the smallest heaps of collectors over the footprint of mark-sweep over allocators.

use crate::definition::Step;
use crate::figures::{Cell, Value};
use serde::Deserialize;

use crate::read::cell_writer::CellWriter;
use crate::read::reading::Absent;

#[derive(Deserialize)]
pub struct Minheap {
    programs: Vec<Heaps>,
}

#[derive(Deserialize)]
struct Heaps {
    program: String,
    collectors: Vec<Searched>,
    baselines: Vec<Baseline>,
    overheads: Vec<Over>,
}

#[derive(Deserialize)]
struct Searched {
    stack: String,
    failure: Option<String>,
}

#[derive(Deserialize)]
struct Baseline {
    stack: String,
    allocator: String,
    every: u64,
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

/// Collectors of which no smallest heap is known.
pub fn without(found: &Minheap) -> Vec<Absent> {
    let of = |heaps: &Heaps| {
        let why = |one: &Searched| {
            let why = one.failure.clone()?;
            Some((heaps.program.clone(), Some(one.stack.clone()), why))
        };
        heaps.collectors.iter().filter_map(why).collect::<Vec<_>>()
    };
    found.programs.iter().flat_map(of).collect()
}

pub fn cells(found: &Minheap, step: &Step, cells: &mut Vec<Cell>) {
    for program in &found.programs {
        for over in &program.overheads {
            let Some(baseline) = program.baselines.iter().find(|baseline| baseline.stack == over.baseline)
            else {
                continue;
            };
            let mut writer =
                CellWriter { step: &step.id, program: &program.program, manager: &over.collector, cells };
            let value = Value::Estimate { value: over.ratio, low: over.low, high: over.high };
            let allocator = &baseline.allocator;
            if baseline.frees_honoured {
                writer.put(&format!("heap_ratio_over_frees_{allocator}"), None, value);
            } else {
                writer.put(&format!("heap_ratio_over_{allocator}"), Some(baseline.every as f64), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::super::tests::{one, step, value};
    use crate::definition::StepKind;
    use serde_json::json;

    #[test]
    fn a_failed_search_has_its_reason() {
        let found = json!({"programs": [{"program": "cfrac", "collectors": [
            {"stack": "bw26", "failure": "it has no heap=", "search": null}, {"stack": "tithe-collect", "failure": null}],
            "baselines": [], "overheads": []}]});
        let absent = read(StepKind::Minheap, &found, &step("minheap")).expect("it is read").absent;
        assert_eq!(absent, [("cfrac".into(), Some("bw26".into()), "it has no heap=".into())]);
    }

    #[test]
    fn heaps_are_read_by_baseline_and_period_and_honoured_frees_apart() {
        let baseline = |stack: &str, honoured: bool| json!({"stack": stack, "allocator": "mimalloc3", "every": 32768, "frees_honoured": honoured});
        let over = |stack: &str, ratio: f64| json!({"collector": "tithe-collect", "baseline": stack, "ratio": ratio, "low": ratio, "high": ratio});
        let found = json!({"programs": [{"program": "cfrac", "collectors": [],
            "baselines": [baseline("sweep,every=32K/mimalloc3", false), baseline("honoured", true)],
            "overheads": [over("sweep,every=32K/mimalloc3", 2.8), over("honoured", 3.7)]}]});
        let cells = read(StepKind::Minheap, &found, &step("minheap")).expect("it is read").cells;
        assert_eq!(value(one(&cells, "heap_ratio_over_mimalloc3", Some(32768.0))), 2.8);
        assert_eq!(value(one(&cells, "heap_ratio_over_frees_mimalloc3", None)), 3.7);
    }
}
