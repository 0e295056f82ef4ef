//! heaptoll-launch: execs one program, waits for it and everything it starts, and reports what they used.

mod child;
mod company;
mod process_tree;

use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::time::{Duration, Instant};

use heaptoll_launcher::counters::Counters;
use heaptoll_launcher::{Ended, Message, Spec, Usage};

use crate::process_tree::ProcessTree;

/// How long processes that outlive the first one may take to end by themselves.
const GRACE: Duration = Duration::from_millis(300);

fn main() -> std::process::ExitCode {
    let spec = match Spec::from_args(std::env::args_os().skip(1)) {
        Ok(spec) => spec,
        Err(error) => {
            eprintln!("heaptoll-launch: {error}");
            return std::process::ExitCode::from(2);
        }
    };
    let mut report = passed(spec.report_fd);
    let gate = spec.gate_fd.map(passed);
    let tree = match ProcessTree::prepare(&spec) {
        Ok(tree) => tree,
        Err(error) => {
            let ended = Ended::SetupFailed(error.raw_os_error().unwrap_or(0));
            return finish(&mut report, ended, Usage::default());
        }
    };
    let (ended, usage) = run(&spec, &tree, &mut report, gate);
    let done = finish(&mut report, ended, usage);
    if spec.refill && matches!(ended, Ended::Exit(_) | Ended::Signal(_)) {
        company::keep(&spec, &tree);
    }
    done
}

/// A descriptor that heaptoll passed.
fn passed(fd: i32) -> File {
    // SAFETY: heaptoll passed this descriptor in the arguments for the launcher alone; nothing else in this process
    // uses it. CLOEXEC: the program must not find it open.
    unsafe {
        libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        File::from_raw_fd(fd)
    }
}

fn finish(report: &mut File, ended: Ended, usage: Usage) -> std::process::ExitCode {
    match send(report, Message::Ended(ended, usage)) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(_) => std::process::ExitCode::FAILURE,
    }
}

/// One write a message, so that half of one is never read.
fn send(report: &mut File, message: Message) -> std::io::Result<()> {
    report.write_all(format!("{message}\n").as_bytes())
}

fn run(spec: &Spec, tree: &ProcessTree, report: &mut File, gate: Option<File>) -> (Ended, Usage) {
    let nothing = Usage::default();
    let waiting = match child::fork(spec) {
        Ok(waiting) => waiting,
        Err(error) => return (Ended::SetupFailed(error.raw_os_error().unwrap_or(0)), nothing),
    };
    let pid = waiting.pid;
    let mut counters = spec.counters.then(|| Counters::open(pid));
    if let Some(mut gate) = gate {
        let _ = send(report, Message::Ready);
        // It ends when heaptoll closes the other side, on purpose or by its own exit; then the parent-death signal is
        // pending.
        let _ = std::io::copy(&mut gate, &mut std::io::sink());
    }
    let start = Instant::now();
    if let Err(errno) = waiting.release() {
        return (Ended::ExecFailed(errno), nothing);
    }
    // If heaptoll is gone this is not read; the parent-death signal is on its way.
    let _ = send(report, Message::Started(pid));

    let deadline = (spec.timeout_ms > 0).then(|| start + Duration::from_millis(spec.timeout_ms));
    let (ended, wall, mut sum) = tree.wait_for_first(pid, start, deadline);
    match ended {
        Ended::Timeout | Ended::Cancelled => {
            tree.kill_all(pid, &mut sum);
        }
        _ => sum.killed_orphans = tree.settle(pid, GRACE, &mut sum),
    }
    sum.wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
    if let Some(counters) = &mut counters {
        sum.counters = counters.read();
    }
    (ended, sum)
}
