//! What the kernel says about processes and threads.
//!
//! A process tells its number as it sees it itself. In another namespace of process numbers (a container, a sandbox)
//! the tool knows it by another number, which it finds by the last entry of `NSpid` in `/proc/PID/status`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::map::Map;

/// Where a process is to be found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whereabouts {
    /// The process number here; 0: not to be found.
    pid: i32,
    /// Its threads have other numbers here than they have told.
    foreign: bool,
    /// When it began, in the kernel's ticks: tells it from a later process of the same number.
    started: Option<u64>,
}

impl Whereabouts {
    /// Of the process in an entry.
    pub fn of(map: &Map, index: usize) -> Whereabouts {
        let process = map.process(index);
        let told = (process.state.load(Ordering::Acquire) >> 8) as i32;
        let (theirs, ours) =
            (process.namespace.load(Ordering::Relaxed), map.header().namespace.load(Ordering::Relaxed));
        let foreign = theirs != 0 && ours != 0 && theirs != ours;
        let pid = if foreign { translate(told, theirs).unwrap_or(0) } else { told };
        Whereabouts {
            pid,
            foreign,
            started: status(&format!("/proc/{pid}/stat")).map(|status| status.started),
        }
    }

    /// The process number here; 0: not to be found.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it is in another namespace.
    pub fn foreign(&self) -> bool {
        self.foreign
    }

    /// Whether any thread of it runs or could run.
    pub fn runs(&self) -> bool {
        let pid = self.pid;
        match status(&format!("/proc/{pid}/stat")) {
            Some(status) if self.started == Some(status.started) => {
                // A process whose first thread has ended looks like a zombie while its other threads run.
                !status.ended || tasks(pid).any(|tid| ended(pid, tid) == Some(false))
            }
            _ => false,
        }
    }

    /// Whether a thread of it, by the number that it told, runs or could run.
    pub fn thread_runs(&self, tid: i32) -> bool {
        if self.foreign {
            return tasks(self.pid)
                .any(|here| told(self.pid, here) == Some(tid) && ended(self.pid, here) == Some(false));
        }
        if tid != self.pid {
            // Only the first thread of a process can be there and have ended.
            return Path::new(&format!("/proc/{}/task/{tid}", self.pid)).exists();
        }
        ended(self.pid, tid) == Some(false)
    }
}

/// A process's parent.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    status(&format!("/proc/{pid}/stat")).map(|status| status.parent)
}

struct Status {
    ended: bool,
    parent: i32,
    started: u64,
}

fn status(path: &str) -> Option<Status> {
    let text = fs::read(path).ok()?;
    // The name, in brackets, may hold anything.
    let end = text.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    Some(Status {
        ended: matches!(fields.next()?, "Z" | "X" | "x"),
        parent: fields.next()?.parse().ok()?,
        // The 22nd field; the first after the name is the third.
        started: fields.nth(17)?.parse().ok()?,
    })
}

fn ended(pid: i32, tid: i32) -> Option<bool> {
    status(&format!("/proc/{pid}/task/{tid}/stat")).map(|status| status.ended)
}

fn numbers(folder: &str) -> impl Iterator<Item = i32> + use<> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
}

fn tasks(pid: i32) -> impl Iterator<Item = i32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// The number by which a thread knows itself.
fn told(pid: i32, tid: i32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_ascii_whitespace().last()?.parse().ok()
}

/// The number here of a process that knows itself by `pid` in a namespace.
fn translate(pid: i32, namespace: u64) -> Option<i32> {
    numbers("/proc").find(|&here| {
        fs::metadata(format!("/proc/{here}/ns/pid")).is_ok_and(|about| about.ino() == namespace)
            && told(here, here) == Some(pid)
    })
}
