//! Stacks as they are written on the command line: layers in front of a manager, from the program's side inwards.
//!
//! ```text
//! quarantine=2M/mimalloc3      sweep,every=64K/jemalloc      record/tithe      tithe-collect,every=8M,reclaim=4
//! LAYER[=VALUE][,OPTION=VALUE...]/MANAGER[,OPTION=VALUE...]
//! ```
//! A layer is a shared object that exports the malloc family and forwards to the next one. Its settings travel in an
//! environment variable of its own as `name=value` pairs, sizes in bytes; a manager's options travel in the variables
//! that its description names. A stack without meaning is refused here, before anything runs.

use std::path::PathBuf;

use heaptoll_catalog::did_you_mean;
use heaptoll_units::{size, size_text};
use serde::Deserialize;
use thiserror::Error;

use crate::manager::{Manager, ManagerError};
use crate::places::Places;

/// What a layer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// Holds freed blocks back.
    Quarantine,
    /// Collects over the manager's malloc.
    Sweep,
    /// Forwards and nothing else: what any layer costs.
    Forward,
    /// The recording layer; without a recorder it only forwards.
    Record,
    /// Counts calls.
    Count,
    /// Sums the requested bytes of live blocks.
    Live,
}

/// What an option may be set to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// A size in bytes, `64K`; at least so many.
    Size(u64),
    /// A whole number from and to.
    Number(u64, u64),
    /// One of these words.
    Words(Vec<String>),
}

/// An option of a manager, as its description gives it: `every = { variable = "TITHE_EVERY", values = { size = 1 } }`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ManagerOption {
    /// The environment variable that carries it.
    pub variable: String,
    /// What it may be; sizes are handed on in bytes.
    pub values: Values,
    /// Further variables that it needs.
    #[serde(default)]
    pub with: std::collections::BTreeMap<String, String>,
}

/// A layer with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// What it does.
    pub kind: LayerKind,
    /// As written, sizes in their shortest form: `quarantine=2M,check=on`.
    pub word: String,
    /// The value of its name, and options: `("size", "2097152")`, `("check", "on")`.
    pub settings: Vec<(String, String)>,
}

/// A stack that means nothing, or nothing that could be measured.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StackError {
    /// Layers without a manager.
    #[error(
        "`{0}` names a layer and no manager after it: write {0}/glibc, or another manager (`heaptoll managers`)"
    )]
    NoManager(String),
    /// `quarantine` without a size, or `sweep=2M`.
    #[error("layer `{layer}`: {reason}")]
    Value {
        /// The layer.
        layer: &'static str,
        /// What is wrong and what is right.
        reason: String,
    },
    /// No such option.
    #[error("`{owner}` has no option `{option}`; {known}")]
    Option {
        /// Layer or manager.
        owner: String,
        /// As given.
        option: String,
        /// Those there are, in words.
        known: String,
    },
    /// An option set to what it cannot be.
    #[error("`{owner}`: {option}={value} is not possible: {allowed}")]
    Setting {
        /// Layer or manager.
        owner: String,
        /// The option.
        option: String,
        /// What it was set to.
        value: String,
        /// What it may be.
        allowed: String,
    },
    /// Parts that do not go together.
    #[error("`{stack}` makes no sense: {reason}")]
    Nonsense {
        /// As written.
        stack: String,
        /// Why.
        reason: String,
    },
}

/// Every layer, in the order in which they are listed.
pub const LAYERS: [LayerKind; 6] = [
    LayerKind::Quarantine,
    LayerKind::Sweep,
    LayerKind::Forward,
    LayerKind::Record,
    LayerKind::Count,
    LayerKind::Live,
];

/// Bytes; what the layer can count (preload/layers/quarantine/core).
const LARGEST_QUARANTINE: u64 = 512 << 30;

impl LayerKind {
    /// Its name in a stack.
    pub const fn as_str(self) -> &'static str {
        match self {
            LayerKind::Quarantine => "quarantine",
            LayerKind::Sweep => "sweep",
            LayerKind::Forward => "forward",
            LayerKind::Record => "record",
            LayerKind::Count => "count",
            LayerKind::Live => "live",
        }
    }

    /// The variable that carries its settings, where it has any.
    pub const fn variable(self) -> Option<&'static str> {
        match self {
            LayerKind::Quarantine => Some("HEAPTOLL_QUARANTINE"),
            LayerKind::Sweep => Some("HEAPTOLL_SWEEP"),
            _ => None,
        }
    }

    /// One line about it.
    pub const fn about(self) -> &'static str {
        match self {
            LayerKind::Quarantine => "holds freed blocks back until SIZE bytes are held, then frees them all",
            LayerKind::Sweep => "a conservative mark-sweep collector over the manager's malloc",
            LayerKind::Forward => "forwards and does nothing else: what any layer costs",
            LayerKind::Record => "forwards as the recording layer does without a recorder",
            LayerKind::Count => "counts calls",
            LayerKind::Live => "sums the requested bytes of live blocks",
        }
    }

    /// How it is written with a value that any program bears: `quarantine=2M`.
    pub const fn example(self) -> &'static str {
        match self {
            LayerKind::Quarantine => "quarantine=2M",
            _ => self.as_str(),
        }
    }

    /// How it is written: `quarantine=SIZE`.
    pub fn pattern(self) -> String {
        match self {
            LayerKind::Quarantine => "quarantine=SIZE".into(),
            _ => self.as_str().into(),
        }
    }

    /// Its options and what they may be.
    pub fn options(self) -> Vec<(&'static str, Values)> {
        let words = |all: &[&str]| Values::Words(all.iter().map(|&word| word.to_owned()).collect());
        match self {
            LayerKind::Quarantine => vec![
                ("check", words(&["on", "off"])),
                ("abort", words(&["on", "off"])),
                ("evict", words(&["all", "random"])),
                ("realloc", words(&["delay", "manager"])),
                ("seed", Values::Number(0, u64::MAX)),
            ],
            LayerKind::Sweep => vec![
                ("every", Values::Size(1)),
                ("heap", Values::Size(4096)),
                ("reclaim", Values::Number(1, 1 << 32)),
                ("free", words(&["ignore", "honour"])),
                ("markers", Values::Number(1, 64)),
                ("sweep", words(&["eager", "lazy"])),
            ],
            _ => vec![],
        }
    }

    /// Whether it changes when blocks are free.
    pub const fn delays(self) -> bool {
        matches!(self, LayerKind::Quarantine | LayerKind::Sweep)
    }

    /// Its shared object.
    pub fn object(self, places: &Places) -> PathBuf {
        places.layer(self.as_str())
    }

    fn of(part: &str) -> Option<LayerKind> {
        let name = part.split(['=', ',']).next().unwrap_or(part);
        LAYERS.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl Values {
    /// The value as it is handed on, and as it is shown.
    fn read(&self, text: &str) -> Option<(String, String)> {
        match self {
            Values::Size(least) => {
                let bytes = size(text).filter(|bytes| bytes >= least)?;
                Some((bytes.to_string(), shown(bytes)))
            }
            Values::Number(from, to) => {
                let number: u64 = text.parse().ok()?;
                (from..=to).contains(&&number).then(|| (number.to_string(), number.to_string()))
            }
            Values::Words(words) => words.iter().any(|word| word == text).then(|| (text.into(), text.into())),
        }
    }

    /// The value in an option's description: `SIZE`, `1..64`, `on|off`.
    pub fn pattern(&self) -> String {
        match self {
            Values::Size(_) => "SIZE".into(),
            Values::Number(from, to) if *to < 1 << 20 => format!("{from}..{to}"),
            Values::Number(..) => "N".into(),
            Values::Words(words) => words.join("|"),
        }
    }

    fn allowed(&self) -> String {
        match self {
            Values::Size(least) => {
                format!("give bytes, {} or more (K, M, G are powers of 1024)", shown(*least))
            }
            Values::Number(from, u64::MAX) => format!("give a whole number from {from}"),
            Values::Number(from, to) => format!("give a whole number from {from} to {to}"),
            Values::Words(words) => format!("give {}", words.join(" or ")),
        }
    }
}

/// `1B`, `64K`: a size in a stack's name.
fn shown(bytes: u64) -> String {
    let text = size_text(bytes);
    if text.ends_with(|last: char| last.is_ascii_digit()) { format!("{text}B") } else { text }
}

/// The layers in front of a word's manager, and the rest of the word.
///
/// # Errors
/// A layer with settings it does not have.
pub fn layers(word: &str) -> Result<(Vec<Layer>, &str), StackError> {
    let mut found = Vec::new();
    let mut rest = word;
    while let Some(kind) = LayerKind::of(rest.split('/').next().unwrap_or(rest)) {
        let Some((part, following)) = rest.split_once('/') else {
            return Err(StackError::NoManager(word.into()));
        };
        if following.is_empty() {
            return Err(StackError::NoManager(part.into()));
        }
        found.push(layer(kind, part)?);
        rest = following;
    }
    Ok((found, rest))
}

/// Why `swep/glibc` leads nowhere: its first part is written like a layer, and no folder has that name. `None` where a
/// path is meant.
pub(crate) fn no_layer(word: &str) -> Option<ManagerError> {
    let (part, _) = word.split_once('/')?;
    let name = part.split(['=', ',']).next().unwrap_or(part);
    let meant = !name.is_empty() && !name.starts_with(['.', '~']) && !std::path::Path::new(part).exists();
    meant.then(|| ManagerError::NoLayer {
        name: name.into(),
        suggestion: did_you_mean(name, LAYERS.map(LayerKind::as_str)),
        known: LAYERS.map(LayerKind::as_str).join(", "),
    })
}

fn layer(kind: LayerKind, part: &str) -> Result<Layer, StackError> {
    let mut pieces = part.split(',');
    let head = pieces.next().unwrap_or(part);
    let value = head.split_once('=').map(|(_, value)| value);
    let mut settings = Vec::new();
    let mut word = kind.as_str().to_owned();
    let wrong = |reason: &str| StackError::Value { layer: kind.as_str(), reason: reason.into() };
    match (kind, value) {
        (LayerKind::Quarantine, Some(text)) => {
            let (bytes, text) = Values::Size(1)
                .read(text)
                .ok_or_else(|| wrong(&format!("`{text}` is no size; write 1B, 64K, 2M or the like")))?;
            if bytes.parse().is_ok_and(|bytes: u64| bytes > LARGEST_QUARANTINE) {
                return Err(wrong(&format!("{text} is too much; 512G is the most")));
            }
            word.push('=');
            word.push_str(&text);
            settings.push(("size".into(), bytes));
        }
        (LayerKind::Quarantine, None) => return Err(wrong("it needs a size: quarantine=2M")),
        (_, Some(_)) => return Err(wrong("it takes no value of its own, only options after a comma")),
        (_, None) => {}
    }
    for (option, value, text) in read_options(kind.as_str(), &kind.options(), pieces)? {
        word.push_str(&format!(",{option}={text}"));
        settings.push((option, value));
    }
    Ok(Layer { kind, word, settings })
}

/// Options as name, value handed on, value shown.
fn read_options<'a>(
    owner: &str,
    known: &[(&str, Values)],
    pieces: impl Iterator<Item = &'a str>,
) -> Result<Vec<(String, String, String)>, StackError> {
    let mut read: Vec<(String, String, String)> = Vec::new();
    for piece in pieces {
        let (option, value) = piece.split_once('=').unwrap_or((piece, ""));
        let Some((_, values)) = known.iter().find(|(name, _)| *name == option) else {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            return Err(StackError::Option {
                owner: owner.into(),
                option: option.into(),
                known: if names.is_empty() {
                    "it has none".into()
                } else {
                    format!("it has {}{}", names.join(", "), did_you_mean(option, names.iter().copied()))
                },
            });
        };
        let setting = |allowed: String| StackError::Setting {
            owner: owner.into(),
            option: option.into(),
            value: value.into(),
            allowed,
        };
        if read.iter().any(|(name, ..)| name == option) {
            return Err(setting("it is set twice".into()));
        }
        let (handed, text) = values.read(value).ok_or_else(|| setting(values.allowed()))?;
        read.push((option.into(), handed, text));
    }
    Ok(read)
}

/// A manager with the options of `pieces` set: they become part of its name and of its environment.
///
/// # Errors
/// Options that it does not have, or values that they do not take.
pub fn with_options<'a>(
    mut manager: Manager,
    pieces: impl Iterator<Item = &'a str>,
) -> Result<Manager, StackError> {
    let known: Vec<(&str, Values)> =
        manager.options.iter().map(|(name, option)| (name.as_str(), option.values.clone())).collect();
    let read = read_options(&manager.base, &known, pieces)?;
    for (option, value, text) in read {
        manager.name.push_str(&format!(",{option}={text}"));
        let ManagerOption { variable, with, .. } = &manager.options[&option];
        let set = std::iter::once((variable.clone(), value)).chain(with.clone());
        for (name, value) in set.collect::<Vec<_>>() {
            manager.environment.retain(|(other, _)| *other != name);
            manager.environment.push((name, value));
        }
        manager.set.push(option);
    }
    Ok(manager)
}

/// Puts layers in front of a manager.
///
/// # Errors
/// [`StackError::Nonsense`].
pub fn stacked(layers: Vec<Layer>, mut manager: Manager) -> Result<Manager, ManagerError> {
    if layers.is_empty() {
        return Ok(manager);
    }
    let words: Vec<&str> = layers.iter().map(|layer| layer.word.as_str()).collect();
    let name = format!("{}/{}", words.join("/"), manager.name);
    if let Some(reason) = nonsense(&layers, &manager) {
        return Err(StackError::Nonsense { stack: name, reason }.into());
    }
    for layer in &layers {
        if let Some(variable) = layer.kind.variable() {
            let pairs: Vec<String> =
                layer.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            manager.environment.push((variable.into(), pairs.join(",")));
        }
    }
    manager.name = name;
    manager.layers = layers;
    Ok(manager)
}

/// Why these layers do not go together or not in front of this manager.
fn nonsense(layers: &[Layer], manager: &Manager) -> Option<String> {
    for (at, layer) in layers.iter().enumerate() {
        if layers[..at].iter().any(|other| other.kind == layer.kind) {
            return Some(format!("the layer `{}` stands there twice", layer.kind.as_str()));
        }
    }
    if let Some(reason) = manager.why_no_layers() {
        return Some(reason.into());
    }
    let delaying: Vec<&Layer> = layers.iter().filter(|layer| layer.kind.delays()).collect();
    match delaying[..] {
        [first, second] => Some(format!(
            "both `{}` and `{}` decide when a block is free; take one",
            first.kind.as_str(),
            second.kind.as_str()
        )),
        [only] if manager.collects() => Some(format!(
            "{} is a collector and decides by itself when a block is free, so `{}` in front of it would measure both; \
             take an allocator, for instance tithe-explicit",
            manager.base,
            only.kind.as_str()
        )),
        _ => None,
    }
}

#[cfg(test)]
#[path = "stack_tests.rs"]
mod tests;
