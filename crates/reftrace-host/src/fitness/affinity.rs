//! The CPUs on which this thread, and processes that it starts, may run.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A set of CPUs.
pub struct Cpus(CpuSet);

/// Restricts this thread to fewer CPUs until dropped.
pub struct Fewer<'a>(&'a Cpus);

/// The CPUs of this thread; `None` where the system does not report them.
pub fn own() -> Option<Cpus> {
    sched_getaffinity(None).ok().map(Cpus)
}

impl Cpus {
    /// Restricts this thread to the `number`th of them, modulo their number. `None` where that fails.
    pub fn only(&self, number: usize) -> Option<Fewer<'_>> {
        let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| self.0.is_set(*cpu)).collect();
        let mut one = CpuSet::new();
        one.set(*all.get(number % all.len().max(1))?);
        sched_setaffinity(None, &one).ok()?;
        Some(Fewer(self))
    }
}

impl Drop for Fewer<'_> {
    fn drop(&mut self) {
        // The set is the thread's former one: refused only where its CPUs have been taken away meanwhile.
        let _ = sched_setaffinity(None, &self.0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_its_cpus_back() {
        let count = |cpus: &Cpus| cpus.0.count();
        let all = own().expect("the system reports it");
        let fewer = all.only(5).expect("there is one");
        assert_eq!(count(&own().expect("the system reports it")), 1);
        drop(fewer);
        assert_eq!(count(&own().expect("the system reports it")), count(&all));
    }
}
