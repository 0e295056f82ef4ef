//! Each thread's position in its chunks.

use heaptoll_runtime::thread_word;

/// Number of block sizes of which a thread takes a chunk at a time: those below the chunk's.
pub const CHUNK_CLASSES: usize = CURSORS::COUNT;

thread_word! {
    /// By size, the last block that the calling thread took from its chunk; 0: it has no chunk.
    pub CURSORS: "heaptoll_null_cursors"[16]
}
