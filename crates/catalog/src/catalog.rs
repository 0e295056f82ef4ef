//! The set of all entries: loaded from folders, looked up by name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::entry::Entry;
use crate::nearest::nearest;
use crate::set;
use crate::{CatalogError, Program, Set};

/// All programs, each variant among them as `program:variant`, and named sets of them.
#[derive(Debug, Clone)]
pub struct Catalog {
    programs: BTreeMap<String, Program>,
    sets: BTreeMap<String, Set>,
}

impl Catalog {
    /// Loads every `*.toml` of `folder` and checks it whole: placeholders, generators and patterns of all sizes and
    /// variants.
    ///
    /// # Errors
    /// When the folder cannot be read or holds no entry, or an entry is wrong: the error names file, field and remedy.
    pub fn load(folder: &Path) -> Result<Self, CatalogError> {
        let mut catalog = Catalog { programs: BTreeMap::new(), sets: BTreeMap::new() };
        catalog.add(folder)?;
        Ok(catalog)
    }

    /// Adds the entries of a further folder, a user's own for instance, and the sets in its folder `sets`.
    ///
    /// # Errors
    /// As [`Catalog::load`], and when a name is taken already or a set names a program that is in no folder.
    pub fn add(&mut self, folder: &Path) -> Result<(), CatalogError> {
        let files = descriptions(folder)?;
        if files.is_empty() {
            return Err(CatalogError::Empty { folder: folder.to_owned() });
        }
        files.iter().try_for_each(|file| self.add_file(file).map(drop))?;
        let sets = folder.join(set::FOLDER);
        if !sets.is_dir() {
            return Ok(());
        }
        descriptions(&sets)?.iter().try_for_each(|file| self.add_set(file))
    }

    fn add_set(&mut self, file: &Path) -> Result<(), CatalogError> {
        let set = Set::read(file)?;
        for name in set.programs.iter().chain(&set.reserves) {
            self.find(name).map_err(|error| {
                CatalogError::field(file, "programs", error.to_string(), "correct the name")
            })?;
        }
        if let Some(first) = self.sets.get(&set.name) {
            return Err(CatalogError::Duplicate {
                name: set.name,
                first: first.file().to_owned(),
                second: file.to_owned(),
            });
        }
        self.sets.insert(set.name.clone(), set);
        Ok(())
    }

    /// Adds one entry, given as a file, and returns its name.
    ///
    /// # Errors
    /// As [`Catalog::add`].
    pub fn add_file(&mut self, file: &Path) -> Result<String, CatalogError> {
        let text = fs::read_to_string(file)
            .map_err(|source| CatalogError::Read { path: file.to_owned(), source })?;
        let entry: Entry = toml::from_str(&text)
            .map_err(|error| CatalogError::Syntax { file: file.to_owned(), problem: error.to_string() })?;
        let mut programs = vec![Program::new(file, None, &entry)?];
        let name = programs[0].name().to_owned();
        for (name, variant) in &entry.variants {
            programs.push(Program::new(file, Some(name), &entry.with(variant))?);
        }
        for program in programs {
            if let Some(first) = self.programs.get(program.name()) {
                return Err(CatalogError::Duplicate {
                    name: program.name().to_owned(),
                    first: first.file().to_owned(),
                    second: file.to_owned(),
                });
            }
            self.programs.insert(program.name().to_owned(), program);
        }
        Ok(name)
    }

    /// Every name, variants included, in alphabetical order.
    pub fn names(&self) -> Vec<&str> {
        self.programs.keys().map(String::as_str).collect()
    }

    /// Every program, variants included, by name. `--all` takes those without a [`Program::variant`].
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.programs.values()
    }

    /// The program called `name`: `gawk`, or `reverse:8-byte` for a variant.
    ///
    /// # Errors
    /// When there is none; the error suggests the nearest name.
    pub fn find(&self, name: &str) -> Result<&Program, CatalogError> {
        self.programs.get(name).ok_or_else(|| CatalogError::UnknownProgram {
            name: name.to_owned(),
            suggestion: nearest(name, self.programs.keys().map(String::as_str)).map(str::to_owned),
            known: self.names().into_iter().map(str::to_owned).collect(),
        })
    }

    /// The program that a word of the command line means: by its name, or by the file of its entry (`./server.toml`).
    ///
    /// # Errors
    /// As [`Catalog::find`] and [`Catalog::add_file`].
    pub fn meant(&mut self, word: &str) -> Result<&Program, CatalogError> {
        match word.ends_with(".toml") {
            true => {
                let name = self.add_file(Path::new(word))?;
                self.find(&name)
            }
            false => self.find(word),
        }
    }

    /// Every set, by name.
    pub fn sets(&self) -> impl Iterator<Item = &Set> {
        self.sets.values()
    }

    /// The set called `name`.
    ///
    /// # Errors
    /// When there is none; the error names those there are.
    pub fn set(&self, name: &str) -> Result<&Set, CatalogError> {
        self.sets.get(name).ok_or_else(|| CatalogError::UnknownSet {
            name: name.to_owned(),
            known: self.sets.keys().cloned().collect(),
        })
    }
}

/// The files of a folder that describe something, in alphabetical order.
fn descriptions(folder: &Path) -> Result<Vec<PathBuf>, CatalogError> {
    let read = |source| CatalogError::Read { path: folder.to_owned(), source };
    let mut files: Vec<PathBuf> = Vec::new();
    for item in fs::read_dir(folder).map_err(read)? {
        let path = item.map_err(read)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with("Cargo.toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
