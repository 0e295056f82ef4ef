//! Clocks: the processor's own counter for single calls, the kernel's for blocks of them.

use std::time::{Duration, Instant};

/// What one reading of a thread's CPU clock and back costs that thread, and how fast the counter runs.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// Ticks in a ns.
    pub ticks_per_ns: f64,
    /// Ticks between two readings with nothing in between.
    pub tick_cost: u64,
    /// CPU ns between two readings of [`cpu_ns`] with nothing in between.
    pub cpu_cost: u64,
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes `time`, a live local.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this thread, ns.
pub fn cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Elapsed time, ns.
pub fn wall_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// The counter before a call: what came before is done, what follows has not begun.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn before() -> u64 {
    heaptoll_process::tsc::fenced_counter()
}

/// The counter after a call: the call is done, what follows has not begun.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn after() -> u64 {
    before()
}

/// Other machines: the kernel's clock without a system call.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn before() -> u64 {
    wall_ns()
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn after() -> u64 {
    wall_ns()
}

/// Pairs that are read to measure the cost of a pair.
const PAIRS: usize = 1001;

fn typical(pair: impl Fn() -> u64) -> u64 {
    let mut costs: Vec<u64> = (0..PAIRS).map(|_| pair()).collect();
    costs.sort_unstable();
    costs[PAIRS / 2]
}

impl Clocks {
    /// Measures them; takes some ms.
    pub fn measure() -> Clocks {
        let (started, ticks) = (Instant::now(), before());
        while started.elapsed() < Duration::from_millis(5) {
            std::hint::spin_loop();
        }
        let (elapsed, ticks) = (started.elapsed(), after() - ticks);
        Clocks {
            ticks_per_ns: ticks as f64 / elapsed.as_nanos() as f64,
            tick_cost: typical(|| {
                let begun = before();
                after() - begun
            }),
            cpu_cost: typical(|| {
                let begun = cpu_ns();
                cpu_ns() - begun
            }),
        }
    }
}
