//! The recipe of managers that one tree, or several trees together, give.
//!
//! A recipe is a folder: `recipe.toml`, `files.sha256` (as `sha256sum` writes it, by path below a folder in which each
//! repository has a folder of its name), and C files of ours.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::OriginalsError;
use crate::fetch::Wanted;
use crate::manifest::Manifest;
use crate::path::inside;

/// The folder, next to the recipes', with C files of ours that several link.
const SHARED: &str = "common";

/// A recipe that has been read and checked.
#[derive(Debug, Clone)]
pub struct ManagerRecipe {
    folder: PathBuf,
    pub(crate) table: ManagerTable,
    pub(crate) manifest: Manifest,
}

/// `recipe.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ManagerTable {
    /// What the user types.
    pub name: String,
    /// The allocator's own version at these commits.
    pub version: String,
    /// The licences, in a line.
    pub licence: String,
    pub repositories: Vec<Repository>,
    /// What is compiled, from the folder above the repositories'; its language by its ending.
    pub sources: Vec<String>,
    /// C files of the recipe's own, or of the folder `common` next to it.
    #[serde(default)]
    pub own_sources: Vec<String>,
    /// Folders for headers.
    #[serde(default)]
    pub includes: Vec<String>,
    /// Of the compilers of C and C++, for sources of others.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Of the compiler of C alone.
    #[serde(default)]
    pub c_flags: Vec<String>,
    /// Of the compiler of C++ alone.
    #[serde(default)]
    pub cxx_flags: Vec<String>,
    /// Of the linker, after the objects.
    #[serde(default)]
    pub link: Vec<String>,
    /// Whether `calloc` detects that its product overflows, as C requires.
    #[serde(default = "yes")]
    pub checks_overflow: bool,
    /// By the name for `-m`.
    pub managers: BTreeMap<String, Variant>,
}

fn yes() -> bool {
    true
}

/// A repository that has sources.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Repository {
    /// Its folder's name.
    pub name: String,
    pub url: String,
    /// The commit whose files the manifest describes.
    pub commit: String,
    /// Folders and files of it that are needed.
    pub paths: Vec<String>,
    /// The files with its licence.
    pub licence_files: Vec<String>,
}

/// One manager.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    /// A line about it, which states what of it is ours.
    pub about: String,
    #[serde(default)]
    pub flags: Vec<String>,
    /// Set for each program that runs under it.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

impl Repository {
    /// For git.
    pub(crate) fn wanted(&self) -> Wanted<'_> {
        let paths = self.paths.iter().map(String::as_str).collect();
        Wanted { name: &self.name, url: &self.url, commit: &self.commit, paths }
    }
}

impl ManagerRecipe {
    /// Reads the recipe in a folder.
    ///
    /// # Errors
    /// A file that is missing, is no TOML, or names what is not there.
    pub fn load(folder: &Path) -> Result<ManagerRecipe, OriginalsError> {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|source| OriginalsError::Read { path, source })
        };
        let wrong = |file: &str, problem: String| OriginalsError::Recipe { file: folder.join(file), problem };
        let table: ManagerTable =
            toml::from_str(&read("recipe.toml")?).map_err(|error| wrong("recipe.toml", error.to_string()))?;
        let manifest =
            Manifest::parse(&read("files.sha256")?).map_err(|problem| wrong("files.sha256", problem))?;
        check(&table, &manifest).map_err(|problem| wrong("recipe.toml", problem))?;
        Ok(ManagerRecipe { folder, table, manifest })
    }

    /// What the user types.
    pub fn name(&self) -> &str {
        &self.table.name
    }

    /// The licences, in a line.
    pub fn licence(&self) -> &str {
        &self.table.licence
    }

    /// The managers that it gives, by the names for `-m`.
    pub fn managers(&self) -> impl Iterator<Item = &str> {
        self.table.managers.keys().map(String::as_str)
    }

    /// Whether `calloc` of these managers detects overflow.
    pub fn checks_overflow(&self) -> bool {
        self.table.checks_overflow
    }

    /// A file of the recipe's own, or one of those that recipes share.
    pub(crate) fn own_file(&self, name: &str) -> PathBuf {
        let own = self.folder.join(name);
        if own.is_file() { own } else { self.folder.with_file_name(SHARED).join(name) }
    }
}

fn check(table: &ManagerTable, manifest: &Manifest) -> Result<(), String> {
    for name in table.managers.keys().chain([&table.name]) {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!("`{name}` is not a name: use lower-case letters, digits, `-` and `_`"));
        }
    }
    if table.repositories.is_empty() || table.managers.is_empty() || table.sources.is_empty() {
        return Err("it needs a repository, a source and a manager".into());
    }
    let mut files: Vec<String> = table.sources.clone();
    for repository in &table.repositories {
        inside(&repository.name)?;
        if repository.name.contains('/') || repository.paths.is_empty() || repository.licence_files.is_empty()
        {
            return Err(format!("repository `{}` needs a name, paths and its licence", repository.name));
        }
        repository.paths.iter().try_for_each(|path| inside(path))?;
        files.extend(repository.licence_files.iter().map(|file| format!("{}/{file}", repository.name)));
    }
    table.own_sources.iter().chain(&table.includes).try_for_each(|path| inside(path))?;
    match files.iter().find(|path| !manifest.has(path)) {
        Some(path) => Err(format!("{path} has no line in files.sha256")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "name = 'one'\nversion = '1'\nlicence = 'MIT'\nsources = ['tree/a.c']\n\
                         [[repositories]]\nname = 'tree'\nurl = 'u'\ncommit = 'c'\npaths = ['a.c']\n\
                         licence_files = ['LICENSE']\n[managers.one]\nabout = 'a'\n";

    fn loaded(text: &str) -> Result<ManagerRecipe, String> {
        let folder = tempfile::tempdir().expect("made");
        let line = |path: &str| format!("{}  {path}\n", "0".repeat(64));
        fs::write(folder.path().join("files.sha256"), line("tree/a.c") + &line("tree/LICENSE"))
            .expect("written");
        fs::write(folder.path().join("recipe.toml"), text).expect("written");
        ManagerRecipe::load(folder.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_recipe_names_its_managers_and_needs_a_digest_of_each_file() {
        let whole = loaded(WHOLE).expect("a recipe");
        assert_eq!((whole.name(), whole.managers().collect::<Vec<_>>()), ("one", vec!["one"]));
        for (from, to, words) in [
            ("tree/a.c", "tree/b.c", "tree/b.c has no line"),
            ("'LICENSE'", "'COPYING'", "tree/COPYING has no line"),
            ("['LICENSE']", "[]", "its licence"),
            ("['a.c']", "['../a.c']", "not a path below"),
            ("[managers.one]", "[managers.'o/ne']", "is not a name"),
            ("about", "abuot", "abuot"),
        ] {
            let error = loaded(&WHOLE.replacen(from, to, 1)).expect_err(to);
            assert!(error.contains("recipe.toml") && error.contains(words), "{to}: {error}");
        }
    }

    /// Those that heaptoll brings.
    #[test]
    fn the_recipes_can_be_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../managers");
        for entry in fs::read_dir(folder).expect("the recipes") {
            let entry = entry.expect("an entry");
            if entry.file_name() == SHARED {
                continue;
            }
            let recipe = ManagerRecipe::load(&entry.path()).expect("a recipe");
            assert_eq!(entry.file_name().to_str(), Some(recipe.name()));
            for own in &recipe.table.own_sources {
                assert!(recipe.own_file(own).is_file(), "{}: {own}", recipe.name());
            }
            for repository in &recipe.table.repositories {
                assert_eq!(repository.commit.len(), 40, "{}", repository.name);
            }
        }
    }
}
