//! Rows of observations in the file, by the names of their columns: figures of every run in columns of their own, those
//! of some kinds of runs as JSON.

use rusqlite::types::Value as SqlValue;
use rusqlite::{Row, params_from_iter};

use super::error::StoreError;
use super::file::ExperimentFile;
use crate::cell::{CellError, ColumnType, Value};
use crate::columns::{Column, stored};
use crate::observation::Observation;

/// Appends one row; on disk when this returns.
///
/// # Errors
/// The file cannot be written.
pub(super) fn append(file: &ExperimentFile, row: &Observation) -> Result<(), StoreError> {
    let (names, cells): (Vec<_>, Vec<_>) =
        stored().map(|(column, stored)| (stored.name, sql_value((column.get)(row)))).unzip();
    let insert = format!(
        "INSERT INTO observation ({}) VALUES ({})",
        names.join(", "),
        vec!["?"; names.len()].join(", ")
    );
    file.connection.execute(&insert, params_from_iter(cells)).map(drop).map_err(|cause| file.error(cause))
}

fn sql_value(cell: Value) -> SqlValue {
    match cell {
        Value::Missing => SqlValue::Null,
        Value::Integer(value) => SqlValue::Integer(value),
        Value::Real(value) => SqlValue::Real(value),
        Value::Text(value) => SqlValue::Text(value),
    }
}

/// Every row, in the order of the runs.
///
/// # Errors
/// The file cannot be read, or a value does not parse.
pub(super) fn read(file: &ExperimentFile) -> Result<Vec<Observation>, StoreError> {
    let mut columns = Vec::new();
    for (column, stored) in stored() {
        let lacking = column.optional && !file.has_column("observation", stored.name)?;
        columns.push(if lacking { "NULL" } else { stored.name });
    }
    let select = format!("SELECT {} FROM observation ORDER BY position", columns.join(", "));
    let read = || -> rusqlite::Result<Vec<Vec<Value>>> {
        let mut statement = file.connection.prepare(&select)?;
        let rows = statement.query_map([], |row| {
            stored().enumerate().map(|(index, (column, _))| cell(row, index, column)).collect()
        })?;
        rows.collect()
    };
    let rows = read().map_err(|cause| file.error(cause))?;
    let damaged = |error: CellError| file.damaged(&format!("a row: {error}"));
    rows.into_iter().map(|cells| observation(cells).map_err(damaged)).collect()
}

fn cell(row: &Row, index: usize, column: &Column) -> rusqlite::Result<Value> {
    let cell = match column.kind {
        ColumnType::Integer => row.get::<_, Option<i64>>(index)?.map(Value::Integer),
        ColumnType::Real => row.get::<_, Option<f64>>(index)?.map(Value::Real),
        ColumnType::Text => row.get::<_, Option<String>>(index)?.map(Value::Text),
    };
    Ok(cell.unwrap_or(Value::Missing))
}

fn observation(cells: Vec<Value>) -> Result<Observation, CellError> {
    let mut row = Observation::default();
    for ((_, stored), cell) in stored().zip(cells) {
        (stored.set)(&mut row, cell)?;
    }
    Ok(row)
}
