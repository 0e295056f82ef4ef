//! What a study found over its axis, as its document shows it: the same tables and charts for every axis, which only says
//! what its places and figures are called.

use std::collections::BTreeSet;

use heaptoll_experiment::comparison::Ratios;
use heaptoll_experiment::setting::Settings;
use heaptoll_experiment::sweep::{Axis, Mean, Sweep, Swept};
use heaptoll_report::document::{Column, Columns, Item, Section, Table};
use heaptoll_report::sweep::{Places, charts};
use heaptoll_runs::studied::{between_programs, ratio_cell};
use heaptoll_statistics::Interval;

/// A figure of a comparison: its name, and how it comes of the intervals of the axis' metrics.
pub type Figure = (&'static str, fn(&[Option<Interval>]) -> Option<Interval>);

/// The interval of the metric at place `AT` in the axis.
pub fn metric<const AT: usize>(intervals: &[Option<Interval>]) -> Option<Interval> {
    *intervals.get(AT)?
}

/// The figures of axes of settings: those of [`Ratios`].
pub const RATIOS: [Figure; 3] = [("CPU", metric::<0>), ("time", metric::<1>), ("peak memory", metric::<2>)];
/// Those that are drawn.
const DRAWN: [Figure; 2] = [("CPU", metric::<0>), ("Peak memory", metric::<2>)];

/// What the columns of a mean mean that take programs as the sample.
const OTHER_PROGRAMS: &str = "Intervals are over repetitions of these programs. \"Other programs\": the programs are a \
                              sample of their kind (Student's t on their logarithms, each at 95 % by itself).";

/// A figure of a mean with programs as the sample.
pub fn between<A: Axis>(sweep: &Sweep<A>, mean: &Mean<A>, (_, figure): Figure) -> Option<Interval> {
    let counted = sweep.programs.iter().filter(|one| one.subject == mean.subject && one.counts);
    between_programs(counted.map(|one| one.of(mean.ratios.0).and_then(figure)))
}

/// Comparisons of a study that a document shows together.
pub struct Shown<'a, A: Axis> {
    /// What was found.
    pub sweep: &'a Sweep<A>,
    /// What a subject is: a manager, a collector.
    pub subject: &'a str,
    /// What a place is: a heading, and an axis of charts.
    pub axis: &'a str,
    /// The places in order, each by the key of its comparison, as they are written.
    pub places: Vec<(A::Key, String)>,
    /// The place that the others are compared with, and what sentences call it.
    pub base: (A::Key, &'a str),
    /// The figures in tables.
    pub figures: &'a [Figure],
    /// The figures in charts, which have means over other programs.
    pub drawn: &'a [Figure],
}

/// A comparison within a program, or a mean.
struct Compared<'a> {
    program: &'a str,
    subject: &'a str,
    place: &'a str,
    intervals: &'a [Option<Interval>],
    counts: bool,
}

/// Adds a column for each figure.
fn columns<'r, R>(
    table: Columns<R>,
    figures: &[Figure],
    of: impl Fn(&R) -> &'r [Option<Interval>],
) -> Columns<R> {
    let cell = |row: &R, (_, figure): &&Figure| ratio_cell(figure(of(row)));
    table.each(figures, |(title, _)| Column::figures(title), cell)
}

impl<'a, A: Axis> Shown<'a, A> {
    fn label(&self, key: A::Key) -> Option<&str> {
        self.places.iter().find(|place| place.0 == key).map(|place| place.1.as_str())
    }

    fn mean(&self, subject: &str, key: A::Key) -> Option<&'a [Option<Interval>]> {
        let mut means = self.sweep.means.iter();
        means.find(|mean| mean.subject == subject && mean.ratios.0 == key).map(|mean| &mean.ratios.1[..])
    }

    /// The means over programs, where there are any: a table, and charts with a line a subject.
    pub fn means(&self) -> Vec<Item> {
        let means = self.sweep.means.iter().filter_map(|mean| Some((mean, self.label(mean.ratios.0)?)));
        let table = Table::of(means)
            .caption(format!("Geometric means over programs, ratios to {}", self.base.1))
            .text(self.subject, |(mean, _)| mean.subject.clone())
            .figure(self.axis, |(_, label)| (*label).to_owned())
            .figure("programs", |(mean, _)| mean.programs.to_string());
        let table = columns(table, self.figures, |(mean, _)| &mean.ratios.1).each(
            self.drawn,
            |(title, _)| Column::figures(&format!("{title}, other programs")),
            |(mean, _), figure| ratio_cell(between(self.sweep, mean, **figure)),
        );
        let Some(table) = table.note(OTHER_PROGRAMS).if_any() else { return vec![] };
        let subjects: Vec<&str> = self.sweep.subjects.iter().map(String::as_str).collect();
        let drawn =
            self.charts("geometric mean over programs", &subjects, &|at, key| self.mean(subjects[at], key));
        [Item::Table(table)].into_iter().chain(drawn).collect()
    }

    /// A row a program, subject and place, then the means; charts with a line a program for each subject.
    pub fn section(&self, title: &str, text: &str) -> Option<Section> {
        let of_programs = self.sweep.programs.iter().flat_map(|one| {
            one.ratios.iter().map(move |ratios| (one.program.as_str(), &one.subject, ratios, one.counts))
        });
        let of_means =
            self.sweep.means.iter().map(|mean| ("geometric mean", &mean.subject, &mean.ratios, true));
        let compared = of_programs.chain(of_means).filter_map(|(program, subject, ratios, counts)| {
            let place = self.label(ratios.0)?;
            Some(Compared { program, subject, place, intervals: &ratios.1, counts })
        });
        let rows: Vec<Compared> = compared.collect();
        let some_left_out = rows.iter().any(|row| !row.counts);
        let table = Table::of(rows)
            .text("program", |row| row.program.to_owned())
            .text(self.subject, |row| row.subject.to_owned())
            .when(self.places.len() > 1, |table| table.figure(self.axis, |row| row.place.to_owned()));
        let table = columns(table, self.figures, |row| row.intervals).when(some_left_out, |table| {
            table.text("", |row| if row.counts { "" } else { "left out of means" })
        });
        let drawn = self.sweep.subjects.iter().flat_map(|subject| {
            let own = self.sweep.programs.iter().filter(|one| one.subject == *subject && one.counts);
            let own: Vec<&Swept<A>> = own.collect();
            let names: Vec<&str> = own.iter().map(|one| one.program.as_str()).collect();
            self.charts(&format!("{title}, {subject}"), &names, &|at, key| own[at].of(key))
        });
        let text = format!("{text} Ratios are to {}.", self.base.1);
        Some(Section::new(title).state(text).with(table.if_any()?).with_all(drawn))
    }

    /// The drawn figures by place; `of` has the intervals of a line, by its index, at a place.
    fn charts<'s>(
        &self,
        what: &str,
        lines: &[&str],
        of: &dyn Fn(usize, A::Key) -> Option<&'s [Option<Interval>]>,
    ) -> Vec<Item> {
        let labels = self.places.iter().map(|place| place.1.clone()).collect();
        let base = self.places.iter().position(|place| place.0 == self.base.0);
        let titles: Vec<(&str, &str)> = self.drawn.iter().map(|(title, _)| (*title, self.base.1)).collect();
        let places = Places { axis: self.axis, labels, positions: vec![], base };
        charts(what, &places, &titles, lines, &|figure, line, place| {
            of(line, self.places[place].0).and_then(self.drawn[figure].1)
        })
    }
}

/// A manager at a value on one program.
pub struct Row<'a, M> {
    /// Medians.
    pub medians: Option<M>,
    ratios: Ratios,
    manager: &'a str,
    value: String,
    is_base: bool,
}

impl<M> Row<'_, M> {
    /// A ratio as a cell.
    pub fn cell(&self, metric: fn(&Ratios) -> Option<Interval>) -> String {
        if self.is_base { "1".into() } else { ratio_cell(metric(&self.ratios)) }
    }
}

impl<'a, P: Copy + Ord, M: Copy> Shown<'a, Settings<P, M>> {
    /// What was found over a setting: its name, how values are written, and the base.
    pub fn setting(
        sweep: &'a Sweep<Settings<P, M>>,
        axis: &'a str,
        label: fn(P) -> String,
        base: (P, &'a str),
    ) -> Self {
        let values = sweep.programs.iter().flat_map(|one| one.settings().map(|setting| setting.0));
        let values: BTreeSet<P> = values.collect();
        let places = values.into_iter().map(|value| (Some(value), label(value))).collect();
        let (subject, base) = ("manager", (Some(base.0), base.1));
        Shown { sweep, subject, axis, places, base, figures: &RATIOS, drawn: &DRAWN }
    }

    /// The ratios of a manager by value: means over programs, or one program's where only one ran.
    pub fn over_all(&self, manager: &str) -> Vec<(String, Ratios)> {
        let only = self.sweep.programs.iter().find(|one| one.subject == manager && !one.ratios.is_empty());
        let of = |value| match self.sweep.means.is_empty() {
            true => only?.of(value),
            false => self.mean(manager, value),
        };
        let ratios =
            |(value, label): &(Option<P>, String)| Some((label.clone(), Ratios::of(Some(of(*value)?))));
        self.places.iter().filter_map(ratios).collect()
    }

    /// The section to read first.
    pub fn findings(&self, title: &str, mut text: Vec<String>) -> Section {
        text.push(format!(
            "All ratios are to {} under the same {}, within a repetition. All intervals of a table are valid \
             together at 95 %.",
            self.base.1, self.subject
        ));
        Section { text, ..Section::new(title) }.with_all(self.means())
    }

    /// What the layer itself costs: the base over the manager without the setting.
    pub fn layer(&self, title: &str, text: &str) -> Option<Section> {
        let base = (self.base.0, "the manager alone");
        Shown { places: vec![(None, String::new())], base, ..*self }.section(title, text)
    }

    /// One program: every manager and value, with the columns that `table` adds.
    pub fn program(
        &self,
        name: &str,
        table: impl FnOnce(Columns<Row<'_, M>>) -> Columns<Row<'_, M>>,
    ) -> Option<Section> {
        let own = self.sweep.programs.iter().filter(|swept| swept.program == name);
        let own: Vec<&Swept<Settings<P, M>>> = own.collect();
        let rows = own.iter().flat_map(|swept| {
            swept.settings().map(move |(value, _, medians, ratios)| Row {
                manager: &swept.subject,
                value: self.label(Some(value)).unwrap_or_default().to_owned(),
                is_base: Some(value) == self.base.0,
                medians,
                ratios,
            })
        });
        let rows = Table::of(rows)
            .text(self.subject, |row| row.manager.to_owned())
            .figure(self.axis, |row| row.value.clone());
        let managers: Vec<&str> = own.iter().map(|swept| swept.subject.as_str()).collect();
        let drawn = self.charts(name, &managers, &|at, key| own[at].of(key));
        Some(Section::new(name).with(table(rows).if_any()?).with_all(drawn))
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::sweep::sweep;
    use heaptoll_experiment::testing::programs as testing;

    use super::*;

    /// A manager alone, and at 1 and 2: these take as much CPU as it, and half as much again. One more program hardly ran.
    fn found() -> Sweep<Settings<u64, u32>> {
        let stacks = ["m", "1/m", "2/m"].map(String::from);
        let mut made = testing::experiment(&["a", "b", "c"], &stacks, 8);
        for (program, runs) in [("a", 8), ("b", 8), ("c", 1)] {
            for (stack, cpu_s) in stacks.iter().zip([1.0, 1.0, 1.5]) {
                for repetition in 0..runs {
                    let noise = 1.0 + 0.02 * f64::from((repetition * 7 + stack.len() as u32) % 5);
                    made.observations.push(testing::row(program, stack, repetition, cpu_s * noise, 1000));
                }
            }
        }
        let part = |stack: &str| match stack.split_once('/') {
            None => Some((stack.to_owned(), None)),
            Some((value, manager)) => Some((manager.to_owned(), value.parse().ok())),
        };
        let medians = |side: &heaptoll_experiment::side::Side| Some(side.timed.len() as u32);
        sweep(&Settings { part: Box::new(part), base: Some(1), medians }, &made)
    }

    fn shown(sweep: &Sweep<Settings<u64, u32>>) -> Shown<'_, Settings<u64, u32>> {
        Shown::setting(sweep, "value", |value| format!("{value}B"), (1, "one byte"))
    }

    fn table(items: &[Item]) -> &Table {
        let of = |item: &Item| matches!(item, Item::Table(_));
        match items.iter().find(|item| of(item)) {
            Some(Item::Table(table)) => table,
            _ => panic!("no table in {items:?}"),
        }
    }

    fn column(table: &Table, title: &str) -> Vec<String> {
        let at = table.columns.iter().position(|column| column.title == title).expect(title);
        table.rows.iter().map(|row| row[at].text.clone()).collect()
    }

    #[test]
    fn means_are_by_subject_and_place_with_those_over_other_programs() {
        let found = found();
        let items = shown(&found).means();
        let means = table(&items);
        assert_eq!((column(means, "manager"), column(means, "value")), (vec!["m".into()], vec!["2B".into()]));
        let cpu = column(means, "CPU")[0].split(' ').next().and_then(|ratio| ratio.parse::<f64>().ok());
        assert!(cpu.is_some_and(|ratio| (1.4..1.6).contains(&ratio)), "{means:?}");
        assert_eq!(column(means, "CPU, other programs"), ["–"], "two programs are no sample");
        assert_eq!(shown(&found).over_all("m").len(), 1, "the base is compared with nothing");
    }

    #[test]
    fn the_layer_has_a_row_a_program_and_the_mean() {
        let found = found();
        let layer = shown(&found).layer("The layer", "It costs.").expect("it was compared");
        assert_eq!(column(table(&layer.items), "program"), ["a", "b", "c", "geometric mean"]);
        assert!(layer.items.len() == 1, "one place is no line: {layer:?}");
        let of_values = shown(&found).section("Values", "They cost.").expect("they were compared");
        assert_eq!(column(table(&of_values.items), "value"), ["2B"; 4]);
    }

    #[test]
    fn a_program_has_a_row_a_value_and_the_base_is_1() {
        let found = found();
        let section = shown(&found).program("a", |table| {
            table
                .figure("runs", |row| row.medians.map(|runs| runs.to_string()))
                .figure("CPU", |row| row.cell(|ratios| ratios.cpu))
        });
        let section = section.expect("it was run");
        let rows = table(&section.items);
        assert_eq!(
            (column(rows, "value"), column(rows, "runs")),
            (vec!["1B".into(), "2B".into()], vec!["8".into(); 2])
        );
        assert_eq!(column(rows, "CPU")[0], "1");
        assert_eq!(section.items.len(), 3, "CPU and memory are drawn");
        assert_eq!(shown(&found).program("absent", |table| table), None);
    }
}
