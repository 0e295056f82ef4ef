//! One invocation: the launcher is started, the program's output is digested as it comes, its usage read back.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use heaptoll_launcher::{Ended, Message, Spec, Thp, Usage};
use heaptoll_units::limits;
use thiserror::Error;

use crate::interrupt::{self, Interrupt};

mod readers;
#[cfg(test)]
mod tests;

use readers::{Output, Reader};

/// Lines that the consumer of output may lag before the program has to wait.
const LINES_AHEAD: usize = 256;
/// How long a cancelled launcher may take to end. More than it gives to processes that it cannot kill.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// What to run, once.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Environment over heaptoll's own.
    pub environment: Vec<(String, String)>,
    /// Objects for `LD_PRELOAD`, in order.
    pub preload: Vec<PathBuf>,
    /// Folder that it runs in, which `PWD` then names; heaptoll's own when absent.
    pub directory: Option<PathBuf>,
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
    /// Whether the program has the same addresses in each run, where the system permits it.
    pub fixed_addresses: bool,
    /// A run together with others on one processor.
    pub together: Option<Together>,
}

/// How a program runs together with others on one processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Together {
    /// The processor, as the kernel numbers it.
    pub cpu: u32,
    /// Time slice that the program is given; `None` for the kernel's own.
    pub slice: Option<Duration>,
    /// A descriptor whose end of file starts the program; it stays the caller's.
    pub gate: RawFd,
    /// Whether a loop keeps the processor shared from the program's end on, and not the program again.
    pub by_loop: bool,
}

/// Something of the system or of heaptoll's own that failed; the program is not to blame.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The launcher could not be started.
    #[error("cannot start {path}: {cause}; {}", advice(.cause))]
    Launcher {
        /// The launcher's path.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The standard input file cannot be opened.
    #[error("cannot read standard input from {path}: {cause}")]
    Stdin {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// A path in `LD_PRELOAD` that the loader would split.
    #[error("{0}: the loader splits LD_PRELOAD at spaces and colons; move the object to a path without them")]
    PreloadPath(PathBuf),
    /// Pipes or threads ran out.
    #[error("cannot set up a measurement: {0}{advice}", advice = limits::after(.0))]
    System(#[from] std::io::Error),
    /// The launcher died or broke the protocol.
    #[error("the launcher ended without a report{0}")]
    NoReport(String),
}

/// What to do when the launcher cannot be started.
fn advice(cause: &std::io::Error) -> String {
    limits::advice_or(cause, "run `make build` or reinstall heaptoll")
}

/// The results of a finished invocation.
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

impl Finished {
    /// All of standard output; `None` where only its head was kept.
    pub fn whole_output(&self) -> Option<&[u8]> {
        (self.output_head.len() as u64 == self.output_bytes).then_some(&self.output_head[..])
    }
}

/// An invocation under way. Dropped before its end, it is cancelled: an error elsewhere leaves no server running.
pub struct Running {
    launcher: Child,
    /// Whether the launcher has been waited for, and its number may be another's.
    reaped: bool,
    messages: BufReader<File>,
    interrupt: Interrupt,
    stdout: Option<Reader<Output>>,
    stderr: Option<Reader<Vec<u8>>>,
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
/// See [`LaunchError`]; a program that cannot be exec'd is not an error here but a [`Finished`] with that ending.
pub fn start(
    launcher: &Path,
    invocation: &Invocation,
    interrupt: &Interrupt,
) -> Result<Running, LaunchError> {
    let mut environment: Vec<(String, String)> = invocation.environment.clone();
    if !invocation.preload.is_empty() {
        environment.push(("LD_PRELOAD".into(), preload_value(&invocation.preload)?));
    }
    if let Some(directory) = &invocation.directory {
        environment.push(("PWD".into(), directory.display().to_string()));
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
        command: invocation.command.clone(),
        environment: environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        timeout_ms: u64::try_from(invocation.timeout.as_millis()).unwrap_or(u64::MAX),
        thp: invocation.thp,
        counters: invocation.counters,
        report_fd: theirs.as_raw_fd(),
        cpu: invocation.together.map(|together| together.cpu),
        slice_us: invocation
            .together
            .and_then(|together| together.slice)
            .map_or(0, |slice| u64::try_from(slice.as_micros()).unwrap_or(u64::MAX)),
        gate_fd: invocation.together.map(|together| together.gate),
        refill: invocation.together.is_some(),
        fixed_addresses: invocation.fixed_addresses,
        refill_by_loop: invocation.together.is_some_and(|together| together.by_loop),
        measured_only: vec![heaptoll_stats_page::VARIABLE.into()],
        parent: i32::try_from(std::process::id()).unwrap_or(0),
    };
    let mut command = Command::new(launcher);
    command.args(spec.to_args()).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    // Whatever the user's shell preloads or audits would otherwise be loaded in every run, also in glibc's.
    command.env_remove("LD_PRELOAD").env_remove("LD_AUDIT");
    if let Some(directory) = &invocation.directory {
        command.current_dir(directory);
    }
    let (fd, gate) = (theirs.as_raw_fd(), spec.gate_fd);
    // SAFETY: what `ready_to_launch` calls is async-signal-safe, and both descriptors stay open until after spawn.
    unsafe { command.pre_exec(move || ready_to_launch(fd, gate)) };
    let mut child =
        command.spawn().map_err(|cause| LaunchError::Launcher { path: launcher.to_path_buf(), cause })?;
    drop(theirs);
    interrupt.enter(child.id());
    let (sender, receiver) = sync_channel(LINES_AHEAD);
    let follow = |sender: &SyncSender<String>| invocation.follow.then(|| sender.clone());
    let (out_lines, err_lines) = (follow(&sender), follow(&sender));
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let mut running = Running {
        stdout: None,
        stderr: None,
        reaped: false,
        lines: invocation.follow.then_some(receiver),
        launcher: child,
        messages: BufReader::new(ours.into()),
        interrupt: interrupt.clone(),
        started: None,
        ended: None,
    };
    running.stdout = Some(readers::digest(out, out_lines)?);
    running.stderr = Some(readers::tail(err, err_lines)?);
    running.begin()?;
    Ok(running)
}

/// What has to hold from the launcher's first instruction, done between fork and exec.
fn ready_to_launch(report: RawFd, gate: Option<RawFd>) -> std::io::Result<()> {
    // SAFETY: all are async-signal-safe; the set is initialised by sigemptyset before use.
    let done = unsafe {
        // A termination request that comes while it starts must wait for it, not kill it without a report.
        let mut held: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut held);
        libc::sigaddset(&mut held, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, &held, std::ptr::null_mut()) == 0
            && libc::fcntl(report, libc::F_SETFD, 0) == 0
            && gate.is_none_or(|gate| libc::fcntl(gate, libc::F_SETFD, 0) == 0)
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
            let status = self.end_launcher().map(|status| format!(" ({status})")).unwrap_or_default();
            return Err(LaunchError::NoReport(status));
        }
        line.trim_end()
            .parse()
            .map_err(|error: heaptoll_launcher::MessageError| LaunchError::NoReport(format!(": {error}")))
    }

    /// Takes the launcher's next message: that the program waits at its gate, has been exec'd, or could not be.
    ///
    /// # Errors
    /// The launcher died without a report.
    pub fn begin(&mut self) -> Result<(), LaunchError> {
        match self.next_message()? {
            Message::Ready => {}
            Message::Started(pid) => self.started = Some(pid),
            Message::Ended(ended, usage) => self.ended = Some((ended, usage)),
        }
        Ok(())
    }

    /// The program's process number; `None` when it could not be exec'd.
    pub fn pid(&self) -> Option<i32> {
        self.started
    }

    /// Lines of output as they come, when the invocation has `follow` set. `None` when nothing came within `patience`.
    pub fn next_line(&self, patience: Duration) -> Option<String> {
        match self.lines.as_ref().map(|lines| lines.recv_timeout(patience)) {
            Some(Ok(line)) => Some(line),
            Some(Err(RecvTimeoutError::Timeout)) => None,
            // Both outputs are closed: nothing will come, and a caller that polls again must not spin.
            Some(Err(RecvTimeoutError::Disconnected)) | None => {
                std::thread::sleep(patience);
                None
            }
        }
    }

    /// From here on lines are only digested; the readers go on, since a program that writes more must not block.
    pub fn stop_following(&mut self) {
        self.lines = None;
    }

    /// Sends a signal to the program's first process, unless that has ended.
    pub fn signal(&self, signal: i32) {
        if let (Some(pid), None) = (self.started, self.ended)
            && is_living_child(pid, self.launcher.id())
        {
            // SAFETY: kill takes plain numbers; `is_living_child` has just found this child of the launcher alive. Its
            // number is free again only after it has ended and been reaped, and is given out again only after all
            // others.
            unsafe { libc::kill(pid, signal) };
        }
    }

    /// Makes the launcher kill the whole tree now.
    pub fn cancel(&self) {
        interrupt::cancel(self.launcher.id());
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The launcher died without a report.
    pub fn wait(mut self) -> Result<Finished, LaunchError> {
        let finished = self.finish()?;
        self.interrupt.leave(self.launcher.id());
        let reaped = self.launcher.wait();
        self.reaped = true;
        reaped?;
        Ok(finished)
    }

    /// Waits for the end of the program, not of its launcher: that keeps the processor shared until this is dropped,
    /// where the program ran together with others.
    ///
    /// # Errors
    /// The launcher died without a report.
    pub fn finish(&mut self) -> Result<Finished, LaunchError> {
        if self.started.is_none() && self.ended.is_none() {
            self.begin()?;
        }
        let (ended, usage) = match self.ended {
            Some(done) => done,
            None => match self.next_message()? {
                Message::Ended(ended, usage) => (ended, usage),
                Message::Started(_) | Message::Ready => {
                    return Err(LaunchError::NoReport(": it started twice".into()));
                }
            },
        };
        self.ended = Some((ended, usage));
        let (Some(stdout), Some(stderr)) = (self.stdout.take(), self.stderr.take()) else {
            return Err(std::io::Error::other("there are no reader threads").into());
        };
        let (output, error) = match usage.survivors {
            0 => (stdout.all()?, stderr.all()?),
            _ => (stdout.so_far(), stderr.so_far()),
        };
        Ok(Finished {
            ended,
            usage,
            output_bytes: output.bytes,
            output_head: output.head.clone(),
            digest: output.digest(),
            error_tail: String::from_utf8_lossy(&error).into_owned() + &survivors(usage.survivors),
        })
    }

    /// Ends the launcher, and with it the program, and reaps it. Gives how it ended.
    fn end_launcher(&mut self) -> std::io::Result<ExitStatus> {
        // A reader that waits for the consumer of its lines would keep the program from ending.
        self.lines = None;
        if !self.reaped {
            interrupt::cancel(self.launcher.id());
            self.interrupt.leave(self.launcher.id());
            self.reaped = true;
            let until = Instant::now() + CANCEL_GRACE;
            while Instant::now() < until {
                if let Some(status) = self.launcher.try_wait()? {
                    return Ok(status);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            // The kernel ends the program with it.
            self.launcher.kill()?;
        }
        self.launcher.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            // No caller is left for the error.
            let _ = self.end_launcher();
        }
    }
}

/// Whether a process lives and its parent is `parent`.
fn is_living_child(pid: i32, parent: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before may hold anything, spaces and brackets too.
    let mut words = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    !matches!(words.next(), None | Some("" | "Z" | "X")) && words.next() == Some(parent.to_string().as_str())
}

/// What is added to standard error when processes could not be killed.
fn survivors(count: u32) -> String {
    match count {
        0 => String::new(),
        1 => "heaptoll could not kill 1 process of another user; it still runs\n".into(),
        _ => format!("heaptoll could not kill {count} processes of another user; they still run\n"),
    }
}

/// A pipe that programs do not inherit: the end to read from, and the end to write to.
///
/// # Errors
/// No descriptor is left.
pub(crate) fn pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}
