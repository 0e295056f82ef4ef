//! fork: all locks are taken before and released after, so that the child's heap is consistent. The child closes the
//! caches of the threads that fork did not copy.

use heaptoll_assertions::assert_sound;

use crate::cache::Cache;
use crate::heap::Heap;

impl Heap {
    /// fork's prepare handler.
    pub fn before_fork(&self) {
        self.collector.before_fork();
        self.spans_by_class.iter().for_each(|spans| spans.before_fork());
        self.units.before_fork();
        self.caches.before_fork();
    }

    /// fork's handler in the parent.
    pub fn after_fork(&self) {
        self.caches.after_fork();
        self.units.after_fork();
        self.spans_by_class.iter().for_each(|spans| spans.after_fork());
        self.collector.after_fork();
    }

    /// fork's handler in the child, whose thread has this cache.
    ///
    /// # Safety
    /// `own` is the calling thread's cache.
    pub unsafe fn after_fork_in_child(&self, own: *mut Cache) {
        self.caches.after_fork_in_child();
        self.units.after_fork_in_child();
        self.spans_by_class.iter().for_each(|spans| spans.after_fork_in_child());
        self.collector.after_fork_in_child();
        // Where the lock is held the collection ends abandoned, and no later one relies on what it has recorded: the tracker
        // knows its process. A collection in increments goes on: all pages count as written in its next pass.
        if let Some(mut collector) = self.collector.try_lock() {
            collector.generations.after_fork_in_child();
            // The child's clock begins at 0: until it has collected, elapsed time counts.
            collector.ended_cpu_ns = u64::MAX;
        }
        self.reporter.after_fork_in_child();
        // The lock is held if a signal handler forked that interrupted this thread inside it.
        if let Some(units) = self.units.try_lock() {
            self.report_used(&units);
        }
        // SAFETY: fork has copied only the calling thread, whose cache `own` is.
        unsafe { self.close_other_caches(own) };
        assert_sound!(self.check_if_free());
    }

    /// As [`Heap::check`], unless this thread's fork interrupted a change of the heap.
    fn check_if_free(&self) -> Result<(), heaptoll_runtime::Damage> {
        let is_free = self.units.try_lock().is_some()
            && self.caches.try_lock().is_some()
            && self.spans_by_class.iter().all(|spans| spans.try_lock().is_some());
        if is_free { self.check() } else { Ok(()) }
    }
}
