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
}

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
        Ok(Deaths { epoll, watched: HashMap::new(), found_dead: Vec::new() })
    }

    /// Watches process `pid` as number `key`.
    ///
    /// # Errors
    /// The system's: too many descriptors. Whoever is not watched is not seen to end.
    pub fn watch(&mut self, pid: i32, key: u32) -> io::Result<()> {
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
    }

    /// Numbers of those that have ended since the last look.
    pub fn look(&mut self) -> Vec<u32> {
        let mut dead = std::mem::take(&mut self.found_dead);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_seen_once_also_of_those_that_ended_before() {
        let mut deaths = Deaths::new().expect("makes");
        let start = || std::process::Command::new("sleep").arg("20").spawn().expect("sleep runs");
        let (mut early, mut late) = (start(), start());
        early.kill().expect("kills");
        early.wait().expect("waits");
        deaths.watch(early.id() as i32, 1).expect("watches");
        deaths.watch(late.id() as i32, 2).expect("watches");
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
}
