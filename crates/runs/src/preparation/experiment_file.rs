//! The file that keeps an experiment: where it may be, and its name where the user gave none.

use std::path::{Path, PathBuf};

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::places::Places;
use heaptoll_experiment::store::StoreError;

use heaptoll_command::failure::Failure;
use heaptoll_command::writable;

/// Refuses a file that is there, and a place where the experiment could not be kept, before time is spent on anything.
pub fn check(db: Option<&Path>) -> Result<(), Failure> {
    match db {
        Some(path) if path.exists() => Err(StoreError::Exists(path.into()).into()),
        Some(path) => writable::check(path).map_err(|why| {
            Failure::Usage(format!("cannot keep the experiment in {}: {why}", path.display()))
        }),
        // The folder is made when it is needed: below which one there is?
        None => {
            let folder = Places::experiments();
            let there = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(&folder);
            writable::check(&there.join("e.db")).map_err(|why| {
                Failure::Usage(format!(
                    "cannot write in {}: {why}; name a file with --db, or another folder by XDG_STATE_HOME",
                    folder.display()
                ))
            })
        }
    }
}

/// `$XDG_STATE_HOME/heaptoll/<date>-<program>.db`, numbered when taken.
pub fn default_path(experiment: &Experiment) -> Result<PathBuf, Failure> {
    let folder = Places::experiments();
    std::fs::create_dir_all(&folder).map_err(|error| {
        Failure::Usage(format!(
            "cannot make {}: {error}; name a file with --db, or another folder by XDG_STATE_HOME",
            folder.display()
        ))
    })?;
    let program = match experiment.programs.as_slice() {
        [one] => one.name.replace(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c), "_"),
        many => format!("{}-programs", many.len()),
    };
    let date = heaptoll_report::format::date(experiment.created_unix_s)
        .replace(|c: char| !c.is_ascii_digit(), "-")
        .trim_matches('-')
        .to_string();
    let names = (1..).map(|number| match number {
        1 => format!("{date}-{program}.db"),
        _ => format!("{date}-{program}-{number}.db"),
    });
    names
        .map(|name| folder.join(name))
        .find(|path| !path.exists())
        .ok_or_else(|| Failure::Usage("no free name for the experiment; name a file with --db".into()))
}
