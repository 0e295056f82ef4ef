//! The ring of one process image: a file that the tracer writes and this module reads.
//!
//! Layout in bytes, little-endian, the same as in `tracer/ring.h`: a header of 4096, then blocks of words. The producer
//! may write into block `published` while fewer blocks than the ring has wait to be consumed; the consumer zeroes a
//! block before it counts it as consumed, so that in a ring whose producer has died block `published` holds what was
//! written last, followed by zeroes.
//!
//! The words may be corrupted, since every process of the same user may write to the file. So the geometry is read once
//! and compared with the file's length, and words are copied before they are decoded: what was checked cannot change.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// First eight bytes of a ring that is ready.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HTREFS01");
/// Version of the layout and of the words: another kind of event makes another version.
pub const VERSION: u64 = 3;
/// Bytes before the first block.
pub const HEADER: usize = 4096;
/// Most words of a block that are accepted, 32 times the tracer's own: as many are copied.
const MOST_WORDS: u64 = 1 << 20;

/// Offsets of the header's fields.
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
    /// Blocks published, by the producer.
    pub const PUBLISHED: usize = 64;
    /// Blocks consumed, by the consumer.
    pub const CONSUMED: usize = 128;
    /// Futex of the waiting producer.
    pub const PRODUCER_WAITS: usize = 192;
    /// Futex of the waiting consumer.
    pub const CONSUMER_WAITS: usize = 196;
    /// The producer's flags.
    pub const PRODUCER_FLAGS: usize = 256;
    /// The consumer's flags.
    pub const CONSUMER_FLAGS: usize = 264;
    /// Executable and arguments, each NUL-terminated, an empty one at the end.
    pub const COMMAND: usize = 512;
}

/// The producer's flag: it has recorded everything.
pub const ENDED: u64 = 1;
/// The producer's flag: it stopped recording because no consumer read the ring.
pub const GAVE_UP: u64 = 2;
/// The consumer's flag: the producer shall stop.
pub const STOP: u64 = 1;

/// The consumer's side of a ring.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    bytes: usize,
    words: usize,
    blocks: u64,
    consumed: u64,
    /// The block that is being decoded.
    copy: Vec<u64>,
    /// The image's process number.
    pub pid: i32,
    /// Its parent's.
    pub parent: i32,
    /// Executable and arguments.
    pub command: Vec<String>,
}

// SAFETY: `base` points into a mapping that this value alone owns and unmaps; other processes change it only through
// the shared file, and all access here is atomic.
unsafe impl Send for Ring {}

impl Ring {
    /// Opens a ring; `None` when its producer has not finished making it.
    ///
    /// # Errors
    /// The file cannot be mapped, or is a ring of another version.
    pub fn open(path: &Path) -> io::Result<Option<Ring>> {
        let file = File::options().read(true).write(true).open(path)?;
        let length = file.metadata()?.len();
        // A ring for which there was no space is a hole, and to touch a mapped hole of a full folder is a fault.
        let mut magic = [0; 8];
        if length < HEADER as u64 || file.read_at(&mut magic, 0)? < magic.len() || magic == [0; 8] {
            return Ok(None);
        }
        let bytes = usize::try_from(length).map_err(io::Error::other)?;
        // SAFETY: a new shared mapping at an address of the kernel's choice; `file` is open and at least `bytes` long.
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
        // SAFETY: `at` is a multiple of 8 below `HEADER` (asserted above): callers pass constants of [`at`], or step from
        // one to `HEADER`. `open` has mapped as many bytes and `drop` unmaps them; all access is atomic.
        unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU64>() }
    }

    fn half(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at.is_multiple_of(4) && at < HEADER);
        // SAFETY: `at` is a multiple of 4 below `HEADER` (asserted above): callers pass constants of [`at`]. `open` has
        // mapped as many bytes and `drop` unmaps them; all access is atomic.
        unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU32>() }
    }

    fn block(&self, number: u64) -> &[AtomicU64] {
        let index = (number % self.blocks) as usize;
        // SAFETY: `open` has checked that all blocks lie in the mapping, which lasts as long as `self`; the header and
        // each block are whole words, so `first` is aligned; the words are atomics, which other processes may write.
        unsafe {
            let first = self.base.as_ptr().add(HEADER + index * self.words * 8);
            std::slice::from_raw_parts(first.cast(), self.words)
        }
    }

    /// Copies the next block, so that it does not change while it is decoded.
    fn copy(&mut self) {
        let mut copy = std::mem::take(&mut self.copy);
        copy.clear();
        copy.extend(self.block(self.consumed).iter().map(|word| word.load(Ordering::Relaxed)));
        self.copy = copy;
    }

    /// Number of blocks that wait to be consumed.
    pub fn waiting(&self) -> u64 {
        // A corrupted counter cannot make us read outside of the ring.
        self.word(at::PUBLISHED).load(Ordering::Acquire).saturating_sub(self.consumed).min(self.blocks)
    }

    /// Number of blocks consumed so far.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Consumes the next block, if there is one: `consume` gets its words.
    pub fn take<R>(&mut self, consume: impl FnOnce(&[u64]) -> R) -> Option<R> {
        if self.waiting() == 0 {
            return None;
        }
        self.copy();
        for word in self.block(self.consumed) {
            word.store(0, Ordering::Relaxed);
        }
        let result = consume(&self.copy);
        self.consumed += 1;
        self.word(at::CONSUMED).store(self.consumed, Ordering::Release);
        self.half(at::PRODUCER_WAITS).fetch_add(1, Ordering::AcqRel);
        futex(self.half(at::PRODUCER_WAITS), libc::FUTEX_WAKE, i32::MAX as u32, None);
        Some(result)
    }

    /// What the producer has written after the last block that it published, followed by zeroes. For a producer that
    /// has exited, when all blocks were consumed.
    pub fn rest<R>(&mut self, consume: impl FnOnce(&[u64]) -> R) -> R {
        self.copy();
        consume(&self.copy)
    }

    /// Waits until a block may be there, no longer than `timeout`.
    pub fn wait(&self, timeout: Duration) {
        let word = self.half(at::CONSUMER_WAITS);
        let seen = word.load(Ordering::Acquire);
        if self.waiting() == 0 {
            futex(word, libc::FUTEX_WAIT, seen, Some(timeout));
        }
    }

    /// Requests that the producer stop writing.
    pub fn stop_producer(&self) {
        self.word(at::CONSUMER_FLAGS).fetch_or(STOP, Ordering::AcqRel);
        self.half(at::PRODUCER_WAITS).fetch_add(1, Ordering::AcqRel);
        futex(self.half(at::PRODUCER_WAITS), libc::FUTEX_WAKE, i32::MAX as u32, None);
    }

    /// The producer's flags: [`ENDED`], [`GAVE_UP`].
    pub fn producer_flags(&self) -> u64 {
        self.word(at::PRODUCER_FLAGS).load(Ordering::Acquire)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: `open` has made this mapping of this length; `&mut self` excludes borrows of it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// A futex between processes. It may fail, or wake without reason: callers test their condition in a loop.
pub(crate) fn futex(word: &AtomicU32, operation: i32, value: u32, timeout: Option<Duration>) {
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word is borrowed, so it is mapped and aligned; the limit is null or points to a timespec that lives until
    // after the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, limit) };
}

#[cfg(test)]
mod tests;
