//! The processes of a command, as the kernel reports them: each thread's start, stop and end is an event that the
//! tracer's `wait` takes. Without ptrace there are events of the command itself only.

use std::collections::HashMap;
use std::ffi::c_int;
use std::time::{Duration, Instant};

use super::images::Images;
use super::requests;
use super::run::Ending;
use crate::effects::{Call, Effect, Effects};
use crate::filter::FOREIGN;
use crate::process::process_of;

/// How long to wait for killed processes.
const REAPING: Duration = Duration::from_secs(2);

/// A command and all that it started.
pub struct Processes<'a> {
    pub root: i32,
    /// Whether ptrace was permitted.
    pub traced: bool,
    /// How the command ended, once it has.
    pub ending: Option<Ending>,
    pub images: Images,
    /// What it does beyond its own memory, where that is watched.
    pub effects: Option<Effects>,
    /// When the last event came.
    pub last_event: Instant,
    /// The peak that the kernel has counted for the command and what it waited for, bytes; once it has ended.
    pub peak_bytes: u64,
    /// Whether the command's last fault was next to the stack pointer.
    pub stack_is_full: bool,
    /// Process of each live thread.
    threads: HashMap<i32, i32>,
    /// Called with the user of each image before it runs.
    admit: &'a dyn Fn(u32),
}

impl<'a> Processes<'a> {
    pub fn new(root: i32, traced: bool, effects: Option<Effects>, admit: &'a dyn Fn(u32)) -> Processes<'a> {
        Processes {
            root,
            traced,
            ending: None,
            images: Images::default(),
            effects,
            last_event: Instant::now(),
            peak_bytes: 0,
            stack_is_full: false,
            threads: HashMap::new(),
            admit,
        }
    }

    /// Whether a thread is known that has not ended.
    pub fn are_live(&self) -> bool {
        !self.threads.is_empty()
    }

    /// Takes all events that are there; false when there was none.
    pub fn serve(&mut self) -> bool {
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
            // SAFETY: `status` and `used` are live locals that wait4 writes; all zeroes is a valid rusage.
            let (pid, used) = unsafe {
                let mut used: libc::rusage = std::mem::zeroed();
                (libc::wait4(target, &mut status, flags, &mut used), used)
            };
            if pid <= 0 {
                return any;
            }
            any = true;
            self.last_event = Instant::now();
            if libc::WIFSTOPPED(status) {
                self.stopped(pid, status);
            } else {
                if pid == self.root {
                    self.peak_bytes = used.ru_maxrss.cast_unsigned() * 1024;
                }
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
        self.images.settle(pid);
        if pid == self.root {
            self.ending = Some(if libc::WIFEXITED(status) {
                Ending::Exited(libc::WEXITSTATUS(status))
            } else {
                Ending::Killed(libc::WTERMSIG(status))
            });
        }
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
            libc::PTRACE_EVENT_EXIT => self.images.exiting(pid),
            libc::PTRACE_EVENT_STOP => {
                let group = matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU);
                return if group { requests::listen(tid) } else { requests::resume(tid, 0) };
            }
            _ => {
                if signal == libc::SIGSEGV && pid == self.root {
                    self.stack_is_full = requests::faults_next_to_stack_pointer(tid);
                }
                return requests::resume(tid, signal);
            }
        }
        requests::resume(tid, 0);
    }

    fn executed(&mut self, pid: i32) {
        // All other threads of the process are gone, without an event of their own.
        self.threads.retain(|&tid, &mut of| of != pid || tid == pid);
        self.images.executed(pid, self.admit);
    }

    fn forked(&mut self, tid: i32, parent: i32) {
        let message = requests::message(tid).and_then(|child| i32::try_from(child).ok());
        let Some(child) = message else { return };
        let process = process_of(child).unwrap_or(child);
        if process != child
            && let Some(effects) = &mut self.effects
        {
            effects.add(Effect::Threads);
        }
        self.threads.insert(child, process);
        if process == child {
            self.images.forked(child, parent);
        }
    }

    /// A thread is stopped at a call that the filter does not let pass unseen.
    fn called(&mut self, tid: i32) {
        let filter_value = requests::message(tid).unwrap_or(0);
        let Some(effects) = &mut self.effects else { return };
        if filter_value == libc::c_ulong::from(FOREIGN) {
            effects.add(Effect::Shares("calls of another architecture".to_owned()));
            return;
        }
        if let Some(r) = requests::registers(tid) {
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

    /// Lets the command end in its own way.
    pub fn terminate(&self) {
        // The command leads a process group of its own. SIGCONT, for a stopped process acts on nothing else.
        // SAFETY: kill takes plain numbers and touches no memory.
        unsafe {
            libc::kill(-self.root, libc::SIGTERM);
            libc::kill(-self.root, libc::SIGCONT);
        }
    }

    pub fn kill_all(&self) {
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
    pub fn reap(&mut self) {
        let since = Instant::now();
        while since.elapsed() < REAPING
            && (self.ending.is_none() || (self.traced && !self.threads.is_empty()))
        {
            if !self.serve() {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
}
