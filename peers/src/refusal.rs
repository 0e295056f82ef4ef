//! Why a manager is not built. Each message states what happened, to what, and what to do next.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Nothing of a recipe can be built.
#[derive(Debug, Error)]
pub enum RecipeError {
    /// A file of the recipe cannot be read.
    #[error("cannot read {}: {source}; give a folder with recipe.toml and files.sha256", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The recipe makes no sense.
    #[error("{}: {problem}", file.display())]
    Recipe {
        /// The file of the recipe.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no compiler of C as these programs are written in.
    #[error("{compiler} compiles no {what} ({problem}); install gcc, or set CC to {remedy}")]
    Compiler {
        /// The command.
        compiler: String,
        /// The dialect of C.
        what: &'static str,
        /// Which compiler would do.
        remedy: &'static str,
        /// Its first message.
        problem: String,
    },
    /// A folder that programs are kept in cannot be made.
    #[error("cannot write below {}: {source}; set XDG_DATA_HOME to a folder that can be written to", path.display())]
    Write {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// One object, or one program, cannot be built. The others can.
#[derive(Debug, Error)]
pub enum Refusal {
    /// A file is not there.
    #[error("{path} is missing; fetch the tree again")]
    Missing {
        /// From the repository's top.
        path: String,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// From the repository's top.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A file is another than the one whose counts are known.
    #[error(
        "{path} is another file than the recipe's (SHA-256 {found}, not {expected}); use the commit that it names"
    )]
    Digest {
        /// From the repository's top.
        path: String,
        /// Of the file.
        found: String,
        /// Of the recipe's.
        expected: String,
    },
    /// Cargo has no crate with the sources.
    #[error("the crate {name} is not in the dependency list; add it to the Cargo.toml of heaptoll-peers")]
    NoCrate {
        /// The crate.
        name: String,
    },
    /// A package is not installed.
    #[error("its library is not here; apt-get install {package}")]
    NoPackage {
        /// Debian's.
        package: String,
    },
    /// Sources are not as the recipe expects.
    #[error("{what} is not in {}: the layout has changed, the recipe must follow", path.display())]
    Layout {
        /// What was sought.
        what: String,
        /// Where.
        path: PathBuf,
    },
    /// There is no compiler of C++.
    #[error("it is C++, and no compiler of that works ({problem}); install g++, or set CXX")]
    Cxx {
        /// The first message.
        problem: String,
    },
    /// The compiler or the linker refuses the form.
    #[error("it does not build: {problem}")]
    Build {
        /// The first message.
        problem: String,
    },
    /// What was built is no manager.
    #[error(
        "it was built, but does not serve as a manager: {problem}; a C file of the recipe may supply what it lacks \
         (own_sources)"
    )]
    NoManager {
        /// What does not hold.
        problem: String,
    },
    /// The system refuses something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// Why.
        source: io::Error,
    },
}

impl Refusal {
    /// For `map_err`: what the system refused.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Refusal {
        move |source| Refusal::System { what: what.into(), source }
    }
}
