//! A trace replayed under managers: `heaptoll trace replay`. The program is the trace.

use heaptoll_facts::{Comparative, FactWriter, Facts, Metric, Value};

use crate::findings::{Findings, Row};

const CALLS: [&str; 3] = ["allocate", "resize", "free"];

/// Medians over the runs, and ratios with the command's intervals: over the first manager.
impl Comparative for Findings {
    const METRICS: &'static [Metric] = &[
        Metric::time("cpu_s", "CPU time in the manager"),
        Metric::time("ns_per_call", "of it"),
        Metric::time("cpu_ratio", "the same over the first manager's"),
        Metric::time("_p50_ns", "median of a call").of(&CALLS),
        Metric::time("_p99_ns", "99 in 100 calls take no longer").of(&CALLS),
        Metric::count("peak_rss_kib", "largest resident set of the heap"),
        Metric::count("peak_rss_ratio", "the same over the first manager's"),
        Metric::count("peak_rss_over_live", "the same over the most bytes live"),
        Metric::count("mean_rss_over_live", "resident set over live bytes, mean over the trace"),
    ];

    fn facts(&self) -> Facts {
        let mut facts = Facts { warnings: self.warnings.clone(), ..Facts::default() };
        for row in &self.rows {
            let failures = row.failures.iter().map(|(why, _)| why);
            row.refused.iter().chain(failures).for_each(|why| facts.lack(&self.trace, &row.name, why));
            put(&mut facts.of(&self.trace, &row.name), row);
        }
        facts
    }
}

fn put(writer: &mut FactWriter<'_>, row: &Row) {
    let mut single = |metric: &str, value: f64| writer.put(metric, None, Value::Single(value));
    if let Some(time) = &row.time {
        single("cpu_s", time.cpu_s);
        single("ns_per_call", time.ns_per_call);
    }
    if let Some(latency) = &row.latency {
        for (call, of) in CALLS.iter().zip([&latency.allocate, &latency.resize, &latency.free]) {
            if of.calls > 0 {
                single(&format!("{call}_p50_ns"), of.p50);
                single(&format!("{call}_p99_ns"), of.p99);
            }
        }
    }
    if let Some(memory) = &row.memory {
        single("peak_rss_kib", memory.peak_rss_bytes / 1024.0);
        single("peak_rss_over_live", memory.peak_ratio);
        memory.mean_ratio.into_iter().for_each(|ratio| single("mean_rss_over_live", ratio));
    }
    writer.ratio("cpu_ratio", None, row.time.and_then(|time| time.ratio));
    writer.ratio("peak_rss_ratio", None, row.memory.as_ref().and_then(|memory| memory.ratio));
}

#[cfg(test)]
mod tests {
    use heaptoll_facts::testing::{interval, measured, number, value};

    use super::*;
    use crate::findings::{Memory, Time};
    use crate::job::Touch;
    use crate::program::{Facts as OfTrace, Order};

    fn row(name: &str) -> Row {
        let time = Time {
            cpu_s: 0.5,
            ns_per_call: 20.0,
            ns_range: (19.0, 21.0),
            ratio: Some(interval(1.25, 8)),
            faults: 0.0,
            waited_s: 0.0,
        };
        let memory = Memory {
            peak_rss_bytes: 8192.0,
            ratio: None,
            end_rss_bytes: 4096.0,
            start_bytes: 0.0,
            peak_heap_bytes: 0.0,
            reported_high_water_bytes: None,
            max_live_bytes: 4096,
            peak_ratio: 2.0,
            mean_ratio: None,
            checkpoints: vec![],
        };
        Row {
            name: name.into(),
            served_by: String::new(),
            refused: None,
            collector: None,
            failures: vec![],
            time: Some(time),
            latency: None,
            memory: Some(memory),
            drift: None,
        }
    }

    #[test]
    fn managers_have_medians_ratios_with_intervals_and_reasons() {
        let refused = Row { refused: Some("no malloc".into()), time: None, memory: None, ..row("lea") };
        let findings = Findings {
            trace: "lua.heaptoll".into(),
            command: vec!["lua".into()],
            recorded_manager: "glibc".into(),
            facts: OfTrace::default(),
            time_order: Order::PerThread,
            memory_order: Order::Exact,
            time_touch: Touch::None,
            memory_touch: Touch::Write,
            repetitions: 1,
            copies: 1,
            runs: 8,
            seed: 1,
            complete: true,
            own_ns: 3.0,
            rows: vec![row("tithe"), refused],
            fidelity: None,
            warnings: vec![],
        };
        let facts = measured(&findings);
        let of = |metric| value(&facts, "tithe", metric, None).as_ref().map(number);
        assert_eq!((of("cpu_ratio"), of("peak_rss_kib"), of("free_p50_ns")), (Some(1.25), Some(8.0), None));
        assert!(facts.iter().all(|fact| fact.program == "lua.heaptoll" && fact.manager == "tithe"));
        let why: Vec<String> = findings.facts().reasons().collect();
        assert_eq!(why, ["lua.heaptoll under lea: no malloc"]);
    }
}
