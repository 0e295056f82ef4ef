//! What runs on a shared processor once the measured program has ended: the same program again, unmeasured, until
//! heaptoll cancels the launcher. Stacks that run together on one processor are compared by their CPU time, and that
//! depends on how many share its caches: when a program that ends is started again, all have the same company to their
//! last second.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use heaptoll_launcher::affinity::only;
use heaptoll_launcher::slice;
use heaptoll_launcher::{Ended, Spec, Usage};

use crate::child;
use crate::process_tree::ProcessTree;

/// A program that ends sooner, or fails where its files are left from the run before, is no company: a loop stands in.
const SHORTEST: Duration = Duration::from_millis(2);

/// Runs the program again and again until the launcher is cancelled.
pub fn keep(spec: &Spec, tree: &ProcessTree) {
    redirect_output();
    if spec.refill_by_loop {
        return spin(spec, tree);
    }
    let mut spec = spec.clone();
    spec.environment.retain(|(name, _)| !spec.measured_only.contains(name));
    let spec = &spec;
    loop {
        rewind_input();
        let begun = Instant::now();
        let Ok(waiting) = child::fork(spec) else { return };
        let pid = waiting.pid;
        if waiting.release().is_err() {
            return;
        }
        match until_end(tree, pid) {
            Ended::Exit(0) if begun.elapsed() >= SHORTEST => {}
            Ended::Cancelled => return,
            _ => return spin(spec, tree),
        }
    }
}

/// Waits for a filler and everything it started to be gone. None of it is in any report.
fn until_end(tree: &ProcessTree, pid: i32) -> Ended {
    let (ended, _, _) = tree.wait_for_first(pid, Instant::now(), None);
    tree.kill_all(pid, &mut Usage::default());
    ended
}

/// A child that does nothing but use the processor.
fn spin(spec: &Spec, tree: &ProcessTree) {
    // SAFETY: this process has one thread, and the child calls only async-signal-safe functions; `set` is a whole
    // cpu_set_t.
    let pid = unsafe {
        let launcher = libc::getpid();
        let set = spec.cpu.map(only);
        match libc::fork() {
            0 => {
                libc::setpgid(0, 0);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                let placed =
                    set.as_ref().is_none_or(|set| libc::sched_setaffinity(0, size_of_val(set), set) == 0);
                let _ = spec.slice().map(slice::set);
                if libc::getppid() != launcher || !placed {
                    libc::_exit(0);
                }
                loop {
                    std::hint::spin_loop();
                }
            }
            pid => pid,
        }
    };
    if pid > 0 {
        until_end(tree, pid);
    }
}

/// Gives the measured run's pipes back, so that heaptoll sees their end; fillers write nowhere.
fn redirect_output() {
    if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
        for fd in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
            // SAFETY: dup2 takes plain numbers; the first is an open file's, the second one that the launcher was
            // started with.
            unsafe { libc::dup2(null.as_raw_fd(), fd) };
        }
    }
}

/// Standard input from its beginning: a file that is opened again has an offset of its own.
fn rewind_input() {
    if let Ok(again) = File::open("/proc/self/fd/0") {
        // SAFETY: dup2 takes plain numbers; the first is an open file's, the second one that the launcher was started
        // with.
        unsafe { libc::dup2(again.as_raw_fd(), libc::STDIN_FILENO) };
    }
}
