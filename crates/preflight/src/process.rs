//! What the kernel reports about another process: its clocks, its auxiliary vector, its environment.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use heaptoll_process::proc_files;

/// `CLOCK_MONOTONIC`, ns.
pub fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// CPU time of a whole process, its ended threads included, ns.
pub fn cpu_clock(pid: i32) -> Option<u64> {
    // How the kernel numbers processes' clocks, which is what clock_getcpuclockid gives; that function refuses
    // processes that are just exiting.
    clock((!pid << 3) | 2)
}

fn clock(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes `time`, a live local.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return None;
    }
    Some(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

/// The process that a thread belongs to.
pub fn process_of(tid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|l| l.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// The user that decides which files this process may open.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The user that decides which files a process may open.
pub fn user_of(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    // Real, effective, saved, and that of files.
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_ascii_whitespace().nth(3)?.parse().ok()
}

/// (Whether a loader was mapped, whether the image is in secure-execution mode) from the auxiliary vector.
pub fn auxiliary(pid: i32) -> (bool, bool) {
    const AT_BASE: u64 = 7;
    const AT_SECURE: u64 = 23;
    let bytes = proc_files::auxiliary(Path::new(&format!("/proc/{pid}/auxv"))).unwrap_or_default();
    let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|b| u64::from_ne_bytes(*b)).collect();
    let value = |tag| words.as_chunks::<2>().0.iter().find(|[t, _]| *t == tag).map_or(0, |[_, v]| *v);
    (value(AT_BASE) != 0, value(AT_SECURE) != 0)
}

/// A variable of a process's environment; `name` ends with `=`.
pub fn environment_of(pid: i32, name: &[u8]) -> Option<OsString> {
    let bytes = proc_files::strings(Path::new(&format!("/proc/{pid}/environ")))?;
    let value = bytes.split(|&b| b == 0).find_map(|entry| entry.strip_prefix(name))?;
    Some(OsStr::from_bytes(value).to_owned())
}
