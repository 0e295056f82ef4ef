//! A study's results as the terminal and a page show them: pure, so that stored results make the same page.

pub mod book;
mod brackets;
mod exhibits;
pub mod list;
mod paper_section;
mod summary;
#[cfg(test)]
pub(crate) mod testing;
