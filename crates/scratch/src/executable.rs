//! Files to execute, for tests that write programs of their own.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes an executable file by another process. A thread that forks while this process has the file open for writing
/// would hand the descriptor on, and executing the file would fail: text file busy.
///
/// # Errors
/// The system's, or `install` (coreutils) cannot write the file.
pub fn write_executable(path: &Path, text: &str) -> io::Result<()> {
    let mut install =
        Command::new("install").args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = install.stdin.take() {
        input.write_all(text.as_bytes())?;
    }
    match install.wait()? {
        status if status.success() => Ok(()),
        status => Err(io::Error::other(format!("install ended with {status} for {}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_executed_at_once() {
        let scratch = crate::Scratch::make().expect("a folder");
        let path = scratch.path().join("seven");
        write_executable(&path, "#!/bin/sh\nexit 7\n").expect("writes");
        assert_eq!(Command::new(&path).status().expect("runs").code(), Some(7));
        let nowhere = scratch.path().join("no/such/folder");
        assert!(write_executable(&nowhere, "").is_err());
    }
}
