//! The table of `heaptoll compare A.db B.db`.

use heaptoll_statistics::Interval;

use super::ratio::{ratio_text, tone};
use super::style::{Style, Tone, right};
use crate::format::{NONE, significant};

/// One line of `heaptoll compare A B`.
#[derive(Debug, Clone, PartialEq)]
pub struct PairRow {
    /// Program.
    pub program: String,
    /// Stack.
    pub stack: String,
    /// Label with its unit, e.g. `CPU s`, `peak RSS MiB`.
    pub metric: String,
    /// Median in A, in the label's unit; `None` where A has no good row.
    pub a_median: Option<f64>,
    /// Median in B.
    pub b_median: Option<f64>,
    /// B over A; `None` when there are too few rows.
    pub ratio: Option<Interval>,
    /// The verdict in words.
    pub verdict: String,
}

/// `heaptoll compare A B`; `a` and `b` are how the two files are called in the heads of the columns.
pub fn render_pair(a: &str, b: &str, rows: &[PairRow], style: &Style) -> String {
    let narrow = style.width.is_some_and(|width| width < 110);
    let mut table = style.table(&["program", "stack", "metric", a, b, "B to A", "verdict"]);
    let mut last = ("", "");
    for row in rows {
        // A name is written once, so that the eye finds where the next begins.
        let program = if last.0 == row.program { "" } else { row.program.as_str() };
        let stack = if last == (&row.program, &row.stack) { "" } else { row.stack.as_str() };
        last = (&row.program, &row.stack);
        let figure = |value: Option<f64>| value.map_or(NONE.to_owned(), significant);
        let ratio = row.ratio.as_ref().map_or("too few rows".to_owned(), |i| ratio_text(i, narrow));
        table.add_row([
            style.cell(program, Tone::Bold),
            style.cell(stack, Tone::Plain),
            style.cell(&row.metric, Tone::Plain),
            style.cell(&figure(row.a_median), Tone::Plain),
            style.cell(&figure(row.b_median), Tone::Plain),
            style.cell(&ratio, row.ratio.as_ref().map_or(Tone::Dim, tone)),
            style.cell(&row.verdict, Tone::Plain),
        ]);
    }
    style.pad(&mut table);
    right(&mut table, &[3, 4]);
    style.lines(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stack: &str, metric: &str, ratio: Option<Interval>, verdict: &str) -> PairRow {
        PairRow {
            program: "gawk".into(),
            stack: stack.into(),
            metric: metric.into(),
            a_median: Some(1.54),
            b_median: Some(1.48),
            ratio,
            verdict: verdict.into(),
        }
    }

    #[test]
    fn names_are_written_once_and_intervals_shown() {
        let seen = Interval { ratio: 0.96, low: 0.93, high: 0.99, differs: true, pairs: 15 };
        let unseen = Interval { ratio: 1.0, low: 0.97, high: 1.02, differs: false, pairs: 15 };
        let rows = [
            row("glibc", "CPU s", Some(seen), "4 % less CPU"),
            row("glibc", "peak RSS MiB", Some(unseen), "no difference seen"),
            row("jemalloc", "CPU s", None, "too few rows"),
        ];
        let style = Style { color: false, width: Some(120), unicode: true };
        let text = render_pair("old.db", "new.db", &rows, &style);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[2].join(" "), "gawk glibc CPU s 1.540 1.480 0.96 (0.93–0.99) 4 % less CPU");
        assert_eq!(lines[3].join(" "), "peak RSS MiB 1.540 1.480 1.00 (0.97–1.02) no difference seen");
        assert_eq!(lines[4][0], "jemalloc");
        let narrow = render_pair("old.db", "new.db", &rows, &Style { width: Some(80), ..style });
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    }
}
