//! The traced runs of an experiment file, as `heaptoll report` shows them again.

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::{ByOwner, ExactFigures, Observation, Phase};
use heaptoll_report::document::{Document, Section, Table};
use heaptoll_report::format::{date, left_out, mib_from_bytes, shell_command};
use heaptoll_units::number;

/// Whether all runs of the file are traced ones: it then holds nothing to be compared by time.
pub fn is_all(experiment: &Experiment) -> bool {
    !experiment.observations.is_empty()
        && experiment.observations.iter().all(|row| row.phase == Phase::Traced)
}

/// The traced runs of the file; `None` when it has none.
pub fn document(experiment: &Experiment) -> Option<Document> {
    let traced = |row: &&Observation| row.phase == Phase::Traced;
    let rows: Vec<&Observation> = experiment.observations.iter().filter(traced).collect();
    if rows.is_empty() {
        return None;
    }
    let of = |name: &str| -> Vec<&Observation> {
        rows.iter().filter(|row| row.program == name).copied().collect()
    };
    let sections = experiment.programs.iter().filter_map(|program| {
        let rows = of(&program.name);
        let section = Section::new(&program.name).state(shell_command(&program.command));
        let section = section.with_all(counts(&rows)).with_all(caches(&rows));
        (!section.items.is_empty()).then_some(section)
    });
    let mut warnings: Vec<String> = rows.iter().filter_map(|row| doubt(row)).collect();
    warnings.extend(left_out(experiment));
    if !experiment.complete {
        warnings.push("interrupted: not all runs were made".into());
    }
    Some(Document {
        title: "Counts of the traced runs".into(),
        subtitle: format!("heaptoll {} · {}", experiment.heaptoll_version, date(experiment.created_unix_s)),
        warnings,
        sections: sections.collect(),
        facts: vec![],
        command: shell_command(&experiment.settings.repeat_command),
        ..Document::default()
    })
}

/// Why a run's figures are doubtful.
fn doubt(row: &Observation) -> Option<String> {
    let run = format!("{} under {}", row.program, row.stack);
    if !row.outcome.is_ok() {
        return Some(format!("{run}: {}", row.outcome));
    }
    let whole = row.exact.is_none_or(|exact| exact.whole);
    (!whole).then(|| format!("{run}: not traced to its end; the figures cover the run until then"))
}

/// Instructions and calls.
fn counts(rows: &[&Observation]) -> Option<Table> {
    let exact: Vec<(&str, ExactFigures)> =
        rows.iter().filter_map(|row| Some((row.stack.as_str(), row.exact?))).collect();
    let collects = exact.iter().any(|(_, figures)| figures.instructions.collector > 0);
    Table::of(exact)
        .caption("instructions, references and calls")
        .text("manager", |(manager, _)| *manager)
        .figure("application", |(_, figures)| number(figures.instructions.program))
        .figure("allocation", |(_, figures)| number(figures.instructions.allocator))
        .when(collects, |table| {
            table.figure("collection", |(_, figures)| number(figures.instructions.collector))
        })
        .figure("loads", |(_, figures)| number(sum(figures.loads)))
        .figure("stores", |(_, figures)| number(sum(figures.stores)))
        .figure("allocations", |(_, figures)| number(figures.allocations))
        .figure("frees", |(_, figures)| number(figures.frees))
        .figure("heap MiB", |(_, figures)| {
            figures.heap_high_water_bytes.map(|bytes| mib_from_bytes(bytes as f64))
        })
        .note(
            "All processes of a run together. Application, allocation and collection are instructions; loads and \
             stores cover all three.",
        )
        .if_any()
}

/// Misses of the caches that were named.
fn caches(rows: &[&Observation]) -> Option<Table> {
    let figures = rows.iter().filter_map(|row| Some((&row.stack, row.locality.as_ref()?)));
    let caches = figures.flat_map(|(manager, locality)| {
        locality.caches.iter().map(move |cache| (manager, sum(locality.references), cache))
    });
    Table::of(caches)
        .caption("misses of simulated caches")
        .text("manager", |(manager, ..)| manager.as_str())
        .text("cache", |(.., cache)| cache.cache.as_str())
        .figure("references", |(_, references, _)| number(*references))
        .figure("misses", |(.., cache)| number(sum(cache.misses)))
        .figure("the program's", |(.., cache)| number(cache.misses.program))
        .figure("the manager's", |(.., cache)| number(cache.misses.allocator + cache.misses.collector))
        .note("For the process that executed most.")
        .if_any()
}

fn sum(figure: ByOwner) -> u64 {
    figure.program + figure.allocator + figure.collector
}
