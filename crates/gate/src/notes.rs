//! What the reader of a program's figures must know: what was seen, how it was measured, what is missing.

use heaptoll_experiment::comparison::{Metric as Compared, NodeRatio};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_statistics::FEWEST_PAIRS;
use heaptoll_units::{count, percent, took};

use super::counted;
use super::evidence::Evidence;
use super::figures::{Change, MetricFigures, Outputs};
use super::measured::Measured;
use super::metric::Metric;

/// Growth of memory that is worth a warning.
const GROWN: f64 = 1.1;

/// The difference of CPU time that this machine can see now.
pub fn sight(measured: &Measured, outputs_differ: bool) -> Option<String> {
    let ratio = measured.table(outputs_differ)?.detectable_cpu_ratio?;
    let repetitions = measured.experiment.settings.repetitions;
    let seconds = measured.each_s() * f64::from(repetitions);
    Some(format!(
        "Smallest detectable CPU difference now: about {} in {repetitions} repetitions, which took {}",
        percent(ratio - 1.0),
        took(seconds)
    ))
}

/// A sentence on each node of whose ratio the others' differs: the pooled ratio is that of neither.
pub fn nodes(measured: &Measured, outputs_differ: bool) -> Vec<String> {
    let Some(table) = measured.table(outputs_differ) else { return vec![] };
    let sentence = |node: &NodeRatio| {
        let over = node.over_others.filter(|over| over.differs)?;
        let what = if node.metric == Compared::Cpu { "CPU" } else { "memory" };
        Some(format!(
            "{} disagrees: its ratio of {what} is {:.3} ({:.3} to {:.3}) of the ratio on the other nodes. Do \
             not use the pooled ratio",
            node.node, over.ratio, over.low, over.high
        ))
    };
    table.nodes.iter().filter_map(sentence).collect()
}

/// A warning where resident memory grows for certain and live bytes do not: memory that malloc does not see.
pub fn unseen_memory(metrics: &[MetricFigures]) -> Option<String> {
    let of = |metric| metrics.iter().find(|one: &&MetricFigures| one.metric == metric);
    let Some(Change::Measured(resident)) = of(Metric::Resident).map(|one| one.change) else { return None };
    let live = of(Metric::Live).and_then(|one| one.change.ratio()).unwrap_or(1.0);
    let seen = resident.pairs as usize >= FEWEST_PAIRS && resident.low > GROWN && live < GROWN;
    seen.then(|| {
        format!(
            "peak resident memory grows by at least {}, but most live bytes do not. Likely causes: mappings or \
             pools of the program (Python's show with PYTHONMALLOC=malloc), caches of the manager, or memory \
             that only the new build touches. --limit resident=5% gates on it",
            percent(resident.low - 1.0)
        )
    })
}

/// The sentences; `outputs_differ` where other output is allowed.
pub fn of(evidence: &Evidence, outputs_differ: bool) -> Vec<String> {
    let measured = &evidence.measured;
    let mut notes = Vec::new();
    if let Some(table) = measured.table(outputs_differ) {
        let loaded = table.disturbance.as_ref().filter(|found| found.loaded > 0);
        notes.extend(loaded.map(|found| {
            let others = percent(found.mean.other_work + found.mean.steal);
            format!("other work took {others} of the processors, which widens the intervals of times")
        }));
        notes.extend(table.notes);
    }
    notes.extend(match evidence.outputs {
        Outputs::Equal => Some("both builds write the same output".to_owned()),
        Outputs::Differ => {
            Some("the builds write different output, which --outputs-differ allows".to_owned())
        }
        Outputs::Vary => Some("outputs differ from run to run, so they are not compared".to_owned()),
        Outputs::Unknown => None,
    });
    notes.extend(traced_notes(evidence));
    notes.extend(recorded_notes(evidence));
    notes.extend(stack_notes(&measured.experiment));
    notes
}

fn stack_notes(experiment: &Experiment) -> Vec<String> {
    let all = experiment.stacks.iter();
    all.flat_map(|stack| stack.warnings.iter().map(|warning| format!("{}: {warning}", stack.name))).collect()
}

fn traced_notes(evidence: &Evidence) -> Vec<String> {
    let Some(counted) = &evidence.exact.counted else { return vec![] };
    let mut notes = vec![format!("counted by {}, with randomness and the clock pinned", counted.tracer)];
    for (name, run) in
        [("base", &counted.base), ("new", &counted.new), ("the second run of base", &counted.again)]
    {
        match run {
            Err(why) => notes.push(format!("{name} was not counted: {why}")),
            Ok(counts) => {
                notes.extend(counts.own.iter().map(|own| {
                    format!("{name}, traced: it brings {own} along; the tracer follows it by its symbols")
                }));
                notes.extend(counts.remarks.iter().map(|remark| format!("{name}, traced: {remark}")))
            }
        }
    }
    if let Ok(counts) = &counted.base
        && counts.images > 1
    {
        notes.push(format!("counts are sums over {} process images", counts.images));
    }
    notes
}

fn recorded_notes(evidence: &Evidence) -> Vec<String> {
    let recordings = &evidence.exact.recordings;
    let mut notes = Vec::new();
    if let Err(why) = recordings.base.as_ref().and(recordings.new.as_ref()) {
        notes.push(format!("no recording, so call sites are not compared: {why}"));
    }
    let counted = |run: &Result<counted::Counts, String>| {
        run.as_ref().ok().and_then(|counts| counts.metrics.get(&Metric::Live).copied())
    };
    let Some(runs) = &evidence.exact.counted else { return notes };
    for (name, traced, recorded) in
        [("base", &runs.base, &recordings.base), ("new", &runs.new, &recordings.new)]
    {
        let recorded =
            recorded.as_ref().ok().and_then(|recorded| recorded.metrics.get(&Metric::Live).copied());
        if let (Some(traced), Some(recorded)) = (counted(traced), recorded)
            && traced.abs_diff(recorded) > (traced / 100).max(Metric::Live.floor() as u64 * 8)
        {
            notes.push(format!(
                "{name}: most live bytes are {} as traced and {} as recorded, so they depend on addresses, \
                 time or randomness",
                count(traced as f64),
                count(recorded as f64)
            ));
        }
    }
    notes
}
