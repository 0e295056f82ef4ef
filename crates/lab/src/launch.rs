//! One invocation: the launcher is started, the program's output is digested as it comes, its usage read back.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use heaptoll_launcher::{Ended, Message, Spec, Thp, Usage};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::interrupt::{self, Interrupt};

/// How much of the head of standard output is kept, bytes; the rest is only digested.
const KEPT_OUTPUT: usize = 16 * 1024;
/// Lines that a follower may lag behind before the program has to wait.
const LINES_AHEAD: usize = 256;
/// How much of the tail of standard error is kept, bytes.
const KEPT_ERROR: usize = 2 * 1024;

/// What to run, once.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment over heaptoll's own.
    pub environment: Vec<(String, String)>,
    /// Objects for `LD_PRELOAD`, in order.
    pub preload: Vec<PathBuf>,
    /// Standard input; `/dev/null` when absent.
    pub stdin: Option<PathBuf>,
    /// Time limit; zero for none.
    pub timeout: Duration,
    /// Transparent huge pages.
    pub thp: Thp,
    /// Whether to open hardware counters.
    pub counters: bool,
    /// Whether lines of output are wanted while it runs (servers).
    pub follow: bool,
}

/// Something of the system or of heaptoll's own that failed; the program is not to blame.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The launcher could not be started.
    #[error("cannot start {path}: {cause}; run `make build` or reinstall heaptoll")]
    Launcher {
        /// The launcher's path.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The standard input file cannot be opened.
    #[error("cannot read standard input from {path}: {cause}")]
    Stdin {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A path in `LD_PRELOAD` that the loader would split.
    #[error("{0}: the loader splits LD_PRELOAD at spaces and colons; move the object to a path without them")]
    PreloadPath(PathBuf),
    /// Pipes or threads ran out.
    #[error("cannot set up a measurement: {0}")]
    System(#[from] std::io::Error),
    /// The launcher died or spoke another language.
    #[error("the launcher ended without a report{0}")]
    NoReport(String),
}

/// What came out of a finished invocation.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// How it ended.
    pub ended: Ended,
    /// What it used.
    pub usage: Usage,
    /// Bytes of standard output.
    pub output_bytes: u64,
    /// SHA-256 of standard output, hexadecimal.
    pub digest: String,
    /// The first 16 KiB of standard output.
    pub output_head: Vec<u8>,
    /// The last 2 KiB of standard error.
    pub error_tail: String,
}

struct Output {
    bytes: u64,
    digest: String,
    head: Vec<u8>,
}

/// An invocation under way.
pub struct Running {
    launcher: Child,
    messages: BufReader<File>,
    interrupt: Interrupt,
    stdout: JoinHandle<Output>,
    stderr: JoinHandle<Vec<u8>>,
    lines: Option<Receiver<String>>,
    started: Option<i32>,
    ended: Option<(Ended, Usage)>,
}

/// The value of `LD_PRELOAD`.
///
/// # Errors
/// A path with a space or a colon.
pub fn preload_value(objects: &[PathBuf]) -> Result<String, LaunchError> {
    let words: Result<Vec<String>, LaunchError> = objects
        .iter()
        .map(|path| {
            let text = path.display().to_string();
            if text.contains([' ', ':', '\t', '\n']) {
                Err(LaunchError::PreloadPath(path.clone()))
            } else {
                Ok(text)
            }
        })
        .collect();
    Ok(words?.join(":"))
}

/// Starts the program through the launcher at `launcher` and returns once it has been exec'd (or could not be).
///
/// # Errors
/// See [`LaunchError`]; a program that cannot be exec'd is not an error here but a [`Finished`] that says so.
pub fn start(
    launcher: &Path,
    invocation: &Invocation,
    interrupt: &Interrupt,
) -> Result<Running, LaunchError> {
    let mut environment: Vec<(String, String)> = invocation.environment.clone();
    if !invocation.preload.is_empty() {
        environment.push(("LD_PRELOAD".into(), preload_value(&invocation.preload)?));
    }
    let stdin = match &invocation.stdin {
        None => Stdio::null(),
        Some(path) => match File::open(path) {
            Ok(file) => file.into(),
            Err(cause) => return Err(LaunchError::Stdin { path: path.clone(), cause }),
        },
    };
    let (ours, theirs) = pipe()?;
    let spec = Spec {
        command: invocation.command.iter().map(Into::into).collect(),
        environment: environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        timeout_ms: u64::try_from(invocation.timeout.as_millis()).unwrap_or(u64::MAX),
        thp: invocation.thp,
        counters: invocation.counters,
        report_fd: theirs.as_raw_fd(),
        parent: i32::try_from(std::process::id()).unwrap_or(0),
    };
    let mut command = Command::new(launcher);
    command.args(spec.to_args()).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    // Whatever the user preloads or audits in the shell would ride along in every run, glibc's too.
    command.env_remove("LD_PRELOAD").env_remove("LD_AUDIT");
    let fd = theirs.as_raw_fd();
    // SAFETY: what `ready_to_launch` calls is async-signal-safe, and `fd` stays open until after spawn.
    unsafe { command.pre_exec(move || ready_to_launch(fd)) };
    let mut child =
        command.spawn().map_err(|cause| LaunchError::Launcher { path: launcher.to_path_buf(), cause })?;
    drop(theirs);
    interrupt.enter(child.id());
    let (sender, receiver) = sync_channel(LINES_AHEAD);
    let follow = |sender: &SyncSender<String>| invocation.follow.then(|| sender.clone());
    let (out_lines, err_lines) = (follow(&sender), follow(&sender));
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let mut running = Running {
        stdout: std::thread::spawn(move || digest(out, out_lines)),
        stderr: std::thread::spawn(move || tail(err, err_lines)),
        lines: invocation.follow.then_some(receiver),
        launcher: child,
        messages: BufReader::new(ours.into()),
        interrupt: interrupt.clone(),
        started: None,
        ended: None,
    };
    match running.next_message()? {
        Message::Started(pid) => running.started = Some(pid),
        Message::Ended(ended, usage) => running.ended = Some((ended, usage)),
    }
    Ok(running)
}

/// What has to hold from the launcher's first instruction, done between fork and exec.
fn ready_to_launch(report: RawFd) -> std::io::Result<()> {
    // SAFETY: all are async-signal-safe; the set is initialised by sigemptyset before use.
    let done = unsafe {
        // A termination request that comes while it starts must wait for it, not kill it without a report.
        let mut held: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut held);
        libc::sigaddset(&mut held, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, &held, std::ptr::null_mut()) == 0
            && libc::fcntl(report, libc::F_SETFD, 0) == 0
    };
    if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Runs to the end.
///
/// # Errors
/// As [`start`].
pub fn run(launcher: &Path, invocation: &Invocation, interrupt: &Interrupt) -> Result<Finished, LaunchError> {
    start(launcher, invocation, interrupt)?.wait()
}

impl Running {
    fn next_message(&mut self) -> Result<Message, LaunchError> {
        let mut line = String::new();
        self.messages.read_line(&mut line)?;
        if line.is_empty() {
            self.interrupt.leave(self.launcher.id());
            let status = self.launcher.wait().map(|status| format!(" ({status})")).unwrap_or_default();
            return Err(LaunchError::NoReport(status));
        }
        line.trim_end()
            .parse()
            .map_err(|error: heaptoll_launcher::MessageError| LaunchError::NoReport(format!(": {error}")))
    }

    /// The program's process number; `None` when it could not be exec'd.
    pub fn pid(&self) -> Option<i32> {
        self.started
    }

    /// Lines of output as they come, when the invocation asked to follow them. `None` when nothing came within
    /// `patience`.
    pub fn next_line(&self, patience: Duration) -> Option<String> {
        match self.lines.as_ref().map(|lines| lines.recv_timeout(patience)) {
            Some(Ok(line)) => Some(line),
            Some(Err(RecvTimeoutError::Timeout)) => None,
            // Both outputs are closed: nothing will come, and a caller that asks again must not spin.
            Some(Err(RecvTimeoutError::Disconnected)) | None => {
                std::thread::sleep(patience);
                None
            }
        }
    }

    /// From here on lines are only digested; a program that goes on writing must find somebody who reads.
    pub fn stop_following(&mut self) {
        self.lines = None;
    }

    /// Sends a signal to the program's first process.
    pub fn signal(&self, signal: i32) {
        if let (Some(pid), None) = (self.started, self.ended) {
            // SAFETY: the launcher has not reported its end, so the number is at worst that of a process it has
            // just reaped a moment ago.
            unsafe { libc::kill(pid, signal) };
        }
    }

    /// Has the launcher kill the whole tree now.
    pub fn cancel(&self) {
        interrupt::cancel(self.launcher.id());
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The launcher died without a report.
    pub fn wait(mut self) -> Result<Finished, LaunchError> {
        let (ended, usage) = match self.ended {
            Some(done) => done,
            None => match self.next_message()? {
                Message::Ended(ended, usage) => (ended, usage),
                Message::Started(_) => return Err(LaunchError::NoReport(": it started twice".into())),
            },
        };
        self.interrupt.leave(self.launcher.id());
        self.launcher.wait()?;
        let gone = || std::io::Error::other("a reader thread died");
        let output = self.stdout.join().map_err(|_| gone())?;
        let error = self.stderr.join().map_err(|_| gone())?;
        Ok(Finished {
            ended,
            usage,
            output_bytes: output.bytes,
            digest: output.digest,
            output_head: output.head,
            error_tail: String::from_utf8_lossy(&error).into_owned(),
        })
    }
}

fn pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: pipe2 fills the two ints; on success nobody else owns the descriptors.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Splits what is read into lines for a follower; a follower that left is no error.
struct Follower {
    lines: Option<SyncSender<String>>,
    partial: Vec<u8>,
}

impl Follower {
    fn take(&mut self, bytes: &[u8]) {
        let Some(lines) = &self.lines else { return };
        for &byte in bytes {
            match byte {
                b'\n' => {
                    let line = String::from_utf8_lossy(&self.partial).into_owned();
                    self.partial.clear();
                    if lines.send(line).is_err() {
                        self.lines = None;
                        return;
                    }
                }
                // A server that floods one endless line must not grow us.
                _ if self.partial.len() < KEPT_OUTPUT => self.partial.push(byte),
                _ => {}
            }
        }
    }
}

fn read_all(source: Option<impl Read>, mut take: impl FnMut(&[u8])) {
    let Some(mut source) = source else { return };
    let mut buffer = vec![0u8; 64 * 1024];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => take(&buffer[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn digest(source: Option<impl Read>, lines: Option<SyncSender<String>>) -> Output {
    let mut follower = Follower { lines, partial: Vec::new() };
    let mut hash = Sha256::new();
    let mut output = Output { bytes: 0, digest: String::new(), head: Vec::new() };
    read_all(source, |bytes| {
        hash.update(bytes);
        output.bytes += bytes.len() as u64;
        let room = KEPT_OUTPUT - output.head.len();
        output.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        follower.take(bytes);
    });
    output.digest = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    output
}

fn tail(source: Option<impl Read>, lines: Option<SyncSender<String>>) -> Vec<u8> {
    let mut follower = Follower { lines, partial: Vec::new() };
    let mut kept = Vec::new();
    read_all(source, |bytes| {
        kept.extend_from_slice(bytes);
        if kept.len() > KEPT_ERROR {
            kept.drain(..kept.len() - KEPT_ERROR);
        }
        follower.take(bytes);
    });
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preload_paths_with_separators_are_refused() {
        assert!(matches!(preload_value(&["/a b.so".into()]), Err(LaunchError::PreloadPath(_))));
        assert_eq!(preload_value(&["/a.so".into(), "/b.so".into()]).ok().as_deref(), Some("/a.so:/b.so"));
    }

    #[test]
    fn output_is_digested_and_only_its_head_kept() {
        let long = vec![b'x'; 3 * KEPT_OUTPUT];
        let output = digest(Some(&long[..]), None);
        assert_eq!((output.bytes, output.head.len()), (3 * KEPT_OUTPUT as u64, KEPT_OUTPUT));
        // The well-known digest of nothing.
        assert!(digest(Some(&b""[..]), None).digest.starts_with("e3b0c44298fc1c14"));
        assert_eq!(tail(Some(&long[..]), None).len(), KEPT_ERROR);
    }

    #[test]
    fn a_missing_launcher_is_named() {
        let error = run(Path::new("/nonexistent/launch"), &Invocation::default(), &Interrupt::default());
        assert!(matches!(error, Err(LaunchError::Launcher { .. })));
    }
}
