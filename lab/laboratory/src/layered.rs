//! Experiments on one layer in front of a manager, over a setting of the layer: each setting is compared with one that
//! does nothing, and that one with the manager alone, which is what the layer itself costs.

use heaptoll_experiment::comparison::Ratios;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::setting::Settings;
use heaptoll_experiment::stack::{Layer, LayerKind, layers};
use heaptoll_experiment::sweep::{Sweep, Swept};
use heaptoll_report::document::{Columns, Item, Section, Table};
use heaptoll_report::sweep;
use heaptoll_statistics::Interval;

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::preparation::stand_ins;
use heaptoll_runs::studied::{ratio_cell, without_repeats};

/// The managers to put a layer in front of, and what is done with each.
pub struct Stacks<'a> {
    /// The command.
    pub command: &'a str,
    /// Those requested.
    pub requested: &'a [String],
    /// Those taken without a request, as far as they are here.
    pub usual: &'a [&'a str],
}

impl Stacks<'_> {
    /// Each manager once without the layer, then the stacks that `words` gives.
    ///
    /// # Errors
    /// A manager is unknown, or has a layer already.
    pub fn all(
        &self,
        words: impl Fn(&Manager) -> Vec<String>,
        context: &Context,
    ) -> Result<Vec<Manager>, Failure> {
        let known = manager::known(context.places)?;
        stand_ins::note(&known, self.requested, context.messages);
        let chosen = match self.requested {
            [] => self.usual.iter().filter_map(|name| manager::find(&known, name).ok()).collect(),
            requested => without_repeats(manager::choose(&known, requested.iter().map(String::as_str))?),
        };
        if let Some(manager) = chosen.iter().find(|manager| !manager.layers.is_empty()) {
            return Err(Failure::Usage(format!(
                "-m {}: name the manager alone; `heaptoll {}` puts the layer in front of it",
                manager.name, self.command
            )));
        }
        let mut stacks = Vec::new();
        for manager in chosen {
            let layered: Result<Vec<Manager>, _> =
                words(&manager).iter().map(|word| manager::find(&known, word)).collect();
            stacks.push(manager);
            stacks.extend(layered?);
        }
        Ok(stacks)
    }
}

/// A stack's manager, and the layer in front of it, if there is one. `None` for a stack with more layers, or another.
pub fn part(stack: &str, is: impl Fn(&LayerKind) -> bool) -> Option<(String, Option<Layer>)> {
    let (mut in_front, manager) = layers(stack).ok()?;
    let layer = in_front.pop();
    let is_only = in_front.is_empty() && layer.as_ref().is_none_or(|layer| is(layer.kind));
    is_only.then(|| (manager.into(), layer))
}

/// Adds the columns of ratios to a table.
pub fn columns<R>(table: Columns<R>, of: impl Fn(&R) -> Ratios) -> Columns<R> {
    let table = table.figure("CPU", |row| ratio_cell(of(row).cpu));
    let table = table.figure("time", |row| ratio_cell(of(row).wall));
    table.figure("peak memory", |row| ratio_cell(of(row).peak_rss))
}

/// A sweep over a layer's setting, as a document shows it.
pub struct Shown<'a, P: Copy + Ord, M: Copy> {
    /// What was found.
    pub sweep: &'a Sweep<Settings<P, M>>,
    /// The values, ascending.
    pub values: &'a [P],
    /// A value as it is written.
    pub label: fn(P) -> String,
    /// The value that all are compared with, and what sentences call it.
    pub base: (P, &'a str),
    /// What the values are: an axis of charts.
    pub axis: &'a str,
}

/// A manager at a value on one program.
pub struct Row<'a, P, M> {
    /// The manager.
    pub manager: &'a str,
    /// The value.
    pub value: P,
    /// Medians.
    pub medians: Option<M>,
    /// Ratios to the base.
    pub ratios: Ratios,
}

impl<'a, P: Copy + Ord, M: Copy> Shown<'a, P, M> {
    /// The programs under each manager, as far as they ran with the layer.
    fn curves(&self) -> impl Iterator<Item = &'a Swept<Settings<P, M>>> {
        self.sweep.programs.iter().filter(|swept| swept.settings().next().is_some())
    }

    fn rows(&self, program: &str) -> Vec<Row<'a, P, M>> {
        let curves = self.curves().filter(|swept| swept.program == program);
        let rows = |swept: &'a Swept<Settings<P, M>>| {
            let manager = swept.subject.as_str();
            swept.settings().map(move |(value, _, medians, ratios)| Row { manager, value, medians, ratios })
        };
        curves.flat_map(rows).collect()
    }

    fn means(&self, value: Option<P>) -> impl Iterator<Item = (&'a str, Ratios)> {
        let means = self.sweep.means.iter().filter(move |mean| mean.ratios.0 == value);
        means.map(|mean| (mean.subject.as_str(), Ratios::of(Some(&mean.ratios.1))))
    }

    /// The ratios of a manager at each value but the base: means over programs, or those of the only one.
    pub fn over_all(&self, manager: &str) -> Vec<(P, Ratios)> {
        let only = self.curves().find(|swept| swept.subject == manager);
        let of = |value: P| match (self.sweep.means.is_empty(), only) {
            (true, only) => only?.settings().find(|one| one.0 == value).map(|one| one.3),
            (false, _) => self.means(Some(value)).find(|mean| mean.0 == manager).map(|mean| mean.1),
        };
        let others = self.values.iter().filter(|value| **value != self.base.0);
        others.filter_map(|value| Some((*value, of(*value)?))).collect()
    }

    /// The section to read first, with the means over programs where there are several.
    pub fn findings(&self, title: &str, text: Vec<String>, means: Option<Table>) -> Section {
        let section = Section { text, ..Section::new(title) }.with_all(means);
        let of =
            |manager: &str, value| self.means(Some(value)).find(|mean| mean.0 == manager).map(|mean| mean.1);
        match self.sweep.means.is_empty() {
            true => section,
            false => section.with_all(self.charts("geometric mean over programs", &of)),
        }
    }

    /// What the layer itself costs: a row a program and manager, then the means.
    pub fn layer(&self, title: &str, text: &str) -> Option<Section> {
        let curves = self.curves().filter(|swept| swept.plain().is_some());
        let of_programs = curves
            .map(|swept| (swept.program.as_str(), (swept.subject.as_str(), Ratios::of(swept.of(None)))));
        let of_all = self.means(None).map(|mean| ("geometric mean", mean));
        let table = Table::of(of_programs.chain(of_all));
        let table = table.text("program", |row| row.0).text("manager", |row| row.1.0);
        Some(Section::new(title).state(text).with(columns(table, |row| row.1.1).if_any()?))
    }

    /// One program: every manager and value.
    pub fn program(
        &self,
        name: &str,
        table: impl FnOnce(Columns<Row<'a, P, M>>) -> Columns<Row<'a, P, M>>,
    ) -> Option<Section> {
        let rows = self.rows(name);
        let of = |manager: &str, value| {
            let found = self.rows(name).into_iter().find(|row| row.manager == manager && row.value == value);
            found.map(|row| row.ratios)
        };
        (!rows.is_empty()).then(|| {
            let section = Section::new(name).with(table(Table::of(rows)));
            section.with_all(self.charts(name, &of))
        })
    }

    /// A ratio of a row as a cell.
    pub fn cell(&self, row: &Row<P, M>, metric: fn(&Ratios) -> Option<Interval>) -> String {
        if row.value == self.base.0 { "1".into() } else { ratio_cell(metric(&row.ratios)) }
    }

    /// CPU and memory by value; `of` has the ratios of a manager at a value.
    fn charts(&self, what: &str, of: &dyn Fn(&str, P) -> Option<Ratios>) -> [Item; 2] {
        let base = self.values.iter().position(|value| *value == self.base.0);
        let labels = self.values.iter().map(|value| (self.label)(*value)).collect();
        let managers = &self.sweep.subjects;
        sweep::charts([what, self.axis, self.base.1], (labels, base), managers, &|manager, place| {
            of(&managers[manager], self.values[place])
        })
    }
}
