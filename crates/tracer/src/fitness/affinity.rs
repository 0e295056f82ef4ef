//! The CPUs that this thread, and what it starts, may run on.

/// A set of CPUs.
pub struct Cpus(libc::cpu_set_t);

/// This thread has fewer CPUs until this is dropped.
pub struct Fewer<'a>(&'a Cpus);

/// Those of this thread; `None` where the system does not tell.
pub fn own() -> Option<Cpus> {
    // SAFETY: a set of bits, for which zero is a value, and its own size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (libc::sched_getaffinity(0, size_of_val(&set), &mut set) == 0).then_some(Cpus(set))
    }
}

impl Cpus {
    /// Leaves this thread only the `number`th of them, counted round. `None` where that cannot be.
    pub fn only(&self, number: usize) -> Option<Fewer<'_>> {
        // SAFETY: below the number of bits of the set.
        let allowed = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &self.0) };
        let all: Vec<usize> = (0..8 * size_of_val(&self.0)).filter(allowed).collect();
        let cpu = *all.get(number % all.len().max(1))?;
        // SAFETY: a set of bits, for which zero is a value; the CPU is one of the set that the system gave.
        let one = unsafe {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut one);
            one
        };
        set(&one).then_some(Fewer(self))
    }
}

impl Drop for Fewer<'_> {
    fn drop(&mut self) {
        set(&self.0.0);
    }
}

fn set(cpus: &libc::cpu_set_t) -> bool {
    // SAFETY: the set is only read, and its own size.
    unsafe { libc::sched_setaffinity(0, size_of_val(cpus), cpus) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_its_cpus_back() {
        let count = |cpus: &Cpus| {
            // SAFETY: only read.
            unsafe { libc::CPU_COUNT(&cpus.0) }
        };
        let all = own().expect("the system tells");
        let fewer = all.only(5).expect("there is one");
        assert_eq!(count(&own().expect("the system tells")), 1);
        drop(fewer);
        assert_eq!(count(&own().expect("the system tells")), count(&all));
    }
}
