//! Rows of figures as CSV and Parquet have them: the runs of an experiment, or the facts of any result. What has columns
//! here is written in both forms.

use heaptoll_experiment::cell::{Cell, ColumnType, Value};
use heaptoll_experiment::columns::exported;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_facts::{self as facts, Fact, Facts};
use serde::Serialize;

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name, which ends in the unit where there is one.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnType,
    /// Whether a cell may be missing.
    pub optional: bool,
    /// Whether its numbers grow from row to row, which packs them better.
    pub grows: bool,
}

impl Column {
    /// One that each row has.
    pub const fn required(name: &'static str, kind: ColumnType) -> Column {
        Column { name, kind, optional: false, grows: false }
    }

    /// One that a row may lack.
    pub const fn optional(name: &'static str, kind: ColumnType) -> Column {
        Column { optional: true, ..Column::required(name, kind) }
    }

    /// Numbers that grow from row to row.
    pub const fn growing(name: &'static str) -> Column {
        Column { grows: true, ..Column::required(name, ColumnType::Integer) }
    }
}

/// The columns of facts. A metric's unit is part of its name.
const FACTS: [Column; 9] = [
    Column::required("program", ColumnType::Text),
    Column::required("manager", ColumnType::Text),
    Column::required("metric", ColumnType::Text),
    Column::optional("at", ColumnType::Real),
    Column::required("basis", ColumnType::Text),
    Column::optional("repetition", ColumnType::Integer),
    Column::optional("value", ColumnType::Real),
    Column::optional("low", ColumnType::Real),
    Column::optional("high", ColumnType::Real),
];

/// Rows under columns.
pub struct FlatTable<'a> {
    /// What a row is.
    pub row: &'static str,
    /// Its columns.
    pub columns: Vec<Column>,
    /// A cell a column.
    pub rows: Box<dyn Iterator<Item = Vec<Value>> + 'a>,
    /// What holds for all rows, by name: no figure means anything without it.
    pub about: Vec<(&'static str, String)>,
}

impl<'a> FlatTable<'a> {
    /// The runs of an experiment, in the order in which they were made: the columns are those of
    /// [`heaptoll_experiment::columns`].
    pub fn of_runs(experiment: &'a Experiment) -> FlatTable<'a> {
        let column = |(name, column): (_, &heaptoll_experiment::columns::Column)| Column {
            name,
            kind: column.kind,
            optional: column.optional,
            grows: false,
        };
        let cells = |row| exported().map(|(_, column)| column.cell(experiment, row)).collect();
        FlatTable {
            row: "observation",
            columns: exported().map(column).collect(),
            rows: Box::new(experiment.observations.iter().map(cells)),
            about: vec![
                ("version", experiment.heaptoll_version.clone()),
                ("baseline", experiment.baseline.clone()),
                ("machine", json(&experiment.machine)),
                ("settings", json(&experiment.settings)),
            ],
        }
    }

    /// The facts of a command's result: a row a repetition of what was measured by repetitions, a row of any other.
    pub fn of_facts(command: &str, facts: &'a Facts) -> FlatTable<'a> {
        FlatTable {
            row: "fact",
            columns: FACTS.to_vec(),
            rows: Box::new(facts.measured.iter().flat_map(rows)),
            about: vec![("command", command.into())],
        }
    }
}

/// A value as what holds for all rows has it.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The rows of a fact.
fn rows(fact: &Fact) -> Vec<Vec<Value>> {
    let row = |basis: &str, repetition: Option<u32>, [value, low, high]: [Option<f64>; 3]| {
        let [program, manager, metric] = [&fact.program, &fact.manager, &fact.metric].map(Cell::value);
        let numbers = [value, low, high].map(|number| number.value());
        let place = [fact.at.value(), Value::Text(basis.to_owned()), repetition.value()];
        [program, manager, metric].into_iter().chain(place).chain(numbers).collect()
    };
    match &fact.value {
        facts::Value::Samples(samples) => {
            (0..).zip(samples).map(|(at, sample)| row("sample", Some(at), [*sample, None, None])).collect()
        }
        facts::Value::Exact(value) => vec![row("exact", None, [Some(*value), None, None])],
        facts::Value::Estimate { value, low, high } => {
            vec![row("estimate", None, [Some(*value), Some(*low), Some(*high)])]
        }
        facts::Value::Single(value) => vec![row("single", None, [Some(*value), None, None])],
        facts::Value::AtLeast(bound) => vec![row("at_least", None, [None, Some(*bound), None])],
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A fact of each kind.
    pub(crate) fn facts() -> Facts {
        let mut facts = Facts::default();
        let mut writer = facts.of("cfrac", "lea");
        writer.put("cpu_s", None, facts::Value::Samples(vec![Some(0.5), None, Some(0.25)]));
        writer.put("misses", Some(65536.0), facts::Value::Exact(7.0));
        writer.put("cpu_ratio", None, facts::Value::Estimate { value: 1.5, low: 1.25, high: 2.0 });
        writer.put("near_us", None, facts::Value::Single(3.0));
        writer.put("cpu_s", Some(2.0), facts::Value::AtLeast(60.0));
        facts
    }

    #[test]
    fn each_value_of_a_fact_has_its_row_and_a_failed_repetition_an_empty_cell() {
        let facts = facts();
        let table = FlatTable::of_facts("run", &facts);
        let rows: Vec<Vec<Value>> = table.rows.collect();
        let real = |value: Option<f64>| value.value();
        let tails: Vec<&[Value]> = rows.iter().map(|row| &row[5..]).collect();
        let none = Value::Missing;
        let sample = |at: i64, value| [Value::Integer(at), real(value), none.clone(), none.clone()];
        assert_eq!(tails[..3], [sample(0, Some(0.5)), sample(1, None), sample(2, Some(0.25))]);
        assert_eq!(
            rows[3][3..7],
            [Value::Real(65536.0), Value::Text("exact".into()), none.clone(), Value::Real(7.0)]
        );
        assert_eq!(tails[4], [none.clone(), Value::Real(1.5), Value::Real(1.25), Value::Real(2.0)]);
        assert_eq!(tails[6], [none.clone(), none.clone(), Value::Real(60.0), none.clone()]);
    }

    #[test]
    fn every_cell_has_the_kind_of_its_column() {
        use crate::testing::{Shape, experiment};
        let all = [Shape::Server, Shape::Suite, Shape::Troubled].map(|shape| experiment(shape).0);
        assert!(all[1].observations.iter().any(|row| row.exact.is_some() && row.locality.is_some()));
        let facts = facts();
        for table in all.iter().map(FlatTable::of_runs).chain([FlatTable::of_facts("run", &facts)]) {
            for (cell, column) in
                table.rows.flat_map(|row| row.into_iter().zip(&table.columns).collect::<Vec<_>>())
            {
                let fits = match cell {
                    Value::Missing => column.optional,
                    Value::Integer(_) => column.kind == ColumnType::Integer,
                    Value::Real(_) => column.kind == ColumnType::Real,
                    Value::Text(_) => column.kind == ColumnType::Text,
                };
                assert!(fits, "{}", column.name);
            }
        }
    }
}
