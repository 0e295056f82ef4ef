//! The system's threads that a replay runs, and their memory: stack and buffer, used again by the next.

use std::ffi::c_void;
use std::io;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::area::{Area, no_memory};
use super::locked::locked;

/// What a thread's stack may grow to. Managers' calls are shallow; a collector's are not, but it marks on a stack of
/// its own.
const STACK: usize = 1 << 20;
/// Of it, what is resident from the beginning: the C library's thread block and what calls use.
const STACK_RESIDENT: usize = 32 << 10;

/// Where a thread begins.
pub type Entry = extern "C" fn(*mut c_void) -> *mut c_void;

/// Stack and buffer of a thread.
#[derive(Clone, Copy)]
pub struct ThreadMemory {
    stack: Area,
    pub words: Area,
}

struct Running {
    thread: libc::pthread_t,
    thread_memory: ThreadMemory,
}

/// All threads but the process's own first.
pub struct Threads {
    running: Mutex<Vec<Option<Running>>>,
    /// Threads that are done and not joined yet.
    done: Mutex<Vec<usize>>,
    free_memory: Mutex<Vec<ThreadMemory>>,
    joined: AtomicU64,
}

impl Threads {
    pub fn new(count: usize) -> Threads {
        Threads {
            running: Mutex::new((0..count).map(|_| None).collect()),
            done: Mutex::new(Vec::with_capacity(count)),
            free_memory: Mutex::new(Vec::with_capacity(count)),
            joined: AtomicU64::new(0),
        }
    }

    /// How many have been joined in this repetition.
    pub fn joined(&self) -> u64 {
        self.joined.load(Ordering::Relaxed)
    }

    /// Begins a repetition.
    pub fn reset(&self) {
        self.joined.store(0, Ordering::Relaxed);
    }

    /// Memory for a thread with a buffer of `words` words: one that an earlier thread has left, or a new one.
    pub fn memory(&self, words: usize) -> Result<ThreadMemory, String> {
        self.join_done();
        let mut free = locked(&self.free_memory);
        if let Some(fits) = free.iter().position(|thread_memory| thread_memory.words.bytes() >= words * 8) {
            return Ok(free.swap_remove(fits));
        }
        drop(free);
        let stack = Area::new(STACK, STACK_RESIDENT).map_err(no_memory)?;
        Ok(ThreadMemory { stack, words: Area::table::<u64>(words).map_err(no_memory)? })
    }

    /// Starts thread `number` of the trace.
    ///
    /// # Safety
    /// Another thread may run `entry` with `argument`; it does so once, unless this fails.
    pub unsafe fn start(
        &self,
        number: usize,
        thread_memory: ThreadMemory,
        entry: Entry,
        argument: *mut c_void,
    ) -> Result<(), String> {
        let mut thread = 0;
        // The table is held until the thread is in it, so that it can be joined however soon it is done.
        let mut running = locked(&self.running);
        // SAFETY: attributes are initialised before use; the stack is in `thread_memory`, which is used again only
        // after the thread was joined (`join`); the caller guarantees that the thread may run `entry`.
        let status = unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            libc::pthread_attr_init(&mut attributes);
            libc::pthread_attr_setstack(
                &mut attributes,
                thread_memory.stack.start().cast(),
                thread_memory.stack.bytes(),
            );
            let status = libc::pthread_create(&mut thread, &attributes, entry, argument);
            libc::pthread_attr_destroy(&mut attributes);
            status
        };
        if status != 0 {
            let why = io::Error::from_raw_os_error(status);
            return Err(format!("cannot start thread {number} of the trace: {why}; see ulimit -u"));
        }
        running[number] = Some(Running { thread, thread_memory });
        Ok(())
    }

    /// A thread has nothing left to do but to return.
    pub fn done(&self, number: usize) {
        locked(&self.done).push(number);
    }

    fn join(&self, number: usize) {
        let running = locked(&self.running)[number].take();
        if let Some(Running { thread, thread_memory }) = running {
            // SAFETY: `start` made the thread joinable, and `take` hands it out once.
            unsafe { libc::pthread_join(thread, ptr::null_mut()) };
            self.joined.fetch_add(1, Ordering::Relaxed);
            locked(&self.free_memory).push(thread_memory);
        }
    }

    /// Waits for those that are done.
    pub fn join_done(&self) {
        loop {
            let Some(number) = locked(&self.done).pop() else { return };
            self.join(number);
        }
    }

    /// Waits for all. A thread is joined before those that it started, so that none is missed.
    pub fn join_all(&self) {
        while let Some(number) = {
            let running = locked(&self.running);
            running.iter().position(Option::is_some)
        } {
            self.join(number);
        }
        locked(&self.done).clear();
    }
}
