//! `heaptoll managers add`: managers of others, which are fetched, built and proved for one user.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use heaptoll_command::context::{Context, Messages};
use heaptoll_command::failure::Failure;
use heaptoll_command::own_input::OwnInput;
use heaptoll_compare::managers::tried;
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::manager::{self, Group, Manager, ManagerSource, glibc};
use heaptoll_experiment::places::Places;
use heaptoll_originals::{ManagerRequest, add_managers};
use heaptoll_peers::{AddedManager, ManagerRecipe};
use heaptoll_preflight::smoke::Expected;

use crate::originals::refused;

/// What is to be added.
#[derive(Debug, Clone)]
pub struct AddedManagersRequest {
    /// The name of a recipe, or the path of a folder with one.
    pub recipe: String,
    /// Where the sources are; the recipe's repositories without one.
    pub from: Option<String>,
}

/// What became of it.
#[derive(Debug)]
pub struct Report {
    /// The folder with the managers.
    pub folder: PathBuf,
    /// Each manager.
    pub managers: Vec<AddedManager>,
}

impl Report {
    /// Whether all managers of the recipe are there.
    pub fn is_whole(&self) -> bool {
        self.managers.iter().all(|added| added.outcome.is_ok())
    }

    /// Those that are there, by the names for `-m`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.managers.iter().filter(|added| added.outcome.is_ok()).map(|added| added.name.as_str())
    }
}

/// Fetches, checks, builds and proves managers, and reports each to `messages`. This program proves them: it has
/// The smoke run's hidden subcommand.
///
/// # Errors
/// No such recipe, a name that is taken, or nothing can be fetched, compiled or written.
pub fn fetch_and_build(
    request: &AddedManagersRequest,
    places: &Places,
    messages: &dyn Messages,
) -> Result<Report, Failure> {
    let recipe = ManagerRecipe::load(&folder(&request.recipe, places)?).map_err(refused)?;
    check_names(&recipe, places)?;
    let into = Places::added_managers();
    messages.note(&format!("{}: licence: {}", recipe.name(), recipe.licence()));
    let progress = messages.progress(None);
    let prove = |recipe: &ManagerRecipe, object: &Path, environment: &BTreeMap<String, String>| {
        progress.set_text("proving what was built");
        prove(recipe, object, environment, places, messages)
    };
    let wanted =
        ManagerRequest { recipe: &recipe, from: request.from.as_deref(), into: &into, prove: &prove };
    let managers = add_managers(&wanted, &|text| progress.set_text(text)).map_err(refused)?;
    drop(progress);
    for added in &managers {
        if let Err(refusal) = &added.outcome {
            messages.error(&format!("{}: {refusal}", added.name));
        }
    }
    Ok(Report { folder: into, managers })
}

/// The folder of a recipe: a path has a slash in it.
fn folder(recipe: &str, places: &Places) -> Result<PathBuf, Failure> {
    if recipe.contains('/') {
        return Ok(Path::new(recipe).to_owned());
    }
    let recipes = places.manager_recipes();
    let folder = recipes.join(recipe);
    // That of a peer, which heaptoll brings, has no digests.
    let is_for_users = |folder: &Path| folder.join("files.sha256").is_file();
    if is_for_users(&folder) {
        return Ok(folder);
    }
    let entries = std::fs::read_dir(&recipes).map(|entries| entries.flatten().collect::<Vec<_>>());
    let recipes = entries.unwrap_or_default().into_iter().filter(|entry| is_for_users(&entry.path()));
    let mut names: Vec<String> =
        recipes.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Err(Failure::Usage(format!(
        "no managers to add are called `{recipe}`; there are: {}. Name a recipe of your own by its path \
         (with a `/`)",
        names.join(", ")
    )))
}

/// Refuses a name that already means something for `-m`.
fn check_names(recipe: &ManagerRecipe, places: &Places) -> Result<(), Failure> {
    let known: Vec<Manager> = manager::known_with_java(places)?
        .into_iter()
        .filter(|manager| manager.kind != ManagerSource::Added)
        .collect();
    let group = |name: &str| name == Group::Added.as_str() || manager::is_group(&known, name);
    match recipe.managers().find(|name| group(name) || manager::find(&known, name).is_ok()) {
        Some(taken) => Err(Failure::Usage(format!(
            "`-m {taken}` already means something else (`heaptoll managers`); give the manager another name in the recipe"
        ))),
        None => Ok(()),
    }
}

/// Whether an object serves as a manager: by the preflight, whose reasons are the better ones, and by the smoke run.
fn prove(
    recipe: &ManagerRecipe,
    object: &Path,
    environment: &BTreeMap<String, String>,
    places: &Places,
    messages: &dyn Messages,
) -> Result<(), String> {
    let name = object.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let manager = Manager {
        base: name.clone(),
        name,
        object: Some(object.to_owned()),
        environment: environment.clone().into_iter().collect(),
        kind: ManagerSource::Added,
        group: Group::Added,
        ..glibc()
    };
    let context =
        Context { places, interrupt: &Interrupt::default(), own_input: &OwnInput::default(), messages };
    match tried(&manager, &context) {
        Ok((true, _)) => {}
        Ok((false, reason)) => return Err(reason),
        Err(failure) => return Err(failure.to_string()),
    }
    let own = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let expected = Expected { overflow: recipe.checks_overflow(), operators: false };
    let environment = environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    heaptoll_preflight::smoke::prove(&own, object, expected, environment)
}
