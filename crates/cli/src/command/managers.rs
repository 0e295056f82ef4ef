//! `heaptoll managers`: what can be compared on this machine.

use std::time::Duration;

use clap::Args;
use heaptoll_lab::experiment::ProgramInfo;
use heaptoll_lab::interrupt::Interrupt;
use heaptoll_lab::manager;
use heaptoll_lab::places::Places;
use heaptoll_report::terminal::{ManagerRow, managers_table};

use crate::failure::{self, Failure};
use crate::preflights::{Found, Limits, prove};
use crate::terminal;

/// List managers: group, version, origin, what each is, and whether the preflight passes on a small program.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Also try this shared object
    #[arg(short = 'm', long = "manager", value_name = "PATH")]
    extra: Vec<String>,
}

/// Runs the command. Exit status 1 when a manager named with `-m` does not pass.
///
/// # Errors
/// heaptoll's own files or the named objects are missing.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let places = Places::find()?;
    let mut managers = manager::known(&places)?;
    let extra =
        arguments.extra.iter().map(|name| manager::find(&managers, name)).collect::<Result<Vec<_>, _>>()?;
    managers.extend(extra);
    let small = ProgramInfo {
        name: "ls".into(),
        about: String::new(),
        command: vec!["ls".into(), "/".into()],
        environment: vec![],
        stdin: None,
        expected_digest: None,
        serve: None,
    };
    let interrupt = Interrupt::default();
    let limits = Limits { whole: true, longest: Duration::MAX, expect_status: 0 };
    let mut code = 0;
    let mut rows = Vec::new();
    for manager in &managers {
        let found = prove(manager, &manager.name, &small, &places, &interrupt, limits)?;
        let (usable, status) = match found {
            Found::Serves(stack) if stack.warnings.is_empty() => (true, "passes".to_string()),
            Found::Serves(stack) => (true, format!("passes; {}", stack.warnings.join("; "))),
            Found::Refused(refusal) => {
                if arguments.extra.contains(&manager.name) {
                    code = failure::TROUBLE;
                }
                (false, refusal.to_string())
            }
        };
        rows.push(ManagerRow {
            name: manager.name.clone(),
            group: manager.group.word().into(),
            version: manager.version.clone(),
            origin: manager.origin.clone(),
            about: manager.about.clone(),
            status,
            usable: Some(usable),
        });
    }
    terminal::print(&managers_table(&rows, &terminal::style()))?;
    Ok(code)
}
