//! Programs of the catalog as commands, as they are and recorded.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use heaptoll_catalog::Prepared;

use crate::Error;
use crate::installation;

/// A heaptoll command.
///
/// # Errors
/// As [`installation::heaptoll`].
pub fn heaptoll(arguments: &[&str]) -> Result<Command, Error> {
    let mut command = Command::new(installation::heaptoll()?);
    command.args(arguments).stdin(Stdio::null());
    Ok(command)
}

/// The program as it is.
///
/// # Errors
/// It has no command, or its input cannot be opened.
pub fn plain(program: &Prepared) -> Result<Command, Error> {
    let first = program.command.first();
    let first = first.ok_or_else(|| Error::Unexpected(format!("{} has no command", program.name)))?;
    let mut command = Command::new(first);
    command.args(&program.command[1..]);
    give(program, command)
}

/// The program recorded into a file.
///
/// # Errors
/// Its input cannot be opened.
pub fn recorded(program: &Prepared, into: &Path, options: &[&str]) -> Result<Command, Error> {
    let mut command = heaptoll(&["record", "--force", "-o"])?;
    command.arg(into).args(options).arg("--").args(&program.command);
    give(program, command)
}

fn give(program: &Prepared, mut command: Command) -> Result<Command, Error> {
    command.envs(program.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(match &program.stdin {
        Some(path) => File::open(path).map_err(Error::file("open", path))?.into(),
        None => Stdio::null(),
    });
    Ok(command)
}
