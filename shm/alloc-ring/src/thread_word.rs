//! The thread-local word by which a thread finds the state through which it writes.

/// A thread-local word that is 0 in each new thread. The layer makes one in the model "initial exec".
pub trait ThreadWord {
    /// The calling thread's word.
    fn get() -> usize;
    /// Changes the calling thread's word.
    fn set(word: usize);
}

/// The values of a thread's word besides 0, a new thread.
pub(crate) mod mark {
    /// The thread has a state of its own, whose address is the rest.
    pub const OWN: usize = 1;
    /// It is registering, or about to find that it cannot.
    pub const REGISTERING: usize = 2;
    /// It shares a ring: bits 8-29 the kernel's number, 30-55 the index, 56-63 the low byte of the image's
    /// number.
    pub const SHARED: usize = 4;
    /// There was no ring for it, not even a shared one: bits 56-63 the low byte of the image's number.
    pub const LEFT_OUT: usize = 8;

    const TID: usize = (1 << 22) - 1;
    const THREAD: usize = (1 << 26) - 1;

    pub fn shared(thread: u32, tid: u32, image: u32) -> usize {
        let word =
            (image as usize) << 56 | (thread as usize & THREAD) << 30 | (tid as usize & TID) << 8 | SHARED;
        heaptoll_assertions::assert_internal!(
            is_shared(word) && self::tid(word) == tid & TID as u32 && self::image(word) == image as u8,
            "a mark states what it was made of"
        );
        word
    }

    pub fn left_out(image: u32) -> usize {
        (image as usize) << 56 | LEFT_OUT
    }

    pub fn is_shared(word: usize) -> bool {
        word & (OWN | SHARED) == SHARED
    }

    pub fn is_left_out(word: usize) -> bool {
        word & (OWN | LEFT_OUT) == LEFT_OUT
    }

    pub fn tid(word: usize) -> u32 {
        (word >> 8 & TID) as u32
    }

    pub fn thread(word: usize) -> u32 {
        (word >> 30 & THREAD) as u32
    }

    pub fn image(word: usize) -> u8 {
        (word >> 56) as u8
    }
}
