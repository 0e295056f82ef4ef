//! Reads the layers of a stack from the word that it is written as.

use heaptoll_units::size_label;

use super::error::StackError;
use super::layer::{Layer, LayerKind, LayerOption, installed};
use super::option::read_options;
use crate::places::Places;

/// The layers in front of a word's manager, and the rest of the word.
///
/// # Errors
/// A layer with settings it does not have; a damaged layer.
pub fn layers(word: &str) -> Result<(Vec<Layer>, &str), StackError> {
    let kinds = installed()?;
    let mut found = Vec::new();
    let mut rest = word;
    loop {
        let name = rest.split(['/', '=', ',']).next().unwrap_or(rest);
        let Some(kind) = kinds.iter().find(|kind| kind.name == name) else { return Ok((found, rest)) };
        let Some((part, following)) = split_layer(kind, rest) else {
            return Err(StackError::NoManager(word.into()));
        };
        if following.is_empty() {
            return Err(StackError::NoManager(part.into()));
        }
        found.push(layer(kind, part)?);
        rest = following;
    }
}

/// A layer's part of the word, and what follows the `/` after it. The path of a layer's file may contain others.
fn split_layer<'a>(kind: &LayerKind, rest: &'a str) -> Option<(&'a str, &'a str)> {
    let own = rest.split('/').next().unwrap_or(rest);
    let file = kind.file.as_ref().filter(|file| own.contains(&format!(",{}=", file.option)));
    let ends = |ending: &str| rest.find(ending).map_or(0, |at| at + ending.len());
    let from = file.map_or(0, |file| ends(&file.ending));
    let at = from + rest[from..].find('/')?;
    Some((&rest[..at], &rest[at + 1..]))
}

fn layer(kind: &'static LayerKind, part: &str) -> Result<Layer, StackError> {
    let wrong = |reason: String| StackError::Value { layer: kind.name.clone(), reason };
    let mut pieces = part.split(',');
    let head = pieces.next().unwrap_or(part);
    let mut layer = Layer { kind, word: kind.name.clone(), settings: Vec::new() };
    let value = head.split_once('=').map(|(_, value)| value);
    set_value(&mut layer, value).map_err(wrong)?;
    for (option, value, text) in read_options(&kind.name, &kind.options(), pieces)? {
        layer.word.push_str(&format!(",{option}={text}"));
        layer.settings.push((option, value));
    }
    complete(&mut layer).map_err(wrong)?;
    Ok(layer)
}

/// Sets the value of a layer's own.
fn set_value(layer: &mut Layer, given: Option<&str>) -> Result<(), String> {
    let Some(value) = &layer.kind.value else {
        let none = "it takes no value of its own, only options after a comma";
        return if given.is_some() { Err(none.into()) } else { Ok(()) };
    };
    let read = given.and_then(|text| value.values.read(text));
    let (handed, text) = read.ok_or_else(|| value.needed(&layer.kind.name, given))?;
    if let Some(most) = value.most.filter(|most| handed.parse().is_ok_and(|number: u64| number > *most)) {
        return Err(format!("{text} is too much; the most is {}", size_label(most)));
    }
    layer.word.push_str(&format!("={text}"));
    layer.settings.push((value.setting.clone(), handed));
    Ok(())
}

/// Checks that a layer has the options that its value needs, and nothing else. Where it names no file, the file is the one
/// that its command makes where it is given none.
fn complete(Layer { kind, settings, .. }: &mut Layer) -> Result<(), String> {
    let set =
        |option: &str| settings.iter().find(|(name, _)| name == option).map(|(_, value)| value.as_str());
    let value = kind.value.as_ref().and_then(|value| set(&value.setting)).unwrap_or_default();
    for option in kind.options.iter().map(|option| option.get_ref()) {
        let LayerOption { name, only_with, example, .. } = option;
        match (only_with.iter().any(|with| with == value), set(name)) {
            (true, None) => {
                return Err(format!("it needs {name}: {}={},{name}={example}", kind.name, only_with[0]));
            }
            (false, Some(_)) if !only_with.is_empty() => {
                return Err(format!("only {} take {name}", only_with.join(" and ")));
            }
            _ => {}
        }
    }
    let Some(file) = &kind.file else { return Ok(()) };
    match (file.without.get(value), set(&file.option)) {
        (Some(why), Some(_)) => Err(why.clone()),
        (None, None) => {
            let path = Places::cache().join(&file.folder).join(format!("{{program}}{}", file.ending));
            let path = path.to_str().filter(|text| !text.contains([',', '\n'])).ok_or_else(|| {
                let example = &file.example;
                format!("the folder of recordings cannot be part of a setting; name a file: {example}")
            })?;
            settings.push((file.option.clone(), path.into()));
            Ok(())
        }
        (None, Some(path)) if !path.ends_with(&file.ending) => {
            Err(format!("its file's name must end with {}", file.ending))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "word_tests.rs"]
mod tests;
