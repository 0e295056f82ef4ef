//! Notices the exits of processes that are not our children, and their statuses where the system states them.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Watches processes, each under a key that the caller chooses.
#[derive(Debug)]
pub struct ExitWatcher {
    epoll: OwnedFd,
    watched: HashMap<u32, (i32, OwnedFd)>,
    /// Keys of processes that had ended when the watch began.
    found_dead: Vec<u32>,
    /// Processes for which the kernel gives no descriptor (an older kernel, a sandbox, too many open files), with their
    /// keys: `/proc` is read for them at intervals.
    polled: Vec<(i32, u32)>,
    polls: u32,
}

/// Polls between two readings of `/proc` for the processes without a descriptor.
const POLLS_PER_READING: u32 = 64;

impl ExitWatcher {
    /// Watches no process yet.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<ExitWatcher> {
        // SAFETY: epoll_create1 takes no pointers; a descriptor that it returns is new, and owned here alone.
        let epoll = unsafe {
            let made = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if made < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(made)
        };
        Ok(ExitWatcher {
            epoll,
            watched: HashMap::new(),
            found_dead: Vec::new(),
            polled: Vec::new(),
            polls: 0,
        })
    }

    /// Watches process `pid` under the key `key`.
    pub fn watch(&mut self, pid: i32, key: u32) {
        // No process has such a number, and kill would take it for a group. It comes from a shared page that was
        // overwritten.
        if pid <= 0 {
            self.found_dead.push(key);
        } else if self.wait_for(pid, key).is_err() {
            self.polled.push((pid, key));
        }
    }

    fn wait_for(&mut self, pid: i32, key: u32) -> io::Result<()> {
        // SAFETY: pidfd_open takes no pointers; a descriptor that it returns is new, and owned here alone.
        let process = unsafe {
            let opened = libc::syscall(libc::SYS_pidfd_open, pid, 0);
            if opened < 0 {
                let error = io::Error::last_os_error();
                if error.raw_os_error() == Some(libc::ESRCH) {
                    self.found_dead.push(key);
                    return Ok(());
                }
                return Err(error);
            }
            OwnedFd::from_raw_fd(opened as i32)
        };
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: u64::from(key) };
        // SAFETY: `self.epoll` and `process` own open descriptors; epoll_ctl reads `event`, a live local.
        let added = unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, process.as_raw_fd(), &mut event)
        };
        if added != 0 {
            return Err(io::Error::last_os_error());
        }
        self.watched.insert(key, (pid, process));
        Ok(())
    }

    /// Ends the watch.
    pub fn forget(&mut self, key: u32) {
        // Closing the only descriptor takes it out of the epoll.
        self.watched.remove(&key);
        self.polled.retain(|&(_, other)| other != key);
    }

    /// Keys of those that have ended since the last poll, and their statuses.
    pub fn poll(&mut self) -> Vec<(u32, Option<ExitStatus>)> {
        let mut dead = std::mem::take(&mut self.found_dead);
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(POLLS_PER_READING) {
            dead.extend(self.polled.extract_if(.., |(pid, _)| has_exited(*pid)).map(|(_, key)| key));
        }
        let mut dead: Vec<_> = dead.into_iter().map(|key| (key, None)).collect();
        if self.watched.is_empty() {
            return dead;
        }
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        // SAFETY: epoll_wait writes at most `events.len()` elements to `events`, a live local.
        let count =
            unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, 0) };
        for event in &events[..usize::try_from(count).unwrap_or(0)] {
            let key = event.u64 as u32;
            dead.push((key, self.watched.get(&key).and_then(|(pid, process)| status(*pid, process))));
            self.forget(key);
        }
        dead
    }
}

/// The status of a process that has ended: its parent's zombie shows it, afterwards its descriptor (Linux 6.15).
fn status(pid: i32, process: &OwnedFd) -> Option<ExitStatus> {
    /// `PIDFD_GET_INFO` of the first version, 64 bytes: the mask is the first, the status the last word.
    const GET_INFO: libc::Ioctl = 0xc040_ff0b;
    const EXIT: u64 = 1 << 3;
    let facts = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let (_, facts) = facts.rsplit_once(')').unwrap_or_default();
    if let Some(facts) = facts.trim().strip_prefix('Z') {
        return facts.split_whitespace().last()?.parse().ok().map(ExitStatus::from_raw);
    }
    let mut info = [EXIT, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: `process` owns an open descriptor; the call writes the 64 bytes that its number states to `info`, a live local.
    let answered = unsafe { libc::ioctl(process.as_raw_fd(), GET_INFO, info.as_mut_ptr()) };
    (answered == 0 && info[0] & EXIT != 0).then(|| ExitStatus::from_raw((info[7] >> 32) as i32))
}

/// Whether a process is gone, or is a zombie.
fn has_exited(pid: i32) -> bool {
    let Ok(facts) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        // SAFETY: signal 0 sends nothing and kill takes no pointers: the result states whether the process exists.
        let refused = unsafe { libc::kill(pid, 0) != 0 };
        return refused && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    };
    // After the name, which may hold anything: the state first, and the number of threads as the 18th.
    let mut facts = facts.rsplit(')').next().unwrap_or_default().split_whitespace();
    let state = facts.next();
    let threads = facts.nth(16).and_then(|count| count.parse::<u32>().ok());
    // A first thread that has ended is a zombie until the others have, too.
    matches!(state, Some("Z" | "X")) && threads.is_none_or(|count| count <= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_no_process_has_are_dead_at_once() {
        let mut exit_watcher = ExitWatcher::new().expect("makes");
        exit_watcher.watch(0, 1);
        exit_watcher.watch(-1, 2);
        assert_eq!(exit_watcher.poll(), [(1, None), (2, None)]);
    }

    #[test]
    fn exits_are_seen_once_also_of_those_that_ended_before() {
        let mut exit_watcher = ExitWatcher::new().expect("makes");
        let start = || std::process::Command::new("sleep").arg("20").spawn().expect("sleep runs");
        let (mut early, mut late) = (start(), start());
        early.kill().expect("kills");
        early.wait().expect("waits");
        exit_watcher.watch(early.id() as i32, 1);
        exit_watcher.watch(late.id() as i32, 2);
        assert_eq!(exit_watcher.poll(), [(1, None)]);
        assert!(exit_watcher.poll().is_empty());
        late.kill().expect("kills");
        let seen = loop {
            let seen = exit_watcher.poll();
            if !seen.is_empty() {
                break seen;
            }
        };
        let killed = Some(ExitStatus::from_raw(libc::SIGKILL));
        assert_eq!(seen, [(2, killed)], "also before it is waited for");
        assert!(exit_watcher.poll().is_empty());
        late.wait().expect("waits");
    }
    #[test]
    fn without_descriptors_of_processes_exits_are_seen_too() {
        let mut child = std::process::Command::new("sleep").arg("20").spawn().expect("sleep runs");
        let mut exit_watcher = ExitWatcher::new().expect("makes");
        exit_watcher.polled.push((child.id() as i32, 3));
        let mut poll = || (0..POLLS_PER_READING).flat_map(|_| exit_watcher.poll()).collect::<Vec<_>>();
        assert!(poll().is_empty());
        child.kill().expect("kills");
        let seen = loop {
            let seen = poll();
            if !seen.is_empty() {
                break seen;
            }
        };
        assert_eq!(seen, [(3, None)], "also before it is waited for");
        assert!(poll().is_empty());
        child.wait().expect("waits");
        assert!(has_exited(child.id() as i32));
        assert!(!has_exited(std::process::id() as i32));
    }
}
