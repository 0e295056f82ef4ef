//! Every invocation of a program, and those that did not end well.

use heaptoll_experiment::cell::Value;
use heaptoll_experiment::columns::headed;
use heaptoll_experiment::observation::Observation;

use crate::document::{Cell, Column, Grid, Raw, Tone};
use crate::format::{self, NONE, plural};

/// What the tables call CPU: a server's is counted from ready to stopped.
pub(super) fn cpu_s(row: &Observation) -> f64 {
    row.serve.as_ref().map_or(row.cpu_s(), |serve| serve.loaded_cpu_s)
}

/// All of them.
pub(super) fn raw(rows: &[&Observation]) -> Raw {
    let figures = |names: &[&str]| names.iter().map(|name| Column::figures(name)).collect::<Vec<_>>();
    let mut columns = figures(&["order", "repetition"]);
    columns.extend([Column::text("phase"), Column::text("stack")]);
    columns.extend(figures(&["CPU s", "wall s", "peak MiB"]));
    columns.extend(headed().map(|(heading, _)| Column::figures(heading)));
    columns.extend(figures(&["load", "steal", "interrupts", "other work"]));
    columns.push(Column::text("outcome"));
    let mut raw = Raw::new(format!("Every invocation ({})", rows.len()), columns);
    for row in rows {
        let cells = cells(row);
        raw.push(cells.iter().map(String::as_str));
    }
    raw
}

fn cells(row: &Observation) -> Vec<String> {
    let disturbance = row.disturbance.as_ref();
    let share = |of: fn(&heaptoll_experiment::disturbance::Disturbance) -> f64| {
        disturbance.map_or(NONE.to_owned(), |found| format::rounded_percent(of(found)))
    };
    let is_loaded = disturbance.is_some_and(|found| found.is_loaded() == Some(true));
    let mut cells = vec![
        row.order.to_string(),
        (row.repetition + 1).to_string(),
        row.phase.as_str().to_owned(),
        row.stack.clone(),
        format::seconds(cpu_s(row)),
        format::seconds(row.wall_s),
        format::mib_from_kib(row.peak_rss_kib as f64),
    ];
    cells.extend(headed().map(|(_, column)| text((column.get)(row))));
    cells.extend([
        format!("{:.2}", row.load_average),
        share(|found| found.steal),
        share(|found| found.interrupts),
        share(|found| found.other_work) + if is_loaded { ", loaded" } else { "" },
        row.outcome.to_string(),
    ]);
    cells
}

fn text(cell: Value) -> String {
    match cell {
        Value::Missing => NONE.to_owned(),
        Value::Integer(value) => format::count(value as f64),
        Value::Real(value) => format::significant(value),
        Value::Text(value) => value,
    }
}

/// Those that did not end well, of one stack with the same ending and output in one row; none without any.
pub(super) fn bad(rows: &[&Observation]) -> Option<Grid> {
    let mut groups: Vec<(&Observation, Vec<u32>)> = Vec::new();
    for row in rows.iter().filter(|row| !row.outcome.is_ok()) {
        let alike = |first: &Observation| {
            first.stack == row.stack && first.outcome == row.outcome && first.stderr_tail == row.stderr_tail
        };
        match groups.iter_mut().find(|(first, _)| alike(first)) {
            Some((_, orders)) => orders.push(row.order),
            None => groups.push((row, vec![row.order])),
        }
    }
    let row = |(row, orders): &(&Observation, Vec<u32>)| {
        let orders: Vec<String> = orders.iter().map(u32::to_string).collect();
        vec![
            Cell::text(&row.stack),
            Cell::text(row.outcome.to_string()).toned(Tone::More),
            Cell::text(format::and_list(&orders)),
            Cell::text(row.stderr_tail.trim_end()),
        ]
    };
    let columns = vec![
        Column::text("stack"),
        Column::text("outcome"),
        Column::text("invocations"),
        Column::code("end of standard error"),
    ];
    (!groups.is_empty()).then(|| Grid {
        caption: plural(groups.iter().map(|(_, orders)| orders.len()).sum(), "invocation"),
        columns,
        rows: groups.iter().map(row).collect(),
        wide: true,
        ..Grid::default()
    })
}
