//! A command run to its end.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use crate::error::BenchError;

/// What a command used, and wrote.
#[derive(Debug)]
pub struct Finished {
    /// CPU time of user and system, s.
    pub cpu_s: f64,
    /// Its standard error.
    pub errors: String,
}

/// Runs a command to its end; its output is thrown away.
///
/// # Errors
/// It cannot be started, or does not end with status 0.
pub fn run(command: &mut Command) -> Result<Finished, BenchError> {
    let file = tempfile::NamedTempFile::new().map_err(BenchError::system("temporary file"))?;
    let errors = file.reopen().map_err(BenchError::system("temporary file"))?;
    let shown = format!("{command:?}");
    let child = command
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .map_err(BenchError::system(format!("start `{shown}`")))?;
    let pid =
        i32::try_from(child.id()).map_err(|_| BenchError::Unexpected("no such process number".into()))?;
    let mut status = 0;
    // SAFETY: all zeroes is a valid `rusage`; `wait4` writes to `status` and `usage`, both live locals. The child is
    // waited for here only.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        while libc::wait4(pid, &mut status, 0, &mut usage) < 0 {
            let cause = std::io::Error::last_os_error();
            if cause.kind() != std::io::ErrorKind::Interrupted {
                return Err(BenchError::System { what: "wait".into(), cause });
            }
        }
        usage
    };
    let bytes = std::fs::read(file.path()).map_err(BenchError::system("read what it wrote"))?;
    let errors = String::from_utf8_lossy(&bytes).into_owned();
    let status = ExitStatus::from_raw(status);
    if !status.success() {
        let tail = errors.lines().rev().take(5).collect::<Vec<_>>().join(" / ");
        return Err(BenchError::Ended { command: shown, how: status.to_string(), errors: tail });
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Finished { cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime), errors })
}
