//! Running a command once and seeing every program image that its process tree executes.
//!
//! With ptrace (SEIZE, so that the processes notice as little as possible) each `exec` is stopped and recorded: nothing
//! in the tree can run a program unseen, whatever it does to its environment. Where ptrace is not permitted the command
//! runs untraced.
//!
//! Output is read and thrown away through pipes, for some programs do less when they see `/dev/null`; the beginning of
//! standard error is kept for messages.

use std::collections::HashMap;
use std::ffi::{OsString, c_int, c_uint, c_void};
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::child::{Child, GO, GO_WATCHED, UNWATCHED};
use crate::effects::{Call, Effect, Effects, Watched};
use crate::filter::FOREIGN;
use crate::plan::Plan;
use crate::process::{auxiliary, cpu_clock, environment_of, monotonic_ns, own_user, process_of, user_of};
use crate::refusal::Refusal;

/// How much longer than its limit a command may take until its first process is loaded.
const LOADING: Duration = Duration::from_secs(20);
/// How long a stopped command has between SIGTERM and SIGKILL, and descendants after the command's own end.
const GRACE: Duration = Duration::from_millis(500);
/// When `enough` is first called; then after twice that time, and so on, for the call may take a while.
const FIRST_POLL: Duration = Duration::from_millis(100);
/// With more processes than this the memory of all is not sampled whenever one ends.
const SAMPLED: usize = 64;
/// Bytes of standard error that are kept.
const KEPT: usize = 16 * 1024;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal that was not ours.
    Killed(i32),
    /// By us, at the limit.
    Stopped,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(status) => write!(f, "exit status {status}"),
            Ending::Killed(signal) => write!(f, "killed by signal {signal}"),
            Ending::Stopped => write!(f, "stopped at the time limit"),
        }
    }
}

/// One `exec`.
#[derive(Debug, Clone)]
pub struct Image {
    /// Process id.
    pub pid: i32,
    /// The file executed.
    pub exe: PathBuf,
    /// The user that decides which files it may open.
    pub user: u32,
    /// Whether a dynamic loader was started with it.
    pub loader: bool,
    /// Whether the kernel set `AT_SECURE`, which makes the loader ignore `LD_PRELOAD`.
    pub secure: bool,
    /// Its `LD_PRELOAD`.
    pub preload: Option<OsString>,
    /// CPU time of the image, processes forked from it included, ns.
    pub cpu_ns: u64,
    /// The most that one of its processes held in memory that is no file's, bytes; known of processes that came to their
    /// own end.
    pub anonymous_bytes: u64,
}

/// What was seen.
#[derive(Debug)]
pub struct Run {
    /// How the command ended.
    pub ending: Ending,
    /// Process id of the command.
    pub pid: i32,
    /// Beginning of standard error.
    pub stderr: String,
    /// Every `exec`, in order; empty when not traced.
    pub images: Vec<Image>,
    /// From when on a process belongs to which image: (pid, `CLOCK_MONOTONIC` ns, image).
    pub changes: Vec<(i32, u64, usize)>,
    /// Whether ptrace was permitted.
    pub traced: bool,
    /// The most memory that is no file's that all its processes held at once, bytes, as sampled; 0 without ptrace.
    pub together_bytes: u64,
    /// What it did beyond its own memory; `None` when it was not watched.
    pub watched: Option<Watched>,
    /// Wall time.
    pub elapsed: Duration,
}

impl Run {
    /// The image that a process was at a time.
    pub fn image_at(&self, pid: i32, time_ns: u64) -> Option<usize> {
        let mine = || self.changes.iter().filter(|c| c.0 == pid);
        // The first change of a fresh process is seen shortly after it begins to run.
        mine().rfind(|c| c.1 <= time_ns).or_else(|| mine().next()).map(|c| c.2)
    }
}

/// Runs the plan to its end, its limit, or until `cancel` is set.
pub fn run(plan: &Plan<'_>, cancel: &AtomicBool) -> Result<Run, Refusal> {
    // A thread of its own: the tracer is a thread, and so its `wait` sees no children but these.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("heaptoll-tracer".to_owned());
        match thread.spawn_scoped(scope, || Tracer::start(plan)?.follow(cancel)) {
            Ok(handle) => handle
                .join()
                .unwrap_or_else(|_| Err(system("follow the program", &io::Error::other("a defect")))),
            Err(error) => Err(system("start a thread", &error)),
        }
    })
}

fn system(what: &str, error: &io::Error) -> Refusal {
    Refusal::system(what, error)
}

/// A process of the tree.
struct Process {
    image: usize,
    /// Its CPU clock when it began to be this image, ns.
    base_ns: u64,
    /// Its CPU clock when last read, ns.
    last_ns: u64,
}

struct Tracer<'a> {
    plan: &'a Plan<'a>,
    root: i32,
    traced: bool,
    started: Instant,
    outputs: [Option<OwnedFd>; 2],
    stderr: Vec<u8>,
    images: Vec<Image>,
    changes: Vec<(i32, u64, usize)>,
    processes: HashMap<i32, Process>,
    /// Process of each live thread.
    threads: HashMap<i32, i32>,
    ending: Option<Ending>,
    /// The most that its processes held at once, bytes.
    together_bytes: u64,
    /// What it does beyond its own memory, where that is watched.
    effects: Option<Effects>,
    /// When the last event came.
    last_event: Instant,
}

impl<'a> Tracer<'a> {
    fn start(plan: &'a Plan<'a>) -> Result<Tracer<'a>, Refusal> {
        let (stdout, child_stdout) = pipe()?;
        let (stderr, child_stderr) = pipe()?;
        let (child_go, go) = pipe()?;
        let (failure, child_failure) = pipe()?;
        let name = plan.program.display().to_string();
        let refused = |reason: String| Refusal::CannotStart { program: name.clone(), reason };
        let stdin_path = plan.stdin.clone().unwrap_or_else(|| PathBuf::from("/dev/null"));
        let stdin =
            fs::File::open(&stdin_path).map_err(|e| refused(format!("{}: {e}", stdin_path.display())))?;
        let child =
            Child::prepare(plan, stdin.as_raw_fd(), &child_stdout, &child_stderr, &child_go, &child_failure)
                .map_err(|_| refused("an argument or the environment holds a NUL byte".to_owned()))?;
        // SAFETY: the child calls only `become_program`: async-signal-safe functions on memory that `Child::prepare`
        // filled before.
        let root = unsafe { libc::fork() };
        if root == 0 {
            child.become_program();
        }
        if root < 0 {
            return Err(system("fork", &io::Error::last_os_error()));
        }
        drop((child_stdout, child_stderr, child_go, child_failure, stdin));
        let options = libc::PTRACE_O_TRACEEXEC
            | libc::PTRACE_O_TRACEFORK
            | libc::PTRACE_O_TRACEVFORK
            | libc::PTRACE_O_TRACECLONE
            | libc::PTRACE_O_TRACEEXIT
            | libc::PTRACE_O_TRACESECCOMP
            | libc::PTRACE_O_EXITKILL;
        let traced = plan.trace && ptrace(libc::PTRACE_SEIZE, root, options as usize);
        for output in [&stdout, &stderr] {
            // SAFETY: fcntl takes plain numbers; `output` owns an open descriptor.
            unsafe { libc::fcntl(output.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        }
        let mut tracer = Tracer {
            plan,
            root,
            traced,
            started: Instant::now(),
            outputs: [Some(stdout), Some(stderr)],
            stderr: Vec::new(),
            images: Vec::new(),
            changes: Vec::new(),
            processes: HashMap::new(),
            threads: HashMap::new(),
            ending: None,
            together_bytes: 0,
            effects: plan.watch.filter(|_| traced).map(|watch| Effects::except_in(&watch.exempt)),
            last_event: Instant::now(),
        };
        // Without a tracer the filtered calls would fail.
        let signal = if tracer.effects.is_some() { GO_WATCHED } else { GO };
        // SAFETY: `signal` is a live local of one byte; `go` owns an open descriptor.
        unsafe { libc::write(go.as_raw_fd(), (&raw const signal).cast(), 1) };
        drop(go);
        // The exec itself may stop for the tracer, so events have to be served while the outcome is awaited.
        // SAFETY: fcntl takes plain numbers; `failure` owns an open descriptor.
        unsafe { libc::fcntl(failure.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        loop {
            let mut code = [0u8; 4];
            // SAFETY: `code` is a local buffer of four bytes; `failure` owns an open descriptor.
            let got = unsafe { libc::read(failure.as_raw_fd(), code.as_mut_ptr().cast(), 4) };
            if got == 1 && code[0] == UNWATCHED {
                tracer.effects = None;
                continue;
            }
            if got == 4 {
                tracer.kill_all();
                tracer.reap();
                let error = io::Error::from_raw_os_error(i32::from_ne_bytes(code));
                return Err(refused(error.to_string()));
            }
            if got == 0 {
                return Ok(tracer);
            }
            if !tracer.serve() {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }

    /// Serves events until the tree is gone.
    fn follow(mut self, cancel: &AtomicBool) -> Result<Run, Refusal> {
        let mut stopping: Option<Instant> = None;
        let mut stopped = false;
        let mut root_gone: Option<Instant> = None;
        let mut question = FIRST_POLL;
        loop {
            let busy = self.serve() | self.drain();
            if cancel.load(Ordering::Relaxed) {
                self.kill_all();
                self.reap();
                return Err(Refusal::Cancelled);
            }
            if self.started.elapsed() > question && self.ending.is_none() {
                question *= 2;
                self.sample_all_memory();
                if (self.plan.enough)() {
                    stopped = true;
                    break;
                }
            }
            if self.ending.is_some() {
                let since = *root_gone.get_or_insert_with(Instant::now);
                if !self.traced || self.threads.is_empty() || since.elapsed() > GRACE || stopped {
                    break;
                }
            } else if let Some(since) = stopping {
                if since.elapsed() > GRACE {
                    break;
                }
            } else if self.over() {
                stopped = true;
                stopping = Some(Instant::now());
                // The command leads a process group of its own. SIGCONT, for a stopped process acts on nothing else.
                // SAFETY: kill takes plain numbers and touches no memory.
                unsafe {
                    libc::kill(-self.root, libc::SIGTERM);
                    libc::kill(-self.root, libc::SIGCONT);
                }
            }
            if !busy {
                self.wait_a_little();
            }
        }
        let elapsed = self.started.elapsed();
        self.drain();
        let live: Vec<i32> = self.processes.keys().copied().collect();
        for pid in live {
            self.account(pid);
            self.settle(pid);
        }
        self.kill_all();
        self.reap();
        let ending = if stopped { Ending::Stopped } else { self.ending.unwrap_or(Ending::Stopped) };
        Ok(Run {
            ending,
            pid: self.root,
            stderr: String::from_utf8_lossy(&self.stderr).into_owned(),
            images: self.images,
            changes: self.changes,
            traced: self.traced,
            together_bytes: self.together_bytes,
            watched: self.effects.map(Effects::watched),
            elapsed,
        })
    }

    /// Whether the command has had its time. On a busy machine even the loader may need longer: one that has shown
    /// nothing yet gets more, since silence would be taken for a program that no manager can reach.
    fn over(&self) -> bool {
        let (plan, elapsed) = (self.plan, self.started.elapsed());
        elapsed > plan.limit && (elapsed > plan.limit + LOADING || (plan.begun)())
    }

    /// Takes all events that are there; false when there was none.
    fn serve(&mut self) -> bool {
        let mut any = false;
        loop {
            let mut status: c_int = 0;
            let (target, flags) = if self.traced {
                (-1, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG)
            } else {
                (self.root, libc::WNOHANG)
            };
            if !self.traced && self.ending.is_some() {
                return any;
            }
            if !self.traced && self.root_is_a_zombie() {
                // The last time at which the group's number is surely still its own.
                // SAFETY: kill takes plain numbers and touches no memory.
                unsafe { libc::kill(-self.root, libc::SIGKILL) };
            }
            // SAFETY: `status` is a live local that waitpid writes.
            let pid = unsafe { libc::waitpid(target, &mut status, flags) };
            if pid <= 0 {
                return any;
            }
            any = true;
            self.last_event = Instant::now();
            if libc::WIFSTOPPED(status) {
                self.stopped(pid, status);
            } else {
                self.gone(pid, status);
            }
        }
    }

    /// Whether the command has ended and waits to be reaped.
    fn root_is_a_zombie(&self) -> bool {
        // SAFETY: waitid writes a live local siginfo; all zeroes is a valid value, and means "nothing" when it stays
        // so.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, self.root.cast_unsigned(), &mut info, flags) == 0 && info.si_pid() != 0
        }
    }

    fn gone(&mut self, pid: i32, status: c_int) {
        self.threads.remove(&pid);
        self.settle(pid);
        if pid == self.root {
            self.ending = Some(if libc::WIFEXITED(status) {
                Ending::Exited(libc::WEXITSTATUS(status))
            } else {
                Ending::Killed(libc::WTERMSIG(status))
            });
        }
    }

    /// Charges a process's CPU time to its image and drops the process.
    fn settle(&mut self, pid: i32) {
        if let Some(process) = self.processes.remove(&pid)
            && let Some(image) = self.images.get_mut(process.image)
        {
            image.cpu_ns += process.last_ns.saturating_sub(process.base_ns);
        }
    }

    /// Reads a process's CPU clock.
    fn account(&mut self, pid: i32) {
        if let Some(process) = self.processes.get_mut(&pid)
            && let Some(now) = cpu_clock(pid)
        {
            process.last_ns = now;
        }
    }

    /// Reads what a process held at most, while it still has its memory.
    fn sample_memory(&mut self, pid: i32) {
        if let Some(process) = self.processes.get(&pid)
            && let Some(image) = self.images.get_mut(process.image)
        {
            image.anonymous_bytes = image.anonymous_bytes.max(anonymous_bytes(pid).unwrap_or(0));
        }
    }

    /// Reads what all processes hold now.
    fn sample_all_memory(&mut self) {
        let held = self.processes.keys().filter_map(|&pid| anonymous_bytes(pid)).sum();
        self.together_bytes = self.together_bytes.max(held);
    }

    fn stopped(&mut self, tid: i32, status: c_int) {
        let signal = libc::WSTOPSIG(status);
        let known = self.threads.get(&tid).copied();
        let pid = known.unwrap_or_else(|| {
            let pid = process_of(tid).unwrap_or(tid);
            self.threads.insert(tid, pid);
            pid
        });
        match status >> 16 {
            libc::PTRACE_EVENT_EXEC => self.executed(pid),
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.forked(tid, pid)
            }
            libc::PTRACE_EVENT_SECCOMP => self.called(tid),
            libc::PTRACE_EVENT_EXIT => {
                self.account(pid);
                self.sample_memory(pid);
                if self.processes.len() <= SAMPLED {
                    self.sample_all_memory();
                }
            }
            libc::PTRACE_EVENT_STOP => {
                let group = matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU);
                ptrace(if group { libc::PTRACE_LISTEN } else { libc::PTRACE_CONT }, tid, 0);
                return;
            }
            _ => {
                ptrace(libc::PTRACE_CONT, tid, usize::try_from(signal).unwrap_or(0));
                return;
            }
        }
        ptrace(libc::PTRACE_CONT, tid, 0);
    }

    /// A thread is stopped at a call that the filter does not let pass unseen.
    fn called(&mut self, tid: i32) {
        let mut filter_value: libc::c_ulong = 0;
        // SAFETY: the tracee is stopped, as `serve` found; `filter_value` is a live local that ptrace writes.
        unsafe {
            libc::ptrace(
                libc::PTRACE_GETEVENTMSG,
                tid,
                ptr::null_mut::<c_void>(),
                ptr::from_mut(&mut filter_value),
            )
        };
        let Some(effects) = &mut self.effects else { return };
        if filter_value == libc::c_ulong::from(FOREIGN) {
            effects.add(Effect::Shares("calls of another architecture".to_owned()));
            return;
        }
        // SAFETY: all zeroes is a valid user_regs_struct; the tracee is stopped, as `serve` found, and ptrace writes
        // the live local `registers`.
        let registers = unsafe {
            let mut registers: libc::user_regs_struct = std::mem::zeroed();
            let place = (&raw mut registers).cast::<c_void>();
            (libc::ptrace(libc::PTRACE_GETREGS, tid, ptr::null_mut::<c_void>(), place) == 0)
                .then_some(registers)
        };
        if let Some(r) = registers {
            let arguments = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
            let number = r.orig_rax.cast_signed();
            let target = r.rdi as i32;
            // A signal to a process that is not of this run may find a copy's by its name.
            if number == libc::SYS_kill && target > 0 && !self.threads.contains_key(&target) {
                effects.add(Effect::Shares("kill of a process that it did not start".to_owned()));
            }
            effects.take(&Call { tid, number, arguments });
        }
    }

    fn executed(&mut self, pid: i32) {
        let cpu = cpu_clock(pid).unwrap_or(0);
        self.account(pid);
        self.settle(pid);
        // All other threads of the process are gone, without an event of their own.
        self.threads.retain(|&tid, &mut of| of != pid || tid == pid);
        let (loader, secure) = auxiliary(pid);
        let user = user_of(pid).unwrap_or_else(own_user);
        (self.plan.admit)(user);
        self.images.push(Image {
            pid,
            exe: fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default(),
            user,
            loader,
            secure,
            preload: environment_of(pid, b"LD_PRELOAD="),
            cpu_ns: 0,
            anonymous_bytes: 0,
        });
        let image = self.images.len() - 1;
        self.changes.push((pid, monotonic_ns(), image));
        self.processes.insert(pid, Process { image, base_ns: cpu, last_ns: cpu });
    }

    fn forked(&mut self, tid: i32, parent: i32) {
        let mut child: libc::c_ulong = 0;
        // SAFETY: the tracee is stopped, as `serve` found; `child` is a live local that ptrace writes.
        let got = unsafe {
            libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, ptr::null_mut::<c_void>(), ptr::from_mut(&mut child))
        };
        let Ok(child) = i32::try_from(child) else { return };
        if got != 0 {
            return;
        }
        let process = process_of(child).unwrap_or(child);
        if process != child
            && let Some(effects) = &mut self.effects
        {
            effects.add(Effect::Threads);
        }
        self.threads.insert(child, process);
        if process == child
            && !self.processes.contains_key(&child)
            && let Some(image) = self.processes.get(&parent).map(|p| p.image)
        {
            self.changes.push((child, monotonic_ns(), image));
            self.processes.insert(child, Process { image, base_ns: 0, last_ns: 0 });
        }
    }

    /// Reads what the program has written; false when that was nothing.
    fn drain(&mut self) -> bool {
        let mut any = false;
        for number in 0..2 {
            let Some(output) = &self.outputs[number] else { continue };
            let mut bytes = [0u8; 65536];
            for _ in 0..16 {
                // SAFETY: `bytes` is a local buffer, passed with its length; `output` owns an open descriptor.
                let got = unsafe { libc::read(output.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
                match usize::try_from(got) {
                    Ok(0) => {
                        self.outputs[number] = None;
                        break;
                    }
                    Ok(got) => {
                        any = true;
                        if number == 1 {
                            let space = KEPT.saturating_sub(self.stderr.len());
                            self.stderr.extend_from_slice(&bytes[..got.min(space)]);
                        }
                    }
                    Err(_) => break,
                }
            }
        }
        any
    }

    /// Sleeps until the program writes something, a millisecond at most: events of the tracer do not wake `poll`. Where
    /// one has just come, the next may follow soon.
    fn wait_a_little(&self) {
        if self.last_event.elapsed() < Duration::from_millis(2) {
            std::thread::sleep(Duration::from_micros(20));
            return;
        }
        let mut waits: Vec<libc::pollfd> = self
            .outputs
            .iter()
            .flatten()
            .map(|o| libc::pollfd { fd: o.as_raw_fd(), events: libc::POLLIN, revents: 0 })
            .collect();
        if waits.is_empty() {
            std::thread::sleep(Duration::from_micros(500));
            return;
        }
        // SAFETY: `waits` is a local array of pollfd, passed with its length.
        unsafe { libc::poll(waits.as_mut_ptr(), waits.len() as libc::nfds_t, 1) };
    }

    fn kill_all(&self) {
        // SAFETY: kill takes plain numbers; the group is led by our child, which is not reaped yet or has members left
        // that keep its number from being used again.
        unsafe {
            if self.ending.is_none() || !self.threads.is_empty() {
                libc::kill(-self.root, libc::SIGKILL);
            }
            for pid in self.threads.values() {
                libc::kill(*pid, libc::SIGKILL);
            }
        }
    }

    /// Waits for what was killed, so that no process outlives its run; stops waiting for one that the kernel does not
    /// release.
    fn reap(&mut self) {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(2)
            && (self.ending.is_none() || (self.traced && !self.threads.is_empty()))
        {
            if !self.serve() {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
}

/// A pipe whose ends are closed by exec: (read end, write end).
fn pipe() -> Result<(OwnedFd, OwnedFd), Refusal> {
    let mut ends = [0; 2];
    // SAFETY: `ends` is an array of two ints, which is what pipe2 writes.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(system("make a pipe", &io::Error::last_os_error()));
    }
    // SAFETY: pipe2 opened both just now, so nothing else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// The most that a process has held, less the pages of files that it maps now. Those are hardly ever given back.
fn anonymous_bytes(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    let files = kib("RssFile:")?.saturating_add(kib("RssShmem:")?);
    Some(kib("VmHWM:")?.saturating_sub(files).saturating_mul(1024))
}

/// A request without an address; false when refused, for example because the tracee was killed meanwhile.
fn ptrace(request: c_uint, tid: i32, data: usize) -> bool {
    // SAFETY: for the requests made here, PTRACE_SEIZE and PTRACE_CONT, `data` is a number, so the kernel reads and
    // writes no memory.
    unsafe { libc::ptrace(request, tid, ptr::null_mut::<c_void>(), data as *mut c_void) == 0 }
}
