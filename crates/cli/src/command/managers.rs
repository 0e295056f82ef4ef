//! `heaptoll managers`: the managers that can be compared on this machine, and the layers for them.

use std::time::Duration;

use clap::Args;
use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::places::Places;
use heaptoll_experiment::stack::{LAYERS, LayerKind, Values};
use heaptoll_report::terminal::{LayerRow, ManagerRow, layers_table, managers_table, options_table};

use crate::exit;
use crate::messages::TerminalMessages;
use crate::terminal;
use heaptoll_experiments::context::Context;
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::preparation::preflights::{Limits, PreflightOutcome, prove};

/// List managers: group, version, origin, what each is, and whether the preflight passes on a small program. Then the
/// layers that can be put in front of them, and the options of both.
///
/// A stack is written LAYER/MANAGER, with options after either: quarantine=2M/mimalloc, sweep,every=64K/jemalloc,
/// tithe-collect,heap=32M. docs/guide/stacks.md explains more.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Also try this shared object, or this stack
    #[arg(short = 'm', long = "manager", value_name = "PATH")]
    extra: Vec<String>,
}

/// Runs the command. Exit status 1 when a manager named with `-m` does not pass.
///
/// # Errors
/// heaptoll's own files or the named objects are missing.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let places = Places::find()?;
    let known = manager::known(&places)?;
    let extra =
        arguments.extra.iter().map(|name| manager::find(&known, name)).collect::<Result<Vec<_>, _>>()?;
    let mut code = 0;
    let mut rows = Vec::new();
    for (manager, named) in known.iter().map(|one| (one, false)).chain(extra.iter().map(|one| (one, true))) {
        let (usable, status) = tried(manager, &places)?;
        if named && !usable {
            code = exit::TROUBLE;
        }
        rows.push(ManagerRow {
            name: manager.name.clone(),
            group: manager.group.as_str().into(),
            version: manager.version.clone(),
            origin: manager.origin.clone(),
            about: manager.about.clone(),
            status,
            usable: Some(usable),
        });
    }
    let style = terminal::style();
    let mut text = managers_table(&rows, &style);
    let with_options = with_options(&known);
    if !with_options.is_empty() {
        text.push('\n');
        text.push_str(&options_table(&with_options, &style));
    }
    text.push('\n');
    text.push_str(&layers_table(&layers(&known, &places)?, &style));
    terminal::print(&text)?;
    Ok(code)
}

/// Whether a manager or a stack serves a small program, and a remark about it.
fn tried(manager: &Manager, places: &Places) -> Result<(bool, String), Failure> {
    let messages = TerminalMessages::default();
    let context = Context { places, interrupt: &Interrupt::default(), messages: &messages };
    let small =
        ProgramInfo { name: "ls".into(), command: vec!["ls".into(), "/".into()], ..ProgramInfo::default() };
    let limits =
        Limits { whole: true, longest: Duration::MAX, expect_status: 0, working_copy: false, watch: false };
    Ok(match prove(manager, &manager.name, &small, &context, limits)? {
        PreflightOutcome::Serves(stack, _) if stack.warnings.is_empty() => (true, "passes".into()),
        PreflightOutcome::Serves(stack, _) => (true, format!("passes; {}", stack.warnings.join("; "))),
        PreflightOutcome::Refused(refusal) => (false, refusal.to_string()),
    })
}

/// Every layer, tried in front of the C library's manager.
fn layers(known: &[Manager], places: &Places) -> Result<Vec<LayerRow>, Failure> {
    let row = |kind: LayerKind| -> Result<LayerRow, Failure> {
        let stack = manager::find(known, &format!("{}/glibc", kind.example()))?;
        let (usable, status) = tried(&stack, places)?;
        let options = kind.options();
        let options = options.iter().map(|(name, values)| option(name, values)).collect();
        Ok(LayerRow { pattern: kind.pattern(), options, status, usable, about: kind.about().into() })
    };
    LAYERS.into_iter().map(row).collect()
}

/// Managers with options, those with the same together.
fn with_options(known: &[Manager]) -> Vec<(Vec<String>, Vec<String>)> {
    let mut groups: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for manager in known.iter().filter(|manager| !manager.options.is_empty()) {
        let options: Vec<String> =
            manager.options.iter().map(|(name, known)| option(name, &known.values)).collect();
        match groups.iter_mut().find(|(_, others)| *others == options) {
            Some((names, _)) => names.push(manager.name.clone()),
            None => groups.push((vec![manager.name.clone()], options)),
        }
    }
    groups
}

fn option(name: &str, values: &Values) -> String {
    format!("{name}={}", values.pattern())
}
