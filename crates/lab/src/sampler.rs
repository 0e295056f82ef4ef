//! Resident memory of a process tree over time, read from `/proc` while it runs. Reading disturbs (a little CPU,
//! a lock in the kernel), so it is done in runs that are not timed; servers are the exception and say so.

use std::fs::read_to_string;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// At most this many samples are kept; when more come, every second one goes and the pace halves.
const MOST: usize = 1000;

/// What a sampler saw.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// (seconds since start, resident KiB of the tree).
    pub samples: Vec<(f64, u64)>,
    /// Last `VmHWM` of the first process, KiB.
    pub vm_hwm_kib: u64,
}

/// A thread that watches a process tree.
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Sampled>,
}

impl Sampler {
    /// Begins to watch process `pid` and its descendants, every `pace`.
    pub fn watch(pid: i32, pace: Duration) -> Sampler {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || sample(pid, pace, &flag));
        Sampler { stop, thread }
    }

    /// Stops and hands over what was seen.
    pub fn finish(self) -> Sampled {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn sample(pid: i32, mut pace: Duration, stop: &AtomicBool) -> Sampled {
    let start = Instant::now();
    let mut seen = Sampled::default();
    while !stop.load(Ordering::Relaxed) {
        let Some(hwm) = status_kib(pid, "VmHWM:") else { break };
        seen.vm_hwm_kib = seen.vm_hwm_kib.max(hwm);
        let resident: u64 = tree(pid).iter().filter_map(|&member| status_kib(member, "VmRSS:")).sum();
        seen.samples.push((start.elapsed().as_secs_f64(), resident));
        if seen.samples.len() >= MOST {
            let mut keep = false;
            seen.samples.retain(|_| {
                keep = !keep;
                keep
            });
            pace *= 2;
        }
        std::thread::sleep(pace);
    }
    seen
}

/// One `VmXXX:` line of `/proc/PID/status`, KiB. `None` when the process is gone or a zombie.
fn status_kib(pid: i32, key: &str) -> Option<u64> {
    let status = read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(key))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The process and all its descendants.
fn tree(root: i32) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", found[next])) else {
            next += 1;
            continue;
        };
        for task in tasks.flatten() {
            let children = read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok()));
        }
        next += 1;
    }
    found
}

/// CPU seconds a process tree has used so far, from the scheduler's own nanosecond counts of its live threads.
/// Threads and children that have ended are not in it.
pub fn cpu_s(root: i32) -> f64 {
    let mut total_ns = 0u64;
    for pid in tree(root) {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.flatten() {
            let stat = read_to_string(task.path().join("schedstat")).unwrap_or_default();
            total_ns +=
                stat.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    total_ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_its_children_and_ends_are_noticed() {
        let mut child =
            std::process::Command::new("sh").args(["-c", "sleep 5 & wait"]).spawn().expect("sh runs");
        std::thread::sleep(Duration::from_millis(100));
        let pid = child.id() as i32;
        let sampler = Sampler::watch(pid, Duration::from_millis(5));
        std::thread::sleep(Duration::from_millis(50));
        let members = tree(pid);
        assert_eq!(members.len(), 2, "{members:?}");
        for member in members {
            // SAFETY: a signal to our own descendants.
            unsafe { libc::kill(member, libc::SIGKILL) };
        }
        child.wait().expect("it was killed");
        let seen = sampler.finish();
        assert!(seen.samples.len() >= 3 && seen.vm_hwm_kib > 0, "{seen:?}");
    }
}
