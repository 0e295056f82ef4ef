//! Managers built here, with heaptoll or by the user: an object, and the description next to it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::definition::{Group, Manager, ManagerSource};
use super::error::ManagerError;
use crate::stack::ManagerOption;

/// The content of `NAME.toml` next to a built manager. Written by the peer builder and by `heaptoll managers add`, which
/// may use other keys as well.
#[derive(Deserialize)]
struct Description {
    name: String,
    version: String,
    origin: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    group: Group,
    /// File next to the description; `NAME.so` when none is named. Several managers may be one object in several modes,
    /// and those of Java's virtual machine have none.
    object: Option<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    options: BTreeMap<String, ManagerOption>,
}

/// Whether a description may set this variable: the loader's and heaptoll's own decide what is measured.
fn may_be_set(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['=', '\0'])
        && !["LD_", "GLIBC_TUNABLES", "HEAPTOLL_"].iter().any(|prefix| name.starts_with(prefix))
}

/// The manager that a description describes.
pub(super) fn built(description: &Path) -> Result<Manager, ManagerError> {
    let error =
        |reason: String| ManagerError::Description { path: description.display().to_string(), reason };
    let text = std::fs::read_to_string(description).map_err(|cause| error(cause.to_string()))?;
    let parsed: Description = toml::from_str(&text).map_err(|cause| error(cause.to_string()))?;
    let object = match &parsed.object {
        None if parsed.group == Group::Jvm => None,
        None => Some(description.with_extension("so")),
        Some(name) if Path::new(name).file_name().is_some_and(|own| own == name.as_str()) => {
            Some(description.with_file_name(name))
        }
        Some(name) => return Err(error(format!("object `{name}` is not a file name"))),
    };
    if let Some(name) = parsed.environment.keys().find(|name| !may_be_set(name)) {
        return Err(error(format!("a manager cannot set `{name}` in a program's environment")));
    }
    if let Some(missing) = object.as_ref().filter(|object| !object.is_file()) {
        return Err(error(format!("describes {}, which does not exist", missing.display())));
    }
    if let Some(name) = parsed
        .options
        .values()
        .flat_map(|option| std::iter::once(&option.variable).chain(option.with.keys()))
        .find(|name| !may_be_set(name))
    {
        return Err(error(format!("a manager cannot set `{name}` in a program's environment")));
    }
    Ok(Manager {
        base: parsed.name.clone(),
        name: parsed.name,
        kind: if object.is_some() { ManagerSource::Built } else { ManagerSource::Java },
        object,
        environment: parsed.environment.into_iter().collect(),
        version: parsed.version,
        origin: parsed.origin,
        about: parsed.about,
        group: parsed.group,
        stands_for: None,
        layers: vec![],
        options: parsed.options,
        set: vec![],
    })
}

/// The manager that a description in the user's own folder describes. Its group is its own.
pub(super) fn added(description: &Path) -> Result<Manager, ManagerError> {
    built(description)
        .and_then(|manager| match manager.is_java() {
            true => Err(ManagerError::Description {
                path: description.display().to_string(),
                reason: "has no object".into(),
            }),
            false => Ok(Manager { kind: ManagerSource::Added, group: Group::Added, ..manager }),
        })
        .map_err(|error| match error {
            ManagerError::Description { path, reason } => ManagerError::Added { path, reason },
            other => other,
        })
}

#[cfg(test)]
#[path = "built_fuzz.rs"]
mod fuzz;
