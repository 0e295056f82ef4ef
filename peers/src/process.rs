//! Commands that are run to their end.

use std::process::{Command, Stdio};

/// Runs a command without input. The error is what it wrote to standard error, in one line, or why it did not start.
pub fn quietly(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(error_line(&text).map_or_else(|| output.status.to_string(), str::to_owned))
}

/// The line that names an error, or the last.
fn error_line(text: &str) -> Option<&str> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let names = |line: &&str| {
        line.contains("error:") || line.contains("fatal:") || line.contains("undefined reference")
    };
    lines().find(names).or_else(|| lines().next_back())
}
