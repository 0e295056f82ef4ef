//! The layers of this installation: each is an object, and the file next to it that says what it can be set to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;
use toml::Spanned;

use super::error::StackError;
use super::option::Values;
use crate::places::{Places, descriptions};

/// What a layer is, as `NAME.toml` describes it.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerKind {
    /// Its name in a stack: that of the file.
    #[serde(skip)]
    pub name: String,
    /// Its place where layers are listed.
    order: u32,
    /// One line about it.
    pub about: String,
    /// The variable that carries its settings, where it has any.
    pub variable: Option<String>,
    /// Whether it changes when blocks are free.
    #[serde(default)]
    pub delays: bool,
    /// Whether it collects garbage over the manager's malloc.
    #[serde(default)]
    pub collects: bool,
    /// Whether it stops the program to read its memory, and counts that as collections.
    #[serde(default)]
    pub pauses: bool,
    /// What it does that it must be the first layer for, where it must.
    pub first: Option<String>,
    /// Whether it hides the manager's variables from the program.
    #[serde(default)]
    pub hides: bool,
    /// Whether the program is to have the same addresses in each run.
    #[serde(default)]
    pub fixed_addresses: bool,
    /// Its settings in the proof run, where they are others.
    pub in_proof: Option<String>,
    /// What stands after its `=`, where something does.
    pub value: Option<LayerValue>,
    #[serde(default)]
    pub(super) options: Vec<Spanned<LayerOption>>,
    /// The file that a run needs, where it needs one.
    pub file: Option<LayerFile>,
}

/// A value of a layer's own: `quarantine=2M`.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerValue {
    /// Its name among the settings.
    pub setting: String,
    /// What it may be.
    pub values: Values,
    /// The most, of a number.
    pub(super) most: Option<u64>,
    example: String,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LayerOption {
    pub(super) name: String,
    values: Values,
    /// The layer's values that need it; with others it is refused. Empty where it can always be left out.
    #[serde(default)]
    pub(super) only_with: Vec<String>,
    #[serde(default)]
    pub(super) example: String,
}

/// A file that is made for a program before it runs under the layer.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerFile {
    /// The option that names it.
    pub option: String,
    /// What its name ends with, so that a stack's name shows where it ends.
    pub ending: String,
    /// Where it is if none is named, below [`Places::cache`].
    pub(super) folder: String,
    /// The layer's values that take none, each with a sentence about it.
    #[serde(default)]
    pub(super) without: BTreeMap<String, String>,
    /// A stack's layer that names one.
    pub(super) example: String,
    /// The command that makes it.
    pub made_by: String,
}

/// A layer with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// What it is.
    pub kind: &'static LayerKind,
    /// As written, sizes in their shortest form: `quarantine=2M,check=on`.
    pub word: String,
    /// The value of its name, and options: `("size", "2097152")`, `("check", "on")`.
    pub settings: Vec<(String, String)>,
}

impl Layer {
    /// A layer with the settings that its part of a name shows, unchecked; none where no layer here has the name.
    pub(crate) fn as_written(part: &str) -> Option<Layer> {
        let kind = named(part.split(['=', ',']).next()?)?;
        let pairs = part.split(',').skip(1).filter_map(|setting| setting.split_once('='));
        let settings = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Some(Layer { kind, word: part.into(), settings })
    }

    /// What its value or an option is set to.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

static INSTALLED: LazyLock<Result<Vec<LayerKind>, StackError>> =
    LazyLock::new(|| Places::find().map_or(Ok(vec![]), |places| read(&places.layers())));

/// Every layer that is installed, in the order in which they are listed. None where nothing of heaptoll is found.
///
/// # Errors
/// A layer's file is damaged, or there is none.
pub fn installed() -> Result<&'static [LayerKind], StackError> {
    INSTALLED.as_deref().map_err(Clone::clone)
}

/// The layer of this name.
pub fn named(name: &str) -> Option<&'static LayerKind> {
    installed().ok()?.iter().find(|kind| kind.name == name)
}

/// Whether a layer that is set in this environment wants the same addresses in each run.
pub(crate) fn fixes_addresses(environment: &[(String, String)]) -> bool {
    let mut kinds = installed().unwrap_or_default().iter().filter(|kind| kind.fixed_addresses);
    kinds.any(|kind| environment.iter().any(|(name, _)| Some(name) == kind.variable.as_ref()))
}

fn read(folder: &Path) -> Result<Vec<LayerKind>, StackError> {
    let mut kinds: Vec<LayerKind> =
        descriptions(folder).iter().map(|path| LayerKind::read(path)).collect::<Result<_, _>>()?;
    if kinds.is_empty() {
        let (place, reason) = (folder.display().to_string(), "has no layers' descriptions".into());
        return Err(StackError::Damaged { place, reason });
    }
    kinds.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
    Ok(kinds)
}

impl LayerKind {
    fn read(path: &Path) -> Result<LayerKind, StackError> {
        let damaged = |place: String, reason: String| StackError::Damaged { place, reason };
        let text = std::fs::read_to_string(path)
            .map_err(|cause| damaged(path.display().to_string(), cause.to_string()))?;
        let line = |at: usize| {
            let before = text.bytes().take(at).filter(|byte| *byte == b'\n').count();
            format!("{}, line {}", path.display(), before + 1)
        };
        let mut kind: LayerKind = toml::from_str(&text).map_err(|cause| {
            damaged(line(cause.span().map_or(0, |span| span.start)), cause.message().to_owned())
        })?;
        let mut names: Vec<&str> = kind.value.iter().map(|value| value.setting.as_str()).collect();
        for option in &kind.options {
            let name = option.get_ref().name.as_str();
            if names.contains(&name) {
                return Err(damaged(line(option.span().start), format!("names the option `{name}` twice")));
            }
            names.push(name);
        }
        if let Some(file) = kind.file.as_ref().filter(|file| !names.contains(&file.option.as_str())) {
            let reason = format!("has a file by an option `{}`, which is none", file.option);
            return Err(damaged(path.display().to_string(), reason));
        }
        if kind.variable.is_none() && (kind.value.is_some() || !kind.options.is_empty() || kind.hides) {
            return Err(damaged(line(0), "has settings and names no `variable` that carries them".into()));
        }
        kind.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(kind)
    }

    /// How it is written with a value that any program bears: `quarantine=2M`.
    pub fn example(&self) -> String {
        self.with_value(|value| value.example.clone())
    }

    /// How it is written: `quarantine=SIZE`.
    pub fn pattern(&self) -> String {
        self.with_value(|value| value.values.pattern())
    }

    fn with_value(&self, text: impl Fn(&LayerValue) -> String) -> String {
        self.value.as_ref().map_or(self.name.clone(), |value| format!("{}={}", self.name, text(value)))
    }

    /// Its options and what they may be.
    pub fn options(&self) -> Vec<(&str, Values)> {
        let options = self.options.iter().map(Spanned::get_ref);
        options.map(|option| (option.name.as_str(), option.values.clone())).collect()
    }

    /// Its shared object.
    pub fn object(&self, places: &Places) -> PathBuf {
        places.layer(&self.name)
    }
}

impl LayerValue {
    /// What a layer's value must be, where it is missing, or another is given.
    pub(super) fn needed(&self, layer: &str, given: Option<&str>) -> String {
        let LayerValue { setting, values, example, .. } = self;
        match (values, given) {
            (Values::Words(words), _) => format!("it needs a {setting}: {layer}={}", words.join(" or ")),
            (_, None) => format!("it needs a {setting}: {layer}={example}"),
            (_, Some(text)) => format!("`{text}` is not a {setting}; write 1B, 64K, 2M or the like"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a file of this content.
    fn damage(text: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("mine.toml"), text).expect("written");
        read(folder.path()).expect_err(text).to_string()
    }

    #[test]
    fn a_damaged_file_is_refused_with_its_line() {
        let option = "{ name = \"a\", values = \"path\" }";
        for (text, expected) in [
            (
                format!("order = 1\nabout = \"x\"\noptions = [\n{option},\n{option},\n]"),
                "line 5: names the option `a` twice",
            ),
            ("order = 1\nabout = \"x\"\nabout = \"y\"".into(), "mine.toml, line 3: duplicate key"),
            ("order = 1\nabout = \"x\"\nanother = 1".into(), "line 3: unknown field `another`"),
            ("order = 1\nabout = \"x\"\nvalue = {".into(), "line 3"),
            ("order = 1".into(), "missing field `about`"),
            (
                format!(
                    "order = 1\nabout = \"x\"\nvalue = {{ setting = \"a\", values = \"path\", example = \"f\" }}\n\
                     options = [{option}]"
                ),
                "line 4: names the option `a` twice",
            ),
            (
                "order = 1\nabout = \"x\"\nfile = { option = \"b\", ending = \"e\", folder = \"f\", example = \"g\", \
                 made_by = \"h\" }"
                    .into(),
                "mine.toml: has a file by an option `b`",
            ),
            (
                "order = 1\nabout = \"x\"\nvalue = { setting = \"s\", values = \"path\", example = \"f\" }"
                    .into(),
                "mine.toml, line 1: has settings and names no `variable`",
            ),
            (format!("order = 1\nabout = \"x\"\noptions = [{option}]"), "names no `variable`"),
        ] {
            let error = damage(&text);
            assert!(error.contains(expected) && error.contains("make build"), "{error}");
        }
    }

    #[test]
    fn a_folder_without_layers_is_refused_with_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        for place in [folder.path().to_owned(), folder.path().join("gone")] {
            let error = read(&place).expect_err("no layers").to_string();
            assert!(error.contains(&place.display().to_string()) && error.contains("make build"), "{error}");
        }
    }

    #[test]
    fn layers_are_listed_in_their_order_each_with_its_value() {
        let patterns: Vec<String> =
            installed().expect("all are whole").iter().map(LayerKind::pattern).collect();
        assert_eq!(patterns[..3], ["quarantine=SIZE", "guard", "sweep"]);
        assert_eq!(patterns[4..], ["forward", "record", "count"]);
        assert_eq!(named("oracle").map(LayerKind::example).as_deref(), Some("oracle=record"));
    }
}
