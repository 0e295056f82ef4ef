//! `heaptoll lab minheap`: the smallest heaps of collectors over the footprint of mark-sweep over allocators.

use heaptoll_facts::{Comparative, Facts, Metric, Place, Value};

use super::figures::{MinheapFigures, Program};

/// Ratios with the ends of what they may be.
impl Comparative for MinheapFigures {
    const METRICS: &'static [Metric] = &[
        Metric::count(
            "heap_ratio_over_frees_",
            "over the footprint of mark-sweep over that allocator, the program's frees honoured",
        )
        .open(),
        Metric::count(
            "heap_ratio_over_",
            "over the footprint of mark-sweep over that allocator, at its period",
        )
        .open()
        .at(Place::Bytes),
    ];

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for program in &self.programs {
            for collector in &program.collectors {
                if let Some(why) = &collector.failure {
                    facts.lack(&program.program, &collector.stack, why);
                }
            }
            put(program, &mut facts);
        }
        facts
    }
}

fn put(program: &Program, facts: &mut Facts) {
    for over in &program.overheads {
        let Some(baseline) = program.baselines.iter().find(|baseline| baseline.stack == over.baseline) else {
            continue;
        };
        let mut writer = facts.of(&program.program, &over.collector);
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
    use heaptoll_facts::testing::{measured, number, one};

    use super::*;
    use crate::minheap::{Baseline, Over, Overhead};
    use heaptoll_compare::smallest_heap::Collector;

    fn found(program: Program) -> MinheapFigures {
        MinheapFigures {
            complete: true,
            tolerance: 0.02,
            repeats: 1,
            timeout_s: 600.0,
            programs: vec![program],
            means: vec![],
            published: vec![],
        }
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
        let absent = found(Program { collectors, ..cfrac() }).facts().absent;
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
        let facts = measured(&found(Program {
            baselines: vec![baseline("sweep,every=32K/mimalloc3", false), baseline("honoured", true)],
            overheads: vec![over("sweep,every=32K/mimalloc3", 2.8), over("honoured", 3.7)],
            ..cfrac()
        }));
        assert_eq!(number(one(&facts, "heap_ratio_over_mimalloc3", Some(32768.0))), 2.8);
        assert_eq!(number(one(&facts, "heap_ratio_over_frees_mimalloc3", None)), 3.7);
    }
}
