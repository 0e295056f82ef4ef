//! The laboratory: plan an experiment, execute its cells, measure them, store rows, compare them.

pub mod comparison;
pub mod experiment;
pub mod observation;
