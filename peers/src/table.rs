//! `recipe.toml` of managers: where the sources are, what is compiled with which flags, and what it gives.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `recipe.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagerTable {
    /// What the user types.
    pub name: String,
    /// The allocator's own version, with what is filled in (`Sources::filled`).
    pub version: String,
    /// Where a peer's sources have `{found}` of its version.
    pub found: Option<Place>,
    /// The licences, in a line.
    #[serde(default)]
    pub licence: String,
    /// Of a peer: where the sources are.
    pub source: Option<Source>,
    #[serde(default)]
    pub repositories: Vec<Repository>,
    /// The files with a peer's licence, in its sources or next to the recipe.
    #[serde(default)]
    pub licence_files: Vec<String>,
    /// What is compiled, from the folder above the repositories', or from the peer's; its language by its ending. What
    /// takes longest comes first.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Places that name more of them, in this order.
    #[serde(default)]
    pub listed: Vec<Place>,
    /// C files of the recipe's own, or of the folder `common` next to it.
    #[serde(default)]
    pub own_sources: Vec<String>,
    /// What these include from elsewhere in the project, from the recipe's folder.
    #[serde(default)]
    pub headers: Vec<String>,
    /// Folders for headers.
    #[serde(default)]
    pub includes: Vec<String>,
    /// Of the compilers of C and C++, for sources of others.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Of the compiler of C alone.
    #[serde(default)]
    pub c_flags: Vec<String>,
    /// Of the compiler of C++ alone.
    #[serde(default)]
    pub cxx_flags: Vec<String>,
    /// More flags, by the source that alone needs them.
    #[serde(default)]
    pub file_flags: BTreeMap<String, Vec<String>>,
    pub configure: Option<Configure>,
    /// The linker's list of what is exported: a file as an own source is.
    pub version_script: Option<String>,
    /// Of the linker, after the objects.
    #[serde(default)]
    pub link: Vec<String>,
    /// Whether `calloc` detects that its product overflows, as C requires.
    #[serde(default = "yes")]
    pub checks_overflow: bool,
    /// As in a description.
    pub group: Option<String>,
    /// As in a description.
    #[serde(default)]
    pub options: toml::Table,
    /// By the name for `-m`.
    pub managers: BTreeMap<String, Variant>,
}

fn yes() -> bool {
    true
}

/// Where the sources of a peer are.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// In a crate of this name.
    Crate(String),
    /// Next to the recipe, over this package of Debian's.
    Package(String),
}

/// What a file of the sources has: the groups of a regular expression, with dots between them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    pub file: String,
    pub pattern: String,
}

/// The authors' `configure` and `make`, which make the objects in a copy of the tree.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configure {
    /// The folder that is copied.
    pub tree: String,
    /// The script, which goes into the copy.
    pub script: String,
    pub arguments: Vec<String>,
    /// Arguments of `make`.
    pub make: Vec<String>,
    /// A file of the copy that is left empty, not generated.
    pub empty: String,
    /// The folder of the copy with the objects.
    pub folder: String,
    /// How their names end.
    pub ending: String,
}

/// A repository that has sources.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repository {
    /// Its folder's name.
    pub name: String,
    pub url: String,
    /// The commit whose files the manifest describes.
    pub commit: String,
    /// Folders and files of it that are needed.
    pub paths: Vec<String>,
    /// The files with its licence.
    pub licence_files: Vec<String>,
}

/// One manager.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// A line about it, which states what of it is ours.
    pub about: String,
    /// Of the compilers, or of `configure`.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Set for each program that runs under it.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The manager whose object it is in another mode; it may be its own.
    pub object: Option<String>,
    /// Words that `heaptoll-peers` builds it by, besides its name.
    #[serde(default)]
    pub groups: Vec<String>,
}

impl Repository {
    /// In a description.
    pub fn origin(&self) -> String {
        let commit = self.commit.get(..12).unwrap_or(&self.commit);
        format!("{} {commit}", self.url.trim_start_matches("https://"))
    }
}
