//! Times: elapsed, and CPU of the thread that runs. On a busy machine a thread waits for a processor, so only its own CPU
//! clock states what a part of a collection costs.

use std::time::Instant;

/// CPU time of the process, ns.
pub fn process_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of this thread, ns.
pub fn thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a local variable; both clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A span of time that has begun on this thread.
#[derive(Debug)]
pub struct Span {
    began: Instant,
    began_cpu_ns: u64,
}

impl Span {
    /// Begins one.
    pub fn begin() -> Span {
        Span { began: Instant::now(), began_cpu_ns: thread_cpu_ns() }
    }

    /// Time since, ns.
    pub fn elapsed_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// CPU time of this thread since, ns; the span began on it.
    pub fn cpu_ns(&self) -> u64 {
        thread_cpu_ns() - self.began_cpu_ns
    }
}
