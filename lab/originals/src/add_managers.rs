//! Adds the managers of a recipe: each appears whole and proved, or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use heaptoll_peers::{
    AddedManager, Builder, ManagerRecipe, Proof, RecipeError, Refusal, Repository, Sources, labelled,
};

use crate::OriginalsError;
use crate::fetch::{Wanted, fetch};

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

/// Fetches, checks, builds and proves every manager of a recipe. One that fails leaves what was added of it earlier.
///
/// # Errors
/// Nothing can be fetched, compiled or written, or a file is not the one that the recipe names.
pub fn add_managers(
    request: &ManagerRequest<'_>,
    progress: &dyn Fn(&str),
) -> Result<Vec<AddedManager>, OriginalsError> {
    let recipe = request.recipe;
    let builder = Builder::new(request.into, request.into)?;
    progress("fetching");
    let fetched = fetch_all(request, builder.scratch())?;
    let tree = builder.scratch().join("sources");
    let licence = copy(recipe, &fetched, &tree).map_err(|refusal| OriginalsError::Sources {
        name: recipe.name().to_owned(),
        refusal: Box::new(refusal),
    })?;
    let (version, crate_version) = (recipe.table.version.clone(), String::new());
    let origin = recipe.table.repositories.iter().map(Repository::origin).collect::<Vec<_>>().join(", ");
    let sources = Sources { tree, origin, version, licence, crate_version };
    progress(&format!("building {}", recipe.name()));
    let objects: Vec<_> = recipe.objects().map(|object| (object, &sources)).collect();
    Ok(builder.build(&objects, request.prove))
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
        fs::create_dir_all(&index).map_err(|source| RecipeError::Write { path: index.clone(), source })?;
        folders.push((repository, fetch(&wanted(repository), from.as_deref(), &tree, &index)?));
    }
    Ok(folders)
}

/// For git.
fn wanted(repository: &Repository) -> Wanted<'_> {
    let Repository { name, url, commit, paths, .. } = repository;
    Wanted { name, url, commit, paths: paths.iter().map(String::as_str).collect() }
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
                licence.push_str(&labelled(path, &String::from_utf8_lossy(&content)));
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
