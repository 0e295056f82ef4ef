//! What changed between two experiments: `heaptoll diff A.db B.db`.

use heaptoll_experiment::compare::{Across, across_verdict};
use heaptoll_experiment::comparison::Metric;
use heaptoll_statistics::Interval;
use heaptoll_units::each_once;

use super::charts::{ratio_series, ratios};
use crate::document::{Cell, Chart, Document, Item, Section, Table};
use crate::format::{self, NO_DIFFERENCE, TOO_FEW, plural, significant};

/// What CPU seconds are of, where the experiment's own table has others.
const ALONE: &str = "Alone: from separate runs. `heaptoll run` and `report` show CPU seconds in lockstep, \
                     which are higher and depend on the managers that ran with them.";

/// The comparison; `a` and `b` are how the two files are called in the heads of the columns.
pub fn pair(a: &str, b: &str, rows: &[Across]) -> Document {
    let metrics = [(Metric::Cpu, "CPU"), (Metric::PeakRss, "Peak memory")];
    let charts = metrics.map(|(metric, title)| chart(title, a, rows, metric));
    let charts = charts.into_iter().filter(|chart| !chart.series.is_empty());
    let section = Section {
        text: metrics.iter().filter_map(|(metric, title)| sentence(b, rows, *metric, title)).collect(),
        items: charts.map(Item::Chart).chain(std::iter::once(Item::Table(table(a, b, rows)))).collect(),
        ..Section::default()
    };
    Document {
        title: format!("{b} (B) to {a} (A)"),
        subtitle: "The two were not measured together: a change of the machine in between would look like a \
             difference."
            .into(),
        sections: vec![section],
        palette: each_once(rows.iter().map(|row| row.stack.clone())),
        ..Document::default()
    }
}

/// In how many pairs of program and manager a figure fell and rose, and where by most; none without a ratio.
fn sentence(b: &str, rows: &[Across], metric: Metric, title: &str) -> Option<String> {
    let rows = rows.iter().filter(|row| row.metric == metric);
    let found: Vec<(&Across, Interval)> = rows.filter_map(|row| Some((row, row.ratio?))).collect();
    if found.is_empty() {
        return None;
    }
    let seen = |is_less: bool| {
        let of = found.iter().filter(|(_, ratio)| ratio.differs && (ratio.ratio < 1.0) == is_less);
        let most = of.clone().max_by(|x, y| x.1.ratio.ln().abs().total_cmp(&y.1.ratio.ln().abs()))?;
        let (row, ratio) = most;
        let at = format!("{} under {}, {}", row.program, row.stack, format::interval(ratio));
        let count = of.count();
        let most = if count == 1 { at } else { format!("most: {at}") };
        Some(format!("{} in {count} ({most})", if is_less { "less" } else { "more" }))
    };
    let changes: Vec<String> = [true, false].into_iter().filter_map(seen).collect();
    let pairs = plural(found.len(), "pair");
    let without = |is_enough| {
        let same = found.iter().filter(|(_, ratio)| !ratio.differs && ratio.has_enough_pairs() == is_enough);
        let (count, words) = (same.count(), if is_enough { NO_DIFFERENCE } else { TOO_FEW });
        (count > 0).then(|| format!("{words} in {count}"))
    };
    let changes = (!changes.is_empty()).then(|| format!("{b} took {}", changes.join(", ")));
    let parts: Vec<String> = [changes, without(true), without(false)].into_iter().flatten().collect();
    Some(format!("{title}: of {pairs} of program and manager, {}.", parts.join("; ")))
}

/// B over A of a metric: a place a program, a series a stack.
fn chart(title: &str, a: &str, rows: &[Across], metric: Metric) -> Chart {
    let of_metric = || rows.iter().filter(|row| row.metric == metric && row.ratio.is_some());
    let programs = each_once(of_metric().map(|row| row.program.as_str()));
    let stacks = each_once(of_metric().map(|row| row.stack.as_str()));
    let series = stacks.iter().map(|stack| {
        let of_stack = of_metric().filter(|row| row.stack == *stack);
        let found = of_stack
            .filter_map(|row| Some((programs.iter().position(|one| *one == row.program)?, row.ratio?)));
        ratio_series(stack, found, |place| programs[place])
    });
    let series = series.collect();
    let names = programs.iter().map(|name| (*name).to_owned()).collect();
    let caption = "Left of the line is less in B. Pale: no difference detected.";
    ratios(title, caption, metric, a, names, series)
}

/// Every figure in its label's unit.
fn table(a: &str, b: &str, rows: &[Across]) -> Table {
    let unit = |row: &Across| match row.metric {
        Metric::PeakRss => ("peak RSS MiB", 1.0 / 1024.0),
        _ if row.alone => ("CPU s alone", 1.0),
        _ => ("CPU s", 1.0),
    };
    // A name is written once, so that the eye finds where the next begins.
    let before = std::iter::once(("", "")).chain(rows.iter().map(|row| (&*row.program, &*row.stack)));
    Table::of(rows.iter().zip(before))
        .text(
            "program",
            |(row, (program, _))| if row.program == *program { "" } else { row.program.as_str() },
        )
        .text(
            "stack",
            |(row, last)| if *last == (&row.program, &row.stack) { "" } else { row.stack.as_str() },
        )
        .text("metric", |(row, _)| unit(row).0)
        .figure(a, |(row, _)| significant(row.a_median * unit(row).1))
        .figure(b, |(row, _)| significant(row.b_median * unit(row).1))
        .figure("B to A", |(row, _)| Cell::ratio(row.ratio.as_ref(), TOO_FEW))
        .text("verdict", |(row, _)| across_verdict(row.metric, row.ratio))
        .notes(rows.iter().any(|row| row.alone).then(|| ALONE.to_owned()))
        .wide()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Form;

    fn row(program: &str, stack: &str, metric: Metric, ratio: f64, differs: bool) -> Across {
        let interval = Interval { ratio, low: ratio * 0.9, high: ratio * 1.1, differs, pairs: 8 };
        Across {
            program: program.into(),
            stack: stack.into(),
            metric,
            a_median: 2048.0,
            b_median: 2048.0 * ratio,
            alone: false,
            ratio: Some(interval),
        }
    }

    #[test]
    fn cpu_seconds_of_other_runs_than_the_experiments_own_table_has_are_named() {
        let table_of =
            |alone| table("a", "b", &[Across { alone, ..row("gawk", "glibc", Metric::Cpu, 1.0, false) }]);
        let (same, others) = (table_of(false), table_of(true));
        assert_eq!((same.rows[0][2].text.as_str(), same.notes.len()), ("CPU s", 0));
        assert_eq!((others.rows[0][2].text.as_str(), others.notes), ("CPU s alone", vec![ALONE.to_owned()]));
    }

    #[test]
    fn the_first_sentences_count_what_fell_and_rose() {
        let rows = [
            row("gawk", "glibc", Metric::Cpu, 0.5, true),
            row("gawk", "lea", Metric::Cpu, 0.8, true),
            row("perl", "glibc", Metric::Cpu, 1.3, true),
            row("perl", "lea", Metric::Cpu, 1.01, false),
            row("gawk", "glibc", Metric::PeakRss, 1.01, false),
        ];
        let text = pair("old", "new", &rows).sections[0].text.join("\n");
        assert!(
            text.contains(
                "CPU: of 4 pairs of program and manager, new took less in 2 (most: gawk under glibc"
            )
        );
        assert!(text.contains("more in 1 (perl under glibc"), "{text}");
        assert!(text.contains("; no difference detected in 1."), "{text}");
        assert!(
            text.contains("Peak memory: of 1 pair of program and manager, no difference detected in 1."),
            "{text}"
        );
    }

    #[test]
    fn a_chart_has_a_place_a_program_and_a_series_a_stack() {
        let rows = [
            row("gawk", "glibc", Metric::Cpu, 0.5, true),
            row("perl", "glibc", Metric::Cpu, 1.3, true),
            row("perl", "lea", Metric::Cpu, 1.2, true),
        ];
        let document = pair("old", "new", &rows);
        let Item::Chart(chart) = &document.sections[0].items[0] else { panic!("no chart first") };
        assert_eq!(
            (chart.form, &chart.y.names[..]),
            (Form::Ratios, &["gawk".to_owned(), "perl".to_owned()][..])
        );
        let places: Vec<Vec<f64>> =
            chart.series.iter().map(|series| series.points.iter().map(|point| point.1).collect()).collect();
        assert_eq!(places, [vec![0.0, 1.0], vec![1.0]]);
        assert_eq!(document.sections[0].items.len(), 2, "no chart of memory without its figures");
    }

    #[test]
    fn too_few_rows_have_no_chart_and_no_sentence() {
        let alone = Across { ratio: None, ..row("gawk", "glibc", Metric::Cpu, 1.0, false) };
        let document = pair("old", "new", &[alone]);
        assert!(document.sections[0].text.is_empty());
        assert!(matches!(document.sections[0].items[..], [Item::Table(_)]));
    }
}
