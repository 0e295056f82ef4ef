//! `heaptoll lab minheap`: the smallest heaps of collectors over the footprint of mark-sweep over allocators.

use heaptoll_experiments::minheap::{Collector, Figures, Program};

use super::cell_writer::CellWriter;
use super::reading::{Absent, Reading};
use crate::definition::Step;
use crate::figures::{Cell, Value};

/// Ratios with the ends of what they may be.
pub fn reading(found: &Figures, step: &Step) -> Reading {
    let mut reading = Reading { absent: without(found), ..Reading::default() };
    for program in &found.programs {
        cells(program, step, &mut reading.cells);
    }
    reading
}

/// Collectors of which no smallest heap is known.
fn without(found: &Figures) -> Vec<Absent> {
    let of = |heaps: &Program| {
        let why = |one: &Collector| {
            let why = one.failure.clone()?;
            Some((heaps.program.clone(), Some(one.stack.clone()), why))
        };
        heaps.collectors.iter().filter_map(why).collect::<Vec<_>>()
    };
    found.programs.iter().flat_map(of).collect()
}

fn cells(program: &Program, step: &Step, cells: &mut Vec<Cell>) {
    for over in &program.overheads {
        let Some(baseline) = program.baselines.iter().find(|baseline| baseline.stack == over.baseline) else {
            continue;
        };
        let mut writer =
            CellWriter { step: &step.id, program: &program.program, manager: &over.collector, cells };
        let ratio = over.overhead;
        let value = Value::Estimate { value: ratio.ratio, low: ratio.low, high: ratio.high };
        let allocator = &baseline.allocator;
        if baseline.frees_honoured {
            writer.put(&format!("heap_ratio_over_frees_{allocator}"), None, value);
        } else {
            writer.put(&format!("heap_ratio_over_{allocator}"), Some(baseline.every as f64), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_experiments::minheap::Overhead;
    use heaptoll_experiments::minheap::{Baseline, Over};

    use super::super::testing::{number, one, step};
    use super::*;
    use crate::definition::StepKind;

    fn found(program: Program) -> Reading {
        let figures = Figures {
            complete: true,
            tolerance: 0.02,
            repeats: 1,
            timeout_s: 600.0,
            programs: vec![program],
            means: vec![],
            published: vec![],
        };
        reading(&figures, &step(StepKind::Minheap))
    }

    fn cfrac() -> Program {
        Program {
            program: "cfrac".into(),
            command: vec![],
            steady_output: true,
            collectors: vec![],
            baselines: vec![],
            overheads: vec![],
        }
    }

    #[test]
    fn a_failed_search_has_its_reason() {
        let collector = |stack: &str, failure: Option<&str>| Collector {
            stack: stack.into(),
            unlimited_used_high_bytes: None,
            search: None,
            completed_although_refused: 0,
            collections: 0,
            failure: failure.map(str::to_owned),
        };
        let collectors = vec![collector("bw26", Some("it has no heap=")), collector("tithe-collect", None)];
        let absent = found(Program { collectors, ..cfrac() }).absent;
        assert_eq!(absent, [("cfrac".into(), Some("bw26".into()), "it has no heap=".into())]);
    }

    #[test]
    fn heaps_are_read_by_baseline_and_period_and_honoured_frees_apart() {
        let baseline = |stack: &str, frees_honoured: bool| Baseline {
            stack: stack.into(),
            allocator: "mimalloc3".into(),
            every: 32768,
            frees_honoured,
            used_high_bytes: vec![],
            collections: 0,
            failures: vec![],
            refused: None,
        };
        let over = |stack: &str, ratio: f64| Over {
            collector: "tithe-collect".into(),
            baseline: stack.into(),
            overhead: Overhead { ratio, low: ratio, high: ratio },
        };
        let cells = found(Program {
            baselines: vec![baseline("sweep,every=32K/mimalloc3", false), baseline("honoured", true)],
            overheads: vec![over("sweep,every=32K/mimalloc3", 2.8), over("honoured", 3.7)],
            ..cfrac()
        })
        .cells;
        assert_eq!(number(one(&cells, "heap_ratio_over_mimalloc3", Some(32768.0))), 2.8);
        assert_eq!(number(one(&cells, "heap_ratio_over_frees_mimalloc3", None)), 3.7);
    }
}
