//! One manager by its name or by the path of its object, with layers in front of it and options set.

use heaptoll_catalog::did_you_mean;

use super::definition::{Group, Manager, ManagerSource, glibc};
use super::error::ManagerError;
use super::stacked::{stacked, with_options};
use crate::stack;

/// A stack as it is written ([`crate::stack`]): layers, and a manager by name, or by path when its name has a `/`.
///
/// # Errors
/// An unknown name, a path that is no file, or a stack that makes no sense. The preflight checks what the file
/// contains.
pub fn find(known: &[Manager], word: &str) -> Result<Manager, ManagerError> {
    let (layers, rest) = stack::layers(word)?;
    if rest.contains('/') {
        return stacked(layers, by_path(rest)?);
    }
    let mut pieces = rest.split(',');
    let manager = by_name(known, pieces.next().unwrap_or(rest))?;
    stacked(layers, with_options(manager, pieces)?)
}

fn by_path(name: &str) -> Result<Manager, ManagerError> {
    let no_file = |reason: String| ManagerError::NoFile { path: name.into(), reason };
    // Links are kept: one may be there because the loader cannot take the name of its target.
    let path = std::path::absolute(name).map_err(|error| no_file(error.to_string()))?;
    let found =
        path.metadata().map_err(|error| no_layer(name).unwrap_or_else(|| no_file(error.to_string())))?;
    if !found.is_file() {
        return Err(no_file("is not a file".into()));
    }
    Ok(Manager {
        name: name.into(),
        base: name.into(),
        origin: path.display().to_string(),
        object: Some(path),
        version: "unknown".into(),
        about: String::new(),
        kind: ManagerSource::Path,
        ..glibc()
    })
}

fn by_name(known: &[Manager], name: &str) -> Result<Manager, ManagerError> {
    let named = known.iter().find(|manager| manager.name == name);
    named
        .or_else(|| newest(known, name))
        .or_else(|| stand_in(known, name))
        .cloned()
        .ok_or_else(|| unknown(known, name))
}

/// Debian's object for a manager that is not built here: `debian-jemalloc` for `jemalloc`, `debian-tbb` for `tbb`.
pub fn stand_in<'a>(known: &'a [Manager], name: &str) -> Option<&'a Manager> {
    let is_built = known.iter().any(|manager| manager.name == name) || newest(known, name).is_some();
    known.iter().filter(|_| !is_built).find(|manager| {
        manager.kind == ManagerSource::Debian
            && (manager.stands_for == Some(name) || manager.name.strip_prefix("debian-") == Some(name))
    })
}

/// That no manager has this name, with the nearest one.
pub(super) fn unknown(known: &[Manager], name: &str) -> ManagerError {
    let groups = [Group::Modern, Group::Historic, Group::Collectors, Group::Added].map(Group::as_str);
    // What Debian's objects stand for is a name, too.
    let names = known.iter().flat_map(|manager| [Some(manager.name.as_str()), manager.stands_for]).flatten();
    ManagerError::Unknown {
        name: name.into(),
        suggestion: did_you_mean(name, names.chain(groups)),
        known: known.iter().map(|manager| listed(manager, known)).collect::<Vec<_>>().join(", "),
    }
}

/// A manager's name with what it stands for: `debian-jemalloc (also jemalloc)`.
fn listed(manager: &Manager, known: &[Manager]) -> String {
    let alone = |name: &&str| known.iter().all(|other| other.name != **name);
    let also = manager.stands_for.filter(alone).map(|name| format!(" (also {name})")).unwrap_or_default();
    format!("{}{also}", manager.name)
}

/// The manager that a name without a version stands for: `mimalloc3` for `mimalloc`.
pub fn version_for<'a>(known: &'a [Manager], name: &str) -> Option<&'a Manager> {
    let is_exact = known.iter().any(|manager| manager.name == name);
    newest(known, name).filter(|_| !is_exact)
}

/// The newest of the managers built here whose name is this one with a version after it: `mimalloc3` for `mimalloc`.
fn newest<'a>(known: &'a [Manager], name: &str) -> Option<&'a Manager> {
    let version = |manager: &&Manager| manager.name.strip_prefix(name)?.parse::<u32>().ok();
    known
        .iter()
        .filter(|manager| manager.kind == ManagerSource::Built && !name.is_empty())
        .max_by_key(version)
        .filter(|newest| version(newest).is_some())
}

/// Why `swep/glibc` leads nowhere: its first part is written like a layer, and no folder has that name. `None` where a
/// path is meant.
fn no_layer(word: &str) -> Option<ManagerError> {
    let (part, _) = word.split_once('/')?;
    let name = part.split(['=', ',']).next().unwrap_or(part);
    let meant = !name.is_empty() && !name.starts_with(['.', '~']) && !std::path::Path::new(part).exists();
    let known: Vec<&str> = stack::installed().ok()?.iter().map(|kind| kind.name.as_str()).collect();
    meant.then(|| ManagerError::NoLayer {
        name: name.into(),
        suggestion: did_you_mean(name, known.iter().copied()),
        known: known.join(", "),
    })
}
