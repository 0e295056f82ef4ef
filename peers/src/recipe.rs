//! The recipe of managers that one tree, or several trees together, give.
//!
//! A recipe is a folder: `recipe.toml`, `files.sha256` (as `sha256sum` writes it, by path below a folder in which each
//! repository has a folder of its name), and C files of ours. The recipe of a peer has no `files.sha256`: cargo and
//! Debian check their own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::RecipeError;
use crate::manifest::Manifest;
use crate::path::inside;
use crate::table::{ManagerTable, Variant};

/// The folder, next to the recipes', with C files of ours that several link.
const SHARED: &str = "common";

/// A recipe that has been read and checked.
#[derive(Debug, Clone)]
pub struct ManagerRecipe {
    folder: PathBuf,
    pub table: ManagerTable,
    pub manifest: Manifest,
}

/// An object that a recipe gives.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    /// The recipe.
    pub recipe: &'a ManagerRecipe,
    /// The manager that it is named after.
    pub name: &'a str,
    pub(crate) variant: &'a Variant,
}

impl<'a> Object<'a> {
    /// Whether a word means it: its name or a group.
    pub fn answers(&self, word: &str) -> bool {
        self.name == word || self.variant.groups.iter().any(|group| group == word)
    }

    /// A line about it.
    pub fn about(&self) -> &str {
        &self.variant.about
    }

    /// The managers that it is.
    pub(crate) fn modes(self) -> impl Iterator<Item = (&'a str, &'a Variant)> {
        let own = move |(name, variant): &(&String, &Variant)| {
            variant.object.as_ref().unwrap_or(name).as_str() == self.name
        };
        self.recipe.table.managers.iter().filter(own).map(|(name, variant)| (name.as_str(), variant))
    }
}

impl ManagerRecipe {
    /// Reads the recipe in a folder.
    ///
    /// # Errors
    /// A file that is missing, is no TOML, or names what is not there.
    pub fn load(folder: &Path) -> Result<ManagerRecipe, RecipeError> {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let text = read(&folder.join("files.sha256"))?;
        let manifest = Manifest::parse(&text)
            .map_err(|problem| RecipeError::Recipe { file: folder.join("files.sha256"), problem })?;
        ManagerRecipe::with(folder, manifest)
    }

    /// Reads the recipes of peers in the folder of all recipes.
    ///
    /// # Errors
    /// As [`ManagerRecipe::load`].
    pub fn peers(recipes: &Path) -> Result<Vec<ManagerRecipe>, RecipeError> {
        let unreadable = |source| RecipeError::Read { path: recipes.to_owned(), source };
        let entries = fs::read_dir(recipes).map_err(unreadable)?.flatten().map(|entry| entry.path());
        let is_peer =
            |folder: &PathBuf| folder.join("recipe.toml").is_file() && !folder.join("files.sha256").exists();
        let mut folders: Vec<PathBuf> = entries.filter(is_peer).collect();
        folders.sort();
        folders.into_iter().map(|folder| ManagerRecipe::with(folder, Manifest::default())).collect()
    }

    fn with(folder: PathBuf, manifest: Manifest) -> Result<ManagerRecipe, RecipeError> {
        let file = folder.join("recipe.toml");
        let text = read(&file)?;
        let table = toml::from_str::<ManagerTable>(&text).map_err(|error| error.to_string());
        let checked = table.and_then(|table| check(&table, &manifest).map(|()| table));
        let table = checked.map_err(|problem| RecipeError::Recipe { file, problem })?;
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

    /// The objects that it gives.
    pub fn objects(&self) -> impl Iterator<Item = Object<'_>> {
        let managers = self.table.managers.iter();
        let first = managers.filter(|(name, variant)| variant.object.as_ref().is_none_or(|own| own == *name));
        first.map(move |(name, variant)| Object { recipe: self, name, variant })
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The files of ours that decide what is built: its own, those that recipes share, and headers.
    pub(crate) fn inputs(&self) -> io::Result<Vec<PathBuf>> {
        let mut files: Vec<PathBuf> =
            self.table.headers.iter().map(|header| self.folder.join(header)).collect();
        for folder in [&self.folder, &self.folder.with_file_name(SHARED)] {
            files.extend(fs::read_dir(folder)?.flatten().map(|entry| entry.path()));
        }
        files.sort();
        Ok(files)
    }

    /// A file of the recipe's own, or one of those that recipes share.
    pub(crate) fn own_file(&self, name: &str) -> PathBuf {
        let own = self.folder.join(name);
        if own.is_file() { own } else { self.folder.with_file_name(SHARED).join(name) }
    }
}

fn read(path: &Path) -> Result<String, RecipeError> {
    fs::read_to_string(path).map_err(|source| RecipeError::Read { path: path.to_owned(), source })
}

fn check(table: &ManagerTable, manifest: &Manifest) -> Result<(), String> {
    for name in table.managers.keys().chain([&table.name]) {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!("`{name}` is not a name: use lower-case letters, digits, `-` and `_`"));
        }
    }
    let has_sources = !table.sources.is_empty() || table.configure.is_some();
    if table.repositories.is_empty() == table.source.is_none() || table.managers.is_empty() || !has_sources {
        return Err("it needs a repository, a source and a manager".into());
    }
    if table.source.is_some() {
        return Ok(());
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
    use crate::table::Source;

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
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../managers");
        let mut recipes = ManagerRecipe::peers(&folder).expect("the peers' recipes");
        assert_eq!(recipes.len(), 7);
        for entry in fs::read_dir(folder).expect("the recipes") {
            let entry = entry.expect("an entry");
            if entry.path().join("files.sha256").is_file() {
                recipes.push(ManagerRecipe::load(&entry.path()).expect("a recipe"));
            }
        }
        assert!(recipes.len() > 7);
        for recipe in recipes {
            assert_eq!(recipe.folder.file_name().and_then(|name| name.to_str()), Some(recipe.name()));
            for own in recipe.table.own_sources.iter().chain(&recipe.table.version_script) {
                assert!(recipe.own_file(own).is_file(), "{}: {own}", recipe.name());
            }
            assert!(
                recipe.inputs().expect("its files").iter().all(|file| file.is_file()),
                "{}",
                recipe.name()
            );
            for repository in &recipe.table.repositories {
                assert_eq!(repository.commit.len(), 40, "{}", repository.name);
            }
        }
    }

    #[test]
    fn groups_name_the_peers_of_the_demo_and_of_each_pace() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../managers");
        let recipes = ManagerRecipe::peers(&folder).expect("the peers' recipes");
        let named = |word: &str| -> Vec<&str> {
            let objects = recipes.iter().flat_map(ManagerRecipe::objects);
            objects.filter(|object| object.answers(word)).map(|object| object.name).collect()
        };
        assert_eq!(named("demo"), ["bdw", "mimalloc3", "snmalloc"]);
        assert_eq!(named("fast"), ["bdw", "mimalloc2", "mimalloc3", "rpmalloc", "snmalloc"]);
        assert_eq!(named("slow"), ["jemalloc", "tcmalloc"]);
        assert_eq!(named("all").len(), named("fast").len() + named("slow").len());
        assert_eq!((named("profiling"), named("jemalloc")), (vec!["jemalloc-prof"], vec!["jemalloc"]));
        let mut objects = recipes.iter().flat_map(ManagerRecipe::objects);
        let bdw = objects.find(|object| object.name == "bdw").expect("there");
        assert_eq!(bdw.modes().map(|(name, _)| name).collect::<Vec<_>>(), ["bdw", "bdw-nofree"]);
    }

    /// A peer tuned down would be no match for the one that users install.
    #[test]
    fn no_recipe_keeps_assertions_or_the_slow_thread_local_model() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../managers");
        for recipe in ManagerRecipe::peers(&folder).expect("the peers' recipes") {
            let flags = &recipe.table.flags;
            let has = |flag: &str| flags.iter().any(|own| own == flag);
            let optimised = has("-DNDEBUG") && (has("-O3") || has("-O2"));
            let is_shim = matches!(recipe.table.source, Some(Source::Package(_)));
            assert!(recipe.table.configure.is_some() || is_shim || optimised, "{flags:?}");
            assert!(recipe.table.configure.is_some() || has("-ftls-model=initial-exec"), "{flags:?}");
        }
    }
}
