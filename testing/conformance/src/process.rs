//! Runs one case in a process and a process group of its own: processes that outlive it are killed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::error::Error;

/// How often a process is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Bytes of each output that are kept.
const KEPT: u64 = 256 * 1024;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed at the time limit.
    Hung,
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Ending::Status(status) => return write!(f, "exit status {status}"),
            Ending::Hung => return write!(f, "hung"),
            Ending::Signal(libc::SIGSEGV) => "SIGSEGV",
            Ending::Signal(libc::SIGABRT) => "SIGABRT",
            Ending::Signal(libc::SIGBUS) => "SIGBUS",
            Ending::Signal(libc::SIGILL) => "SIGILL",
            Ending::Signal(libc::SIGTRAP) => "SIGTRAP",
            Ending::Signal(libc::SIGALRM) => "SIGALRM (its watchdog)",
            Ending::Signal(number) => return write!(f, "signal {number}"),
        };
        write!(f, "{name}")
    }
}

/// The end of a process and its output.
#[derive(Debug, Clone)]
pub struct End {
    /// How it ended.
    pub ending: Ending,
    /// The first 256 KiB of its standard output.
    pub stdout: String,
    /// The first 256 KiB of its standard error.
    pub stderr: String,
    /// From start to end.
    pub took: Duration,
    /// Time on processors, with that of the children it waited for.
    pub cpu: Duration,
}

/// Runs `program` with `preload`, in this order, in an environment that holds nothing else but `environment`.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn run(
    program: &Path,
    arguments: &[&str],
    preload: &[PathBuf],
    environment: &[(String, String)],
    limit: Duration,
) -> Result<End, Error> {
    let error = |source| Error::Process { what: program.display().to_string(), source };
    // Files, not pipes: a process that outlives it would keep a pipe open.
    let (out, err) = (tempfile::tempfile().map_err(error)?, tempfile::tempfile().map_err(error)?);
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    if !preload.is_empty() {
        let mut list = OsString::new();
        for object in preload {
            if !list.is_empty() {
                list.push(":");
            }
            list.push(object);
        }
        command.env("LD_PRELOAD", list);
    }
    command.stdin(Stdio::null()).process_group(0);
    command.stdout(out.try_clone().map_err(error)?).stderr(err.try_clone().map_err(error)?);
    // SAFETY: setrlimit and prctl are async-signal-safe system calls; setrlimit reads `none`, a valid struct.
    unsafe {
        command.pre_exec(|| {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            // A terminal's Ctrl-C does not reach another process group, and a case that hangs would outlive the suite.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        })
    };
    let started = Instant::now();
    let mut child = command.spawn().map_err(error)?;
    let (took, ended) = loop {
        let ended = time_at_end(&child);
        if ended.is_some() || started.elapsed() > limit {
            break (started.elapsed(), ended);
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    if let Ok(group) = i32::try_from(child.id()) {
        // SAFETY: kill takes no pointers; the child has not been reaped, so the group is still its own.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    let killed = std::iter::from_fn(|| {
        std::thread::sleep(POLL_INTERVAL);
        Some(time_at_end(&child))
    });
    let cpu = ended.or_else(|| killed.flatten().next()).unwrap_or_default();
    let status = child.wait().map_err(error)?;
    let ending = if ended.is_none() { Ending::Hung } else { of_status(status) };
    Ok(End { ending, stdout: text(out).map_err(error)?, stderr: text(err).map_err(error)?, took, cpu })
}

/// The processor time of a child that has ended, without reaping it: its number is needed to kill its group.
fn time_at_end(child: &Child) -> Option<Duration> {
    // SAFETY: all-zero values are valid for these two plain C structs.
    let (mut info, mut usage): (libc::siginfo_t, libc::rusage) = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // The C library's waitid leaves out the kernel's last argument.
    // SAFETY: the kernel writes `info` and `usage`.
    let status = unsafe {
        libc::syscall(libc::SYS_waitid, libc::P_PID, child.id(), &raw mut info, options, &raw mut usage)
    };
    // SAFETY: waitid filled in the members for a child, or left zeros.
    let ended = status == 0 && unsafe { info.si_pid() } != 0;
    ended.then(|| of_timeval(usage.ru_utime) + of_timeval(usage.ru_stime))
}

fn of_timeval(time: libc::timeval) -> Duration {
    let (seconds, micros) = (time.tv_sec.max(0).unsigned_abs(), time.tv_usec.max(0).unsigned_abs());
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

fn of_status(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Status(code),
        (None, signal) => Ending::Signal(signal.unwrap_or(0)),
    }
}

fn text(mut file: File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(KEPT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> End {
        run(Path::new("/bin/sh"), &["-c", script], &[], &[], limit).expect("sh runs")
    }

    #[test]
    fn endings_are_distinguished() {
        let second = Duration::from_secs(20);
        assert_eq!(shell("exit 77", second).ending, Ending::Status(77));
        assert_eq!(shell("kill -SEGV $$", second).ending, Ending::Signal(libc::SIGSEGV));
        assert_eq!(shell("sleep 60", Duration::from_millis(50)).ending, Ending::Hung);
        let end = shell("echo out; echo err >&2", second);
        assert_eq!((end.stdout.as_str(), end.stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn time_on_processors_is_known_of_what_ended_and_of_what_hung() {
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let limit = Duration::from_secs(120);
        assert!(shell(busy, limit).cpu > Duration::ZERO);
        let hung = shell("while :; do :; done", Duration::from_secs(1));
        assert!(hung.ending == Ending::Hung && hung.cpu > Duration::ZERO, "{hung:?}");
    }

    #[test]
    fn what_outlives_a_case_is_killed_and_not_waited_for() {
        let started = Instant::now();
        let end = shell("sleep 60 & echo $!", Duration::from_secs(20));
        assert!(started.elapsed() < Duration::from_secs(20));
        let pid = end.stdout.trim();
        let gone = || {
            std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
        };
        for _ in 0..200 {
            if gone() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("process {pid} outlived its case");
    }
}
