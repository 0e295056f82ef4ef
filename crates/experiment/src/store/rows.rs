//! Rows of observations in the file, by the names of their columns: figures of every run in columns of their own, those
//! of some kinds of runs as JSON.

use std::sync::LazyLock;

use rusqlite::types::Value as SqlValue;
use rusqlite::{Row, params_from_iter};

use super::error::StoreError;
use super::file::ExperimentFile;
use crate::cell::{CellError, ColumnType, Value};
use crate::columns::{Column, stored};
use crate::observation::Observation;

/// Appends a row to the table.
static INSERT: LazyLock<String> = LazyLock::new(|| {
    let names: Vec<&str> = stored().map(|(_, stored)| stored.name).collect();
    let places = vec!["?"; names.len()].join(", ");
    format!("INSERT INTO observation ({}) VALUES ({places})", names.join(", "))
});

/// Appends one row; on disk when this returns.
///
/// # Errors
/// The file cannot be written.
pub(super) fn append(file: &ExperimentFile, row: &Observation) -> Result<(), StoreError> {
    let cells = stored().map(|(column, _)| sql_value((column.get)(row)));
    file.connection.execute(&INSERT, params_from_iter(cells)).map(drop).map_err(|cause| file.error(cause))
}

pub(super) fn sql_value(cell: Value) -> SqlValue {
    match cell {
        Value::Missing => SqlValue::Null,
        Value::Integer(value) => SqlValue::Integer(value),
        Value::Real(value) => SqlValue::Real(value),
        Value::Text(value) => SqlValue::Text(value),
    }
}

/// Every row, in the order of the runs; those of one program, where it is named.
///
/// # Errors
/// The file cannot be read, or a value does not parse.
pub(super) fn read(file: &ExperimentFile, program: Option<&str>) -> Result<Vec<Observation>, StoreError> {
    let mut columns = Vec::new();
    for (column, stored) in stored() {
        let lacking = column.optional && !file.has_column("observation", stored.name)?;
        columns.push(if lacking { "NULL" } else { stored.name });
    }
    let of_program = if program.is_some() { " WHERE program = ?1" } else { "" };
    let select = format!("SELECT {} FROM observation{of_program} ORDER BY position", columns.join(", "));
    let error = |cause| file.error(cause);
    let mut statement = file.connection.prepare(&select).map_err(error)?;
    let mut rows = statement.query(params_from_iter(program)).map_err(error)?;
    let mut observations = Vec::new();
    while let Some(row) = rows.next().map_err(error)? {
        let mut observation = Observation::default();
        for (index, (column, stored)) in stored().enumerate() {
            let cell = cell(row, index, column).map_err(error)?;
            (stored.set)(&mut observation, cell)
                .map_err(|error: CellError| file.damaged(&format!("a row: {error}")))?;
        }
        observations.push(observation);
    }
    Ok(observations)
}

fn cell(row: &Row, index: usize, column: &Column) -> rusqlite::Result<Value> {
    let cell = match column.kind {
        ColumnType::Integer => row.get::<_, Option<i64>>(index)?.map(Value::Integer),
        ColumnType::Real => row.get::<_, Option<f64>>(index)?.map(Value::Real),
        ColumnType::Text => row.get::<_, Option<String>>(index)?.map(Value::Text),
    };
    Ok(cell.unwrap_or(Value::Missing))
}
