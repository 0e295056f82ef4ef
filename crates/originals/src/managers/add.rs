//! Adds the managers of a recipe: each appears whole and proved, or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use heaptoll_scratch::Scratch;

use super::build::ManagerBuild;
use super::description::Description;
use super::recipe::{ManagerRecipe, Repository, Variant};
use crate::compiler::Compilers;
use crate::fetch::fetch;
use crate::manifest::digest;
use crate::recipe::Dialect;
use crate::{OriginalsError, Refusal};

/// Whether an object serves as a manager, with these variables set; the error is what does not hold.
pub type Proof<'a> = dyn Fn(&Path, &BTreeMap<String, String>) -> Result<(), String> + 'a;

/// What is to be added, and where.
pub struct ManagerRequest<'a> {
    /// The managers.
    pub recipe: &'a ManagerRecipe,
    /// A folder with a folder, clone or bare repository of each repository's name. Where there is only one: a git URL, a
    /// bare repository, a clone, or a folder with its sources, too. The recipe's URLs without one.
    pub from: Option<&'a str>,
    /// Added managers are in it: `NAME.so`, `NAME.toml` and `NAME.LICENSE`.
    pub into: &'a Path,
    /// Proves an object.
    pub prove: &'a Proof<'a>,
}

/// What became of one manager.
#[derive(Debug)]
pub struct AddedManager {
    /// The name for `-m`.
    pub name: String,
    /// Why it is not there.
    pub outcome: Result<(), Refusal>,
}

/// Fetches, checks, builds and proves every manager of a recipe. One that fails leaves what was added of it earlier.
///
/// # Errors
/// Nothing can be fetched, compiled or written, or a file is not the one that the recipe names.
pub fn add_managers(
    request: &ManagerRequest<'_>,
    progress: &dyn Fn(&str),
) -> Result<Vec<AddedManager>, OriginalsError> {
    let unwritable = |source| OriginalsError::Write { path: request.into.to_owned(), source };
    fs::create_dir_all(request.into).map_err(unwritable)?;
    // On the file system of the result, so that one rename completes a file.
    let scratch = Scratch::make_in(request.into).map_err(unwritable)?;
    let compilers = Compilers::find(&[], Dialect::Today, scratch.path())?;
    progress("fetching");
    let fetched = fetch_all(request, scratch.path())?;
    let tree = scratch.path().join("sources");
    let licence = copy(request.recipe, &fetched, &tree).map_err(|refusal| OriginalsError::Sources {
        name: request.recipe.name().to_owned(),
        refusal: Box::new(refusal),
    })?;
    let adding = Adding { request, compilers: &compilers, tree: &tree, scratch: scratch.path(), licence };
    let one = |(name, variant): (&String, &Variant)| {
        progress(&format!("building {name}"));
        AddedManager { name: name.clone(), outcome: adding.manager(name, variant) }
    };
    Ok(request.recipe.table.managers.iter().map(one).collect())
}

/// The folder of each repository's sources.
fn fetch_all<'a>(
    request: &ManagerRequest<'a>,
    scratch: &Path,
) -> Result<Vec<(&'a Repository, PathBuf)>, OriginalsError> {
    let repositories = &request.recipe.table.repositories;
    let several = || OriginalsError::Several {
        name: request.recipe.name().to_owned(),
        from: request.from.unwrap_or_default().to_owned(),
        folders: repositories.iter().map(|repository| repository.name.clone()).collect(),
    };
    let mut folders = Vec::new();
    for repository in repositories {
        let from = match request.from {
            None => None,
            Some(from) => match below(Path::new(from), &repository.name) {
                Some(folder) => Some(folder.display().to_string()),
                None if repositories.len() == 1 => Some(from.to_owned()),
                None => return Err(several()),
            },
        };
        let tree = scratch.join("fetched").join(&repository.name);
        let index = scratch.join(format!("git-{}", folders.len()));
        fs::create_dir_all(&index).map_err(|source| OriginalsError::Write { path: index.clone(), source })?;
        folders.push((repository, fetch(&repository.wanted(), from.as_deref(), &tree, &index)?));
    }
    Ok(folders)
}

/// The folder of a repository in a folder that has several; bare ones are often called `NAME.git`.
fn below(folder: &Path, name: &str) -> Option<PathBuf> {
    [name.to_owned(), format!("{name}.git")]
        .map(|name| folder.join(name))
        .into_iter()
        .find(|path| path.is_dir())
}

/// Copies the files that the manifest names, each of which must be the one that it names. Gives the licences.
fn copy(recipe: &ManagerRecipe, fetched: &[(&Repository, PathBuf)], tree: &Path) -> Result<String, Refusal> {
    let mut licence = String::new();
    for (repository, folder) in fetched {
        for path in recipe.manifest.of_folder(&repository.name) {
            let below = path.strip_prefix(&repository.name).unwrap_or(path).trim_start_matches('/');
            let content = recipe.manifest.read_as(&folder.join(below), path)?;
            if repository.licence_files.iter().any(|file| file == below) {
                licence.push_str(&format!("{path}:\n\n{}\n", String::from_utf8_lossy(&content)));
            }
            put(&tree.join(path), &content)?;
        }
    }
    Ok(licence)
}

/// Writes a file, with the folders above it.
fn put(path: &Path, content: &[u8]) -> Result<(), Refusal> {
    let all = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, content)
    };
    all().map_err(Refusal::system(format!("write {}", path.display())))
}

/// What the managers of one recipe have in common.
struct Adding<'a> {
    request: &'a ManagerRequest<'a>,
    compilers: &'a Compilers,
    tree: &'a Path,
    scratch: &'a Path,
    licence: String,
}

impl Adding<'_> {
    fn manager(&self, name: &str, variant: &Variant) -> Result<(), Refusal> {
        let recipe = self.request.recipe;
        let build = ManagerBuild {
            recipe,
            compilers: self.compilers,
            tree: self.tree,
            scratch: &self.scratch.join("objects").join(name),
        };
        let object = self.scratch.join(format!("{name}.so"));
        build.variant(name, variant, &object)?;
        (self.request.prove)(&object, &variant.environment)
            .map_err(|problem| Refusal::NoManager { problem })?;
        let content = fs::read(&object).map_err(Refusal::system(format!("read {}", object.display())))?;
        let built_by = (build.compiler()?.version(), build.flags(variant));
        let description = Description::of(recipe, (name, variant), built_by, digest(&content)).text()?;
        put(&self.scratch.join(format!("{name}.LICENSE")), self.licence.as_bytes())?;
        put(&self.scratch.join(format!("{name}.toml")), description.as_bytes())?;
        // The description last: with it the manager is there.
        for ending in ["so", "LICENSE", "toml"] {
            let file = format!("{name}.{ending}");
            let place = self.request.into.join(&file);
            fs::rename(self.scratch.join(&file), &place)
                .map_err(Refusal::system(format!("write {}", place.display())))?;
        }
        Ok(())
    }
}
