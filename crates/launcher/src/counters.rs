//! Hardware counters of one process and all it starts, through `perf_event_open`.
//!
//! Opened by the launcher on the child that waits to exec (`enable_on_exec`, `inherit`), so that neither the
//! launcher's work nor the fork is counted. Virtual machines often have none: that is an answer, not an error.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

use perf_event_open_sys::bindings as perf;

use crate::COUNTERS;

/// Type and configuration of the events, in the order of a report: instructions, cycles, LLC misses, dTLB misses.
const EVENTS: [(u32, u64); COUNTERS] = [
    (perf::PERF_TYPE_HARDWARE, perf::PERF_COUNT_HW_INSTRUCTIONS as u64),
    (perf::PERF_TYPE_HARDWARE, perf::PERF_COUNT_HW_CPU_CYCLES as u64),
    (perf::PERF_TYPE_HARDWARE, perf::PERF_COUNT_HW_CACHE_MISSES as u64),
    (
        perf::PERF_TYPE_HW_CACHE,
        (perf::PERF_COUNT_HW_CACHE_DTLB as u64)
            | ((perf::PERF_COUNT_HW_CACHE_OP_READ as u64) << 8)
            | ((perf::PERF_COUNT_HW_CACHE_RESULT_MISS as u64) << 16),
    ),
];

/// One open event.
struct Counter(File);

impl Counter {
    fn open(kind: u32, config: u64, pid: i32) -> io::Result<Counter> {
        match Counter::open_for(kind, config, pid, false) {
            // Unprivileged users may count user mode only (perf_event_paranoid 2).
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                Counter::open_for(kind, config, pid, true)
            }
            other => other,
        }
    }

    fn open_for(kind: u32, config: u64, pid: i32, user_only: bool) -> io::Result<Counter> {
        let mut attributes = perf::perf_event_attr {
            type_: kind,
            size: size_of::<perf::perf_event_attr>() as u32,
            config,
            read_format: (perf::PERF_FORMAT_TOTAL_TIME_ENABLED | perf::PERF_FORMAT_TOTAL_TIME_RUNNING) as u64,
            ..Default::default()
        };
        attributes.set_disabled(1);
        attributes.set_inherit(1);
        attributes.set_enable_on_exec(1);
        attributes.set_exclude_hv(1);
        attributes.set_exclude_kernel(u64::from(user_only));
        // SAFETY: `attributes` is a valid, fully initialised perf_event_attr of the size it states, and lives
        // across the call; the other arguments are plain numbers.
        let fd = unsafe {
            perf_event_open_sys::perf_event_open(
                &mut attributes,
                pid,
                -1,
                -1,
                perf::PERF_FLAG_FD_CLOEXEC as libc::c_ulong,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave us this descriptor and nobody else owns it.
        Ok(Counter(unsafe { File::from_raw_fd(fd) }))
    }

    /// The count, scaled up when the kernel had to share the hardware between events.
    fn read(&mut self) -> Option<u64> {
        let mut bytes = [0u8; 24];
        self.0.read_exact(&mut bytes).ok()?;
        let word = |i: usize| u64::from_ne_bytes(bytes[i * 8..i * 8 + 8].try_into().unwrap_or([0; 8]));
        let (value, enabled, running) = (word(0), word(1), word(2));
        match running {
            0 => None,
            _ if running == enabled => Some(value),
            _ => Some((value as f64 * enabled as f64 / running as f64) as u64),
        }
    }
}

/// The events of a report, each open or not.
pub struct Counters([Option<Counter>; COUNTERS]);

impl Counters {
    /// Opens what this machine has on process `pid`, which has not exec'd yet.
    pub fn open(pid: i32) -> Counters {
        Counters(EVENTS.map(|(kind, config)| Counter::open(kind, config, pid).ok()))
    }

    /// Reads them after the process and its descendants have ended.
    pub fn read(&mut self) -> [Option<u64>; COUNTERS] {
        std::array::from_fn(|i| self.0[i].as_mut().and_then(Counter::read))
    }
}

/// Whether this machine counts instructions at all.
///
/// # Errors
/// What the kernel answered: `ENOENT` where there is no such counter (most virtual machines), `EACCES` or `EPERM`
/// where `kernel.perf_event_paranoid` or a seccomp filter forbids it.
pub fn probe() -> io::Result<()> {
    Counter::open(EVENTS[0].0, EVENTS[0].1, 0).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A software event exercises open, inherit, enable-on-exec and read on machines without hardware counters.
    #[test]
    fn a_software_event_counts_a_child() {
        let Ok(mut counter) =
            Counter::open(perf::PERF_TYPE_SOFTWARE, perf::PERF_COUNT_SW_PAGE_FAULTS as u64, 0)
        else {
            eprintln!("this kernel refuses perf events altogether; nothing to test");
            return;
        };
        // Enabled by the exec of a child of this process only if the event is inherited; the child execs.
        let status = std::process::Command::new("true").status();
        assert!(status.is_ok_and(|status| status.success()));
        // Our own thread never exec'd, so the event stayed disabled here and the child's count is its own.
        assert_ne!(counter.read(), Some(0));
    }

    #[test]
    fn opening_never_fails_and_reads_nothing_where_there_is_nothing() {
        // SAFETY: getpid has no preconditions.
        let mut counters = Counters::open(unsafe { libc::getpid() });
        let read = counters.read();
        if probe().is_err() {
            assert_eq!(read[0], None);
        }
    }
}
