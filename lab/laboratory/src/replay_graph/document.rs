//! The document of a replay of a trace with pointers.

use heaptoll_report::document::Document;
use heaptoll_report::format::{count, plural, printable, shell_command};
use heaptoll_units::{bytes, number};

use super::charts;
use super::figures::GraphReplayFigures;
use super::miss_tables;
use super::request::HeapBase;
use super::sections;

/// The whole document. `command` repeats the replay.
pub fn document(found: &GraphReplayFigures, command: &str) -> Document {
    let mut all: Vec<_> = sections::smallest(found).into_iter().collect();
    all.extend(charts::over_heaps(found));
    let heaps = found.heaps.iter().enumerate();
    all.extend(heaps.flat_map(|(at, heap)| {
        [sections::heap(found, heap, at == 0), miss_tables::section(found, heap, at == 0)]
            .into_iter()
            .flatten()
    }));
    Document {
        title: title(found),
        subtitle: format!(
            "{} objects of {} in all, {} live at most, {} pointers stored",
            number(found.prepared.objects),
            bytes(found.prepared.allocated_bytes as f64),
            bytes(found.prepared.most_live_bytes as f64),
            number(found.prepared.edges)
        ),
        warnings: warnings(found),
        sections: all,
        facts: facts(found),
        command: command.to_owned(),
        palette: found.plans.iter().map(|row| row.plan.clone()).collect(),
    }
}

fn title(found: &GraphReplayFigures) -> String {
    let program = found.prepared.command.first().and_then(|word| word.rsplit('/').next());
    format!("Collectors that move objects, on {}", printable(program.unwrap_or("a program")))
}

fn warnings(found: &GraphReplayFigures) -> Vec<String> {
    let mut all = found.warnings.clone();
    if found.prepared.endless > 0 {
        all.push(format!(
            "the trace lacks the end of {} objects, because it was cut off: the replay keeps them to its end",
            count(found.prepared.endless as f64)
        ));
    }
    if !found.complete {
        all.push("interrupted: not all runs were made".into());
    }
    for row in &found.plans {
        all.extend(row.refused.as_ref().map(|why| format!("{} was not replayed: {why}", row.plan)));
        all.extend(row.failed_in().map(|(heap, why)| {
            format!(
                "the smallest heap of {} may be smaller than found: in {} its replay failed twice: {why}",
                row.plan,
                bytes(heap as f64)
            )
        }));
    }
    for row in found.heaps.iter().flat_map(|heap| &heap.rows) {
        if let Some(wrong) = row.wrong() {
            let heap = row.heap_bytes.map_or("no limit".into(), |heap| bytes(heap as f64));
            all.push(format!("{} in {heap}: {}", row.plan, wrong.text()));
        }
        let failed = row.failures.iter().map(|(why, times)| format!("{}: {times}x {why}", row.plan));
        all.extend(failed);
    }
    // A plan without limit stands under each heap.
    let mut once = Vec::new();
    all.retain(|line| {
        !once.contains(line) && {
            once.push(line.clone());
            true
        }
    });
    all
}

fn facts(found: &GraphReplayFigures) -> Vec<(String, String)> {
    let prepared = &found.prepared;
    let base = match found.base {
        HeapBase::Least => "the smallest heap that lets any of these plans complete",
        HeapBase::Own => "each plan's own smallest heap",
    };
    let machine = heaptoll_experiment::machine::read();
    vec![
        ("trace".into(), found.trace.clone()),
        ("recorded".into(), shell_command(&prepared.command)),
        (
            "roots".into(),
            format!(
                "{} root points, {} incomplete",
                number(prepared.root_points),
                number(prepared.partial_root_points)
            ),
        ),
        (
            "threads".into(),
            format!(
                "{} recorded, one replays; {} of the collector",
                number(prepared.threads),
                number(found.collector_threads.into())
            ),
        ),
        ("multiples".into(), format!("of {base}")),
        (
            "runs".into(),
            format!(
                "{}, seed {}{}",
                plural(found.runs as usize, "timed run"),
                found.seed,
                if found.checked { ", and one compared with the trace" } else { "" }
            ),
        ),
        ("machine".into(), format!("{}, {} cores, Linux {}", machine.cpu, machine.cores, machine.kernel)),
    ]
}
