//! Tables for a terminal: an experiment, two experiments side by side, the managers and the programs there are.

mod catalog;
mod document;
mod exact;
mod experiment;
mod fit;
mod pair;
mod ratio;
mod style;

pub use catalog::{
    LayerRow, ManagerRow, ProgramRow, layers_table, managers_table, options_table, programs_table,
};
pub use document::render_document;
pub(crate) use experiment::overall_verdict;
pub use experiment::{Extras, render};
pub use pair::{PairRow, render_pair};
pub use style::Style;
