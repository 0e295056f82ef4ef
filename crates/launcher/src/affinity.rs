//! The processors that a thread may run on.

/// A set of one processor, by the kernel's number; for a number outside the set's range the empty set, which the kernel
/// rejects.
pub fn only(cpu: u32) -> libc::cpu_set_t {
    // SAFETY: all zeroes is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if (cpu as usize) < 8 * size_of::<libc::cpu_set_t>() {
        // SAFETY: `cpu` is less than the number of bits in `set`: checked one line above.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    }
    set
}

/// The processors that this thread may use, in order.
///
/// # Errors
/// The system's, of `sched_getaffinity`.
pub fn allowed() -> std::io::Result<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    let held = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    Ok(held.filter_map(|cpu| u32::try_from(cpu).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_pinned_may_use_that_processor_only() {
        let last = *allowed().expect("it is known").last().expect("one at least");
        std::thread::spawn(move || {
            let set = only(last);
            // SAFETY: `set` is a whole cpu_set_t on this stack, of the size passed.
            assert_eq!(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) }, 0);
            assert_eq!(allowed().expect("it is known"), [last]);
            let none = only(u32::MAX);
            // SAFETY: `none` is a whole cpu_set_t on this stack, of the size passed.
            assert_ne!(unsafe { libc::sched_setaffinity(0, size_of_val(&none), &none) }, 0, "no processor");
        })
        .join()
        .expect("the thread ends well");
    }
}
