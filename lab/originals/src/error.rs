//! Why a program of others is not added. Each message states what happened, to what, and what to do next.

use std::io;
use std::path::PathBuf;

use heaptoll_peers::RecipeError;
use thiserror::Error;

/// Nothing at all can be added.
#[derive(Debug, Error)]
pub enum OriginalsError {
    /// The recipe, the compiler or the folder of what is added is not as it must be.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// Git cannot bring the sources.
    #[error(
        "cannot fetch {from}: {problem}; check the network, or give a clone, a bare repository or a folder that is here \
         by --from"
    )]
    Fetch {
        /// The repository.
        from: String,
        /// What git reports.
        problem: String,
    },
    /// A repository on this machine has its objects in others, which may be another user's.
    #[error("{from} takes objects from other repositories ({}); give a clone that has them all (git clone --no-local)", others.display())]
    Borrowed {
        /// The repository.
        from: String,
        /// The file that names them.
        others: PathBuf,
    },
    /// The folder given by `--from` has none of the sources.
    #[error("{} has none of the folders of {name} ({example}, ...); give the top of the repository", folder.display())]
    Elsewhere {
        /// The folder.
        folder: PathBuf,
        /// The recipe.
        name: String,
        /// One of the folders that it would have.
        example: String,
    },
    /// The recipe refuses the sources.
    #[error("{name}: {refusal}")]
    Sources {
        /// The recipe.
        name: String,
        /// What is wrong with them.
        refusal: Box<heaptoll_peers::Refusal>,
    },
    /// Several repositories are needed, and `--from` does not name a folder that has them.
    #[error("{name} has several repositories: {from} is not a folder with {} in folders of these names", folders.join(" and "))]
    Several {
        /// The recipe.
        name: String,
        /// As given.
        from: String,
        /// What is needed, by name.
        folders: Vec<String>,
    },
}

/// One program, or one form of it, cannot be added. The others can.
#[derive(Debug, Error)]
pub enum Refusal {
    /// Its sources are not the recipe's, or do not build.
    #[error(transparent)]
    Build(#[from] heaptoll_peers::Refusal),
    /// A change does not fit.
    #[error("line {line} of {file} is not the line to be changed; correct the recipe")]
    Change {
        /// From the repository's top.
        file: String,
        /// Counted from 1.
        line: usize,
    },
    /// The program does not end as it should.
    #[error("it was built, but its run {problem}")]
    Run {
        /// How it ended.
        problem: String,
    },
    /// Other output.
    #[error("it was built, but prints something else (SHA-256 {found}, not {expected})")]
    Output {
        /// Of standard output.
        found: String,
        /// Of the recipe's.
        expected: String,
    },
    /// Other counts.
    #[error(
        "it was built and prints what it should, but makes {found} {what}, not {expected}: more than 1 % off, as when a \
         function is not declared"
    )]
    Counts {
        /// Which calls.
        what: &'static str,
        /// Counted.
        found: u64,
        /// The recipe's.
        expected: u64,
    },
    /// Fewer calls than any run makes.
    #[error("it was built and prints what it should, but makes {found} {what}, where {least} is the least")]
    TooFew {
        /// Which calls.
        what: &'static str,
        /// Counted.
        found: u64,
        /// The recipe's.
        least: u64,
    },
}

impl Refusal {
    /// For `map_err`: what the system refused.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Refusal {
        move |source| heaptoll_peers::Refusal::system(what)(source).into()
    }
}
