//! `heaptoll.toml`: the programs that are gated, and their limits.
//!
//! ```toml
//! [gate.parse]
//! command = "./app in.xml"        # or base = "./old in.xml" and new = "./new in.xml"
//! limits = { instructions = "0.5%", live = "1%", cpu = "3%" }
//! ```

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use super::limits::{LimitError, Limits};

/// Bytes of a program's name.
const LONGEST_NAME: usize = 100;

/// The file that is read where none is named.
pub const FILE: &str = "heaptoll.toml";

/// A file that cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {path}: {cause}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// It is no TOML, or has keys or values that are not known.
    #[error("{path}: {why}", path = path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The parser's message, with the line.
        why: String,
    },
    /// It names no program.
    #[error("{path} has no [gate.NAME]: add one with a command, as docs/questions/gate.md shows", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A command is missing, or there is more than one.
    #[error("{path}: [gate.{name}] {why}", path = path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// The entry.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A limit.
    #[error("{path}: [gate.{name}]: {cause}", path = path.display())]
    Limit {
        /// The file.
        path: PathBuf,
        /// The entry.
        name: String,
        /// What is wrong with it.
        cause: LimitError,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    #[serde(default)]
    gate: BTreeMap<String, Written>,
}

/// An entry as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    command: Option<String>,
    base: Option<String>,
    new: Option<String>,
    #[serde(default)]
    limits: BTreeMap<String, String>,
    stdin: Option<PathBuf>,
    #[serde(default)]
    expect_status: u8,
    #[serde(default)]
    outputs_differ: bool,
}

/// The command or commands of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Commands {
    /// One for both sides, which are two commits or two managers.
    Both(Vec<OsString>),
    /// One for each.
    Each {
        /// The base's.
        base: Vec<OsString>,
        /// The new build's.
        new: Vec<OsString>,
    },
}

/// A program of the file.
#[derive(Debug, Clone)]
pub struct Configured {
    /// Its name.
    pub name: String,
    /// What it runs.
    pub commands: Commands,
    /// The usual limits with its own over them.
    pub limits: Limits,
    /// Standard input.
    pub stdin: Option<PathBuf>,
    /// Exit status of success.
    pub expect_status: i32,
    /// Whether both may write different output.
    pub outputs_differ: bool,
}

/// Reads the programs of a file.
///
/// # Errors
/// It cannot be read, or what it states cannot be used.
pub fn read(path: &Path) -> Result<Vec<Configured>, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|cause| ConfigError::Read { path: path.into(), cause })?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Vec<Configured>, ConfigError> {
    let file: ConfigFile = toml::from_str(text)
        .map_err(|error| ConfigError::Form { path: path.into(), why: error.to_string().trim().to_owned() })?;
    if file.gate.is_empty() {
        return Err(ConfigError::Empty { path: path.into() });
    }
    file.gate.into_iter().map(|(name, written)| entry(path, name, written)).collect()
}

/// The beginning of a name.
fn shown(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

fn entry(path: &Path, name: String, written: Written) -> Result<Configured, ConfigError> {
    let wrong = |why: String| ConfigError::Entry { path: path.into(), name: shown(&name), why };
    if name.len() > LONGEST_NAME || name.chars().any(char::is_control) || name.trim_start().starts_with("::")
    {
        return Err(wrong(format!(
            "has a name that a log could mistake for something else: give it letters, digits and hyphens, at \
             most {LONGEST_NAME} bytes"
        )));
    }
    let words = |key: &str, text: &str| match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(words.into_iter().map(OsString::from).collect::<Vec<_>>()),
        _ => Err(wrong(format!("has {key} = `{text}`, which is not a command: check its quotes"))),
    };
    let commands = match (&written.command, &written.base, &written.new) {
        (Some(command), None, None) => Commands::Both(words("command", command)?),
        (None, Some(base), Some(new)) => {
            Commands::Each { base: words("base", base)?, new: words("new", new)? }
        }
        (None, None, None) => {
            return Err(wrong("has no command: give it `command`, or `base` and `new`".into()));
        }
        (Some(_), ..) => {
            return Err(wrong("has `command` and another: give it `command`, or `base` and `new`".into()));
        }
        _ => return Err(wrong("has one of `base` and `new`: give it both".into())),
    };
    let mut limits = Limits::default();
    for (metric, value) in &written.limits {
        limits.set(metric, value).map_err(|cause| ConfigError::Limit {
            path: path.into(),
            name: name.clone(),
            cause,
        })?;
    }
    Ok(Configured {
        commands,
        limits,
        stdin: written.stdin,
        expect_status: written.expect_status.into(),
        outputs_differ: written.outputs_differ,
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Metric;

    fn of(text: &str) -> Result<Vec<Configured>, ConfigError> {
        parse(Path::new("heaptoll.toml"), text)
    }

    #[test]
    fn a_file_has_several_programs_with_limits() {
        let found = of("[gate.b]\nbase = './old \"x y\"'\nnew = './new 1'\n\
                        [gate.a]\ncommand = './app in'\nexpect-status = 3\nlimits = { live = \"2%\", cpu = \"none\" }")
        .expect("a file");
        assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(found[0].limits.of(Metric::Live).map(|limit| limit.share), Some(0.02));
        assert_eq!((found[0].limits.of(Metric::Cpu), found[0].expect_status), (None, 3));
        let Commands::Each { base, .. } = &found[1].commands else { panic!("two commands") };
        assert_eq!(base, &["./old", "x y"]);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let error = |text: &str| of(text).map(drop).expect_err(text).to_string();
        assert!(error("").contains("no [gate.NAME]"));
        assert!(error("[gate.a]\nlimits = {}").contains("[gate.a] has no command"));
        assert!(error("[gate.a]\nbase = 'x'").contains("give it both"));
        assert!(error("[gate.a]\ncommand = 'x'\nnew = 'y'").contains("and another"));
        assert!(error("[gate.a]\ncommand = \"'x\"").contains("check its quotes"));
        let unknown = error("[gate.a]\ncommand = 'x'\nlimit = {}");
        assert!(unknown.contains("unknown field `limit`") && unknown.contains("`limits`"), "{unknown}");
        assert!(error("[gat.a]\n").contains("unknown field `gat`"));
        assert!(
            error("[gate.a]\ncommand = 'x'\nlimits = { speed = '1%' }").contains("there are instructions")
        );
        assert!(error("[gate.a]\ncommand = 'x'\nlimits = { cpu = '0%' }").contains("allows no growth"));
        assert!(error("[gate.a]\ncommand = 'x'\nlimits = { cpu = 3 }").contains("string"));
    }
}
