//! Hardware counters of one process and all it starts, through `perf_event_open`.
//!
//! Opened by the launcher on the child that waits to exec (`enable_on_exec`, `inherit`), so that neither the launcher's
//! work nor the fork is counted. Virtual machines often have none: that is a result, not an error.

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
        // SAFETY: `perf_event_open` returned this descriptor just now, so nothing else owns it.
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
/// The kernel's: `ENOENT` where there is no such counter (most virtual machines), `EACCES` or `EPERM` where
/// `kernel.perf_event_paranoid` or a seccomp filter forbids it.
pub fn probe() -> io::Result<()> {
    Counter::open(EVENTS[0].0, EVENTS[0].1, 0).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Page faults of `sh -c SCRIPT`, counted as the launcher counts: opened on the forked child that waits to exec.
    /// `None` where the kernel refuses perf events altogether.
    fn faults_of(script: &std::ffi::CStr) -> Option<u64> {
        let argv = [c"sh".as_ptr(), c"-c".as_ptr(), script.as_ptr(), std::ptr::null()];
        let mut go = [0; 2];
        // SAFETY: pipe2 fills two ints; the child calls only async-signal-safe functions on strings that fork copied;
        // the parent waits for its own child and closes its own descriptors once.
        unsafe {
            assert_eq!(libc::pipe2(go.as_mut_ptr(), libc::O_CLOEXEC), 0);
            let pid = libc::fork();
            assert!(pid >= 0);
            if pid == 0 {
                let mut byte = 0u8;
                if libc::read(go[0], (&raw mut byte).cast(), 1) == 1 {
                    libc::execv(c"/bin/sh".as_ptr(), argv.as_ptr());
                }
                libc::_exit(127);
            }
            let counter =
                Counter::open(perf::PERF_TYPE_SOFTWARE, perf::PERF_COUNT_SW_PAGE_FAULTS as u64, pid);
            assert_eq!(libc::write(go[1], [1u8].as_ptr().cast(), 1), 1);
            let mut status = 0;
            assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
            assert_eq!(status, 0, "sh ends well");
            libc::close(go[0]);
            libc::close(go[1]);
            match counter {
                Ok(mut counter) => {
                    Some(counter.read().expect("an open event of a program that ran has a count"))
                }
                Err(error) => {
                    eprintln!("this kernel refuses perf events altogether ({error}); nothing to test");
                    None
                }
            }
        }
    }

    /// A software event exercises open, enable-on-exec and read on machines without hardware counters.
    #[test]
    fn a_software_event_counts_a_child() {
        if let Some(faults) = faults_of(c":") {
            assert!(faults > 0);
        }
    }

    /// Ten programs more are ten loads more: of at least as many pages together as the shell itself.
    #[test]
    fn an_event_counts_what_its_process_starts() {
        let script = c"for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done";
        if let (Some(one), Some(many)) = (faults_of(c":"), faults_of(script)) {
            assert!(many > 3 * one, "{one} alone, {many} with ten children");
        }
    }

    #[test]
    fn opening_never_fails_and_reads_nothing_where_there_is_nothing() {
        // SAFETY: getpid takes no arguments and cannot fail.
        let mut counters = Counters::open(unsafe { libc::getpid() });
        let read = counters.read();
        if probe().is_err() {
            assert_eq!(read[0], None);
        }
    }
}
