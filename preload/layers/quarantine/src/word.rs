//! The thread-local word by which the quarantine knows a thread: where its blocks are.

use heaptoll_layer_core::quarantine::thread::Thread;
use heaptoll_runtime::thread_word;

thread_word! {
    /// The address of the calling thread's blocks; 0 in a new thread.
    WORD: "heaptoll_quarantine_thread"
}

/// The calling thread's blocks; null in a new thread.
#[inline(always)]
pub fn get() -> *const Thread {
    WORD::get() as *const Thread
}

/// Changes the calling thread's word.
#[inline(always)]
pub fn set(word: *const Thread) {
    WORD::set(word as usize);
}
