//! Why a program of others is not added. Each message states what happened, to what, and what to do next.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Nothing at all can be added.
#[derive(Debug, Error)]
pub enum OriginalsError {
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
    /// The sources are not those of the recipe.
    #[error("{name}: {refusal}")]
    Sources {
        /// The recipe.
        name: String,
        /// What is wrong with them.
        refusal: Box<Refusal>,
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

/// One program, or one form of it, cannot be added. The others can.
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
    /// A change does not fit.
    #[error("line {line} of {file} is not the line to be changed; correct the recipe")]
    Change {
        /// From the repository's top.
        file: String,
        /// Counted from 1.
        line: usize,
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
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Refusal {
        move |source| Refusal::System { what: what.into(), source }
    }
}
