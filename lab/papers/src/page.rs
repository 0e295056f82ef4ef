//! A study's results as the terminal and a page show them.

pub mod book;
mod brackets;
mod claims;
mod exhibits;
mod front;
pub mod list;
mod paper;
mod paper_section;
mod standing;
mod steps;
mod summary;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use heaptoll_report::document::{Item, Part};

/// What is unfolded on demand.
fn folded(title: impl Into<String>, text: Vec<String>, items: Vec<Item>) -> Item {
    Item::Part(Part { title: title.into(), text, items, folded: true, ..Part::default() })
}
