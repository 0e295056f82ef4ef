//! The schema of an entry, as it stands in a TOML file. Unknown fields are refused: a misspelt `enviroment` that is
//! silently dropped would leave a hash seed unpinned and the measurement noisy.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::Size;

/// One program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub name: String,
    pub about: String,
    pub command: Option<Vec<String>>,
    pub serve: Option<Serve>,
    pub figures: Option<String>,
    pub varies: Option<String>,
    pub stdin: Option<String>,
    pub package: Option<String>,
    pub added_by: Option<AddedBy>,
    pub pools: Option<String>,
    pub digests_of: Option<String>,
    pub stat: Option<Stat>,
    #[serde(default)]
    pub requires: Vec<String>,
    #[serde(default)]
    pub verified_by: Vec<String>,
    #[serde(default)]
    pub by_name: bool,
    #[serde(default = "one")]
    pub threads: u32,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    #[serde(default)]
    pub inputs: BTreeMap<String, toml::Table>,
    pub sizes: BTreeMap<Size, SizeEntry>,
    #[serde(default)]
    pub variants: BTreeMap<String, Variant>,
}

/// How a program comes here that heaptoll may not bring.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddedBy {
    /// What `heaptoll programs add` takes.
    pub recipe: String,
    /// The licence, and what it forbids.
    pub licence: String,
}

/// What `heaptoll record` and `heaptoll trace stat` have found of the program at size full.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stat {
    /// The most bytes that were live at once, in MiB.
    pub live_mib: f64,
    /// How many threads allocated.
    pub threads: u32,
}

/// What a variant changes. Environment and inputs are merged by key, sizes replaced by key, the rest replaced.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    pub about: Option<String>,
    pub command: Option<Vec<String>>,
    pub figures: Option<String>,
    pub varies: Option<String>,
    pub stdin: Option<String>,
    pub package: Option<String>,
    pub requires: Option<Vec<String>>,
    pub threads: Option<u32>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    #[serde(default)]
    pub inputs: BTreeMap<String, toml::Table>,
    #[serde(default)]
    pub sizes: BTreeMap<Size, SizeEntry>,
}

/// One size: the parameters that the command and the inputs use, and the output to expect.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SizeEntry {
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    pub digest: Option<String>,
}

/// A parameter's value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Parameter {
    Integer(i64),
    Text(String),
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Parameter::Integer(value) => value.fmt(f),
            Parameter::Text(value) => value.fmt(f),
        }
    }
}

/// A server and the command that loads it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Serve {
    pub server: Vec<String>,
    pub load: Vec<String>,
    /// A second load, after which the server has less to hold.
    pub burst: Option<Vec<String>>,
    pub ready: String,
    pub figures: Option<String>,
    #[serde(default = "term")]
    pub stop: String,
}

fn one() -> u32 {
    1
}

fn term() -> String {
    "TERM".to_owned()
}

impl Entry {
    /// The entry that a variant of this one amounts to.
    pub(crate) fn with(&self, variant: &Variant) -> Entry {
        let mut entry = self.clone();
        entry.variants.clear();
        // A variant allocates in another way.
        entry.stat = None;
        let changed = variant.clone();
        if let Some(about) = changed.about {
            entry.about = about;
        }
        if let Some(requires) = changed.requires {
            entry.requires = requires;
        }
        if let Some(threads) = changed.threads {
            entry.threads = threads;
        }
        entry.command = changed.command.or(entry.command);
        entry.figures = changed.figures.or(entry.figures);
        entry.varies = changed.varies.or(entry.varies);
        entry.stdin = changed.stdin.or(entry.stdin);
        // A variant may be bundled where the entry is a package's.
        entry.package = changed.package.or(entry.package).filter(|package| !package.is_empty());
        entry.environment.extend(changed.environment);
        entry.inputs.extend(changed.inputs);
        entry.sizes.extend(changed.sizes);
        entry
    }
}
