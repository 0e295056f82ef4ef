//! The recipe of a set of programs: what is fetched, how each form is built, and what proves it.
//!
//! A recipe is a folder: `recipe.toml`, `files.sha256` (as `sha256sum` writes it, by path in the repository), and C
//! files of ours that a form links.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use heaptoll_catalog::Varying;
use heaptoll_peers::RecipeError;
use heaptoll_peers::compiler::{Dialect, is_cxx};
use heaptoll_peers::manifest::Manifest;
use heaptoll_peers::path::inside;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A recipe that has been read and checked.
#[derive(Debug, Clone)]
pub struct Recipe {
    folder: PathBuf,
    pub(crate) table: Table,
    pub(crate) manifest: Manifest,
}

/// `recipe.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// What the user types, and the folder that keeps the programs.
    pub name: String,
    /// The repository that has them.
    pub url: String,
    /// Its commit whose files the manifest describes.
    pub commit: String,
    /// Flags of the compilers for every program.
    pub flags: Vec<String>,
    /// What the C compiler is tried with.
    #[serde(default)]
    pub dialect: Dialect,
    /// By the name that a user knows each by.
    pub programs: BTreeMap<String, Program>,
}

/// One program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    /// The licence and what it forbids, in a line.
    pub licence: String,
    /// Folders of the repository that it needs; its sources are in the first.
    pub folders: Vec<String>,
    /// Its C files, and those in C++ (`.cpp`), in the first folder.
    pub sources: Vec<String>,
    /// C files of the recipe's own that every form links.
    #[serde(default)]
    pub own_sources: Vec<String>,
    #[serde(default)]
    pub flags: Vec<String>,
    /// Of the linker.
    #[serde(default)]
    pub libraries: Vec<String>,
    /// Declarations that its sources lack, of which each source gets all.
    #[serde(default)]
    pub declarations: String,
    /// Files to make, for what the repository has left out; paths as they are below the program's folder.
    #[serde(default)]
    pub makes: Vec<MadeFile>,
    #[serde(default)]
    pub changes: Vec<Change>,
    pub forms: BTreeMap<String, Form>,
}

/// An empty file that is newer than all others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MadeFile {
    pub path: String,
}

/// A change of one line, which its digest names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// A file of the program, from the repository's top.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// SHA-256 of the line without its end.
    pub digest: String,
    /// What is replaced, where it stands in the line once.
    pub find: String,
    pub put: String,
}

/// A form of a program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Form {
    #[serde(default)]
    pub flags: Vec<String>,
    #[serde(default)]
    pub own_sources: Vec<String>,
    #[serde(default)]
    pub declarations: String,
    pub proof: Proof,
}

/// A run whose output and counts are known.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Proof {
    /// `{here}` stands for the program's folder.
    pub arguments: Vec<String>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// A file for standard input, with `{here}`.
    #[serde(default)]
    pub stdin: Option<String>,
    /// SHA-256 of standard output.
    pub output: String,
    /// A regular expression for what of the output differs from run to run, which is left out of the digest.
    #[serde(default)]
    pub varies: Option<String>,
    /// Calls of malloc and calloc.
    pub objects: Count,
    /// Calls of realloc that resize a block.
    pub resizes: Count,
}

/// How often a run makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Count {
    /// So often, within a percent.
    Known(u64),
    /// So often or more: it depends on how threads take turns, or on how long it runs.
    AtLeast {
        /// The fewest.
        least: u64,
    },
}

impl Recipe {
    /// Reads the recipe in a folder.
    ///
    /// # Errors
    /// A file that is missing, is no TOML, or names what is not there.
    pub fn load(folder: &Path) -> Result<Recipe, RecipeError> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|source| RecipeError::Read { path, source })
        };
        let wrong = |file: &str, problem: String| RecipeError::Recipe { file: folder.join(file), problem };
        let table: Table =
            toml::from_str(&read("recipe.toml")?).map_err(|error| wrong("recipe.toml", error.to_string()))?;
        let manifest =
            Manifest::parse(&read("files.sha256")?).map_err(|problem| wrong("files.sha256", problem))?;
        let recipe = Recipe { folder: folder.to_owned(), table, manifest };
        recipe.check().map_err(|problem| wrong("recipe.toml", problem))?;
        Ok(recipe)
    }

    /// What the user types.
    pub fn name(&self) -> &str {
        &self.table.name
    }

    /// The repository that has the programs.
    pub fn url(&self) -> &str {
        &self.table.url
    }

    /// A file of the recipe's own.
    pub(crate) fn own_file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Every folder of the repository that any program needs, each once.
    pub(crate) fn folders(&self) -> Vec<&str> {
        let mut folders: Vec<&str> = self
            .table
            .programs
            .values()
            .flat_map(|program| program.folders.iter().map(String::as_str))
            .collect();
        folders.sort_unstable();
        folders.dedup();
        folders
    }

    fn check(&self) -> Result<(), String> {
        let plain = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        if !plain(&self.table.name) {
            return Err(format!(
                "`{}` is not a name: use lower-case letters, digits and `-`",
                self.table.name
            ));
        }
        for (name, program) in &self.table.programs {
            program.check(self).map_err(|problem| format!("program `{name}`: {problem}"))?;
            if let Some(form) = program.forms.keys().chain([name]).find(|form| !plain(form)) {
                return Err(format!("`{form}` is not a name: use lower-case letters, digits and `-`"));
            }
        }
        Ok(())
    }
}

impl Program {
    /// Whether a source of it is C++, by which all is linked.
    pub(crate) fn has_cxx(&self) -> bool {
        self.sources.iter().any(|source| is_cxx(source))
    }

    /// The folder with its sources.
    pub(crate) fn home(&self) -> &str {
        self.folders.first().map_or("", String::as_str)
    }

    fn check(&self, recipe: &Recipe) -> Result<(), String> {
        if self.folders.is_empty() || self.forms.is_empty() || self.sources.is_empty() {
            return Err("it needs a folder, a source and a form".into());
        }
        let own =
            self.forms.values().any(|form| !form.own_sources.is_empty()) || !self.own_sources.is_empty();
        if self.has_cxx() && own {
            return Err("own sources are C, which no compiler of C++ links; leave them out".into());
        }
        for form in self.forms.values() {
            form.proof.varies.as_deref().map(Varying::new).transpose()?;
        }
        for path in
            self.folders.iter().map(String::as_str).chain(self.makes.iter().map(|made| made.path.as_str()))
        {
            inside(path)?;
        }
        for source in &self.sources {
            let path = format!("{}/{source}", self.home());
            recipe.manifest.has(&path).then_some(()).ok_or(format!("{path} has no line in files.sha256"))?;
        }
        for change in &self.changes {
            recipe
                .manifest
                .has(&change.file)
                .then_some(())
                .ok_or(format!("{} has no line in files.sha256", change.file))?;
        }
        Ok(())
    }
}

/// The last part of a folder's path: what it is called below the program's.
pub(crate) fn last(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or(folder)
}

/// What a recipe's file states.
pub(crate) fn read<T: DeserializeOwned>(file: &Path) -> Result<T, RecipeError> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string());
    let table = text.and_then(|text| toml::from_str(&text).map_err(|error| error.to_string()));
    table.map_err(|problem| RecipeError::Recipe { file: file.to_owned(), problem })
}
