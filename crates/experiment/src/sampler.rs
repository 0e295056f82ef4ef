//! Resident memory of a process tree over time, read from `/proc` while it runs. Reading disturbs (a little CPU, a lock
//! in the kernel), so it is done in runs that are not timed; servers are the exception, which their pages note.

use std::fs::read_to_string;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// At most this many samples are kept; when more come, every second one is dropped and the interval doubles.
const MOST: usize = 1000;

/// What a sampler saw.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// (seconds since start, resident KiB of the tree).
    pub samples: Vec<(f64, u64)>,
    /// Last `VmHWM` of the first process, KiB.
    pub vm_hwm_kib: u64,
    /// Most anonymous resident KiB of the tree (`RssAnon`) at a sample.
    pub anonymous_peak_kib: u64,
}

/// A thread that watches a process tree.
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Sampled>,
}

impl Sampler {
    /// Begins to watch process `pid` and its descendants, at intervals of `pace` at first.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn watch(pid: i32, pace: Duration) -> std::io::Result<Sampler> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new().spawn(move || sample(pid, pace, &flag))?;
        Ok(Sampler { stop, thread })
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
        let members = tree(pid);
        let sum = |key| -> u64 { members.iter().filter_map(|&member| status_kib(member, key)).sum() };
        let resident = sum("VmRSS:");
        seen.anonymous_peak_kib = seen.anonymous_peak_kib.max(sum("RssAnon:"));
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

/// Resident KiB of a process and its descendants; `None` when it is gone.
pub fn resident_kib(root: i32) -> Option<u64> {
    let own = status_kib(root, "VmRSS:")?;
    Some(own + tree(root)[1..].iter().filter_map(|&member| status_kib(member, "VmRSS:")).sum::<u64>())
}

/// One `VmXXX:` line of `/proc/PID/status`, KiB. `None` when the process is gone or a zombie.
fn status_kib(pid: i32, key: &str) -> Option<u64> {
    let status = read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(key))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The process and all its descendants, itself first.
pub fn tree(root: i32) -> Vec<i32> {
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

/// CPU seconds a process tree has used so far: of each process the kernel's own clock, threads that have ended
/// included, and of the children it has waited for their sums (in clock ticks, usually 10 ms).
pub fn cpu_s(root: i32) -> f64 {
    tree(root)
        .into_iter()
        .map(|pid| process_cpu_s(pid).unwrap_or(0.0) + waited_for_s(pid).unwrap_or(0.0))
        .sum()
}

fn process_cpu_s(pid: i32) -> Option<f64> {
    let mut clock = 0;
    // SAFETY: clock_getcpuclockid fills `clock`, clock_gettime fills `time`; both are live locals.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        (libc::clock_getcpuclockid(pid, &mut clock) == 0 && libc::clock_gettime(clock, &mut time) == 0)
            .then(|| time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
    }
}

/// `cutime` and `cstime` of `/proc/PID/stat`.
fn waited_for_s(pid: i32) -> Option<f64> {
    let stat = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything, so fields are counted after it; the first there is the third.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    let ticks: u64 = fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?;
    let a_second = rustix::param::clock_ticks_per_second();
    (a_second > 0).then(|| ticks as f64 / a_second as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_of_ended_threads_and_children_counts() {
        let before = cpu_s(std::process::id() as i32);
        // By CPU time: on a busy machine a thread may get little of it within any span of time.
        let spin = || {
            let own = || process_cpu_s(std::process::id() as i32).expect("own clock");
            let begun = own();
            while own() < begun + 0.1 {
                std::hint::spin_loop();
            }
        };
        std::thread::spawn(spin).join().expect("the thread ends");
        let in_a_thread = cpu_s(std::process::id() as i32) - before;
        assert!(in_a_thread > 0.05, "{in_a_thread}");
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        std::process::Command::new("sh").args(["-c", busy]).status().expect("sh runs");
        let own = process_cpu_s(std::process::id() as i32).expect("own clock");
        assert!(cpu_s(std::process::id() as i32) > own, "the child's time is missing");
    }

    #[test]
    fn a_tree_has_its_children_and_ends_are_noticed() {
        let mut child =
            std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().expect("sh runs");
        let pid = child.id() as i32;
        // The shell forks when a busy machine lets it.
        let until = Instant::now() + Duration::from_secs(20);
        while tree(pid).len() < 2 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let sampler = Sampler::watch(pid, Duration::from_millis(5)).expect("it starts");
        // A hundred and more on an idle machine.
        std::thread::sleep(Duration::from_secs(1));
        let members = tree(pid);
        assert_eq!(members.len(), 2, "{members:?}");
        for member in members {
            // SAFETY: kill takes plain numbers; `member` is a descendant that has not been reaped.
            unsafe { libc::kill(member, libc::SIGKILL) };
        }
        child.wait().expect("it was killed");
        let seen = sampler.finish();
        assert!(seen.samples.len() >= 3 && seen.vm_hwm_kib > 0, "{seen:?}");
        let most = seen.samples.iter().map(|sample| sample.1).max();
        assert!(seen.anonymous_peak_kib > 0 && Some(seen.anonymous_peak_kib) < most, "{seen:?}");
    }
}
