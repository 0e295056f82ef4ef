//! Managers by name: glibc, those built here, Debian's stand-ins, and any shared object by path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use heaptoll_catalog::did_you_mean;
use serde::Deserialize;
use thiserror::Error;

use crate::places::Places;
use crate::stack::{self, Layer, LayerKind, ManagerOption, StackError};

/// Where a manager comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagerSource {
    /// The C library's own, with nothing preloaded (unless the preflight finds that libc itself must be).
    Glibc,
    /// Built here from its crate.
    Built,
    /// A Debian package's shared object.
    Debian,
    /// A shared object the user named.
    Path,
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
    /// A collector, ours or another's, and the heap of ours without collections. Not among what a program could be
    /// shipped with: with frees ignored it takes several times the CPU time on some programs.
    Collectors,
}

impl Group {
    /// The word on the command line, as in `-m modern`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Group::Modern => "modern",
            Group::Historic => "historic",
            Group::Collectors => "collectors",
        }
    }
}

/// The word for the managers of every group.
const EVERY_GROUP: &str = "all";

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

/// Managers outside of the group that collect garbage, too.
const COLLECTORS: [&str; 4] = ["tithe", "tithe-collect", "bw16", "bw26"];

/// Managers of the group that collect none.
const EXPLICIT: [&str; 1] = ["tithe-explicit"];

impl Manager {
    /// Whether garbage is collected, by the manager or by a layer, so that freed blocks may wait: by group or by name,
    /// for nothing in an object shows it.
    pub fn collects(&self) -> bool {
        self.group == Group::Collectors && !EXPLICIT.contains(&self.base.as_str())
            || COLLECTORS.contains(&self.base.as_str())
            || self.layers.iter().any(|layer| layer.kind == LayerKind::Sweep)
    }

    /// Why no layer can stand in front of it, if none can.
    pub fn why_no_layers(&self) -> Option<&'static str> {
        UNFIT_FOR_LAYERS.contains(&self.base.as_str()).then_some(
            "bdw takes what the dynamic linker allocates for garbage when a layer stands in front of it, and crashes",
        )
    }

    /// The objects to preload: the layers', then its own.
    pub fn preload(&self, places: &Places) -> Vec<PathBuf> {
        self.layers.iter().map(|layer| layer.kind.object(places)).chain(self.object.clone()).collect()
    }
}

/// Managers that look up their caller, and find a layer: 21 of 25 runs of a program with threads crashed.
const UNFIT_FOR_LAYERS: [&str; 2] = ["bdw", "bdw-nofree"];

/// A manager that cannot be had.
#[derive(Debug, Error)]
pub enum ManagerError {
    /// Neither a known name nor a path.
    #[error(
        "there is no manager `{name}`{suggestion}; known here: {known}; groups of them: modern, historic, collectors, all. A shared object of your own is named by its path (with a `/`)"
    )]
    Unknown {
        /// What was requested.
        name: String,
        /// The nearest name, as the sentence goes on with it, or nothing.
        suggestion: String,
        /// Names that exist.
        known: String,
    },
    /// Layers or options that do not fit.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// What stands in front of a `/` is neither a layer nor a folder.
    #[error(
        "there is no layer `{name}`{suggestion}; layers are {known} (`heaptoll managers`); a manager's path begins with ./ or /"
    )]
    NoLayer {
        /// As given.
        name: String,
        /// The nearest name, as the sentence goes on with it, or nothing.
        suggestion: String,
        /// Those there are.
        known: String,
    },
    /// A path without a file.
    #[error("manager {path}: {reason}")]
    NoFile {
        /// The path.
        path: String,
        /// The system's error.
        reason: String,
    },
    /// A built manager's description that cannot be read.
    #[error("{path}: {reason}; run `make build` again")]
    Description {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The content of `NAME.toml` next to a built manager. Written by the peer builder, which may use other keys as well.
#[derive(Deserialize)]
struct Description {
    name: String,
    version: String,
    origin: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    group: Group,
    /// File next to the description; `NAME.so` when none is named. Several managers may be one object in several modes.
    object: Option<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    options: BTreeMap<String, ManagerOption>,
}

struct DebianObject {
    name: &'static str,
    file: &'static str,
    package: &'static str,
    about: &'static str,
    stands_for: Option<&'static str>,
}

/// Debian's libtcmalloc is gperftools', not Google's present TCMalloc, and is named so.
const DEBIAN: [DebianObject; 4] = [
    DebianObject {
        name: "debian-jemalloc",
        file: "libjemalloc.so.2",
        package: "libjemalloc2",
        about: "jemalloc as Debian builds it",
        stands_for: Some("jemalloc"),
    },
    DebianObject {
        name: "debian-gperftools",
        file: "libtcmalloc_minimal.so.4",
        package: "libtcmalloc-minimal4",
        about: "gperftools' tcmalloc, minimal, as Debian builds it",
        stands_for: Some("tcmalloc"),
    },
    DebianObject {
        name: "debian-mimalloc2",
        file: "libmimalloc.so.2.0",
        package: "libmimalloc2.0",
        about: "mimalloc v2 as Debian builds it",
        stands_for: Some("mimalloc2"),
    },
    DebianObject {
        name: "debian-tbb",
        file: "libtbbmalloc_proxy.so.2",
        package: "libtbbmalloc2",
        about: "oneTBB's scalable allocator as Debian builds it",
        stands_for: None,
    },
];

const LIBRARY_FOLDERS: [&str; 5] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"];

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

fn package_version(package: &str) -> Option<String> {
    let output = Command::new("dpkg-query").args(["-W", "-f", "${Version}", package]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn debian(object: &DebianObject) -> Option<Manager> {
    let path = LIBRARY_FOLDERS
        .iter()
        .map(|folder| Path::new(folder).join(object.file))
        .find(|path| path.is_file())?;
    let version = package_version(object.package);
    Some(Manager {
        name: object.name.into(),
        origin: match &version {
            Some(_) => format!("Debian package {}", object.package),
            None => path.display().to_string(),
        },
        version: version.unwrap_or_else(|| "unknown".into()),
        object: Some(path),
        environment: vec![],
        about: object.about.into(),
        kind: ManagerSource::Debian,
        stands_for: object.stands_for,
        base: object.name.into(),
        ..glibc()
    })
}

/// Whether a description may set this variable: the loader's and heaptoll's own decide what is measured.
fn may_be_set(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['=', '\0'])
        && !["LD_", "GLIBC_TUNABLES", "HEAPTOLL_"].iter().any(|prefix| name.starts_with(prefix))
}

fn built(description: &Path) -> Result<Manager, ManagerError> {
    let error =
        |reason: String| ManagerError::Description { path: description.display().to_string(), reason };
    let text = std::fs::read_to_string(description).map_err(|cause| error(cause.to_string()))?;
    let parsed: Description = toml::from_str(&text).map_err(|cause| error(cause.to_string()))?;
    let object = match &parsed.object {
        None => description.with_extension("so"),
        Some(name) if Path::new(name).file_name().is_some_and(|own| own == name.as_str()) => {
            description.with_file_name(name)
        }
        Some(name) => return Err(error(format!("object `{name}` is not a file name"))),
    };
    if let Some(name) = parsed.environment.keys().find(|name| !may_be_set(name)) {
        return Err(error(format!("a manager cannot set `{name}` in a program's environment")));
    }
    if !object.is_file() {
        return Err(error(format!("describes {}, which does not exist", object.display())));
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
        object: Some(object),
        environment: parsed.environment.into_iter().collect(),
        version: parsed.version,
        origin: parsed.origin,
        about: parsed.about,
        kind: ManagerSource::Built,
        group: parsed.group,
        stands_for: None,
        layers: vec![],
        options: parsed.options,
        set: vec![],
    })
}

/// The order in which managers are listed; names not in it follow by alphabet.
const ORDER: [&str; 23] = [
    "tithe",
    "tithe-collect",
    "tithe-explicit",
    "mimalloc3",
    "mimalloc2",
    "jemalloc",
    "snmalloc",
    "tcmalloc",
    "rpmalloc",
    "bdw",
    "bdw-nofree",
    // The papers' collectors, then their allocators as the papers bring them up: Zorn 1992 §2.1 and §3, Detlefs 1994,
    // Boehm's slides.
    "bw16",
    "bw26",
    "knuth",
    "bestfit",
    "cartesian",
    "kingsley",
    "haertel",
    "buddy",
    "lea",
    "quickfit",
    "pow2",
    "bump",
];

/// Every manager known on this machine: glibc, then those built here, then Debian's.
///
/// # Errors
/// A built manager whose description cannot be read.
pub fn known(places: &Places) -> Result<Vec<Manager>, ManagerError> {
    let mut descriptions: Vec<PathBuf> = std::fs::read_dir(places.managers())
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    descriptions.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let mut built: Vec<Manager> = descriptions.iter().map(|path| built(path)).collect::<Result<_, _>>()?;
    let rank = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    built.sort_by(|a, b| rank(&a.name).cmp(&rank(&b.name)).then_with(|| a.name.cmp(&b.name)));
    Ok(std::iter::once(glibc()).chain(built).chain(DEBIAN.iter().filter_map(debian)).collect())
}

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
    let grouped = everything(known);
    let mut chosen: Vec<Manager> = Vec::new();
    for word in words {
        let (layers, rest) = stack::layers(word)?;
        if !is_group(known, rest) {
            chosen.push(find(known, word)?);
            continue;
        }
        let group = grouped.iter().filter(|manager| rest == EVERY_GROUP || rest == manager.group.as_str());
        let stacks: Vec<_> = group.map(|manager| stack::stacked(layers.clone(), manager.clone())).collect();
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
    rest == EVERY_GROUP || everything(known).iter().any(|manager| rest == manager.group.as_str())
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

/// glibc, everything built here, and Debian's objects that stand in for one that is not built.
pub fn everything(known: &[Manager]) -> Vec<Manager> {
    let is_built =
        |name: &str| known.iter().any(|manager| manager.kind == ManagerSource::Built && manager.name == name);
    known
        .iter()
        .filter(|manager| match manager.kind {
            ManagerSource::Debian => manager.stands_for.is_some_and(|name| !is_built(name)),
            _ => true,
        })
        .cloned()
        .collect()
}

/// A stack as it is written ([`crate::stack`]): layers, and a manager by name, or by path when its name has a `/`.
///
/// # Errors
/// An unknown name, a path that is no file, or a stack that makes no sense. The preflight checks what the file
/// contains.
pub fn find(known: &[Manager], word: &str) -> Result<Manager, ManagerError> {
    let (layers, rest) = stack::layers(word)?;
    if rest.contains('/') {
        return stack::stacked(layers, by_path(rest)?);
    }
    let mut pieces = rest.split(',');
    let manager = by_name(known, pieces.next().unwrap_or(rest))?;
    stack::stacked(layers, stack::with_options(manager, pieces)?)
}

fn by_path(name: &str) -> Result<Manager, ManagerError> {
    let no_file = |reason: String| ManagerError::NoFile { path: name.into(), reason };
    // Links are kept: one may be there because the loader cannot take the name of its target.
    let path = std::path::absolute(name).map_err(|error| no_file(error.to_string()))?;
    let found = path
        .metadata()
        .map_err(|error| stack::no_layer(name).unwrap_or_else(|| no_file(error.to_string())))?;
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

fn unknown(known: &[Manager], name: &str) -> ManagerError {
    let groups = [Group::Modern, Group::Historic, Group::Collectors].map(Group::as_str);
    // What Debian's objects stand for is a name, too.
    let names = known.iter().flat_map(|manager| [Some(manager.name.as_str()), manager.stands_for]).flatten();
    ManagerError::Unknown {
        name: name.into(),
        suggestion: did_you_mean(name, names.chain(groups)),
        known: known.iter().map(|manager| manager.name.as_str()).collect::<Vec<_>>().join(", "),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(name: &str, kind: ManagerSource, stands_for: Option<&'static str>) -> Manager {
        Manager { name: name.into(), base: name.into(), kind, stands_for, ..glibc() }
    }

    #[test]
    fn a_stand_in_leaves_when_the_real_one_is_built() {
        let names = |known: &[Manager]| -> Vec<String> {
            default_set(known).into_iter().map(|manager| manager.name).collect()
        };
        let mut known = vec![
            manager("glibc", ManagerSource::Glibc, None),
            manager("debian-jemalloc", ManagerSource::Debian, Some("jemalloc")),
            manager("debian-tbb", ManagerSource::Debian, None),
        ];
        assert_eq!(names(&known), ["glibc", "debian-jemalloc"]);
        known.push(manager("jemalloc", ManagerSource::Built, None));
        assert_eq!(names(&known), ["glibc", "jemalloc"]);
    }

    #[test]
    fn a_group_names_its_managers_once_and_a_name_given_twice_stays_twice() {
        let historic = |name| Manager { group: Group::Historic, ..manager(name, ManagerSource::Built, None) };
        let known =
            [glibc(), manager("mimalloc3", ManagerSource::Built, None), historic("knuth"), historic("bump")];
        let names = |words: &[&str]| -> Vec<String> {
            let chosen = choose(&known, words.iter().copied()).expect("all are known");
            chosen.into_iter().map(|manager| manager.name).collect()
        };
        assert_eq!(names(&["historic"]), ["knuth", "bump"]);
        assert_eq!(names(&["bump", "historic", "glibc"]), ["bump", "knuth", "glibc"]);
        assert_eq!(names(&["modern"]), ["glibc", "mimalloc3"]);
        assert_eq!(names(&["all"]), ["glibc", "mimalloc3", "knuth", "bump"]);
        assert_eq!(names(&["glibc", "glibc"]), ["glibc", "glibc"]);
        assert!(choose(&known, ["ancient"]).is_err());
    }

    #[test]
    fn a_name_without_its_version_is_the_newest_that_is_built() {
        let named = |name| manager(name, ManagerSource::Built, None);
        let known = [glibc(), named("mimalloc2"), named("mimalloc10"), named("mimalloc3"), named("jemalloc")];
        let name = |word| find(&known, word).map(|manager| manager.name).ok();
        assert_eq!(name("mimalloc").as_deref(), Some("mimalloc10"));
        assert_eq!(name("quarantine=1/mimalloc").as_deref(), Some("quarantine=1B/mimalloc10"));
        assert_eq!(name("mimalloc2").as_deref(), Some("mimalloc2"));
        assert_eq!((name("jemallo"), name("")), (None, None));
    }

    #[test]
    fn layers_stand_in_front_of_every_member_of_a_group_that_bears_them() {
        let collector =
            |name| Manager { group: Group::Collectors, ..manager(name, ManagerSource::Built, None) };
        let known = [glibc(), manager("tithe", ManagerSource::Built, None), collector("bdw")];
        let names = |words: &[&str]| -> Result<Vec<String>, ManagerError> {
            Ok(choose(&known, words.iter().copied())?.into_iter().map(|manager| manager.name).collect())
        };
        assert_eq!(names(&["forward/modern"]).expect("both"), ["forward/glibc", "forward/tithe"]);
        assert_eq!(
            names(&["quarantine=2M/all", "sweep/modern"]).expect("one each"),
            ["quarantine=2M/glibc", "sweep/glibc"]
        );
        // A group of which nothing is left is an error, not a run of the baseline alone.
        let error = names(&["quarantine=2M/collectors"]).expect_err("no member bears it").to_string();
        assert!(error.contains("quarantine=2M/bdw"), "{error}");
    }

    #[test]
    fn names_of_rows_are_those_of_stacks() {
        let known = [glibc(), manager("mimalloc3", ManagerSource::Built, None)];
        let words =
            ["quarantine=2048K/mimalloc", "modern", "forward/modern", "glibc", "nope"].map(String::from);
        assert_eq!(names_of(&known, &words), ["quarantine=2M/mimalloc3", "glibc"]);
    }

    #[test]
    fn collectors_are_known_by_group_or_by_name() {
        let named = |name| manager(name, ManagerSource::Built, None);
        assert!(Manager { group: Group::Collectors, ..named("bdw") }.collects());
        assert!(!Manager { group: Group::Collectors, ..named("tithe-explicit") }.collects());
        assert!(Manager { group: Group::Historic, ..named("bw26") }.collects() && named("tithe").collects());
        assert!(!Manager { group: Group::Historic, ..named("lea") }.collects() && !glibc().collects());
    }

    /// An installation with one object and a description of it.
    fn described(description: &str) -> (tempfile::TempDir, Result<Vec<Manager>, ManagerError>) {
        let home = tempfile::tempdir().expect("a temporary folder");
        let places = Places::at(home.path());
        std::fs::create_dir_all(places.managers()).expect("a folder");
        std::fs::write(places.managers().join("one.so"), "").expect("writes");
        std::fs::write(places.managers().join("one-b.toml"), description).expect("writes");
        let known = known(&places);
        (home, known)
    }

    #[test]
    fn a_description_may_share_an_object_and_set_variables() {
        let text = "name = 'one-b'\nversion = '1'\norigin = 'ours'\nobject = 'one.so'\ngroup = 'collectors'\n\
                    [environment]\nONE_MODE = 'b'\nONE_LOG = '-'";
        let (home, known) = described(text);
        let one = find(&known.expect("it can be read"), "one-b").expect("it is there");
        assert_eq!(one.object, Some(home.path().join("lib/heaptoll/managers/one.so")));
        assert_eq!(one.environment, [("ONE_LOG".into(), "-".into()), ("ONE_MODE".into(), "b".into())]);
        assert_eq!(one.group, Group::Collectors);
    }

    #[test]
    fn a_description_may_not_reach_outside_or_change_what_is_measured() {
        for (text, expected) in [
            ("object = '../one.so'", "not a file name"),
            ("object = 'two.so'", "does not exist"),
            ("object = 'one.so'\n[environment]\nLD_PRELOAD = 'x.so'", "LD_PRELOAD"),
            ("object = 'one.so'\n[environment]\nHEAPTOLL_STATS = 'x'", "HEAPTOLL_STATS"),
            ("object = 'one.so'\n[environment]\n'A=B' = 'x'", "A=B"),
        ] {
            let (_home, known) = described(&format!("name = 'b'\nversion = '1'\norigin = 'o'\n{text}"));
            let error = known.expect_err("it is refused").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_name_finds_debians_object_where_none_is_built_here() {
        let debian = manager("debian-jemalloc", ManagerSource::Debian, Some("jemalloc"));
        let tbb = manager("debian-tbb", ManagerSource::Debian, None);
        let mut known = vec![glibc(), debian, tbb];
        let found = |known: &[Manager], word: &str| find(known, word).map(|manager| manager.name).ok();
        assert_eq!(found(&known, "jemalloc").as_deref(), Some("debian-jemalloc"));
        assert_eq!(found(&known, "tbb").as_deref(), Some("debian-tbb"));
        assert_eq!(found(&known, "quarantine=2M/jemalloc").as_deref(), Some("quarantine=2M/debian-jemalloc"));
        assert_eq!(names_of(&known, [&"jemalloc".to_owned()]), ["debian-jemalloc"]);
        known.push(manager("jemalloc", ManagerSource::Built, None));
        assert_eq!(found(&known, "jemalloc").as_deref(), Some("jemalloc"));
        assert!(stand_in(&known, "jemalloc").is_none());
    }

    #[test]
    fn a_name_without_a_version_stands_for_the_newest() {
        let built = |name| manager(name, ManagerSource::Built, None);
        let known = [glibc(), built("mimalloc2"), built("mimalloc3")];
        let stands_for = |name| version_for(&known, name).map(|manager| manager.name.as_str());
        assert_eq!(stands_for("mimalloc"), Some("mimalloc3"));
        assert_eq!((stands_for("mimalloc3"), stands_for("glibc"), stands_for("nope")), (None, None, None));
    }

    #[test]
    fn unknown_names_and_paths_are_distinguished() {
        let known = [glibc()];
        assert!(matches!(find(&known, "nope"), Err(ManagerError::Unknown { .. })));
        let misspelt = find(&known, "glib").expect_err("it is refused").to_string();
        assert!(misspelt.contains("no manager `glib`; did you mean `glibc`?; known"), "{misspelt}");
        assert!(matches!(find(&known, "./nope.so"), Err(ManagerError::NoFile { .. })));
        assert!(matches!(find(&known, "/tmp"), Err(ManagerError::NoFile { .. })));
        assert_eq!(find(&known, "glibc").map(|manager| manager.kind).ok(), Some(ManagerSource::Glibc));
    }
}

#[cfg(test)]
#[path = "manager_fuzz.rs"]
mod fuzz;
