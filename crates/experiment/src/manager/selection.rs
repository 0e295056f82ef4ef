//! Which managers a command compares: groups and single ones, by the words of its command line.

use super::definition::{Group, Manager, ManagerSource};
use super::error::ManagerError;
use super::find::{find, unknown};
use super::stacked::stacked;
use crate::stack;

/// The word for the managers of every group.
const EVERY_GROUP: &str = "all";

/// What runs without `-m`: the modern group. Its members are what a program could be shipped with.
pub fn default_set(known: &[Manager]) -> Vec<Manager> {
    everything(known).into_iter().filter(|manager| manager.group == Group::Modern).collect()
}

/// Managers by the command line: each word is a group, a name or a path, each manager comes once.
///
/// # Errors
/// As [`find`].
pub fn choose<'a>(
    known: &[Manager],
    words: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<Manager>, ManagerError> {
    let grouped = everything(known).into_iter().chain(apart(known).cloned()).collect::<Vec<_>>();
    let mut chosen: Vec<Manager> = Vec::new();
    for word in words {
        let (layers, rest) = stack::layers(word)?;
        if !is_group(known, rest) {
            chosen.push(find(known, word)?);
            continue;
        }
        let all =
            |manager: &Manager| rest == EVERY_GROUP && !matches!(manager.group, Group::Jvm | Group::Added);
        let group = grouped.iter().filter(|manager| all(manager) || is_in(manager, rest));
        let stacks: Vec<_> = group.map(|manager| stacked(layers.clone(), manager.clone())).collect();
        // Members that the layers make no sense in front of are left out, since they were not named; it is an error
        // when none is left.
        if stacks.iter().all(Result::is_err) {
            return Err(stacks.into_iter().find_map(Result::err).unwrap_or_else(|| unknown(known, rest)));
        }
        for manager in stacks.into_iter().flatten() {
            if chosen.iter().all(|other| other.name != manager.name) {
                chosen.push(manager);
            }
        }
    }
    Ok(chosen)
}

/// Whether a word, less its layers, names a group of managers and not one.
pub fn is_group(known: &[Manager], word: &str) -> bool {
    let rest = stack::layers(word).map_or(word, |(_, rest)| rest);
    let all = everything(known);
    rest == EVERY_GROUP || all.iter().chain(apart(known)).any(|manager| is_in(manager, rest))
}

/// Whether a manager is in the group of this name.
fn is_in(manager: &Manager, group: &str) -> bool {
    manager.group != Group::None && manager.group.as_str() == group
}

/// The names in rows of managers that were named one by one on the command line: `quarantine=2M/mimalloc3` for
/// `quarantine=2048K/mimalloc`. Groups have none, nor has what is not known.
pub fn names_of<'a>(known: &[Manager], words: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let single = words.into_iter().filter(|word| !is_group(known, word));
    single.filter_map(|word| find(known, word).ok()).map(|manager| manager.name).collect()
}

/// The managers of a comparison: those that were named, or [`default_set`] when none was; the baseline is first, and
/// added when it is not among them.
///
/// # Errors
/// As [`find`].
pub fn choose_with_baseline(
    known: &[Manager],
    words: &[String],
    baseline: &str,
) -> Result<Vec<Manager>, ManagerError> {
    let mut chosen =
        if words.is_empty() { default_set(known) } else { choose(known, words.iter().map(String::as_str))? };
    let baseline = find(known, baseline)?;
    match chosen.iter().position(|manager| manager.name == baseline.name) {
        Some(at) => chosen[..=at].rotate_right(1),
        None => chosen.insert(0, baseline),
    }
    Ok(chosen)
}

/// Managers that only their own group and their names choose: Java's serve no other program, and of two users one has
/// added a manager.
fn apart(known: &[Manager]) -> impl Iterator<Item = &Manager> {
    known.iter().filter(|manager| matches!(manager.kind, ManagerSource::Java | ManagerSource::Added))
}

/// glibc, everything built here, and Debian's objects that stand in for one that is not built.
pub fn everything(known: &[Manager]) -> Vec<Manager> {
    let is_built =
        |name: &str| known.iter().any(|manager| manager.kind == ManagerSource::Built && manager.name == name);
    known
        .iter()
        .filter(|manager| match manager.kind {
            ManagerSource::Debian => manager.stands_for.is_some_and(|name| !is_built(name)),
            ManagerSource::Java | ManagerSource::Added => false,
            _ => true,
        })
        .cloned()
        .collect()
}
