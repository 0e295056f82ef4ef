//! Why a word of the command line gives no manager.

use thiserror::Error;

use super::order::LABORATORY;
use crate::laboratory;
use crate::stack::StackError;

/// For names of what comes with the laboratory; only some commands know Java's collectors, whether it is there or not.
fn laboratory_hint(name: &str) -> String {
    let (what, comes) = if name.starts_with("jvm") {
        let what = "Java's collectors (`jvm`, `jvm-g1`, ...) are for commands that run a whole program: run, minheap, \
                    proximity. ";
        (what, if laboratory::path().is_some() { None } else { Some("They come") })
    } else {
        let is_its = ["historic", "oracle"].contains(&name) || LABORATORY.contains(&name);
        ("", is_its.then_some("It comes"))
    };
    let how = comes.map(|comes| format!("{comes} with the laboratory: {}. ", laboratory::GET));
    format!("{what}{}", how.unwrap_or_default())
}

/// A manager that cannot be had.
#[derive(Debug, Error)]
pub enum ManagerError {
    /// Neither a known name nor a path.
    #[error(
        "there is no manager `{name}`{suggestion}{} {}Known here: {known}. Groups: modern, historic, collectors, \
         added, all. Name a shared object of your own by its path (with a `/`); `heaptoll \
         managers add --help` lists allocators that it builds",
        if .suggestion.is_empty() { "." } else { "" },
        laboratory_hint(.name)
    )]
    Unknown {
        /// What was requested.
        name: String,
        /// The nearest name, as the sentence goes on with it, or nothing.
        suggestion: String,
        /// Names that exist.
        known: String,
    },
    /// Layers or options that do not fit.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// What stands in front of a `/` is neither a layer nor a folder.
    #[error(
        "there is no layer `{name}`{suggestion}; layers are {known} (`heaptoll managers`). {}A manager's path begins with \
         ./ or /",
        laboratory_hint(.name)
    )]
    NoLayer {
        /// As given.
        name: String,
        /// The nearest name, as the sentence goes on with it, or nothing.
        suggestion: String,
        /// Those there are.
        known: String,
    },
    /// A path without a file.
    #[error("manager {path}: {reason}")]
    NoFile {
        /// The path.
        path: String,
        /// The system's error.
        reason: String,
    },
    /// The description of an added manager that cannot be read.
    #[error("{path}: {reason}; add that manager again (`heaptoll managers add`), or remove the file")]
    Added {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A built manager's description that cannot be read.
    #[error("{path}: {reason}; run `make build` again")]
    Description {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}
