//! Self-contained pages: charts and tables, for paper, phones and the dark.

pub mod book;
mod chart_registry;
pub mod document;
mod drawing;
mod engine;
mod palette;
mod sparkline;
mod table;
mod views;
