//! State of processes and threads, from the kernel.
//!
//! A process records its number as it sees it itself. In another namespace of process numbers (a container, a sandbox)
//! the tool sees it under another number, which it finds by the last entry of `NSpid` in `/proc/PID/status`.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::map::Map;
use crate::atomic::Ordering;

/// A process as the tool finds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessIdentity {
    /// The process number here; 0: not to be found.
    pid: i32,
    /// Whether its threads have other numbers here than those they recorded.
    foreign: bool,
    /// When it began, in the kernel's ticks: distinguishes it from a later process of the same number. `None`: not
    /// known.
    started: Option<u64>,
}

impl ProcessIdentity {
    /// That of the process in an entry.
    pub fn from_entry(map: &Map, index: usize) -> ProcessIdentity {
        let process = map.process(index);
        let own_pid = (process.state.load(Ordering::Acquire) >> 8) as i32;
        ProcessIdentity::from_number(map, own_pid, process.namespace.load(Ordering::Relaxed))
    }

    /// That of the process with number `own_pid` in namespace `theirs`, which is 0 if unknown.
    pub fn from_number(map: &Map, own_pid: i32, theirs: u64) -> ProcessIdentity {
        let ours = map.namespace;
        let foreign = theirs != 0 && ours != 0 && theirs != ours;
        let pid = if foreign { translate(own_pid, theirs).unwrap_or(0) } else { own_pid };
        let started = match status(&format!("/proc/{pid}/stat")) {
            ProcState::Present(status) => Some(status.started),
            // No process begins at that time: one that gets the number later is another.
            ProcState::Gone => Some(u64::MAX),
            ProcState::Unknown => None,
        };
        ProcessIdentity { pid, foreign, started }
    }

    /// The process number here; 0: not to be found.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it existed when it was searched, as far as the kernel shows.
    pub fn was_there(&self) -> bool {
        self.pid > 0 && self.started != Some(u64::MAX)
    }

    /// Whether it is in another namespace.
    pub fn foreign(&self) -> bool {
        self.foreign
    }

    /// Whether any thread of it runs or could run. If that cannot be read, for lack of descriptors for example, it
    /// counts as running: rings of a running process must not be given to others.
    pub fn runs(&self) -> bool {
        let pid = self.pid;
        match status(&format!("/proc/{pid}/stat")) {
            ProcState::Present(status) if self.started.is_none_or(|started| started == status.started) => {
                // A process whose first thread has ended has the state of a zombie while its other threads run.
                !status.ended || tasks(pid).is_none_or(|mut tasks| tasks.any(|tid| !ended(pid, tid)))
            }
            ProcState::Present(_) | ProcState::Gone => false,
            ProcState::Unknown => true,
        }
    }

    /// Whether a thread of it, by the number that it recorded, runs or could run.
    pub fn thread_runs(&self, tid: i32) -> bool {
        if self.foreign {
            let is_it = |here| {
                own_number(self.pid, here).is_none_or(|number| number == tid) && !ended(self.pid, here)
            };
            return tasks(self.pid).is_none_or(|mut tasks| tasks.any(is_it));
        }
        if tid != self.pid {
            // Only the first thread of a process can be there and have ended.
            return Path::new(&format!("/proc/{}/task/{tid}", self.pid)).try_exists().unwrap_or(true);
        }
        !ended(self.pid, tid)
    }
}

/// A process's parent.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    match status(&format!("/proc/{pid}/stat")) {
        ProcState::Present(status) => Some(status.parent),
        ProcState::Gone | ProcState::Unknown => None,
    }
}

struct Status {
    ended: bool,
    parent: i32,
    started: u64,
}

/// The state of a process or thread in `/proc`.
enum ProcState {
    Present(Status),
    Gone,
    /// It could not be read.
    Unknown,
}

fn status(path: &str) -> ProcState {
    match fs::read(path) {
        Ok(text) => parse(&text).map_or(ProcState::Unknown, ProcState::Present),
        Err(error) if is_gone(&error) => ProcState::Gone,
        Err(_) => ProcState::Unknown,
    }
}

/// Whether an error means that there is no such process or thread.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

fn parse(text: &[u8]) -> Option<Status> {
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

fn ended(pid: i32, tid: i32) -> bool {
    match status(&format!("/proc/{pid}/task/{tid}/stat")) {
        ProcState::Present(status) => status.ended,
        ProcState::Gone => true,
        ProcState::Unknown => false,
    }
}

/// The entries of a folder whose names are numbers, none when it has gone; `None` when it could not be read.
fn numbers(folder: &str) -> Option<impl Iterator<Item = i32> + use<>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => Some(entries),
        Err(error) if is_gone(&error) => None,
        Err(_) => return None,
    };
    let names = entries.into_iter().flatten().flatten();
    Some(names.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())))
}

fn tasks(pid: i32) -> Option<impl Iterator<Item = i32>> {
    numbers(&format!("/proc/{pid}/task"))
}

/// The number of a thread in its own namespace.
fn own_number(pid: i32, tid: i32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_ascii_whitespace().last()?.parse().ok()
}

/// The number here of the process with number `pid` in a namespace.
fn translate(pid: i32, namespace: u64) -> Option<i32> {
    numbers("/proc")?.find(|&here| {
        fs::metadata(format!("/proc/{here}/ns/pid")).is_ok_and(|about| about.ino() == namespace)
            && own_number(here, here) == Some(pid)
    })
}
