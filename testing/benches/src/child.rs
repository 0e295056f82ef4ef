//! A command run to its end, with what it used: benches measure whole processes from outside.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use crate::Error;

/// What a command used, and wrote.
#[derive(Debug)]
pub struct Finished {
    /// Wall time, s.
    pub wall_s: f64,
    /// CPU time of user and system, s.
    pub cpu_s: f64,
    /// Peak resident set, KiB. A parent's own peak is a lower limit of it: a bench is a few MiB.
    pub peak_rss_kib: u64,
    /// Its standard error.
    pub errors: String,
}

/// Runs a command to its end; its output is thrown away.
///
/// # Errors
/// It cannot be started, or does not end with status 0.
pub fn run(command: &mut Command) -> Result<Finished, Error> {
    let shown = format!("{command:?}");
    let errors = tempfile::tempfile().map_err(Error::system("temporary file"))?;
    let copy = errors.try_clone().map_err(Error::system("temporary file"))?;
    let begun = Instant::now();
    let child = command
        .stdout(Stdio::null())
        .stderr(copy)
        .spawn()
        .map_err(Error::system(format!("start `{shown}`")))?;
    let (status, usage) = wait(child.id()).map_err(Error::system(format!("wait for `{shown}`")))?;
    let wall_s = begun.elapsed().as_secs_f64();
    let errors = text(errors).map_err(Error::system("read what it wrote"))?;
    if !status.success() {
        let last = errors.len().saturating_sub(500);
        let last = errors.char_indices().map(|(at, _)| at).find(|&at| at >= last).unwrap_or(0);
        let errors = errors[last..].trim().to_owned();
        return Err(Error::Ended { command: shown, how: status.to_string(), errors });
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    Ok(Finished { wall_s, cpu_s, peak_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0), errors })
}

/// Waits for a child that is waited for nowhere else.
fn wait(pid: u32) -> io::Result<(ExitStatus, libc::rusage)> {
    let pid = i32::try_from(pid).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: all zeroes is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `wait4` writes to `status` and `usage`, both live locals.
    while unsafe { libc::wait4(pid, &mut status, 0, &mut usage) } < 0 {
        let cause = io::Error::last_os_error();
        if cause.kind() != io::ErrorKind::Interrupted {
            return Err(cause);
        }
    }
    Ok((ExitStatus::from_raw(status), usage))
}

/// A whole file from its start.
fn text(mut file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_command_that_ends_well_has_its_standard_error_and_its_use() {
        let finished = run(&mut shell("echo out; echo err >&2")).expect("ends with 0");
        assert_eq!(finished.errors, "err\n");
        assert!(finished.peak_rss_kib > 0 && finished.wall_s > 0.0, "{finished:?}");
    }

    #[test]
    fn a_command_that_fails_is_named_with_the_end_of_its_standard_error() {
        // 600 letters of two bytes: the 500th byte from the end begins one, after the `x` it does not.
        for end in ["", "x"] {
            let script = format!("printf 'é%.0s' $(seq 600) >&2; printf '{end}' >&2; exit 3");
            match run(&mut shell(&script)) {
                Err(Error::Ended { command, how, errors }) => {
                    assert!(command.contains("printf") && how.contains('3'), "{command} {how}");
                    assert!(errors.len() <= 500 && errors.ends_with(&format!("é{end}")), "{errors}");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_command_that_is_not_there_is_named() {
        let error = run(&mut Command::new("/none/such")).expect_err("is not there").to_string();
        assert!(error.contains("/none/such"), "{error}");
    }
}
