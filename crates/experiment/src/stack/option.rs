//! Options of layers and managers: what they may be set to, and how they are read.

use std::collections::BTreeMap;

use heaptoll_catalog::did_you_mean;
use heaptoll_units::{size, size_text};
use serde::Deserialize;

use super::error::StackError;

/// What an option may be set to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// A size in bytes, `64K`; at least so many.
    Size(u64),
    /// A whole number from and to.
    Number(u64, u64),
    /// A time as a whole number up to this, or -1: never.
    Delay(u64),
    /// One of these words.
    Words(Vec<String>),
    /// A file, which is handed on by its absolute path.
    Path,
}

/// An option of a manager, as its description gives it: `every = { variable = "TITHE_EVERY", values = { size = 1 } }`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ManagerOption {
    /// The environment variable that carries it.
    pub variable: String,
    /// Where several options are one variable, `a:1,b:2`: what stands before its value there, or around `{value}`.
    #[serde(default)]
    pub key: Option<String>,
    /// What separates several options in one variable.
    #[serde(default = "comma")]
    pub between: String,
    /// What it may be; sizes are handed on in bytes.
    pub values: Values,
    /// Further variables that it needs.
    #[serde(default)]
    pub with: BTreeMap<String, String>,
}

/// The usual separator.
fn comma() -> String {
    ",".into()
}

impl Values {
    /// The value as it is handed on, and as it is shown.
    pub(super) fn read(&self, text: &str) -> Option<(String, String)> {
        match self {
            Values::Size(least) => {
                let bytes = size(text).filter(|bytes| bytes >= least)?;
                Some((bytes.to_string(), shown(bytes)))
            }
            Values::Number(from, to) => {
                let number: u64 = text.parse().ok()?;
                (from..=to).contains(&&number).then(|| (number.to_string(), number.to_string()))
            }
            Values::Delay(_) if text == "-1" => Some((text.into(), text.into())),
            Values::Delay(to) => Values::Number(0, *to).read(text),
            Values::Words(words) => words.iter().any(|word| word == text).then(|| (text.into(), text.into())),
            Values::Path => {
                let absolute = std::path::absolute(text).ok()?.to_str()?.to_owned();
                Some((absolute, text.into()))
            }
        }
    }

    /// The value in an option's description: `SIZE`, `1..64`, `on|off`.
    pub fn pattern(&self) -> String {
        match self {
            Values::Size(_) => "SIZE".into(),
            Values::Number(from, to) if *to < 1 << 20 => format!("{from}..{to}"),
            Values::Number(..) => "N".into(),
            Values::Delay(_) => "N|-1".into(),
            Values::Words(words) => words.join("|"),
            Values::Path => "FILE".into(),
        }
    }

    fn allowed(&self) -> String {
        match self {
            Values::Size(least) => {
                format!("give bytes, {} or more (K, M, G are powers of 1024)", shown(*least))
            }
            Values::Number(from, u64::MAX) => format!("give a whole number from {from}"),
            Values::Number(from, to) => format!("give a whole number from {from} to {to}"),
            Values::Delay(to) => format!("give a whole number from 0 to {to}, or -1 for never"),
            Values::Words(words) => format!("give {}", words.join(" or ")),
            Values::Path => "give the path of a file".into(),
        }
    }
}

/// `1B`, `64K`: a size in a stack's name.
pub(super) fn shown(bytes: u64) -> String {
    let text = size_text(bytes);
    if text.ends_with(|last: char| last.is_ascii_digit()) { format!("{text}B") } else { text }
}

/// The error of an option that is not known, with those that are. A piece without a value may be meant as another
/// manager.
fn unknown(owner: &str, known: &[(&str, Values)], piece: &str, option: &str) -> StackError {
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let mut text = match names.is_empty() {
        true => "it has none".to_owned(),
        false => format!("it has {}{}", names.join(", "), did_you_mean(option, names.iter().copied())),
    };
    if piece == option {
        text.push_str("; if it is a manager, give it an -m of its own");
    }
    StackError::Option { owner: owner.into(), option: option.into(), known: text }
}

/// Options as name, value handed on, value shown.
pub(crate) fn read_options<'a>(
    owner: &str,
    known: &[(&str, Values)],
    pieces: impl Iterator<Item = &'a str>,
) -> Result<Vec<(String, String, String)>, StackError> {
    let mut read: Vec<(String, String, String)> = Vec::new();
    for piece in pieces {
        let (option, value) = piece.split_once('=').unwrap_or((piece, ""));
        let Some((_, values)) = known.iter().find(|(name, _)| *name == option) else {
            return Err(unknown(owner, known, piece, option));
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
