//! A made-up gate of one program, for tests: instructions beyond their limit, live bytes within, CPU time not decided,
//! and one metric without figures.

use heaptoll_experiment::experiment::Machine;
use heaptoll_statistics::Interval;

use super::differences::{Amounts, Differences, Part};
use super::figures::{Change, Figures, MetricFigures, MetricVerdict, Outputs, Program, Side, Verdict};
use super::metric::Metric;

/// The figures.
pub(crate) fn figures() -> Figures {
    let parse = Part { name: "parse".into(), object: "prog".into(), ..Part::default() };
    let main = Part { name: "main".into(), object: "prog".into(), ..Part::default() };
    let functions = Differences::new([
        (parse, Amounts::Both(9_000_000, 9_100_000)),
        (main, Amounts::Both(1_000_000, 1_000_000)),
    ]);
    let program = Program {
        name: "parse".into(),
        base: Side { command: vec!["./old".into()], ..Side::default() },
        new: Side { command: vec!["./new".into()], ..Side::default() },
        metrics: metrics(),
        sizes: vec![],
        outputs: Outputs::Equal,
        failure: None,
        unchanged: None,
        notes: vec![],
        functions: Some(functions),
        library: None,
        function_stacks: None,
        sites: None,
        verdict: Verdict::Broken,
    };
    Figures {
        complete: true,
        created_unix_s: 1_800_000_000.0,
        machine: Machine { cpu: "a processor".into(), ..Machine::default() },
        sight: vec![],
        refused: vec![],
        programs: vec![program],
        verdict: Verdict::Broken,
    }
}

fn metrics() -> Vec<MetricFigures> {
    let metric = |metric: Metric, base, new, change, verdict| MetricFigures {
        metric,
        unit: metric.unit(),
        base,
        new,
        change,
        base_again: None,
        limit: None,
        verdict,
    };
    let interval = Interval { ratio: 1.01, low: 0.99, high: 1.03, differs: false, pairs: 12 };
    vec![
        metric(
            Metric::Instructions,
            Some(10_000_000.0),
            Some(10_100_000.0),
            Change::Exact { ratio: 1.01 },
            MetricVerdict::Broken,
        ),
        metric(Metric::Live, Some(4096.0), Some(4096.0), Change::Exact { ratio: 1.0 }, MetricVerdict::Within),
        metric(
            Metric::Cpu,
            Some(0.5),
            Some(0.505),
            Change::Measured(interval),
            MetricVerdict::Undecided { why: "it takes about 40 pairs".into() },
        ),
        metric(
            Metric::Startup,
            None,
            None,
            Change::None,
            MetricVerdict::NotGated { why: "it is shown only".into() },
        ),
    ]
}
