//! Every form in which a result is shown: terminal tables, the self-contained HTML page, Markdown, JSON, CSV, Parquet.
//!
//! This crate formats and never computes a statistic: ratios, intervals and verdicts come ready in a
//! [`heaptoll_experiment::comparison::Comparison`], rows in a [`heaptoll_experiment::experiment::Experiment`].

pub mod csv;
pub mod document;
pub mod error;
pub mod experiment;
pub mod files;
pub mod flat_table;
pub mod format;
pub mod html;
pub mod json;
pub mod markdown;
#[cfg(feature = "full")]
pub mod parquet;
pub mod sweep;
pub mod terminal;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(feature = "full")]
pub mod trace_parquet;

pub use error::ReportError;
