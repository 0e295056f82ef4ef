//! Adds the programs of a recipe: each in a folder of its own, which appears whole or not at all.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use heaptoll_peers::RecipeError;
use heaptoll_peers::compiler::Compilers;
use heaptoll_scratch::Scratch;

use crate::build::Build;
use crate::change;
use crate::counted_run::Counts;
use crate::fetch::{Wanted, fetch};
use crate::proof::prove;
use crate::recipe::{Program, last};
use crate::{OriginalsError, Recipe, Refusal};

/// The time of all files: make compares them.
const FILES: Duration = Duration::from_secs(946_684_800);

/// What is to be added, and where.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The programs.
    pub recipe: &'a Recipe,
    /// A git URL, a bare repository, a clone, or a folder with the sources; the recipe's URL without one.
    pub from: Option<&'a str>,
    /// Added programs are below: `INTO/RECIPE/PROGRAM/bin/FORM`.
    pub into: &'a Path,
    /// The counting layer, by its path.
    pub count_layer: &'a Path,
}

/// What became of one program.
#[derive(Debug)]
pub struct Added {
    /// Its name in the recipe.
    pub program: String,
    /// The licence and what it forbids.
    pub licence: String,
    /// Its forms; the reason when none of them was tried.
    pub forms: Result<Vec<AddedForm>, Refusal>,
}

/// What became of one form.
#[derive(Debug)]
pub struct AddedForm {
    /// Its name.
    pub form: String,
    /// What was counted in the run that proves it.
    pub outcome: Result<Counts, Refusal>,
}

impl Added {
    /// Whether all of it is there now.
    pub fn is_whole(&self) -> bool {
        self.forms.as_ref().is_ok_and(|forms| forms.iter().all(|form| form.outcome.is_ok()))
    }

    /// Whether a form of it is there now.
    pub fn is_there(&self) -> bool {
        self.forms.as_ref().is_ok_and(|forms| forms.iter().any(|form| form.outcome.is_ok()))
    }
}

/// Fetches, checks, builds and proves every program of a recipe. One that fails leaves the others alone, and what was
/// added of it earlier.
///
/// # Errors
/// Nothing can be fetched, compiled or written.
pub fn add(request: &Request<'_>, progress: &dyn Fn(&str)) -> Result<Vec<Added>, OriginalsError> {
    let home = request.into.join(request.recipe.name());
    let unwritable = |source| RecipeError::Write { path: home.clone(), source };
    fs::create_dir_all(&home).map_err(unwritable)?;
    // On the file system of the result, so that one rename completes it.
    let scratch = Scratch::make_in(&home).map_err(unwritable)?;
    let table = &request.recipe.table;
    let compilers = Compilers::find(&table.flags, table.dialect, scratch.path())?;
    progress("fetching");
    let wanted =
        Wanted { name: &table.name, url: &table.url, commit: &table.commit, paths: request.recipe.folders() };
    let tree = fetch(&wanted, request.from, &scratch.path().join("tree"), scratch.path())?;
    let adding = Adding { request, compilers: &compilers, tree: &tree, scratch: scratch.path(), home: &home };
    let one = |(name, program): (&String, &Program)| {
        progress(&format!("building {name}"));
        Added {
            program: name.clone(),
            licence: program.licence.clone(),
            forms: adding.program(name, program),
        }
    };
    Ok(request.recipe.table.programs.iter().map(one).collect())
}

/// What the programs of one recipe have in common.
struct Adding<'a> {
    request: &'a Request<'a>,
    compilers: &'a Compilers,
    tree: &'a Path,
    scratch: &'a Path,
    home: &'a Path,
}

impl Adding<'_> {
    fn program(&self, name: &str, program: &Program) -> Result<Vec<AddedForm>, Refusal> {
        let here = self.scratch.join("new").join(name);
        self.copy(program, &here)?;
        let forms: Vec<AddedForm> = program
            .forms
            .keys()
            .map(|form| AddedForm { form: form.clone(), outcome: self.form(name, program, form, &here) })
            .collect();
        if forms.iter().any(|form| form.outcome.is_ok()) {
            self.replace(name, &here)?;
        }
        Ok(forms)
    }

    /// Copies the files that the manifest names, with the changes made.
    fn copy(&self, program: &Program, here: &Path) -> Result<(), Refusal> {
        for folder in &program.folders {
            for path in self.request.recipe.manifest.of_folder(folder) {
                let mut content = self.request.recipe.manifest.read(self.tree, path)?;
                for change in program.changes.iter().filter(|change| change.file == path) {
                    content = change::apply(&content, change)?;
                }
                let below = path.strip_prefix(folder.as_str()).unwrap_or(path).trim_start_matches('/');
                write(&here.join(last(folder)).join(below), &content, FILES)?;
            }
        }
        for made in &program.makes {
            write(&here.join(&made.path), b"", FILES + Duration::from_secs(86_400))?;
        }
        Ok(())
    }

    fn form(&self, name: &str, program: &Program, form: &str, here: &Path) -> Result<Counts, Refusal> {
        let settings = &program.forms[form];
        let scratch = self.scratch.join("objects").join(format!("{name}-{form}"));
        let bin = here.join("bin");
        for folder in [&scratch, &bin] {
            fs::create_dir_all(folder).map_err(Refusal::system(format!("make {}", folder.display())))?;
        }
        let binary = bin.join(form);
        let build = Build {
            recipe: self.request.recipe,
            compilers: self.compilers,
            program,
            here,
            scratch: &scratch,
        };
        build.form(settings, &binary)?;
        let proved = prove(&settings.proof, &binary, here, self.request.count_layer, &scratch);
        if proved.is_err() {
            // What is not proved is not left to be measured.
            fs::remove_file(&binary).map_err(Refusal::system(format!("remove {}", binary.display())))?;
        }
        proved
    }

    /// Puts the new folder in the place of the old one.
    fn replace(&self, name: &str, here: &Path) -> Result<(), Refusal> {
        let (place, before) = (self.home.join(name), self.scratch.join("old").join(name));
        let put = fs::create_dir_all(&before).and_then(|()| put_in_place(here, &place, &before));
        put.map_err(Refusal::system(format!("replace {}", place.display())))
    }
}

/// Writes a file, with the folders above it, and its time after 1970.
fn write(path: &Path, content: &[u8], time: Duration) -> Result<(), Refusal> {
    let all = || {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, content)?;
        File::options().write(true).open(path)?.set_modified(SystemTime::UNIX_EPOCH + time)
    };
    all().map_err(Refusal::system(format!("write {}", path.display())))
}

/// Puts a folder that was made in the place of what was there before, which `scratch` gets.
pub(crate) fn put_in_place(made: &Path, home: &Path, scratch: &Path) -> io::Result<()> {
    if home.exists() {
        fs::rename(home, scratch.join("before"))?;
    }
    fs::rename(made, home)
}
