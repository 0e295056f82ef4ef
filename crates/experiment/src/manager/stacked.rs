//! Options set of a manager and layers put in front of it: refused where they make no sense, before anything runs.

use super::definition::Manager;
use super::error::ManagerError;
use crate::stack::{Layer, ManagerOption, StackError, Values, read_options};

/// Where the value stands in the key of an option, if not after it.
const VALUE: &str = "{value}";

/// A manager with the options of `pieces` set: they become part of its name and of its environment.
///
/// # Errors
/// Options that it does not have, or values that they do not take.
pub(super) fn with_options<'a>(
    mut manager: Manager,
    pieces: impl Iterator<Item = &'a str>,
) -> Result<Manager, StackError> {
    let known: Vec<(&str, Values)> =
        manager.options.iter().map(|(name, option)| (name.as_str(), option.values.clone())).collect();
    let read = read_options(&manager.base, &known, pieces)?;
    for (option, value, text) in read {
        manager.name.push_str(&format!(",{option}={text}"));
        let ManagerOption { variable, key, between, with, .. } = &manager.options[&option];
        let value = match key {
            Some(key) if key.contains(VALUE) => {
                joined(&manager.environment, variable, between, &key.replace(VALUE, &value))
            }
            Some(key) => joined(&manager.environment, variable, between, &format!("{key}{value}")),
            None => value,
        };
        let set = std::iter::once((variable.clone(), value)).chain(with.clone());
        for (name, value) in set.collect::<Vec<_>>() {
            manager.environment.retain(|(other, _)| *other != name);
            manager.environment.push((name, value));
        }
        manager.set.push(option);
    }
    Ok(manager)
}

/// What a variable is with one more of the options that it carries.
fn joined(environment: &[(String, String)], variable: &str, between: &str, part: &str) -> String {
    match environment.iter().find(|(name, _)| name == variable) {
        Some((_, before)) => format!("{before}{between}{part}"),
        None => part.to_owned(),
    }
}

/// Puts layers in front of a manager.
///
/// # Errors
/// [`StackError::Nonsense`].
pub(super) fn stacked(layers: Vec<Layer>, mut manager: Manager) -> Result<Manager, ManagerError> {
    if layers.is_empty() {
        return Ok(manager);
    }
    let words: Vec<&str> = layers.iter().map(|layer| layer.word.as_str()).collect();
    let name = format!("{}/{}", words.join("/"), manager.name);
    if let Some(reason) = nonsense(&layers, &manager) {
        return Err(StackError::Nonsense { stack: name, reason }.into());
    }
    let own: Vec<String> = manager.environment.iter().map(|(name, _)| name.clone()).collect();
    for layer in &layers {
        if let Some(variable) = &layer.kind.variable {
            let mut pairs: Vec<String> =
                layer.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            if layer.kind.hides && !own.is_empty() {
                pairs.push(format!("hide={}", own.join("+")));
            }
            manager.environment.push((variable.clone(), pairs.join(",")));
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
            return Some(format!("the layer `{}` stands there twice", layer.kind.name));
        }
    }
    let first = layers.iter().skip(1).find_map(|layer| Some((&layer.kind.name, layer.kind.first.as_ref()?)));
    if let Some((name, why)) = first {
        return Some(format!("`{name}` {why}, so it must be the first layer"));
    }
    if let Some(reason) = manager.why_no_layers() {
        return Some(reason.into());
    }
    let delaying: Vec<&Layer> = layers.iter().filter(|layer| layer.kind.delays).collect();
    match delaying[..] {
        [first, second] => Some(format!(
            "both `{}` and `{}` decide when a block is free; take one",
            first.kind.name, second.kind.name
        )),
        [only] if manager.collects() => Some(format!(
            "{} is a collector and itself decides when a block is free, so `{}` in front of it would measure \
             both; take an allocator, for instance tithe-explicit",
            manager.base, only.kind.name
        )),
        _ => None,
    }
}
