//! Checks of the repository itself, which no compiler makes: that names and comments use the words of
//! docs/reference/glossary.md, that folders depend on each other in one direction, that no modules of a crate use each
//! other in a circle and some only those below them, that files and functions are short and all code keeps a budget, that
//! a user's sentences are short too, and that the links of the book lead somewhere.

pub mod book;
mod budget;
pub mod code;
pub mod error;
pub mod folders;
pub mod language;
mod modules;
pub mod order;
mod sentences;
mod sizes;
mod source;

pub use error::Error;

/// A place that breaks a rule: `path:line: text`.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// Relative to the repository's root.
    pub path: String,
    /// From 1; 0 for the whole file.
    pub line: usize,
    pub text: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}
