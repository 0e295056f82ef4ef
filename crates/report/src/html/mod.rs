//! Self-contained pages: charts and tables, for paper, phones and the dark.

mod chart_registry;
pub mod document;
mod drawing;
mod flame;
mod items;
mod mosaic;
mod palette;
mod sparkline;
mod table;
mod views;
