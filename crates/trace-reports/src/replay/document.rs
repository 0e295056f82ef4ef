//! The document of a replay.

use std::path::Path;

use heaptoll_experiment::manager::Manager;
use heaptoll_preflight::own_heap_of_trace;
use heaptoll_replay::findings::Findings;
use heaptoll_replay::job::Touch;
use heaptoll_replay::program::Order;
use heaptoll_report::document::{Document, Section};
use heaptoll_report::format::{and_list, count, plural, shell_command};
use heaptoll_units::bytes;

use super::sections;
use super::verdict::trouble;
use heaptoll_command::subject::manager_name;

/// The whole document. `command` repeats the replay.
pub fn document(found: &Findings, managers: &[Manager], command: &str) -> Document {
    let mut sections = vec![sections::summary(found)];
    sections.extend(sections::latency(found));
    sections.extend(sections::memory(found));
    sections.extend(sections::drift(found));
    sections.extend(sections::fidelity(found));
    sections.extend(left_out(found));
    Document {
        title: title(found),
        subtitle: subtitle(found),
        warnings: warnings(found),
        sections,
        facts: facts(found, managers),
        command: command.to_owned(),
        ..Document::default()
    }
}

fn title(found: &Findings) -> String {
    let program = found.command.first().and_then(|word| word.rsplit('/').next()).unwrap_or("a program");
    format!("Replay of {program}")
}

fn subtitle(found: &Findings) -> String {
    let facts = &found.facts;
    let mut text = format!(
        "{} calls of {}, {} live at most",
        count(facts.calls as f64),
        plural(facts.threads as usize, "thread"),
        bytes(facts.max_live_bytes as f64)
    );
    if found.copies > 1 {
        text += &format!(", {} copies together", found.copies);
    }
    if found.repetitions > 1 {
        text += &format!(", {} times in each process", found.repetitions);
    }
    text
}

fn warnings(found: &Findings) -> Vec<String> {
    let mut all = found.warnings.clone();
    all.extend(found.command.first().and_then(|program| own_heap_of_trace(Path::new(program))));
    if !found.complete {
        all.push("interrupted: not all runs were made".into());
    }
    for row in &found.rows {
        if !row.failures.is_empty() {
            all.push(format!("{}: {}", row.name, trouble(row)));
        }
    }
    all
}

/// What has no figures, and why.
fn left_out(found: &Findings) -> Option<Section> {
    let refused = found
        .rows
        .iter()
        .filter_map(|row| row.refused.as_ref().map(|why| format!("{} was not replayed: {why}.", row.name)));
    let collectors: Vec<String> = found
        .rows
        .iter()
        .filter(|row| row.collector.is_some() && row.refused.is_none())
        .map(|row| row.name.clone())
        .collect();
    let mut text: Vec<String> = refused.collect();
    if !collectors.is_empty() {
        let (are, them) =
            if collectors.len() == 1 { ("is a collector", "it") } else { ("are collectors", "them") };
        text.push(format!(
            "{} {are}. A trace has no pointers, so a replay lacks most of a collector's CPU, the marking: \
             `heaptoll run` measures {them}.",
            and_list(&collectors)
        ));
        text.push(
            "Their memory assumes a program that reaches every live object from one table, and nothing else. \
             It includes garbage that waits for the next collection, but not what a real program keeps \
             reachable by mistake. Contents were compared before every free, so no object in use was taken."
                .into(),
        );
    }
    (!text.is_empty()).then(|| Section { title: "What is left out".into(), text, items: vec![] })
}

fn order(order: Order) -> &'static str {
    match order {
        Order::Exact => "as recorded",
        Order::PerThread => "each thread as fast as it can",
    }
}

fn touch(touch: Touch) -> &'static str {
    match touch {
        Touch::None => "not touched",
        Touch::Write => "written once",
        Touch::All => "written once, and compared before the free",
    }
}

fn facts(found: &Findings, managers: &[Manager]) -> Vec<(String, String)> {
    let facts = &found.facts;
    let mut all = vec![
        ("trace".into(), found.trace.clone()),
        (
            "recorded".into(),
            format!("{} under {}", shell_command(&found.command), manager_name(&found.recorded_manager)),
        ),
        (
            "calls".into(),
            format!(
                "{} allocations, {} resizes, {} frees; left out: {} failed, {} of unknown blocks",
                count(facts.allocations as f64),
                count(facts.resizes as f64),
                count(facts.frees as f64),
                count(facts.failed as f64),
                count((facts.foreign + facts.unknown) as f64)
            ),
        ),
        ("runs".into(), format!("{} of each pass (3 of latency), seed {}", found.runs, found.seed)),
        (
            "driver's own cost".into(),
            format!("{:.2} ns a call, subtracted (measured under a manager that does nothing)", found.own_ns),
        ),
        (
            "blocks".into(),
            format!(
                "{} to measure time, {} to measure memory",
                touch(found.time_touch),
                touch(found.memory_touch)
            ),
        ),
    ];
    if facts.threads > 1 {
        all.push((
            "order of threads".into(),
            format!(
                "{} to measure time, {} to measure memory; {} calls on objects that another thread had last",
                order(found.time_order),
                order(found.memory_order),
                count(facts.crossings as f64)
            ),
        ));
    }
    for (manager, row) in managers.iter().zip(&found.rows) {
        all.push((row.name.clone(), format!("{}, {}", manager.version, row.served_by)));
    }
    let machine = heaptoll_experiment::machine::read();
    all.push((
        "machine".into(),
        format!("{}, {} cores, Linux {}", machine.cpu, machine.cores, machine.kernel),
    ));
    all.push(("huge pages".into(), machine.thp));
    all
}
