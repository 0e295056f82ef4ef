//! The time slice that a process requests from the kernel's scheduler.
//!
//! From Linux 6.12 on, `sched_setattr` takes a slice of .1 to 100 ms for ordinary processes as well: it is how long a
//! process computes before another that waits for the same processor gets its turn. Children inherit it. Earlier kernels
//! accept the call and ignore the value, which reading it back shows.

use std::io;
use std::time::Duration;

/// The shortest and the longest slice that the kernel gives; it takes others for the nearer of the two.
pub const LIMITS: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(100));

/// Requests slices of `slice` for this thread and all that it starts from now on. Async-signal-safe.
///
/// # Errors
/// The kernel rejects it, or has no such attribute (`EOPNOTSUPP`).
pub fn set(slice: Duration) -> io::Result<()> {
    let mut attributes = get()?;
    attributes.sched_runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: `attributes` is a local as long as its `size` states, which the kernel reads; 0 is this thread.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    let (shortest, longest) = LIMITS;
    match own()? {
        Some(taken) if taken == slice.clamp(shortest, longest) => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
    }
}

/// Whether this kernel gives a thread a slice of its own: tries it on one that ends.
///
/// # Errors
/// As [`set`], or no thread can be started.
pub fn try_one(slice: Duration) -> io::Result<()> {
    let tried = std::thread::Builder::new().spawn(move || set(slice))?;
    tried.join().unwrap_or_else(|_| Err(io::Error::other("the thread that tried it died")))
}

/// The slice of this thread; `None` where the kernel has no such attribute.
///
/// # Errors
/// The kernel refuses.
pub fn own() -> io::Result<Option<Duration>> {
    let nanoseconds = get()?.sched_runtime;
    Ok((nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds)))
}

/// How this thread is scheduled.
fn get() -> io::Result<libc::sched_attr> {
    // SAFETY: all zeroes is a valid value of a structure of numbers.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0);
    // SAFETY: the kernel writes at most `size` bytes to the structure, which is so long; 0 is this thread.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if got == 0 { Ok(attributes) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_set_for_the_requesting_thread_only() {
        let before = own().expect("it is known");
        let inside = std::thread::spawn(|| (set(Duration::from_millis(20)), own().expect("it is known")));
        let (set, taken) = inside.join().expect("the thread ends well");
        // Before Linux 6.12 there is none to set, and the caller gets an error.
        match set {
            Ok(()) => assert_eq!(taken, Some(Duration::from_millis(20))),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP)),
        }
        assert_eq!(own().expect("it is known"), before);
        assert_eq!(try_one(Duration::from_millis(20)).is_ok(), taken == Some(Duration::from_millis(20)));
    }
}
