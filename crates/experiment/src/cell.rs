//! One value of an observation in a flat table: how a figure becomes one, and is read from one.

use std::collections::BTreeMap;

use serde::Serialize;
use thiserror::Error;

use crate::observation::{Collections, ExactFigures, LocalityFigures, Outcome, Phase, ServeFigures};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Signed 64-bit integer.
    Integer,
    /// 64-bit floating point.
    Real,
    /// UTF-8 text.
    Text,
}

/// One cell; `Missing` only in columns that are optional.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Not measured, or not a thing of this row.
    Missing,
    /// An integer.
    Integer(i64),
    /// A real.
    Real(f64),
    /// Text.
    Text(String),
}

/// Why a cell is not a value of its figure.
#[derive(Debug, Error)]
pub enum CellError {
    /// It is missing, or of another type.
    #[error("{0:?} has the wrong type of value")]
    Type(Value),
    /// An integer that its figure cannot be.
    #[error("{0} is out of range")]
    Range(i64),
    /// JSON of another figure, or none.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// A figure that one cell can hold.
pub trait Cell: Sized {
    /// The type of its column.
    const KIND: ColumnType;
    /// Whether its cell may be missing.
    const OPTIONAL: bool = false;

    /// Its cell.
    fn value(&self) -> Value;

    /// The figure that [`Cell::value`] gave this cell.
    ///
    /// # Errors
    /// No figure of this type has such a cell.
    fn of(value: Value) -> Result<Self, CellError>;
}

impl Cell for u64 {
    const KIND: ColumnType = ColumnType::Integer;

    /// Counts are far below 2^63; one that is not is pinned there.
    fn value(&self) -> Value {
        Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
    }

    fn of(value: Value) -> Result<u64, CellError> {
        match value {
            Value::Integer(count) => Ok(count.max(0) as u64),
            other => Err(CellError::Type(other)),
        }
    }
}

impl Cell for u32 {
    const KIND: ColumnType = ColumnType::Integer;

    fn value(&self) -> Value {
        Value::Integer((*self).into())
    }

    fn of(value: Value) -> Result<u32, CellError> {
        match value {
            Value::Integer(count) => u32::try_from(count).map_err(|_| CellError::Range(count)),
            other => Err(CellError::Type(other)),
        }
    }
}

impl Cell for f64 {
    const KIND: ColumnType = ColumnType::Real;

    fn value(&self) -> Value {
        Value::Real(*self)
    }

    fn of(value: Value) -> Result<f64, CellError> {
        match value {
            Value::Real(figure) => Ok(figure),
            other => Err(CellError::Type(other)),
        }
    }
}

impl Cell for String {
    const KIND: ColumnType = ColumnType::Text;

    fn value(&self) -> Value {
        Value::Text(self.clone())
    }

    fn of(value: Value) -> Result<String, CellError> {
        match value {
            Value::Text(text) => Ok(text),
            other => Err(CellError::Type(other)),
        }
    }
}

impl<T: Cell> Cell for Option<T> {
    const KIND: ColumnType = T::KIND;
    const OPTIONAL: bool = true;

    fn value(&self) -> Value {
        self.as_ref().map_or(Value::Missing, T::value)
    }

    fn of(value: Value) -> Result<Option<T>, CellError> {
        if value == Value::Missing { Ok(None) } else { T::of(value).map(Some) }
    }
}

/// Names and numbers cannot fail to encode; were they to, the cell is missing and the row is not lost.
pub(crate) fn json(value: &impl Serialize) -> Value {
    serde_json::to_string(value).map_or(Value::Missing, Value::Text)
}

/// Figures that one cell holds as JSON.
macro_rules! json_cells {
    ($($figures:ty),+) => {$(
        impl Cell for $figures {
            const KIND: ColumnType = ColumnType::Text;

            fn value(&self) -> Value {
                json(self)
            }

            fn of(value: Value) -> Result<Self, CellError> {
                Ok(serde_json::from_str(&String::of(value)?)?)
            }
        }
    )+};
}

json_cells!(Outcome, ServeFigures, Collections, ExactFigures, LocalityFigures);

impl Cell for Phase {
    const KIND: ColumnType = ColumnType::Text;

    /// Plain text for those who query the file: `phase = 'timed'`.
    fn value(&self) -> Value {
        Value::Text(self.name())
    }

    fn of(value: Value) -> Result<Phase, CellError> {
        // Quoted in the first files, as JSON.
        Ok(serde_json::from_value(String::of(value)?.trim_matches('"').into())?)
    }
}

/// Figures by name, as JSON; missing where there are none.
impl Cell for BTreeMap<String, f64> {
    const KIND: ColumnType = ColumnType::Text;
    const OPTIONAL: bool = true;

    fn value(&self) -> Value {
        if self.is_empty() { Value::Missing } else { json(self) }
    }

    fn of(value: Value) -> Result<Self, CellError> {
        let text = Option::<String>::of(value)?;
        Ok(text.map(|text| serde_json::from_str(&text)).transpose()?.unwrap_or_default())
    }
}
