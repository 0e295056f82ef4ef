//! Reads the layers of a stack from the word that it is written as.

use super::error::StackError;
use super::layer::{Layer, LayerKind};
use super::option::{Values, read_options};

/// Bytes; what the layer can count (preload/layers/quarantine/core).
const LARGEST_QUARANTINE: u64 = 512 << 30;

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

#[cfg(test)]
#[path = "word_tests.rs"]
mod tests;
