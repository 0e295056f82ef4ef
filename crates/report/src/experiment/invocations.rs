//! Invocations of a program that its chart shows one by one, and those that did not end well. A page holds no more
//! than a browser opens; `heaptoll report --csv` has all.

use heaptoll_experiment::observation::Observation;
use heaptoll_units::groups;

use crate::document::{Cell, Column, Table, Tone};
use crate::format::{self, plural};

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
    /// One repetition in this many is shown, whole; what did not end well is shown besides.
    pub every: u32,
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
    Shown { rows: rows.iter().copied().filter(is_shown).collect(), every }
}

/// Those that did not end well, of one stack with the same ending and output in one row; none without any.
pub(super) fn bad(rows: &[&Observation]) -> Option<Table> {
    let bad = rows.iter().filter(|row| !row.outcome.is_ok());
    let groups = groups(bad.map(|row| ((&row.stack, &row.outcome, &row.stderr_tail), row.order)));
    let listed = |orders: &[u32]| format::and_list(&orders.iter().map(u32::to_string).collect::<Vec<_>>());
    let table = Table::of(&groups)
        .caption(plural(groups.iter().map(|(_, orders)| orders.len()).sum(), "invocation"))
        .text("stack", |((stack, ..), _)| (*stack).clone())
        .text("outcome", |((_, outcome, _), _)| Cell::text(outcome.to_string()).toned(Tone::More))
        .text("invocations", |(_, orders)| listed(orders))
        .column(Column::code("end of standard error"), |((.., tail), _)| tail.trim_end());
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
        assert_eq!((found.rows.len(), found.every), (200, 1));
    }

    #[test]
    fn of_many_whole_repetitions_are_shown_and_all_failures() {
        let mut rows = many(60_000);
        rows[3].outcome = Outcome::Exit(1);
        let rows: Vec<&Observation> = rows.iter().collect();
        let found = shown(&rows, 2);
        assert_eq!(found.every, 24);
        assert_eq!(found.rows.len(), 2 * 60_000 / 24 + 1);
        assert!(found.rows.iter().any(|row| !row.outcome.is_ok()));
    }

    #[test]
    fn where_too_many_did_not_end_well_the_first_are_shown() {
        let mut rows = many(60_000);
        rows.iter_mut().for_each(|row| row.outcome = Outcome::Exit(1));
        let rows: Vec<&Observation> = rows.iter().collect();
        let found = shown(&rows, 2);
        assert_eq!(found.rows.len(), 5_000 + 5_000);
    }
}
