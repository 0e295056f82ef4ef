//! The CPUs on which this thread, and processes that it starts, may run.

/// A set of CPUs.
pub struct Cpus(libc::cpu_set_t);

/// Restricts this thread to fewer CPUs until dropped.
pub struct Fewer<'a>(&'a Cpus);

/// The CPUs of this thread; `None` where the system does not report them.
pub fn own() -> Option<Cpus> {
    // SAFETY: zero is a valid `cpu_set_t`, a set of bits; `sched_getaffinity` writes at most the given size, that of
    // `set`.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (libc::sched_getaffinity(0, size_of_val(&set), &mut set) == 0).then_some(Cpus(set))
    }
}

impl Cpus {
    /// Restricts this thread to the `number`th of them, modulo their number. `None` where that fails.
    pub fn only(&self, number: usize) -> Option<Fewer<'_>> {
        // SAFETY: `cpu` is below the number of bits of the set: the range in the next line ends there.
        let allowed = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &self.0) };
        let all: Vec<usize> = (0..8 * size_of_val(&self.0)).filter(allowed).collect();
        let cpu = *all.get(number % all.len().max(1))?;
        // SAFETY: zero is a valid `cpu_set_t`, a set of bits; `cpu` is a bit of the set that the system returned.
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
    // SAFETY: `sched_setaffinity` reads as many bytes as given, the size of `cpus`.
    unsafe { libc::sched_setaffinity(0, size_of_val(cpus), cpus) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_its_cpus_back() {
        let count = |cpus: &Cpus| {
            // SAFETY: the set is borrowed and only read.
            unsafe { libc::CPU_COUNT(&cpus.0) }
        };
        let all = own().expect("the system reports it");
        let fewer = all.only(5).expect("there is one");
        assert_eq!(count(&own().expect("the system reports it")), 1);
        drop(fewer);
        assert_eq!(count(&own().expect("the system reports it")), count(&all));
    }
}
