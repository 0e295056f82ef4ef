//! The program as a child process, an ordinary one: it lives on if the recorder does not.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::error::RecordError;
use crate::limits;
use crate::request::Request;

/// The variable that the loader reads.
const PRELOAD: &str = "LD_PRELOAD";
/// The variable that names the rings' file.
pub const RECORD: &str = "HEAPTOLL_RECORD";

/// The program, running.
pub struct Child {
    /// Its process number.
    pub pid: i32,
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProgramExit {
    /// The status that `wait` returned.
    pub status: ExitStatus,
    /// User and system time, s.
    pub cpu_s: f64,
}

impl ProgramExit {
    /// As a shell gives it: the exit status, or 128 and the signal.
    pub fn code(&self) -> u8 {
        let code = self.status.code().or_else(|| self.status.signal().map(|signal| 128 + signal));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
    }

    /// Whether one of the signals that users send ended it, or, where it is a shell, ended the program that it ran: the
    /// shell's exit status then states so.
    pub fn was_signalled(&self) -> bool {
        let signals = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM];
        signals.iter().any(|&signal| i32::from(self.code()) == 128 + signal)
    }

    /// A description of it.
    pub fn text(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exited with status {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "ended".into(),
        }
    }
}

/// The value of `LD_PRELOAD`: the layer, the manager, and what the user's environment preloads.
///
/// # Errors
/// A path that the variable cannot hold.
pub fn preload_list(request: &Request, inherited: Option<&OsStr>) -> Result<OsString, RecordError> {
    let mut list = OsString::new();
    for path in std::iter::once(&request.layer).chain(&request.manager.preload) {
        // A bare name is one that the loader searches for, as it does for what programs link.
        let bare = path.components().count() == 1 && path.is_relative();
        let absolute =
            if bare { path.clone() } else { std::path::absolute(path).unwrap_or_else(|_| path.clone()) };
        if absolute.as_os_str().as_encoded_bytes().iter().any(|byte| b": ".contains(byte)) {
            return Err(RecordError::NotPreloadable { path: absolute });
        }
        if !list.is_empty() {
            list.push(":");
        }
        list.push(absolute);
    }
    if let Some(inherited) = inherited.filter(|value| !value.is_empty()) {
        list.push(":");
        list.push(inherited);
    }
    Ok(list)
}

/// Starts the program with the layer, which finds what it shares with us by this variable at this path.
///
/// # Errors
/// It cannot be started, or one of its streams cannot be opened.
pub fn start(request: &Request, (variable, shared): (&str, &Path)) -> Result<Child, RecordError> {
    let program = request.command.first().ok_or(RecordError::NoCommand)?;
    let mut command = Command::new(program);
    command.args(&request.command[1..]);
    command.envs(request.environment.iter().map(|(name, value)| (name, value)));
    command.envs(request.manager.environment.iter().map(|(name, value)| (name, value)));
    let inherited = request
        .environment
        .iter()
        .rev()
        .find(|(name, _)| name == PRELOAD)
        .map(|(_, value)| value.clone())
        .or_else(|| std::env::var_os(PRELOAD));
    command.env(PRELOAD, preload_list(request, inherited.as_deref())?);
    command.env(variable, shared);
    if request.own_group {
        command.process_group(0);
    }
    if let Some(directory) = &request.directory {
        command.current_dir(directory);
    }
    if let Some(path) = &request.stdin {
        command.stdin(stream(path, File::open(path))?);
    }
    if request.stdout.as_deref() == Some(Path::new("/dev/stderr")) {
        // Not opened anew: two positions in one file would write over each other.
        command.stdout(io::stderr());
    } else if let Some(path) = &request.stdout {
        command.stdout(stream(path, File::options().append(true).create(true).open(path))?);
    }
    if let Some(path) = &request.stderr {
        command.stderr(stream(path, File::options().append(true).create(true).open(path))?);
    }
    // More processes may be recorded at once than the usual limit of open files allows. The program keeps its own
    // limit.
    if let Some(limit) = limits::raise_open_files() {
        // SAFETY: between fork and exec the closure calls setrlimit, which is a bare system call, and reads errno; it
        // takes no lock and allocates nothing (`limits::set`).
        unsafe {
            command.pre_exec(move || match limits::set(libc::RLIMIT_NOFILE, &limit) {
                true => Ok(()),
                false => Err(io::Error::last_os_error()),
            });
        }
    }
    let child = command
        .spawn()
        .map_err(|source| RecordError::Start { program: program.to_string_lossy().into_owned(), source })?;
    Ok(Child { pid: child.id() as i32 })
}

fn stream(path: &Path, opened: io::Result<File>) -> Result<Stdio, RecordError> {
    opened.map(Stdio::from).map_err(|source| RecordError::Stream { path: PathBuf::from(path), source })
}

impl Child {
    /// How it ended, once it has; reaps it.
    pub fn ended(&self) -> Option<ProgramExit> {
        let mut status = 0;
        // SAFETY: all zeroes is a valid rusage; wait4 writes to the live locals `status` and `usage` only.
        let (reaped, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::wait4(self.pid, &mut status, libc::WNOHANG, &mut usage), usage)
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        (reaped == self.pid).then(|| ProgramExit {
            status: ExitStatus::from_raw(status),
            cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        })
    }

    /// Sends it a signal, when it has not been reaped.
    pub fn signal(&self, signal: i32) {
        // SAFETY: kill takes no pointers. The process is reaped by `Child::ended` alone, after which the only caller,
        // `Recorder::is_stopped`, sends nothing (it checks `Recorder::ended`), so that its number cannot be another's.
        unsafe { libc::kill(self.pid, signal) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(script: &str) -> Request {
        Request {
            command: vec!["sh".into(), "-c".into(), script.into()],
            layer: "/no-such-layer.so".into(),
            stderr: Some("/dev/null".into()),
            ..Request::default()
        }
    }

    fn run(script: &str) -> ProgramExit {
        let child = start(&request(script), (RECORD, Path::new("/no-rings"))).expect("starts");
        loop {
            if let Some(ended) = child.ended() {
                return ended;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn statuses_are_those_of_a_shell() {
        let ended = run("exit 7");
        assert_eq!((ended.code(), ended.text().as_str()), (7, "exited with status 7"));
        let ended = run("kill -9 $$");
        assert_eq!((ended.code(), ended.text().as_str()), (137, "killed by signal 9"));
        assert!(ended.cpu_s < 5.0);
    }

    #[test]
    fn the_program_has_the_limits_that_the_recorder_had() {
        let now = || {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: getrlimit writes to this live local only.
            unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
            limit.rlim_cur
        };
        let before = limits::raise_open_files().map_or_else(now, |limit| limit.rlim_cur);
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("output");
        let mut request = request("ulimit -n; echo $HEAPTOLL_RECORD");
        request.stdout = Some(output.clone());
        let child = start(&request, (RECORD, Path::new("/rings"))).expect("starts");
        while child.ended().is_none() {
            std::thread::yield_now();
        }
        let text = std::fs::read_to_string(&output).expect("it printed something");
        let (limit, rings) = text.split_once('\n').expect("two lines");
        assert_eq!(limit, before.to_string());
        assert_eq!(rings.trim(), "/rings");
    }

    #[test]
    fn the_callers_own_objects_come_last() {
        let mut request = request(":");
        request.manager.preload = vec!["/m.so".into()];
        let list = preload_list(&request, Some(OsStr::new("/mine.so"))).expect("a list");
        assert_eq!(list, "/no-such-layer.so:/m.so:/mine.so");
        request.manager.preload = vec!["libc.so.6".into(), "./m.so".into()];
        let list = preload_list(&request, None).expect("a list");
        let here = std::env::current_dir().expect("a folder");
        assert_eq!(list, *format!("/no-such-layer.so:libc.so.6:{}/m.so", here.display()));
        request.manager.preload = vec!["/with space.so".into()];
        assert!(matches!(preload_list(&request, None), Err(RecordError::NotPreloadable { .. })));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let missing = Request { command: vec!["/no/such/program".into()], ..request("") };
        let error = start(&missing, (RECORD, Path::new("/rings"))).err().expect("an error").to_string();
        assert!(error.contains("/no/such/program") && error.contains("No such file"), "{error}");
        assert!(matches!(start(&Request::default(), (RECORD, Path::new("/"))), Err(RecordError::NoCommand)));
    }
}
