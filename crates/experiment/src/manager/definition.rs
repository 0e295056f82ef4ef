//! One manager: its name in rows, and what is preloaded and set for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::places::Places;
use crate::stack::{Layer, ManagerOption, layers};

/// Where a manager comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagerSource {
    /// The C library's own, with nothing preloaded (unless the preflight finds that libc itself must be).
    Glibc,
    /// Built here from its crate.
    Built,
    /// A Debian package's shared object.
    Debian,
    /// Fetched and built here for this user (`heaptoll managers add`).
    Added,
    /// A shared object the user named.
    Path,
    /// A collector of the Java virtual machine that the program runs in; it serves no malloc.
    Java,
}

/// What a manager belongs to: a word that names several on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// In use today, or meant to be.
    #[default]
    Modern,
    /// One the papers of 1992 to 1994 measured, or argue with.
    Historic,
    /// A collector, ours or another's. Not among what a program could be shipped with: with frees ignored it takes
    /// several times the CPU time on some programs.
    Collectors,
    /// In no group: measured where it is named, and with all.
    None,
    /// Those that the user has added: in no other group, or what a group measures would depend on the user.
    Added,
    /// The collectors of Java's virtual machine, which manage the heap of programs in Java and nothing else.
    Jvm,
}

impl Group {
    /// The word on the command line, as in `-m modern`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Group::Modern => "modern",
            Group::Historic => "historic",
            Group::Collectors => "collectors",
            Group::None => "-",
            Group::Added => "added",
            Group::Jvm => "jvm",
        }
    }
}

/// A manager: a name for rows and what is preloaded for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    /// Name in rows and on the command line.
    pub name: String,
    /// Shared object; `None` for glibc.
    pub object: Option<PathBuf>,
    /// Set in the environment of every program that runs under it, by name. It distinguishes managers that share an
    /// object, so it overrides what the user or the program has set.
    pub environment: Vec<(String, String)>,
    /// Version, as far as known.
    pub version: String,
    /// Crate, package or path.
    pub origin: String,
    /// One line about it.
    pub about: String,
    /// Where it comes from.
    pub kind: ManagerSource,
    /// What it belongs to.
    pub group: Group,
    /// For a Debian object: the name of the manager built here that it stands in for.
    pub stands_for: Option<&'static str>,
    /// The manager's own name: `name` less layers and options.
    pub base: String,
    /// Layers in front of it, the program's first.
    pub layers: Vec<Layer>,
    /// Options it has, by word (`every`, `heap`).
    pub options: BTreeMap<String, ManagerOption>,
    /// Those that were set.
    pub set: Vec<String>,
}

/// Managers that collect garbage, by name: some are outside of the group.
const COLLECTORS: [&str; 8] =
    ["tithe", "tithe-collect", "tithe-guard", "bdw", "bdw-nofree", "bw16", "bw26", "treadmill"];

/// The layers of a stack of this name, and its manager's own name, without options. A layer that this installation lacks, or
/// one whose settings it refuses, hides none behind it.
fn parts(stack: &str) -> (Vec<Layer>, &str) {
    let (mut found, rest) = layers(stack).unwrap_or_else(|_| {
        let first = stack.split('/').next().unwrap_or(stack);
        (Layer::as_written(first).into_iter().collect(), stack)
    });
    match rest.split_once('/') {
        // What is no path of an object.
        Some((first, inner)) if !matches!(first, "" | "." | "..") => {
            let (more, base) = parts(inner);
            found.extend(more);
            (found, base)
        }
        _ => {
            let options = rest.rsplit('/').next().unwrap_or(rest);
            (found, options.split([',', '#']).next().unwrap_or(options))
        }
    }
}

/// Whether a stack of this name collects garbage, where the name shows it: as [`Manager::collects`].
pub fn collects(stack: &str) -> bool {
    let (layers, base) = parts(stack);
    COLLECTORS.contains(&base) || layers.iter().any(|layer| layer.kind.collects)
}

/// Collectors that reclaim nothing where the program frees, by their names in rows.
pub(super) const IGNORING_FREES: [&str; 5] = ["tithe-collect", "bdw-nofree", "bw16", "bw26", "treadmill"];

/// Whether a stack of this name ignores frees and reclaims by collections alone, where the name shows it. One
/// option matters: the one that has a collecting layer obey frees.
pub fn ignores_frees(stack: &str) -> bool {
    let (layers, base) = parts(stack);
    let ignores = |layer: &Layer| layer.kind.collects && layer.setting("free") != Some("honour");
    IGNORING_FREES.contains(&base) || layers.iter().any(ignores)
}

/// A setting or a stack's name with the name of the program in place of `{program}`, as a file has it.
pub fn filled(text: &str, program: &str) -> String {
    text.replace("{program}", &program.replace('/', "_"))
}

/// What stands for the scratch folder of a run.
const FOLDER: &str = "{tmp}";

/// The environment of a stack, with the scratch folder of a run where it is named.
pub fn in_folder(environment: &[(String, String)], folder: &Path) -> impl Iterator<Item = (String, String)> {
    let folder = folder.display().to_string();
    environment.iter().map(move |(name, value)| (name.clone(), value.replace(FOLDER, &folder)))
}

/// Whether the environment of a stack names it: so do the collectors of Java, which write a log.
pub fn uses_folder(environment: &[(String, String)]) -> bool {
    environment.iter().any(|(_, value)| value.contains(FOLDER))
}

impl Manager {
    /// Whether it is a collector of Java's virtual machine.
    pub fn is_java(&self) -> bool {
        self.kind == ManagerSource::Java
    }

    /// Whether garbage is collected, by the manager or by a layer, so that freed blocks may wait: by group or by name,
    /// for nothing in an object shows it.
    pub fn collects(&self) -> bool {
        matches!(self.group, Group::Jvm | Group::Collectors)
            || COLLECTORS.contains(&self.base.as_str())
            || self.layers.iter().any(|layer| layer.kind.collects)
    }

    /// Why no layer can stand in front of it, if none can.
    pub fn why_no_layers(&self) -> Option<&'static str> {
        if self.is_java() {
            return Some(
                "it is a collector of Java's virtual machine and serves no malloc, so a layer would see only \
                 the C library's; take LAYER/glibc for what the virtual machine allocates by malloc",
            );
        }
        UNFIT_FOR_LAYERS.contains(&self.base.as_str()).then_some(
            "bdw crashes with a layer in front: it takes what the dynamic linker allocates for garbage",
        )
    }

    /// Its environment for a program, whose name replaces `{program}`.
    pub fn environment_for(&self, program: &str) -> Vec<(String, String)> {
        self.environment.iter().map(|(name, value)| (name.clone(), filled(value, program))).collect()
    }

    /// The objects to preload: the layers', then its own.
    pub fn preload(&self, places: &Places) -> Vec<PathBuf> {
        self.layers.iter().map(|layer| layer.kind.object(places)).chain(self.object.clone()).collect()
    }
}

/// Managers that look up their caller, and find a layer: 21 of 25 runs of a program with threads crashed.
const UNFIT_FOR_LAYERS: [&str; 2] = ["bdw", "bdw-nofree"];

/// The C library's own.
pub fn glibc() -> Manager {
    Manager {
        name: "glibc".into(),
        object: None,
        environment: vec![],
        version: crate::machine::libc_version(),
        origin: "the C library of this system".into(),
        about: "ptmalloc, the baseline".into(),
        kind: ManagerSource::Glibc,
        group: Group::Modern,
        stands_for: None,
        base: "glibc".into(),
        layers: vec![],
        options: BTreeMap::new(),
        set: vec![],
    }
}
