//! Making an artifact: the rows are copied, what took part is found and digested, and the folder is there whole or not at
//! all.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::kept_input;
use heaptoll_experiment::places::Places;
use heaptoll_experiment::store::Store;

use super::description::{Content, Description, NAME, OwnedFile, PLAN, REPLAY, ROWS};
use super::error::ArtifactError;
use super::format::{FORMAT, VERSION};
use super::{packages, script};
use crate::cluster::digests::{self, FileDigest};
use crate::cluster::{MachineClass, Plan};
use crate::sealed;

/// What to make an artifact of.
#[derive(Debug, Clone)]
pub struct ArtifactRequest {
    /// The experiment's file.
    pub experiment: PathBuf,
    /// The plan of its shards, where it was measured in shards.
    pub plan: Option<PathBuf>,
    /// The folder to make.
    pub folder: PathBuf,
}

/// Makes an artifact on the machine that measured the experiment, or, of shards, with their plan on any.
///
/// # Errors
/// The folder exists, the experiment is not complete or cannot be measured again, a file that took part is missing, or one
/// cannot be read or written.
pub fn make(request: &ArtifactRequest, places: &Places) -> Result<Description, ArtifactError> {
    let folder = &request.folder;
    if folder.exists() {
        return Err(ArtifactError::Exists { path: folder.clone() });
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = |cause| ArtifactError::Write { path: folder.clone(), cause };
    let scratch =
        tempfile::Builder::new().prefix(".heaptoll-artifact-").tempdir_in(parent).map_err(written)?;
    let inside = scratch.path().join("artifact");
    std::fs::create_dir(&inside).map_err(written)?;
    let rows = inside.join(ROWS);
    let read = |cause| ArtifactError::Read { path: request.experiment.clone(), cause };
    std::fs::copy(&request.experiment, &rows).map_err(read)?;
    // The copy is what must be whole.
    let experiment = Store::read_description(&rows)?;
    if !experiment.complete {
        return Err(ArtifactError::Incomplete { path: request.experiment.clone() });
    }
    if experiment.classes().len() > 1 {
        return Err(ArtifactError::SeveralClasses { path: request.experiment.clone() });
    }
    if kept_input::is_read_by(&experiment.programs) {
        return Err(ArtifactError::Piped { path: request.experiment.clone() });
    }
    let plan = plan_of(request, &experiment)?;
    let script = script::replay(&experiment)
        .ok_or_else(|| ArtifactError::NotRepeatable { path: request.experiment.clone() })?;
    let mut names = vec![ROWS, REPLAY];
    put(&inside.join(REPLAY), script.as_bytes(), 0o755)?;
    if let Some((path, _)) = &plan {
        std::fs::copy(path, inside.join(PLAN)).map_err(written)?;
        names.push(PLAN);
    }
    let contents: Result<Vec<Content>, _> =
        names.into_iter().map(|name| Content::of(&inside, name)).collect();
    let described = describe(experiment, plan.map(|(_, plan)| plan), contents?, places)?;
    let json = serde_json::to_vec_pretty(&described).map_err(|error| written(error.into()))?;
    put(&inside.join(NAME), &json, 0o644)?;
    std::fs::rename(&inside, folder).map_err(written)?;
    Ok(described)
}

/// The plan of an experiment of shards, which must be theirs.
fn plan_of<'a>(
    request: &'a ArtifactRequest,
    experiment: &Experiment,
) -> Result<Option<(&'a Path, Plan)>, ArtifactError> {
    let path = request.experiment.clone();
    match (&request.plan, experiment.settings.shards.first()) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(ArtifactError::NeedsPlan { path }),
        (Some(file), shard) => {
            let plan = Plan::read(file)?;
            match shard {
                Some(shard) if shard.plan == plan.identity => Ok(Some((file.as_path(), plan))),
                _ => Err(ArtifactError::OtherPlan { plan: file.clone(), path }),
            }
        }
    }
}

fn describe(
    experiment: Experiment,
    plan: Option<Plan>,
    contents: Vec<Content>,
    places: &Places,
) -> Result<Description, ArtifactError> {
    let planned = plan.is_some();
    let (files, machines) = match plan {
        Some(plan) => (plan.files, plan.classes),
        None => (digests::of_experiment(&experiment, &[], places)?, vec![MachineClass::here()]),
    };
    let owners = packages::owners(files.iter().map(|file| file.path.as_str()));
    let owned = |file: FileDigest| OwnedFile {
        package: owners.get(&file.path).cloned(),
        // A plan's digests are from before the measurement.
        changed_since: !planned && changed_since(&file.path, experiment.created_unix_s),
        file,
    };
    let files: Vec<OwnedFile> = files.into_iter().map(owned).collect();
    let packages = packages::installed(files.iter().filter_map(|file| file.package.as_deref()));
    let described = Description {
        format: FORMAT.into(),
        version: VERSION,
        heaptoll: env!("CARGO_PKG_VERSION").into(),
        identity: String::new(),
        experiment,
        machines,
        planned,
        files,
        packages,
        contents,
    };
    let path = PathBuf::from(NAME);
    sealed::seal(described).map_err(|error| ArtifactError::Write { path, cause: error.into() })
}

/// Whether a file was changed, or put where it is, after a time. Packages keep the times at which their files were built,
/// so it is the time of the last change of the file's entry that counts.
fn changed_since(path: &str, unix_s: f64) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.ctime() as f64 + found.ctime_nsec() as f64 / 1e9 > unix_s)
}

/// Writes a file of these permissions.
fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<(), ArtifactError> {
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::write(path, bytes)
        .and_then(|()| std::fs::set_permissions(path, permissions))
        .map_err(|cause| ArtifactError::Write { path: path.into(), cause })
}
