//! The clock of layers: the processor's time-stamp counter where it keeps time, else the C library's.
//!
//! An interval between two readings must not be short in comparison with a reading. On a Xeon of 2.6 GHz a reading of
//! the counter takes 7 ns and one of `clock_gettime` 17. Two plain readings do not bound a short call: the processor
//! executes the second before the call is done. [`fenced_ticks`] waits on both sides. On an AMD EPYC the counter
//! advances in steps of 10 ns, so a single time is right to one step and only means and medians of many are better. The
//! counter is used when the kernel itself keeps time by it: the kernel has tested that it runs evenly and alike on all
//! processors.
//!
//! Readings are in ticks: of the counter, or ns. There are two ways from ticks to ns. The recording layer needs short
//! times while the program runs: [`compare`] compares the counter with the kernel's clock once, for 0.2 ms, which is
//! right to about one part in 5000, and [`ns`] multiplies. A layer that records ticks and converts them to ns later
//! records a [`Pair`] from time to time.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether ticks are the counter's.
static COUNTER: AtomicBool = AtomicBool::new(false);

/// ns in a tick of the counter, times 2^32; 0: ticks are ns, or [`compare`] has not been called.
static SCALE: AtomicU64 = AtomicU64::new(0);

/// The mean time between two fenced readings of which the second follows the first at once, in ticks: the part of every
/// measured time that is not the call's. The minimum would be too small if the counter advances in steps.
static READING: AtomicU64 = AtomicU64::new(0);

/// How long the counter is compared with the clock, ns.
const COMPARED_NS: u64 = 200_000;

/// How many empty intervals are measured for [`READING`].
const EMPTY: usize = 128;

/// One instant by both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pair {
    /// In ticks.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub ns: u64,
}

/// `CLOCK_MONOTONIC`, ns.
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes to `time`, a local variable; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux permits programs to use it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Now, in ticks.
#[inline(always)]
pub fn ticks() -> u64 {
    if COUNTER.load(Ordering::Relaxed) { counter() } else { library_ns() }
}

/// The counter, read after all earlier instructions are done and before any later one begins.
#[inline(always)]
pub fn fenced_counter() -> u64 {
    // SAFETY: every x86-64 processor has both instructions.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        let ticks = counter();
        core::arch::x86_64::_mm_lfence();
        ticks
    }
}

/// Now, in ticks, to bound a call that takes some ns: no part of the call overlaps with the reading.
#[inline(always)]
pub fn fenced_ticks() -> u64 {
    if COUNTER.load(Ordering::Relaxed) { fenced_counter() } else { library_ns() }
}

/// Out of line, so that the fast path needs no stack space for the library's result.
#[cold]
#[inline(never)]
fn library_ns() -> u64 {
    monotonic_ns()
}

/// Whether ticks are the counter's; otherwise they are ns.
pub fn is_counter() -> bool {
    COUNTER.load(Ordering::Relaxed)
}

/// ns from one fenced reading to another, without the time of reading; at most 4.2 s. After [`compare`].
#[inline]
pub fn ns(from: u64, to: u64) -> u32 {
    let ticks = to.wrapping_sub(from).saturating_sub(READING.load(Ordering::Relaxed));
    let ns = match SCALE.load(Ordering::Relaxed) {
        0 => ticks,
        scale => ((u128::from(ticks) * u128::from(scale)) >> 32) as u64,
    };
    u32::try_from(ns).unwrap_or(u32::MAX)
}

/// Chooses the clock. Called once, before the first reading.
pub fn choose() {
    COUNTER.store(kernel_uses_counter(), Ordering::Relaxed);
}

/// Measures how long a tick is, for [`ns`]. Called once, after [`choose`]; takes 0.2 ms.
pub fn compare() {
    if is_counter() {
        let begun = pair();
        let mut now = begun;
        while now.ns.wrapping_sub(begun.ns) < COMPARED_NS {
            now = pair();
        }
        let ticks = now.ticks.wrapping_sub(begun.ticks).max(1);
        let scale = (u128::from(now.ns - begun.ns) << 32) / u128::from(ticks);
        SCALE.store(scale as u64, Ordering::Relaxed);
    }
    READING.store(reading_ticks(), Ordering::Relaxed);
}

/// The mean of empty intervals, without those in which the thread was interrupted.
fn reading_ticks() -> u64 {
    let mut intervals = [0u64; EMPTY];
    for interval in &mut intervals {
        let from = fenced_ticks();
        *interval = fenced_ticks().wrapping_sub(from);
    }
    intervals.sort_unstable();
    let undisturbed = &intervals[..EMPTY * 3 / 4];
    undisturbed.iter().sum::<u64>() / undisturbed.len() as u64
}

/// Now by both clocks: the best of a few tries, one of which may be interrupted.
pub fn pair() -> Pair {
    if !is_counter() {
        let ns = monotonic_ns();
        return Pair { ticks: ns, ns };
    }
    let (mut best, mut pair) = (u64::MAX, Pair::default());
    for _ in 0..5 {
        let before = counter();
        let ns = monotonic_ns();
        let width = counter().wrapping_sub(before);
        if width < best {
            best = width;
            pair = Pair { ticks: before.wrapping_add(width / 2), ns };
        }
    }
    pair
}

fn kernel_uses_counter() -> bool {
    let mut name = [0u8; 4];
    // SAFETY: open reads a C literal; read writes at most `name.len()` bytes to `name`.
    unsafe {
        let path = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return false;
        }
        let read = libc::read(file, name.as_mut_ptr().cast(), name.len());
        libc::close(file);
        read == 4 && &name == b"tsc\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since the choice of the clock holds for the whole process.
    #[test]
    fn both_clocks_run_alike() {
        for chosen in [false, true] {
            if chosen {
                choose();
                compare();
            }
            let begun = pair();
            while monotonic_ns() - begun.ns < 20_000_000 {}
            let ended = pair();
            let by_clock = (ended.ns - begun.ns) as f64;
            let by_ticks = f64::from(ns(begun.ticks, ended.ticks));
            assert!(
                (by_ticks / by_clock - 1.0).abs() < 0.01,
                "{by_ticks} ns by ticks, {by_clock} by the clock"
            );
        }
    }

    #[test]
    fn work_of_some_ns_takes_longer_than_none() {
        let mut intervals = [0u64; 1001];
        let mut product = 3u64;
        for interval in &mut intervals {
            let from = fenced_counter();
            for _ in 0..64 {
                product = core::hint::black_box(product.wrapping_mul(product));
            }
            *interval = fenced_counter().wrapping_sub(from);
        }
        intervals.sort_unstable();
        let mut empty = [0u64; 1001];
        for interval in &mut empty {
            let from = fenced_counter();
            *interval = fenced_counter().wrapping_sub(from);
        }
        empty.sort_unstable();
        assert!(intervals[500] > empty[500], "{} and {} ticks", intervals[500], empty[500]);
    }
}
