//! Commands that are run to their end.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Runs a command without input. The error is what it wrote to standard error, in one line, or why it did not start.
pub(crate) fn quietly(command: &mut Command) -> Result<(), String> {
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

/// Waits for a command to end, and kills it when it takes longer than `limit`: `None`.
pub(crate) fn within(command: &mut Command, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
