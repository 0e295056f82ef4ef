//! `heaptoll managers`: the managers that can be compared on this machine, and the layers for them.

use std::time::Duration;

use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::extension::{require, require_for};
use heaptoll_experiment::manager::{self, Manager, ManagerError};
use heaptoll_experiment::stack::{LayerKind, Values, installed};
use heaptoll_preflight::Refusal;
use heaptoll_report::terminal::{LayerRow, ManagerRow, OptionsRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::preparation::preflights::{Limits, PreflightOutcome, prove};

schemars::labelled!(ManagersFigures, "heaptoll-managers/1");

/// What there is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagersFigures {
    /// Managers, those that were named last.
    pub managers: Vec<ManagerRow>,
    /// Options of managers, those with the same together.
    pub options: Vec<OptionsRow>,
    /// Layers.
    pub layers: Vec<LayerRow>,
    /// Whether all that were named pass the preflight.
    pub named_pass: bool,
}

/// Finds all managers and layers, and tries each on a small program; so also these shared objects or stacks.
///
/// # Errors
/// heaptoll's own files or the named objects are missing.
pub fn find(named: &[String], context: &Context) -> Result<ManagersFigures, Failure> {
    // What only the laboratory tries is not listed without it.
    let known = match require("") {
        Ok(()) => manager::known_with_java(context.places)?,
        Err(_) => manager::known(context.places)?,
    };
    let extra = named.iter().map(|name| manager::find(&known, name)).collect::<Result<Vec<_>, _>>()?;
    let mut named_pass = true;
    let mut managers = Vec::new();
    for (manager, is_named) in known.iter().map(|one| (one, false)).chain(extra.iter().map(|one| (one, true)))
    {
        let (usable, status) = tried(manager, context)?;
        named_pass &= usable || !is_named;
        managers.push(ManagerRow {
            name: manager.name.clone(),
            group: manager.group.as_str().into(),
            version: manager.version.clone(),
            origin: manager.origin.clone(),
            about: manager.about.clone(),
            status,
            usable: Some(usable),
        });
    }
    Ok(ManagersFigures {
        managers,
        options: with_options(&known),
        layers: layers(&known, context)?,
        named_pass,
    })
}

/// Whether a manager or a stack serves a small program, and a remark about it.
///
/// # Errors
/// As [`find`].
pub fn tried(manager: &Manager, context: &Context) -> Result<(bool, String), Failure> {
    if let Err(why) = require_for(manager) {
        return Ok((false, why.to_string()));
    }
    let command = if manager.is_java() { ["java", "-version"] } else { ["ls", "/"] };
    let small = ProgramInfo {
        name: command[0].into(),
        command: command.map(String::from).into(),
        ..ProgramInfo::default()
    };
    let limits = Limits { whole: true, longest: Duration::MAX, ..Limits::default() };
    Ok(match prove(manager, &manager.name, &small, context, limits)? {
        PreflightOutcome::Serves(stack, _) if stack.warnings.is_empty() => (true, "passes".into()),
        PreflightOutcome::Serves(stack, _) => (true, format!("passes; {}", stack.warnings.join("; "))),
        PreflightOutcome::Refused(Refusal::ProgramMissing { program, .. }) if manager.is_java() => {
            (false, format!("{program} is not installed: apt-get install default-jdk-headless"))
        }
        PreflightOutcome::Refused(refusal) => (false, refusal.to_string()),
    })
}

/// Every layer, tried in front of the C library's manager.
fn layers(known: &[Manager], context: &Context) -> Result<Vec<LayerRow>, Failure> {
    let row = |kind: &LayerKind| -> Result<LayerRow, Failure> {
        let stack = manager::find(known, &format!("{}/glibc", kind.example()))?;
        let (usable, status) = tried(&stack, context)?;
        let options = kind.options();
        let options = options.iter().map(|(name, values)| option(name, values)).collect();
        Ok(LayerRow { pattern: kind.pattern(), options, status, usable, about: kind.about.clone() })
    };
    installed().map_err(ManagerError::from)?.iter().map(row).collect()
}

/// Managers with options, those with the same together.
fn with_options(known: &[Manager]) -> Vec<OptionsRow> {
    let mut groups: Vec<OptionsRow> = Vec::new();
    for manager in known.iter().filter(|manager| !manager.options.is_empty()) {
        let options: Vec<String> =
            manager.options.iter().map(|(name, known)| option(name, &known.values)).collect();
        match groups.iter_mut().find(|group| group.options == options) {
            Some(group) => group.managers.push(manager.name.clone()),
            None => groups.push(OptionsRow { managers: vec![manager.name.clone()], options }),
        }
    }
    groups
}

fn option(name: &str, values: &Values) -> String {
    format!("{name}={}", values.pattern())
}
