//! The set of all entries: loaded from folders, looked up by name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::entry::Entry;
use crate::nearest::nearest;
use crate::{CatalogError, Program};

/// All programs, each variant among them as `program:variant`.
#[derive(Debug, Clone)]
pub struct Catalog {
    programs: BTreeMap<String, Program>,
}

impl Catalog {
    /// Loads every `*.toml` of `folder` and checks it whole: placeholders, generators and patterns of all sizes and
    /// variants.
    ///
    /// # Errors
    /// When the folder cannot be read or holds no entry, or an entry is wrong: the error names file, field and remedy.
    pub fn load(folder: &Path) -> Result<Self, CatalogError> {
        let mut catalog = Catalog { programs: BTreeMap::new() };
        catalog.add(folder)?;
        Ok(catalog)
    }

    /// Adds the entries of a further folder, a user's own for instance.
    ///
    /// # Errors
    /// As [`Catalog::load`], and when a name is taken already.
    pub fn add(&mut self, folder: &Path) -> Result<(), CatalogError> {
        let read = |source| CatalogError::Read { path: folder.to_owned(), source };
        let mut files: Vec<PathBuf> = Vec::new();
        for item in fs::read_dir(folder).map_err(read)? {
            let path = item.map_err(read)?.path();
            if path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with("Cargo.toml")
            {
                files.push(path);
            }
        }
        if files.is_empty() {
            return Err(CatalogError::Empty { folder: folder.to_owned() });
        }
        files.sort();
        files.iter().try_for_each(|file| self.add_file(file))
    }

    /// Adds one entry, given as a file.
    ///
    /// # Errors
    /// As [`Catalog::add`].
    pub fn add_file(&mut self, file: &Path) -> Result<(), CatalogError> {
        let text = fs::read_to_string(file)
            .map_err(|source| CatalogError::Read { path: file.to_owned(), source })?;
        let entry: Entry = toml::from_str(&text)
            .map_err(|error| CatalogError::Syntax { file: file.to_owned(), problem: error.to_string() })?;
        let mut programs = vec![Program::new(file, None, &entry)?];
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
        Ok(())
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
}
