//! The hook at a thread's end, by which a manager with caches per thread gets an ending thread's cache back.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

use heaptoll_assertions::assert_internal;

/// No key made yet.
const NONE: u32 = u32::MAX;

/// The system has no more keys for thread-specific data (`PTHREAD_KEYS_MAX`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoKeys;

/// A hook at the end of each thread that armed it: a key of thread-specific data, whose destructors glibc calls.
///
/// Destructors of other keys come before and after, and may allocate and free; after the last the C library itself
/// frees. So the hook releases the thread's cache, and replaces it by a mark that makes later calls of this thread do
/// without. A manager that makes a new cache instead arms the hook again, and is called again: the C library makes
/// [`ThreadEnd::ROUNDS`] rounds in all, and what is armed in the last of them is lost.
#[derive(Debug)]
pub struct ThreadEnd {
    key: AtomicU32,
    ended: unsafe extern "C" fn(*mut c_void),
}

impl ThreadEnd {
    /// How often the C library checks for armed hooks at a thread's end.
    pub const ROUNDS: usize = 4;

    /// A hook; `ended` is called on the ending thread with what it was armed with.
    pub const fn new(ended: unsafe extern "C" fn(*mut c_void)) -> ThreadEnd {
        ThreadEnd { key: AtomicU32::new(NONE), ended }
    }

    /// Makes the key. Called once, at start: the hook can be armed only from then on.
    ///
    /// # Errors
    /// [`NoKeys`] when the program has taken all of them.
    pub fn prepare(&self) -> Result<(), NoKeys> {
        let mut key = 0;
        // SAFETY: a valid place for the key, and a function that lives as long as the process.
        if unsafe { libc::pthread_key_create(&mut key, Some(self.ended)) } != 0 {
            return Err(NoKeys);
        }
        assert_internal!(key != NONE, "a key of thread-specific data is a number that none is known by");
        assert_internal!(
            self.key.load(Ordering::Relaxed) == NONE,
            "the key for the ends of threads is made once"
        );
        self.key.store(key, Ordering::Release);
        Ok(())
    }

    /// Arms the hook: it is called at the end of the calling thread, with `word`, which is not null. False before
    /// [`ThreadEnd::prepare`] and when the C library has no memory to record it.
    ///
    /// The C library keeps the first 32 keys' words in the thread itself and allocates for others: by malloc, so a
    /// manager must be able to serve this thread already when it arms.
    #[must_use]
    pub fn arm(&self, word: *mut c_void) -> bool {
        assert_internal!(!word.is_null(), "the hook of a thread's end is armed with a word");
        self.set(word)
    }

    fn set(&self, word: *mut c_void) -> bool {
        match self.key.load(Ordering::Acquire) {
            NONE => false,
            // SAFETY: the key was made by `prepare` and is never given back.
            key => unsafe { libc::pthread_setspecific(key, word) == 0 },
        }
    }
}
