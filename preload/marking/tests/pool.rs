//! The pool of `src/pool.rs` under loom: every order in which markers may give, take and wait. Each ends, and what was
//! given is taken once.

use loom::sync::Arc;
use loom::sync::atomic::Ordering;

#[path = "../src/pool.rs"]
#[allow(dead_code)]
mod pool;

/// In place of the library's own: the same names over loom's model of them.
mod sync {
    pub use loom::sync::atomic::AtomicUsize;
    use loom::sync::{Condvar, Mutex};

    pub struct Exclusive<T>(Mutex<T>);

    impl<T> Exclusive<T> {
        pub fn new(value: T) -> Exclusive<T> {
            Exclusive(Mutex::new(value))
        }

        pub fn locked<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
            action(&mut self.0.lock().expect("no panic"))
        }
    }

    /// `wake` alone wakes a waiting thread, so that a forgotten one is found.
    pub struct WakeUps(Mutex<u32>, Condvar);

    impl WakeUps {
        pub fn new() -> WakeUps {
            WakeUps(Mutex::new(0), Condvar::new())
        }

        pub fn count(&self) -> u32 {
            *self.0.lock().expect("no panic")
        }

        pub fn increment(&self) {
            *self.0.lock().expect("no panic") += 1;
        }

        pub fn wait(&self, known: u32) {
            let count = self.0.lock().expect("no panic");
            if *count == known {
                drop(self.1.wait(count).expect("no panic"));
            }
        }

        pub fn wake(&self, count: u32) {
            // As futex does: a thread that read the count before is asleep by now.
            let _count = self.0.lock().expect("no panic");
            for _ in 0..count.min(4) {
                self.1.notify_one();
            }
        }
    }
}

use pool::Pool;
use sync::AtomicUsize;

/// What a marker does: each entry n stands for a block that leads to n - 1 others, as numbers below it.
fn work(pool: &Pool<u32>, mut stack: Vec<u32>, done: &AtomicUsize, capacity: usize) {
    loop {
        while let Some(entry) = stack.pop() {
            done.fetch_add(1, Ordering::Relaxed);
            for next in 1..entry {
                stack.push(next);
            }
            if pool.is_wanted() && stack.len() >= 2 {
                let half = stack.len() / 2;
                let given = pool.give(&stack[..half]);
                assert!(given <= half.min(capacity));
                stack.drain(..given);
            }
        }
        let mut entries = [0; 2];
        let taken = pool.take(&mut entries);
        if taken == 0 {
            return;
        }
        stack.extend(&entries[..taken]);
    }
}

/// Blocks that an entry leads to, itself included: 2^(n-1).
fn blocks(entry: u32) -> usize {
    1 << (entry - 1)
}

fn model(helpers: usize, entry: u32, capacity: usize, preemptions: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let memory: &'static mut [u32] = Box::leak(vec![0; capacity].into_boxed_slice());
        let address = memory.as_mut_ptr();
        // SAFETY: memory that is never given back.
        let pool = Arc::new(unsafe { Pool::new(address, capacity) });
        let done = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..helpers)
            .map(|_| {
                pool.join();
                let (pool, done) = (pool.clone(), done.clone());
                loom::thread::spawn(move || work(&pool, Vec::new(), &done, capacity))
            })
            .collect();
        work(&pool, vec![entry], &done, capacity);
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(done.load(Ordering::Relaxed), blocks(entry), "everything is done once");
        // SAFETY: leaked above, and no thread uses it any more.
        drop(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(address, capacity)) });
    });
}

#[test]
fn two_markers_share_and_end() {
    model(1, 4, 4, 3);
}

#[test]
fn three_markers_share_and_end() {
    model(2, 3, 4, 2);
}

#[test]
fn a_full_pool_returns_what_it_does_not_take() {
    model(1, 4, 1, 3);
}

#[test]
fn a_marker_that_could_not_be_started_is_not_waited_for() {
    loom::model(|| {
        let mut memory = [0_u32; 2];
        // SAFETY: memory that outlives the pool.
        let pool = unsafe { Pool::new(memory.as_mut_ptr(), 2) };
        pool.join();
        pool.leave();
        assert_eq!(pool.take(&mut [0; 2]), 0);
    });
}
