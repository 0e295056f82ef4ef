//! The ring of one process image: a file that the tracer writes and that is emptied here.
//!
//! Layout in bytes, little-endian, the same as in `tracer/ring.h`: a header of 4096, then blocks of words. The producer
//! may write into block `published` while fewer blocks than there are wait to be consumed; the consumer zeroes a block
//! before it counts it as consumed, so that in a ring whose producer has died block `published` holds what was written
//! last, and zeroes behind it.
//!
//! A producer may have run wild, and every process of its user's may write to its file. So the geometry is read once and
//! compared with the file's length, and words are copied before they are looked at: what was tested stays as it was.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// First eight bytes of a ring that is ready.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HTREFS01");
/// Version of the layout and of the words: a kind of event more is another.
pub const VERSION: u64 = 2;
/// Bytes before the first block.
pub const HEADER: usize = 4096;
/// Most words of a block that are believed, the tracer's own times 32: as many are copied.
const MOST_WORDS: u64 = 1 << 20;

/// Where the header has what.
pub mod at {
    /// [`super::MAGIC`], written last.
    pub const MAGIC: usize = 0;
    /// [`super::VERSION`].
    pub const VERSION: usize = 8;
    /// Process number.
    pub const PID: usize = 16;
    /// The parent's.
    pub const PARENT: usize = 24;
    /// Words a block.
    pub const WORDS: usize = 32;
    /// Blocks.
    pub const BLOCKS: usize = 40;
    /// Blocks given, by the producer.
    pub const PUBLISHED: usize = 64;
    /// Blocks taken, by the consumer.
    pub const CONSUMED: usize = 128;
    /// The producer waits here.
    pub const PRODUCER_WAITS: usize = 192;
    /// The consumer waits here.
    pub const CONSUMER_WAITS: usize = 196;
    /// The producer's flags.
    pub const SAID: usize = 256;
    /// The consumer's flags.
    pub const ASKED: usize = 264;
    /// Executable and arguments, each NUL-terminated, an empty one at the end.
    pub const COMMAND: usize = 512;
}

/// The producer's flag: it has told everything.
pub const ENDED: u64 = 1;
/// The producer's flag: it stopped telling because nobody listened.
pub const GAVE_UP: u64 = 2;
/// The consumer's flag: it wants no more.
pub const NO_MORE: u64 = 1;

/// The consumer's side of a ring.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    bytes: usize,
    words: usize,
    blocks: u64,
    consumed: u64,
    /// The block that is looked at.
    copy: Vec<u64>,
    /// The image's process number.
    pub pid: i32,
    /// Its parent's.
    pub parent: i32,
    /// Executable and arguments.
    pub command: Vec<String>,
}

// SAFETY: the mapping belongs to this value alone, wherever it is; what others change in it are atomics, and blocks
// under the protocol above.
unsafe impl Send for Ring {}

impl Ring {
    /// Opens a ring; `None` when its producer has not finished making it.
    ///
    /// # Errors
    /// The file cannot be mapped, or is a ring of another version.
    pub fn open(path: &Path) -> io::Result<Option<Ring>> {
        let file = File::options().read(true).write(true).open(path)?;
        let length = file.metadata()?.len();
        if length < HEADER as u64 {
            return Ok(None);
        }
        let bytes = usize::try_from(length).map_err(io::Error::other)?;
        // SAFETY: a new shared mapping of a file that is at least as long.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        let base = match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => base,
            _ => return Err(io::Error::last_os_error()),
        };
        let mut ring = Ring {
            base,
            bytes,
            words: 0,
            blocks: 0,
            consumed: 0,
            copy: Vec::new(),
            pid: 0,
            parent: 0,
            command: Vec::new(),
        };
        if ring.word(at::MAGIC).load(Ordering::Acquire) != MAGIC {
            return Ok(None);
        }
        let get = |at: usize| ring.word(at).load(Ordering::Relaxed);
        let (version, words, blocks) = (get(at::VERSION), get(at::WORDS), get(at::BLOCKS));
        let (pid, parent, consumed) = (get(at::PID), get(at::PARENT), get(at::CONSUMED));
        let whole = || blocks.checked_mul(words)?.checked_mul(8)?.checked_add(HEADER as u64);
        let sound = (1..=MOST_WORDS).contains(&words) && blocks > 0;
        if version != VERSION || !sound || whole().is_none_or(|whole| whole > length) {
            return Err(io::Error::other(format!(
                "a ring of version {version} with {blocks} blocks of {words} words in {length} bytes; \
                 the tracer is of another heaptoll: run `make build` again"
            )));
        }
        let number = |value: u64| i32::try_from(value).map_err(io::Error::other);
        (ring.pid, ring.parent) = (number(pid)?, number(parent)?);
        (ring.consumed, ring.blocks) = (consumed, blocks);
        ring.words = usize::try_from(words).map_err(io::Error::other)?;
        ring.command = ring.read_command();
        Ok(Some(ring))
    }

    fn read_command(&self) -> Vec<String> {
        let places = (at::COMMAND..HEADER).step_by(8);
        let bytes: Vec<u8> =
            places.flat_map(|at| self.word(at).load(Ordering::Relaxed).to_ne_bytes()).collect();
        let mut words = Vec::new();
        let mut rest = &bytes[..];
        while let Ok(word) = CStr::from_bytes_until_nul(rest) {
            if word.is_empty() && !words.is_empty() && rest.get(1).is_none_or(|&next| next == 0) {
                break;
            }
            words.push(word.to_string_lossy().into_owned());
            rest = &rest[word.count_bytes() + 1..];
            if rest.is_empty() {
                break;
            }
        }
        words
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at.is_multiple_of(8) && at < HEADER);
        // SAFETY: aligned, inside the header, which is mapped as long as `self` lives; both sides use it as an atomic.
        unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU64>() }
    }

    fn half(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at.is_multiple_of(4) && at < HEADER);
        // SAFETY: as in `word`.
        unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU32>() }
    }

    fn block(&self, number: u64) -> &[AtomicU64] {
        let index = (number % self.blocks) as usize;
        // SAFETY: `open` has checked that all blocks lie in the mapping, which is there as long as `self`; the header and
        // each block are whole words; atomics may be written to by anybody.
        unsafe {
            let first = self.base.as_ptr().add(HEADER + index * self.words * 8);
            std::slice::from_raw_parts(first.cast(), self.words)
        }
    }

    /// Copies the block that is next, so that nobody changes it while it is looked at.
    fn copy(&mut self) {
        let mut copy = std::mem::take(&mut self.copy);
        copy.clear();
        copy.extend(self.block(self.consumed).iter().map(|word| word.load(Ordering::Relaxed)));
        self.copy = copy;
    }

    /// Blocks that wait to be taken.
    pub fn waiting(&self) -> u64 {
        // A producer gone mad cannot make us read what is not there.
        self.word(at::PUBLISHED).load(Ordering::Acquire).saturating_sub(self.consumed).min(self.blocks)
    }

    /// Blocks taken so far.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Takes the next block, if there is one: `hear` gets its words.
    pub fn take<R>(&mut self, hear: impl FnOnce(&[u64]) -> R) -> Option<R> {
        if self.waiting() == 0 {
            return None;
        }
        self.copy();
        for word in self.block(self.consumed) {
            word.store(0, Ordering::Relaxed);
        }
        let result = hear(&self.copy);
        self.consumed += 1;
        self.word(at::CONSUMED).store(self.consumed, Ordering::Release);
        self.half(at::PRODUCER_WAITS).fetch_add(1, Ordering::AcqRel);
        futex(self.half(at::PRODUCER_WAITS), libc::FUTEX_WAKE, i32::MAX as u32, None);
        Some(result)
    }

    /// What the producer has written behind the last block that it published, with zeroes behind it. For a producer that
    /// is gone, when all blocks were taken.
    pub fn rest<R>(&mut self, hear: impl FnOnce(&[u64]) -> R) -> R {
        self.copy();
        hear(&self.copy)
    }

    /// Waits until a block may be there, no longer than `patience`.
    pub fn wait(&self, patience: Duration) {
        let word = self.half(at::CONSUMER_WAITS);
        let seen = word.load(Ordering::Acquire);
        if self.waiting() == 0 {
            futex(word, libc::FUTEX_WAIT, seen, Some(patience));
        }
    }

    /// Tells the producer that nobody listens any more.
    pub fn dismiss(&self) {
        self.word(at::ASKED).fetch_or(NO_MORE, Ordering::AcqRel);
        self.half(at::PRODUCER_WAITS).fetch_add(1, Ordering::AcqRel);
        futex(self.half(at::PRODUCER_WAITS), libc::FUTEX_WAKE, i32::MAX as u32, None);
    }

    /// The producer's flags: [`ENDED`], [`GAVE_UP`].
    pub fn said(&self) -> u64 {
        self.word(at::SAID).load(Ordering::Acquire)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: our own mapping of this length; nothing borrows from it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// A futex between processes. That it may fail, or wake without need, is the callers' loops' business.
pub(crate) fn futex(word: &AtomicU32, operation: i32, value: u32, patience: Option<Duration>) {
    let limit = patience.map(|patience| libc::timespec {
        tv_sec: patience.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(patience.subsec_nanos() as i32),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word is mapped and aligned, the limit null or a timespec that lives until after the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, limit) };
}

#[cfg(test)]
mod tests;
