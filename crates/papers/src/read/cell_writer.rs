//! Cells of one program under one manager.

use crate::figures::{Cell, Value};

/// Writes the cells of one program under one manager.
pub struct CellWriter<'a> {
    /// The step's id.
    pub step: &'a str,
    /// The program.
    pub program: &'a str,
    /// The manager.
    pub manager: &'a str,
    /// Where they go.
    pub cells: &'a mut Vec<Cell>,
}

impl CellWriter<'_> {
    /// A value of a metric, at a point where there are many.
    pub fn put(&mut self, metric: &str, at: Option<f64>, value: Value) {
        self.cells.push(Cell {
            step: self.step.into(),
            program: self.program.into(),
            manager: self.manager.into(),
            metric: metric.into(),
            at,
            value,
        });
    }

    /// A count that is the same on each run, where there is one.
    pub fn exact(&mut self, metric: &str, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.put(metric, None, Value::Exact(value));
        }
    }

    /// An exact value of a metric at one of many points.
    pub fn exact_at(&mut self, metric: &str, at: f64, value: f64) {
        self.put(metric, Some(at), Value::Exact(value));
    }
}
