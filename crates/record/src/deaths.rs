//! Noticing that processes end which are not our children.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Watches processes, each under a number of the caller's.
#[derive(Debug)]
pub struct Deaths {
    epoll: OwnedFd,
    watched: HashMap<u32, OwnedFd>,
    /// Dead when they were to be watched.
    found_dead: Vec<u32>,
    /// Those that the kernel gives no descriptor of (an older one, a sandbox, too many files open), by process number:
    /// they are asked after now and then.
    asked_after: Vec<(i32, u32)>,
    looks: u32,
}

/// Looks between two at which processes without a descriptor are asked after.
const SELDOM: u32 = 64;

impl Deaths {
    /// Of nobody yet.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Deaths> {
        // SAFETY: epoll_create1 has no conditions; the descriptor is new, and ours alone.
        let epoll = unsafe {
            let made = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if made < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(made)
        };
        Ok(Deaths {
            epoll,
            watched: HashMap::new(),
            found_dead: Vec::new(),
            asked_after: Vec::new(),
            looks: 0,
        })
    }

    /// Watches process `pid` as number `key`.
    pub fn watch(&mut self, pid: i32, key: u32) {
        // No process has such a number; kill would take it for a group. It comes of a shared page that was scribbled over.
        if pid <= 0 {
            self.found_dead.push(key);
        } else if self.wait_for(pid, key).is_err() {
            self.asked_after.push((pid, key));
        }
    }

    fn wait_for(&mut self, pid: i32, key: u32) -> io::Result<()> {
        // SAFETY: pidfd_open takes no pointers; a descriptor that it gives is new, and ours alone.
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
        // SAFETY: both descriptors are open; `event` is a live local, which is only read.
        let added = unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, process.as_raw_fd(), &mut event)
        };
        if added != 0 {
            return Err(io::Error::last_os_error());
        }
        self.watched.insert(key, process);
        Ok(())
    }

    /// Watches it no longer.
    pub fn forget(&mut self, key: u32) {
        // Closing the only descriptor takes it out of the epoll.
        self.watched.remove(&key);
        self.asked_after.retain(|&(_, other)| other != key);
    }

    /// Numbers of those that have ended since the last look.
    pub fn look(&mut self) -> Vec<u32> {
        let mut dead = std::mem::take(&mut self.found_dead);
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(SELDOM) {
            dead.extend(self.asked_after.extract_if(.., |(pid, _)| is_dead(*pid)).map(|(_, key)| key));
        }
        if self.watched.is_empty() {
            return dead;
        }
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        // SAFETY: `events` is a live local of that many elements.
        let count =
            unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, 0) };
        for event in &events[..usize::try_from(count).unwrap_or(0)] {
            let key = event.u64 as u32;
            self.forget(key);
            dead.push(key);
        }
        dead
    }
}

/// Whether a process is gone, or waits for nothing but its parent.
fn is_dead(pid: i32) -> bool {
    let Ok(facts) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        // SAFETY: signal 0 only asks whether there is such a process.
        let refused = unsafe { libc::kill(pid, 0) != 0 };
        return refused && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    };
    // Behind the name, which may hold anything: the state first, and the threads' number as the 18th.
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
        let mut deaths = Deaths::new().expect("makes");
        deaths.watch(0, 1);
        deaths.watch(-1, 2);
        assert_eq!(deaths.look(), [1, 2]);
    }

    #[test]
    fn ends_are_seen_once_also_of_those_that_ended_before() {
        let mut deaths = Deaths::new().expect("makes");
        let start = || std::process::Command::new("sleep").arg("20").spawn().expect("sleep runs");
        let (mut early, mut late) = (start(), start());
        early.kill().expect("kills");
        early.wait().expect("waits");
        deaths.watch(early.id() as i32, 1);
        deaths.watch(late.id() as i32, 2);
        assert_eq!(deaths.look(), [1]);
        assert!(deaths.look().is_empty());
        late.kill().expect("kills");
        let seen = loop {
            let seen = deaths.look();
            if !seen.is_empty() {
                break seen;
            }
        };
        assert_eq!(seen, [2], "also while nobody has waited for it");
        assert!(deaths.look().is_empty());
        late.wait().expect("waits");
    }
    #[test]
    fn without_descriptors_of_processes_ends_are_seen_too() {
        let mut child = std::process::Command::new("sleep").arg("20").spawn().expect("sleep runs");
        let mut deaths = Deaths::new().expect("makes");
        deaths.asked_after.push((child.id() as i32, 3));
        let mut look = || (0..SELDOM).flat_map(|_| deaths.look()).collect::<Vec<u32>>();
        assert!(look().is_empty());
        child.kill().expect("kills");
        let seen = loop {
            let seen = look();
            if !seen.is_empty() {
                break seen;
            }
        };
        assert_eq!(seen, [3], "also while nobody has waited for it");
        assert!(look().is_empty());
        child.wait().expect("waits");
        assert!(is_dead(child.id() as i32));
        assert!(!is_dead(std::process::id() as i32));
    }
}
