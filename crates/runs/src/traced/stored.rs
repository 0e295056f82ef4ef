//! The traced runs of an experiment file, as `heaptoll report` shows them again.

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::{ByOwner, ExactFigures, Observation, Phase};
use heaptoll_report::document::{Column, Document, Item, Section, Table};
use heaptoll_report::format::{NONE, date, left_out, mib_from_bytes, shell_command};
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
        let items: Vec<Item> =
            [counts(&rows), caches(&rows)].into_iter().flatten().map(Item::Table).collect();
        (!items.is_empty()).then(|| Section {
            title: program.name.clone(),
            text: vec![shell_command(&program.command)],
            items,
        })
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
    let mut columns: Vec<Column> = vec![Column::text("manager")];
    columns.extend(["application", "allocation"].map(Column::figures));
    if collects {
        columns.push(Column::figures("collection"));
    }
    columns.extend(["loads", "stores", "allocations", "frees", "heap MiB"].map(Column::figures));
    let rows = exact.iter().map(|(manager, figures)| {
        let mut cells = vec![(*manager).to_string()];
        cells.push(number(figures.instructions.program));
        cells.push(number(figures.instructions.allocator));
        if collects {
            cells.push(number(figures.instructions.collector));
        }
        cells.push(number(sum(figures.loads)));
        cells.push(number(sum(figures.stores)));
        cells.push(number(figures.allocations));
        cells.push(number(figures.frees));
        cells.push(figures.heap_high_water_bytes.map_or(NONE.into(), |bytes| mib_from_bytes(bytes as f64)));
        cells
    });
    (!exact.is_empty()).then(|| Table {
        caption: "instructions, references and calls".into(),
        columns,
        rows: rows.collect(),
        notes: vec![
            "All processes of a run together. Application, allocation and collection are instructions; loads and \
             stores cover all three."
                .into(),
        ],
    })
}

/// Misses of the caches that were named.
fn caches(rows: &[&Observation]) -> Option<Table> {
    let figures: Vec<_> =
        rows.iter().filter_map(|row| Some((row.stack.as_str(), row.locality.as_ref()?))).collect();
    let cells = figures.iter().flat_map(|(manager, locality)| {
        locality.caches.iter().map(|cache| {
            let misses = cache.misses;
            vec![
                (*manager).to_string(),
                cache.cache.clone(),
                number(sum(locality.references)),
                number(sum(misses)),
                number(misses.program),
                number(misses.allocator + misses.collector),
            ]
        })
    });
    let rows: Vec<Vec<String>> = cells.collect();
    let mut columns = ["manager", "cache"].map(Column::text).to_vec();
    columns.extend(["references", "misses", "the program's", "the manager's"].map(Column::figures));
    (!rows.is_empty()).then(|| Table {
        caption: "misses of simulated caches".into(),
        columns,
        rows,
        notes: vec!["For the process that executed most.".into()],
    })
}

fn sum(figure: ByOwner) -> u64 {
    figure.program + figure.allocator + figure.collector
}
