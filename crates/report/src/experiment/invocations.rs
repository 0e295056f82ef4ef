//! Invocations of a program one by one, and those that did not end well. A page holds so many of them that a browser
//! still opens it; `heaptoll report --csv` has all.

use heaptoll_experiment::cell::Value;
use heaptoll_experiment::columns::headed;
use heaptoll_experiment::observation::Observation;

use crate::document::{Cell, Column, Raw, Table, Tone};
use crate::format::{self, NONE, plural};

/// What the tables call CPU: a server's is counted from ready to stopped.
pub(super) fn cpu_s(row: &Observation) -> f64 {
    row.serve.as_ref().map_or(row.cpu_s(), |serve| serve.loaded_cpu_s)
}

/// The most invocations that are shown one by one on a page, over all its programs: about 5 MB.
const MOST: usize = 10_000;

/// The invocations of a program that its page shows one by one.
pub(super) struct Shown<'a> {
    /// In the order made.
    pub rows: Vec<&'a Observation>,
    /// How many were made.
    pub of: usize,
    /// One repetition in so many is shown, whole; what did not end well is shown besides.
    pub every: u32,
    /// How many of those that did not end well are left out, the last ones: so many are too many as well.
    pub failures_left_out: usize,
}

/// All of them, or where they and those of the page's other `programs` are too many, evenly spaced repetitions.
pub(super) fn shown<'a>(rows: &[&'a Observation], programs: usize) -> Shown<'a> {
    let most = (MOST / programs.max(1)).max(1);
    let every = u32::try_from(rows.len().div_ceil(most)).unwrap_or(u32::MAX).max(1);
    let mut failures = 0;
    let is_shown = |row: &&Observation| {
        if every == 1 || row.repetition.is_multiple_of(every) {
            return true;
        }
        failures += usize::from(!row.outcome.is_ok());
        !row.outcome.is_ok() && failures <= most
    };
    let shown = rows.iter().copied().filter(is_shown).collect();
    Shown { rows: shown, of: rows.len(), every, failures_left_out: failures.saturating_sub(most) }
}

impl Shown<'_> {
    /// How many of all are there, in words.
    pub fn words(&self) -> String {
        let (shown, of) = (format::count(self.rows.len() as f64), format::count(self.of as f64));
        match self.every {
            1 => format!("Every invocation ({})", self.of),
            every => format!(
                "One repetition in {every}, and {} failed ones: {shown} of {of} invocations (heaptoll report --csv writes \
                 all)",
                if self.failures_left_out == 0 { "all" } else { "the first" }
            ),
        }
    }
}

/// Those shown, a row each.
pub(super) fn raw(shown: &Shown) -> Raw {
    let figures = |names: &[&str]| names.iter().map(|name| Column::figures(name)).collect::<Vec<_>>();
    let mut columns = figures(&["order", "repetition"]);
    columns.extend([Column::text("phase"), Column::text("stack")]);
    columns.extend(figures(&["CPU s", "wall s", "peak MiB"]));
    columns.extend(headed().map(|(heading, _)| Column::figures(heading)));
    columns.extend(figures(&["load", "steal", "interrupts", "other work"]));
    columns.push(Column::text("outcome"));
    let mut raw = Raw::new(shown.words(), columns);
    for row in &shown.rows {
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
pub(super) fn bad(rows: &[&Observation]) -> Option<Table> {
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
    let listed = |orders: &[u32]| format::and_list(&orders.iter().map(u32::to_string).collect::<Vec<_>>());
    let table = Table::of(&groups)
        .caption(plural(groups.iter().map(|(_, orders)| orders.len()).sum(), "invocation"))
        .text("stack", |(row, _)| row.stack.clone())
        .text("outcome", |(row, _)| Cell::text(row.outcome.to_string()).toned(Tone::More))
        .text("invocations", |(_, orders)| listed(orders))
        .column(Column::code("end of standard error"), |(row, _)| row.stderr_tail.trim_end().to_owned());
    (!groups.is_empty()).then(|| table.wide())
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::observation::Outcome;

    use super::*;

    fn many(repetitions: u32) -> Vec<Observation> {
        let of = |repetition| {
            ["glibc", "lea"].map(|stack| Observation {
                repetition,
                stack: stack.into(),
                ..Observation::default()
            })
        };
        (0..repetitions).flat_map(of).collect()
    }

    #[test]
    fn few_invocations_are_all_shown() {
        let rows = many(100);
        let rows: Vec<&Observation> = rows.iter().collect();
        let found = shown(&rows, 3);
        assert_eq!((found.rows.len(), found.words()), (200, "Every invocation (200)".to_owned()));
    }

    #[test]
    fn of_many_whole_repetitions_are_shown_and_all_failures() {
        let mut rows = many(60_000);
        rows[3].outcome = Outcome::Exit(1);
        let rows: Vec<&Observation> = rows.iter().collect();
        let found = shown(&rows, 2);
        assert_eq!(found.every, 24);
        assert_eq!(found.rows.len(), 2 * 60_000 / 24 + 1);
        let of = format!("{} of {} invocations", format::count(5_001.0), format::count(120_000.0));
        assert!(found.words().contains(&of), "{}", found.words());
        assert!(found.rows.iter().any(|row| !row.outcome.is_ok()));
    }

    /// Found by attack: the words claimed that all were shown.
    #[test]
    fn where_too_many_did_not_end_well_the_words_are_of_the_first() {
        let mut rows = many(60_000);
        rows.iter_mut().for_each(|row| row.outcome = Outcome::Exit(1));
        let rows: Vec<&Observation> = rows.iter().collect();
        let found = shown(&rows, 2);
        assert_eq!(found.rows.len(), 5_000 + 5_000);
        assert!(found.words().contains("and the first failed ones: "), "{}", found.words());
    }
}
