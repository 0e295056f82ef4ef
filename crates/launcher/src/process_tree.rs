//! The program's whole process tree: waited for, summed up, and at the end gone.
//!
//! `wait4` hands over the usage of a process with that of all children it waited for itself. Orphans come to the
//! launcher because it is a subreaper, so the sum over everything reaped here is the sum over the tree.

use std::io;
use std::time::{Duration, Instant};

use heaptoll_launcher::{Ended, Spec, Thp, Usage};

/// `prctl(PR_SET_THP_DISABLE)` flag of Linux 6.18: huge pages stay where the program advises them.
const PR_THP_DISABLE_EXCEPT_ADVISED: libc::c_ulong = 1 << 1;

/// How long processes that our signals cannot reach (another user's) may take to end by themselves.
const REFUSED: Duration = Duration::from_secs(2);
/// How long the killed may take: gigabytes take a while to unmap, but a process stuck in the kernel never ends.
const STUCK: Duration = Duration::from_secs(10);

/// The launcher in its role as ancestor of everything the program starts.
pub struct ProcessTree {
    signals: libc::sigset_t,
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn set_thp(thp: Thp) -> io::Result<()> {
    let (disable, flags) = match thp {
        Thp::System => return Ok(()),
        Thp::Always => (0, 0),
        Thp::Madvise => (1, PR_THP_DISABLE_EXCEPT_ADVISED),
        Thp::Never => (1, 0),
    };
    let zero: libc::c_ulong = 0;
    let disable: libc::c_ulong = disable;
    // SAFETY: PR_SET_THP_DISABLE takes plain numbers.
    check(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, disable, flags, zero, zero) })
}

impl ProcessTree {
    /// Becomes subreaper, requests a signal on heaptoll's death, blocks the signals that are waited for.
    ///
    /// # Errors
    /// The errno of `prctl`; for huge pages `EINVAL` where the kernel has no such per-process setting. `ESRCH` when
    /// heaptoll is gone already.
    pub fn prepare(spec: &Spec) -> io::Result<ProcessTree> {
        let one: libc::c_ulong = 1;
        // SAFETY: prctl takes plain numbers; `signals` is a local, initialised by sigemptyset before it is read.
        let signals = unsafe {
            check(libc::prctl(libc::PR_SET_CHILD_SUBREAPER, one))?;
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM))?;
            // A parent that died before that call sends no signal any more.
            if spec.parent != 0 && libc::getppid() != spec.parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            let mut signals: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut signals);
            for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                libc::sigaddset(&mut signals, signal);
            }
            check(libc::sigprocmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut()))?;
            signals
        };
        set_thp(spec.thp)?;
        Ok(ProcessTree { signals })
    }

    /// Waits for the next of our signals; `None` when `until` passes first.
    fn next_signal(&self, until: Option<Instant>) -> Option<i32> {
        loop {
            let signal = match until {
                // SAFETY: `signals` was initialised by `prepare`; a null siginfo_t is allowed.
                None => unsafe { libc::sigwaitinfo(&self.signals, std::ptr::null_mut()) },
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    let timeout = libc::timespec {
                        tv_sec: left.as_secs() as libc::time_t,
                        tv_nsec: libc::c_long::from(left.subsec_nanos()),
                    };
                    // SAFETY: `signals` was initialised by `prepare`; a null siginfo_t is allowed; `timeout` is a whole
                    // timespec.
                    unsafe { libc::sigtimedwait(&self.signals, std::ptr::null_mut(), &timeout) }
                }
            };
            if signal > 0 {
                return Some(signal);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return None;
            }
        }
    }

    /// Waits until the first process ends, the deadline passes or heaptoll cancels it. Passes SIGINT on to its group, as
    /// the terminal would. Returns how it ended, its wall time, and the usage of everything reaped so far.
    pub fn wait_for_first(
        &self,
        pid: i32,
        start: Instant,
        deadline: Option<Instant>,
    ) -> (Ended, Duration, Usage) {
        let mut sum = Usage::default();
        loop {
            while let Some((reaped, status)) = reap(&mut sum) {
                if reaped == pid {
                    let ended = if libc::WIFSIGNALED(status) {
                        Ended::Signal(libc::WTERMSIG(status))
                    } else {
                        Ended::Exit(libc::WEXITSTATUS(status))
                    };
                    return (ended, start.elapsed(), sum);
                }
            }
            match self.next_signal(deadline) {
                Some(libc::SIGCHLD) => {}
                // SAFETY: kill takes plain numbers; `pid` leads a process group that the launcher made, and is not reaped.
                Some(libc::SIGINT) => drop(unsafe { libc::kill(-pid, libc::SIGINT) }),
                Some(_) => return (Ended::Cancelled, start.elapsed(), sum),
                None => return (Ended::Timeout, start.elapsed(), sum),
            }
        }
    }

    /// Waits up to `grace` for what outlived the first process to end, then kills it. Returns how many had to be
    /// killed.
    pub fn settle(&self, pid: i32, grace: Duration, sum: &mut Usage) -> u32 {
        let until = Instant::now() + grace;
        while have_children() {
            while reap(sum).is_some() {}
            if have_children() && self.next_signal(Some(until)) != Some(libc::SIGCHLD) {
                return self.kill_all(pid, sum);
            }
        }
        0
    }

    /// Kills and reaps every descendant; returns how many there were. Those that cannot be killed are counted in
    /// `sum` as survivors and left to themselves.
    pub fn kill_all(&self, pid: i32, sum: &mut Usage) -> u32 {
        let mut killed = 0;
        let mut last_reaped = Instant::now();
        // SAFETY: kill takes plain numbers; `pid` leads a process group that the launcher made.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
        while have_children() {
            let children = children();
            let refused = |child: &&i32| {
                // SAFETY: kill takes plain numbers; a direct child that has not been reaped still has its number.
                unsafe { libc::kill(**child, libc::SIGKILL) != 0 }
            };
            let refusing = children.iter().filter(refused).count();
            self.next_signal(Some(Instant::now() + Duration::from_millis(20)));
            while reap(sum).is_some() {
                killed += 1;
                last_reaped = Instant::now();
            }
            let bound = if refusing > 0 && refusing == children.len() { REFUSED } else { STUCK };
            if last_reaped.elapsed() >= bound {
                sum.survivors = u32::try_from(children.len()).unwrap_or(u32::MAX).max(1);
                break;
            }
        }
        killed
    }
}

/// Reaps one ended child without waiting and adds its usage to `sum`.
fn reap(sum: &mut Usage) -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: all zeroes is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: wait4 writes `status` and `usage`, live locals of the types it expects.
    let pid = unsafe { libc::wait4(-1, &mut status, libc::WNOHANG, &mut usage) };
    if pid <= 0 {
        return None;
    }
    sum.add(&usage);
    Some((pid, status))
}

/// Whether any child, running or ended, is left.
fn have_children() -> bool {
    // SAFETY: all zeroes is a valid siginfo; WNOWAIT leaves the child as it is.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) == 0
    }
}

/// Direct children, adopted orphans included; empty where the kernel lacks the list.
fn children() -> Vec<i32> {
    // SAFETY: getpid takes no arguments and cannot fail.
    let pid = unsafe { libc::getpid() };
    std::fs::read_to_string(format!("/proc/self/task/{pid}/children"))
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}
