//! What is written next to a manager: its description, which heaptoll reads, and whether it is still up to date.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::Refusal;
use crate::manifest::digest;
use crate::object::ObjectBuild;
use crate::table::Variant;

/// `NAME.toml`.
#[derive(Debug, Serialize)]
pub(crate) struct Description {
    name: String,
    version: String,
    /// Repositories and commits, a crate, or a package.
    origin: String,
    /// The first line of the compiler's `--version`.
    compiler: String,
    flags: String,
    kind: Option<&'static str>,
    about: String,
    licence: Option<String>,
    /// The recipe that `heaptoll managers add` takes.
    recipe: Option<String>,
    group: Option<String>,
    /// The object, where several managers are one.
    object: Option<String>,
    stamp: Option<String>,
    /// Of the object, in hexadecimal.
    sha256: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    environment: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    options: toml::Table,
}

impl Description {
    /// That of a manager whose object has been built.
    ///
    /// # Errors
    /// No compiler of C++.
    pub(crate) fn of(
        build: &ObjectBuild<'_>,
        (name, variant): (&str, &Variant),
        sha256: &str,
    ) -> Result<Description, Refusal> {
        let table = &build.object.recipe.table;
        let is_peer = table.source.is_some();
        let compiler = if is_peer { &build.compilers.c } else { build.linker()? };
        Ok(Description {
            name: name.to_owned(),
            version: build.sources.version.clone(),
            origin: build.sources.origin.clone(),
            compiler: compiler.version(),
            flags: build.flags(),
            kind: is_peer.then_some("peer"),
            about: variant.about.clone(),
            licence: (!is_peer).then(|| table.licence.clone()),
            recipe: (!is_peer).then(|| table.name.clone()),
            group: table.group.clone(),
            object: variant.object.as_ref().map(|name| format!("{name}.so")),
            stamp: build.stamp.clone(),
            sha256: sha256.to_owned(),
            environment: variant.environment.clone(),
            options: table.options.clone(),
        })
    }

    /// As TOML.
    pub(crate) fn text(&self) -> Result<String, Refusal> {
        toml::to_string(self).map_err(|error| Refusal::System {
            what: "describe it".into(),
            source: std::io::Error::other(error),
        })
    }
}

/// The description of a manager in a folder, if it and its object are whole.
pub fn installed(folder: &Path, name: &str) -> Option<toml::Table> {
    let text = fs::read_to_string(folder.join(format!("{name}.toml"))).ok()?;
    let description: toml::Table = text.parse().ok()?;
    let value = |key: &str| description.get(key).and_then(toml::Value::as_str);
    let object = folder.join(value("object").map_or_else(|| format!("{name}.so"), str::to_owned));
    (value("sha256") == Some(&digest(&fs::read(object).ok()?))).then_some(description)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_object_does_not_count_as_installed() {
        let folder = tempfile::tempdir().expect("made");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
        write("one.so", "object");
        let digest = digest(b"object");
        write("one.toml", &format!("sha256 = '{digest}'"));
        write("two.toml", &format!("sha256 = '{digest}'\nobject = 'one.so'"));
        for name in ["one", "two"] {
            assert!(installed(folder.path(), name).is_some(), "{name}");
        }
        write("one.so", "obj");
        for name in ["one", "two", "three"] {
            assert!(installed(folder.path(), name).is_none(), "{name}");
        }
    }
}
