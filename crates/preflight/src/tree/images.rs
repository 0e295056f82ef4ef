//! The images that the processes of a tree execute, and what each image uses: CPU time by the processes' clocks, memory
//! by what the kernel lists of them.

use std::collections::HashMap;
use std::fs;

use super::run::Image;
use crate::process::{auxiliary, cpu_clock, environment_of, monotonic_ns, own_user, user_of};

/// With more processes than this the memory of all is not sampled whenever one ends.
const SAMPLED: usize = 64;

/// All images so far, and which process is which now.
#[derive(Default)]
pub struct Images {
    images: Vec<Image>,
    changes: Vec<(i32, u64, usize)>,
    processes: HashMap<i32, Process>,
    /// The most that the processes held at once, bytes.
    together_bytes: u64,
    /// The most resident memory of an image that came to its end, bytes.
    resident_bytes: u64,
}

/// A process of the tree.
struct Process {
    image: usize,
    /// Its CPU clock when it began to be this image, ns.
    base_ns: u64,
    /// Its CPU clock when last read, ns.
    last_ns: u64,
}

/// The parts of a [`super::Run`] that come from here.
pub struct Record {
    pub images: Vec<Image>,
    pub changes: Vec<(i32, u64, usize)>,
    pub together_bytes: u64,
    pub resident_bytes: u64,
}

impl Images {
    pub fn into_record(self) -> Record {
        Record {
            images: self.images,
            changes: self.changes,
            together_bytes: self.together_bytes,
            resident_bytes: self.resident_bytes,
        }
    }

    /// A process has become a new image; `admit` is called with its user.
    pub fn executed(&mut self, pid: i32, admit: &dyn Fn(u32)) {
        let cpu = cpu_clock(pid).unwrap_or(0);
        self.account(pid);
        self.settle(pid);
        let (loader, secure) = auxiliary(pid);
        let user = user_of(pid).unwrap_or_else(own_user);
        admit(user);
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

    /// A process has forked another, which is the same image.
    pub fn forked(&mut self, child: i32, parent: i32) {
        if !self.processes.contains_key(&child)
            && let Some(image) = self.processes.get(&parent).map(|p| p.image)
        {
            self.changes.push((child, monotonic_ns(), image));
            self.processes.insert(child, Process { image, base_ns: 0, last_ns: 0 });
        }
    }

    /// A process is about to end and still has its memory.
    pub fn exiting(&mut self, pid: i32) {
        self.account(pid);
        self.sample_memory(pid);
        if self.processes.len() <= SAMPLED {
            self.sample_all_memory();
        }
    }

    /// Charges a process's CPU time to its image and drops the process.
    pub fn settle(&mut self, pid: i32) {
        if let Some(process) = self.processes.remove(&pid)
            && let Some(image) = self.images.get_mut(process.image)
        {
            image.cpu_ns += process.last_ns.saturating_sub(process.base_ns);
        }
    }

    /// Charges the CPU time of all processes until now.
    pub fn settle_all(&mut self) {
        let live: Vec<i32> = self.processes.keys().copied().collect();
        for pid in live {
            self.account(pid);
            self.settle(pid);
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

    /// Reads what a process held at most.
    fn sample_memory(&mut self, pid: i32) {
        if let Some(process) = self.processes.get(&pid)
            && let Some(image) = self.images.get_mut(process.image)
            && let Some((resident, anonymous)) = most_bytes(pid)
        {
            image.anonymous_bytes = image.anonymous_bytes.max(anonymous);
            self.resident_bytes = self.resident_bytes.max(resident);
        }
    }

    /// Reads what all processes hold now.
    pub fn sample_all_memory(&mut self) {
        let held = self.processes.keys().filter_map(|&pid| Some(most_bytes(pid)?.1)).sum();
        self.together_bytes = self.together_bytes.max(held);
    }
}

/// The most that a process has held, and that less the pages of files that it maps now. Those are hardly ever given back.
fn most_bytes(pid: i32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    let files = kib("RssFile:")?.saturating_add(kib("RssShmem:")?);
    let most = kib("VmHWM:")?;
    Some((most.saturating_mul(1024), most.saturating_sub(files).saturating_mul(1024)))
}
