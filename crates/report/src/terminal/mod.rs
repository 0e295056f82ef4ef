//! Documents for a terminal.

mod catalog;
mod document;
mod fit;
mod style;
mod table;

pub use catalog::{
    LayerRow, ManagerRow, OptionsRow, ProgramRow, layers_table, managers_table, options_table, programs_table,
};
pub use document::render_document;
pub use style::Style;
