//! Reads the layers of a stack from the word that it is written as.

use super::error::StackError;
use super::layer::{Layer, LayerKind, POINTS};
use super::option::{Values, read_options};
use crate::places::Places;

/// What the name of an oracle's file ends with.
pub const ORACLE_ENDING: &str = ".oracle";
/// Bytes; what the layer can count (preload/layers/core/src/quarantine.rs).
const LARGEST_QUARANTINE: u64 = 512 << 30;

/// The layers in front of a word's manager, and the rest of the word.
///
/// # Errors
/// A layer with settings it does not have.
pub fn layers(word: &str) -> Result<(Vec<Layer>, &str), StackError> {
    let mut found = Vec::new();
    let mut rest = word;
    while let Some(kind) = LayerKind::of(rest.split('/').next().unwrap_or(rest)) {
        let Some((part, following)) = split_layer(kind, rest) else {
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

/// A layer's part of the word, and what follows the `/` after it. The path of an oracle's file may contain others.
fn split_layer(kind: LayerKind, rest: &str) -> Option<(&str, &str)> {
    let own = rest.split('/').next().unwrap_or(rest);
    let from = match kind {
        LayerKind::Oracle if own.contains(",file=") => {
            rest.find(ORACLE_ENDING).map_or(0, |at| at + ORACLE_ENDING.len())
        }
        _ => 0,
    };
    let at = from + rest[from..].find('/')?;
    Some((&rest[..at], &rest[at + 1..]))
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
                .ok_or_else(|| wrong(&format!("`{text}` is not a size; write 1B, 64K, 2M or the like")))?;
            if bytes.parse().is_ok_and(|bytes: u64| bytes > LARGEST_QUARANTINE) {
                return Err(wrong(&format!("{text} is too much; the most is 512G")));
            }
            word.push('=');
            word.push_str(&text);
            settings.push(("size".into(), bytes));
        }
        (LayerKind::Oracle, Some(point)) if POINTS.contains(&point) => {
            word.push('=');
            word.push_str(point);
            settings.push(("point".into(), point.into()));
        }
        (LayerKind::Oracle, _) => {
            return Err(wrong(&format!("it needs a point: oracle={}", POINTS.join(" or "))));
        }
        (LayerKind::Quarantine, None) => return Err(wrong("it needs a size: quarantine=2M")),
        (_, Some(_)) => return Err(wrong("it takes no value of its own, only options after a comma")),
        (_, None) => {}
    }
    for (option, value, text) in read_options(kind.as_str(), &kind.options(), pieces)? {
        word.push_str(&format!(",{option}={text}"));
        settings.push((option, value));
    }
    if kind == LayerKind::Oracle {
        complete(&mut settings).map_err(wrong)?;
    }
    Ok(Layer { kind, word, settings })
}

/// Checks that an oracle has what its point needs, and nothing else. Where it names no file, the file is the one that
/// `heaptoll lab oracle` writes where it is given none.
fn complete(settings: &mut Vec<(String, String)>) -> Result<(), &'static str> {
    let set =
        |option: &str| settings.iter().find(|(name, _)| name == option).map(|(_, value)| value.as_str());
    let point = set("point").unwrap_or_default();
    match (matches!(point, "delay" | "collect"), set("bytes")) {
        (true, None) => return Err("it needs bytes: oracle=delay,bytes=64K"),
        (false, Some(_)) => return Err("only delay and collect take bytes"),
        _ => {}
    }
    match (point, set("file")) {
        ("record", None) => Ok(()),
        ("record", Some(_)) => Err("a program is recorded without a file"),
        (_, None) => {
            let file = Places::oracles().join(format!("{{program}}{ORACLE_ENDING}"));
            let file = file.to_str().filter(|text| !text.contains([',', '\n'])).ok_or(
                "the folder of recordings cannot be part of a setting; name a file: oracle=last-use,file=FILE.oracle",
            )?;
            settings.push(("file".into(), file.into()));
            Ok(())
        }
        (_, Some(file)) if !file.ends_with(ORACLE_ENDING) => Err("its file's name must end with .oracle"),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "word_tests.rs"]
mod tests;
