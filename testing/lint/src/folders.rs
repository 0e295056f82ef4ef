//! The order of the folders: `testing/lint/folders.toml` lists which folder may use which, and every dependency in Cargo's
//! manifests and every include of our C files follows it.

use std::path::{Component, Path, PathBuf};

use cargo_metadata::MetadataCommand;
use serde::Deserialize;

use crate::{Error, Finding, source};

/// Where the order is, from the repository's root.
pub const ORDER: &str = "testing/lint/folders.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    folder: Vec<Folder>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Folder {
    path: String,
    /// One line, for readers.
    about: String,
    uses: Vec<String>,
}

/// One file or package that uses another; paths from the repository's root.
#[derive(Debug, PartialEq, Eq)]
struct Use {
    from: PathBuf,
    line: usize,
    to: PathBuf,
}

/// Dependencies against the order in the repository at `root`, and folders that it does not list.
///
/// # Errors
/// The order or a file cannot be read, or cargo fails.
pub fn check(root: &Path) -> Result<Vec<Finding>, Error> {
    let root = &root.canonicalize().map_err(Error::read(root))?;
    let path = root.join(ORDER);
    let text = std::fs::read_to_string(&path).map_err(Error::read(&path))?;
    let order = parsed(&text).map_err(|message| Error::rules(&path, message))?;
    let mut uses = dependencies(root, Path::new("Cargo.toml"))?;
    for workspace in ["preload/Cargo.toml", "moving/Cargo.toml"] {
        uses.extend(dependencies(root, Path::new(workspace))?);
    }
    for file in source::files(root)? {
        uses.extend(includes(root, &file)?);
    }
    Ok(uses.iter().filter_map(|one| order.broken_by(one)).collect())
}

fn parsed(text: &str) -> Result<Order, String> {
    let order: Order = toml::from_str(text).map_err(|e| e.to_string())?;
    for (index, folder) in order.folder.iter().enumerate() {
        if folder.about.is_empty() {
            return Err(format!("{} has no line about it", folder.path));
        }
        let below = |used: &&String| order.folder.iter().take(index).all(|other| other.path != **used);
        if let Some(used) = folder.uses.iter().find(below) {
            return Err(format!("{} uses {used}, which does not stand above it in the list", folder.path));
        }
    }
    Ok(order)
}

impl Order {
    /// The folder with the longest path that holds `path`.
    fn folder(&self, path: &Path) -> Option<&Folder> {
        self.folder.iter().filter(|f| path.starts_with(&f.path)).max_by_key(|f| f.path.len())
    }

    fn broken_by(&self, one: &Use) -> Option<Finding> {
        let text = match (self.folder(&one.from), self.folder(&one.to)) {
            (Some(from), Some(to)) if from.path == to.path || from.uses.contains(&to.path) => return None,
            (Some(from), Some(to)) => {
                format!("{} uses {} ({}), against the order of {ORDER}", from.path, to.path, one.to.display())
            }
            (None, _) => format!("{} is in no folder of {ORDER}", one.from.display()),
            (_, None) => format!("{} is in no folder of {ORDER}", one.to.display()),
        };
        Some(Finding { path: one.from.to_string_lossy().into_owned(), line: one.line, text })
    }
}

/// Dependencies by path of the packages of a workspace.
fn dependencies(root: &Path, manifest: &Path) -> Result<Vec<Use>, Error> {
    let path = root.join(manifest);
    let failed = |e: cargo_metadata::Error| Error::Metadata { path: path.clone(), message: e.to_string() };
    let metadata = MetadataCommand::new()
        .manifest_path(&path)
        .no_deps()
        .other_options(["--offline".to_string()])
        .exec()
        .map_err(failed)?;
    let relative = |path: &Path| path.strip_prefix(root).map(Path::to_path_buf).ok();
    let mut uses = Vec::new();
    for package in &metadata.packages {
        let Some(from) = relative(package.manifest_path.as_std_path()) else { continue };
        let targets = package.dependencies.iter().filter_map(|dependency| dependency.path.as_ref());
        uses.extend(targets.filter_map(|target| {
            Some(Use { from: from.clone(), line: 0, to: relative(target.as_std_path())? })
        }));
    }
    Ok(uses)
}

/// `#include "..."` with a path out of the file's own folder.
fn includes(root: &Path, file: &Path) -> Result<Vec<Use>, Error> {
    if !matches!(file.extension().and_then(|e| e.to_str()), Some("c" | "h" | "cpp")) {
        return Ok(Vec::new());
    }
    let full = root.join(file);
    let bytes = std::fs::read(&full).map_err(Error::read(&full))?;
    let folder = file.parent().unwrap_or(Path::new(""));
    Ok(String::from_utf8_lossy(&bytes)
        .lines()
        .enumerate()
        .filter_map(|(line, text)| Some((line + 1, included(text)?)))
        .filter(|(_, name)| name.starts_with(".."))
        .map(|(line, name)| Use { from: file.to_path_buf(), line, to: normal(&folder.join(name)) })
        .collect())
}

fn included(line: &str) -> Option<&str> {
    let name = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    name.strip_prefix('"')?.split_once('"').map(|(name, _)| name)
}

/// Without `..`, by the names alone.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        folder = [
            { path = "shm", about = "a", uses = [] },
            { path = "preload", about = "b", uses = ["shm"] },
            { path = "preload/testkit", about = "c", uses = [] },
        ]
    "#;

    fn broken(from: &str, to: &str) -> Option<String> {
        let one = Use { from: from.into(), line: 0, to: to.into() };
        parsed(LIST).expect("the list is valid").broken_by(&one).map(|finding| finding.to_string())
    }

    #[test]
    fn a_folder_uses_itself_and_what_it_names() {
        assert_eq!(broken("preload/roots/Cargo.toml", "shm/process"), None);
        assert_eq!(broken("preload/roots/Cargo.toml", "preload/runtime"), None);
        let text = broken("shm/process/Cargo.toml", "preload/runtime").expect("it is against the order");
        assert!(text.contains("shm uses preload (preload/runtime)"), "{text}");
    }

    #[test]
    fn the_longest_path_decides() {
        assert!(broken("preload/roots/Cargo.toml", "preload/testkit").is_some());
        assert!(broken("preload/testkit/Cargo.toml", "shm/process").is_some());
    }

    #[test]
    fn a_folder_that_is_not_listed_is_a_finding() {
        assert!(broken("new/Cargo.toml", "shm/process").is_some_and(|text| text.contains("no folder")));
        assert!(broken("shm/process/Cargo.toml", "new").is_some_and(|text| text.contains("no folder")));
    }

    #[test]
    fn a_list_that_leads_back_is_refused() {
        let text = LIST.replace(r#""a", uses = []"#, r#""a", uses = ["preload"]"#);
        assert!(parsed(&text).is_err_and(|message| message.contains("does not stand above")));
    }

    #[test]
    fn includes_are_read_as_the_preprocessor_reads_them() {
        assert_eq!(included("#include \"../a.h\""), Some("../a.h"));
        assert_eq!(included("  #  include \"a.h\" /* b */"), Some("a.h"));
        assert_eq!(included("#include <a.h>"), None);
        assert_eq!(normal(Path::new("a/b/../../c/d.h")), Path::new("c/d.h"));
    }
}
