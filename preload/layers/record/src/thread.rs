//! The thread-local word by which the rings identify a thread.

use heaptoll_alloc_ring::ThreadWord;
use heaptoll_runtime::thread_word;

thread_word! {
    /// The calling thread's word; 0 in a new thread.
    pub Word: "heaptoll_record_thread"
}

impl ThreadWord for Word {
    #[inline(always)]
    fn get() -> usize {
        Word::get()
    }

    #[inline(always)]
    fn set(word: usize) {
        Word::set(word);
    }
}
