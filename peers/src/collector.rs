//! Boehm, Demers and Weiser's collector: Debian's own library, with a shim that makes it a manager. No crate carries
//! it, so it is built apart from the others; the proof is the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptoll_callgrind::tools::{Compilers, Language, run};
use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use heaptoll_preflight::smoke::Expected;

use crate::builder::Settings;
use crate::error::{Error, IoContext};
use crate::install::put_in_place;
use crate::{note, symbols};

/// The word on the command line, and the object's name.
pub const NAME: &str = "bdw";
/// The Debian package with headers and library.
const PACKAGE: &str = "libgc-dev";
const SHIM: &str = include_str!("../shim/bdw.c");
const CONTRACT: &str = include_str!("../../include/heaptoll.h");
const FLAGS: [&str; 7] = [
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fno-builtin",
    // The C++ run-time's exceptions pass through the shim's operators.
    "-fexceptions",
];
const LINK: [&str; 5] = ["-Wl,--no-undefined", "-Wl,--as-needed", "-lgc", "-ldl", "-lpthread"];
/// The shim's two modes: name, value of its variable, and description.
const MODES: [(&str, &str, &str); 2] = [
    (
        "bdw",
        "honour",
        "Boehm, Demers and Weiser's collector: free reclaims at once, collections reclaim what leaks",
    ),
    (
        "bdw-nofree",
        "ignore",
        "Boehm, Demers and Weiser's collector with every free ignored: Zorn's configuration",
    ),
];

/// Options that are libgc's own variables: name, variable, and allowed values, as in a manager's description. The limit
/// is on the heap's size, free blocks included; requests beyond it fail.
const OPTIONS: [(&str, &str, Values); 2] = [
    ("heap", "GC_MAXIMUM_HEAP_SIZE", Values::Size(64 << 10)),
    ("markers", "GC_MARKERS", Values::Number(1, 16)),
];

/// The values of an option.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Values {
    /// Bytes, at least this many.
    Size(u64),
    /// A number from and to.
    Number(u64, u64),
}

/// An option in a description.
#[derive(Debug, Serialize, Deserialize)]
struct Choice {
    variable: String,
    values: Values,
}

/// The outcome.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was up to date: its version.
    UpToDate(String),
    /// It was built and proved: its version.
    Built(String),
    /// The package is not installed.
    NoLibrary,
}

/// The description in the object's folder.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    name: String,
    version: String,
    origin: String,
    compiler: String,
    flags: String,
    kind: String,
    about: String,
    group: String,
    object: String,
    stamp: String,
    sha256: String,
    environment: BTreeMap<String, String>,
    options: BTreeMap<String, Choice>,
}

/// The message where the library is missing and was not requested by name.
pub fn advice() -> String {
    format!("{NAME:10} not built: libgc is not here; apt-get install {PACKAGE}")
}

/// The version that the installed header gives; `None` without the package.
fn version(compilers: &Compilers) -> Option<String> {
    let mut command = compilers.driver(Language::C);
    command.args(["-E", "-dM", "-x", "c", "-include", "gc/gc.h", "/dev/null"]);
    let output = command.stdin(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |part: &str| {
        let pattern = format!(r"(?m)^#define GC_(?:TMP_)?VERSION_{part} +(\d+)");
        Regex::new(&pattern).ok()?.captures(&text).map(|found| found[1].to_string())
    };
    Some([number("MAJOR")?, number("MINOR")?, number("MICRO")?].join("."))
}

/// The package and its version, or the plain name where there is no dpkg.
fn origin() -> String {
    let output = Command::new("dpkg-query").args(["-W", "-f", "${Version}", PACKAGE]).output();
    let version = output.ok().filter(|output| output.status.success());
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    format!("Debian package {PACKAGE} {}, under heaptoll's shim", version.unwrap_or_default())
}

fn description_path(out: &Path, name: &str) -> PathBuf {
    out.join(format!("{name}.toml"))
}

/// The version that is installed in `out`, if it is complete and was built from the same inputs.
fn existing(out: &Path, stamp: &str) -> Option<String> {
    let digest = note::file_digest(&out.join(format!("{NAME}.so"))).ok()?;
    let versions: Option<Vec<String>> = MODES
        .iter()
        .map(|(name, ..)| {
            let text = std::fs::read_to_string(description_path(out, name)).ok()?;
            let one: Description = toml::from_str(&text).ok()?;
            (one.sha256 == digest && one.stamp == stamp).then_some(one.version)
        })
        .collect();
    versions?.pop()
}

/// Compiles the shim, proves it in both modes and puts it in place, unless it is up to date.
///
/// # Errors
/// A compiler or linker that fails, an object that does not prove itself, folders that cannot be written.
pub fn build(settings: &Settings) -> Result<Outcome, Error> {
    let compilers = Compilers::find(false)?;
    let Some(version) = version(&compilers) else { return Ok(Outcome::NoLibrary) };
    let origin = origin();
    let stamp = stamp(&[SHIM, CONTRACT, &compilers.version, &version, &origin]);
    if let Some(version) = existing(&settings.out, &stamp).filter(|_| !settings.force) {
        return Ok(Outcome::UpToDate(version));
    }
    for dir in [&settings.out, &settings.work] {
        std::fs::create_dir_all(dir).context("create", dir)?;
    }
    let dir = tempfile::Builder::new()
        .prefix("bdw-")
        .tempdir_in(&settings.work)
        .context("create a folder in", &settings.work)?;
    for (file, text) in [("bdw.c", SHIM), ("heaptoll.h", CONTRACT)] {
        let path = dir.path().join(file);
        std::fs::write(&path, text).context("write", &path)?;
    }
    let object = dir.path().join(format!("{NAME}.so"));
    let mut command = compilers.driver(Language::C);
    command.args(FLAGS).arg(format!("-DBDW_VERSION=\"{version}\"")).arg("-I").arg(dir.path());
    command.arg("-shared").arg("-o").arg(&object).arg(dir.path().join("bdw.c"));
    command.arg(format!("-Wl,-soname,{NAME}.so")).args(["-Wl,-O1", "-Wl,--strip-debug"]).args(LINK);
    run(&mut command, "compiling the shim of bdw", "gcc libc6-dev libgc-dev")?;

    let wanted: Vec<&str> = heaptoll_elf::family::replacement().collect();
    symbols::require(&object, &wanted)?;
    for (_, frees, _) in MODES {
        let expected = Expected { overflow: true, operators: true };
        heaptoll_preflight::smoke::prove(&settings.prover, &object, expected, [("BDW_FREES", frees)])
            .map_err(|message| Error::Smoke { path: object.clone(), message })?;
    }

    let sha256 = note::file_digest(&object)?;
    let bytes = std::fs::read(&object).context("read", &object)?;
    put_in_place(&bytes, &settings.out.join(format!("{NAME}.so")))?;
    for (name, frees, about) in MODES {
        let one = Description {
            name: name.into(),
            version: version.clone(),
            origin: origin.clone(),
            compiler: compilers.version.clone(),
            flags: format!("{} | -shared {}", FLAGS.join(" "), LINK.join(" ")),
            kind: "peer".into(),
            about: about.into(),
            group: "collectors".into(),
            object: format!("{NAME}.so"),
            stamp: stamp.clone(),
            sha256: sha256.clone(),
            environment: BTreeMap::from([("BDW_FREES".into(), frees.into())]),
            options: options(),
        };
        let path = description_path(&settings.out, name);
        let text = toml::to_string(&one).map_err(std::io::Error::other).context("write", &path)?;
        put_in_place(text.as_bytes(), &path)?;
    }
    Ok(Outcome::Built(version))
}

fn options() -> BTreeMap<String, Choice> {
    let choice = |(name, variable, values): (&str, &str, Values)| {
        (name.into(), Choice { variable: variable.into(), values })
    };
    OPTIONS.map(choice).into()
}

/// A digest of all inputs of the build.
fn stamp(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    let own =
        [env!("CARGO_PKG_VERSION"), &FLAGS.join(" "), &LINK.join(" "), &format!("{MODES:?} {OPTIONS:?}")];
    for part in own.iter().chain(parts) {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_written_as_managers_are_described() {
        let text = toml::to_string(&BTreeMap::from([("options", options())])).expect("a document");
        for line in [
            "[options.heap]",
            "variable = \"GC_MAXIMUM_HEAP_SIZE\"",
            "[options.heap.values]",
            "size = 65536",
            "[options.markers]",
            "number = [1, 16]",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
        }
    }

    #[test]
    fn a_stamp_changes_with_the_shim_and_with_the_library() {
        assert_eq!(stamp(&["a", "b"]), stamp(&["a", "b"]));
        assert_ne!(stamp(&["a", "b"]), stamp(&["a", "c"]));
        assert_ne!(stamp(&["ab", ""]), stamp(&["a", "b"]));
    }
}
