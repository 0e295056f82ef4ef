//! A producer of rings, for tests: it follows the tracer's protocol, in a thread or a child process.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use heaptoll_reftrace::word::EventKind;

use crate::ring::{self, at};

/// Writes a ring.
pub struct Producer {
    base: *mut u8,
    bytes: usize,
    words: usize,
    blocks: u64,
    published: u64,
    filled: usize,
    pub path: PathBuf,
}

// SAFETY: `base` points into a mapping that this value alone owns and unmaps; both sides access it atomically.
unsafe impl Send for Producer {}

impl Producer {
    /// A ring of a process with the number `pid`.
    pub fn create(folder: &Path, (pid, parent): (i32, i32), (words, blocks): (usize, u64)) -> Producer {
        let path = (0..)
            .map(|number| folder.join(format!("{pid}.{number}")))
            .find(|path| !path.exists())
            .expect("a free name");
        let file = File::options().read(true).write(true).create_new(true).open(&path).expect("creates");
        let bytes = ring::HEADER + words * blocks as usize * 8;
        file.set_len(bytes as u64).expect("sizes");
        // SAFETY: a new shared mapping at an address of the kernel's choice, of a file of this length.
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
        assert_ne!(base, libc::MAP_FAILED);
        let made = Producer { base: base.cast(), bytes, words, blocks, published: 0, filled: 0, path };
        for (place, value) in [
            (at::VERSION, ring::VERSION),
            (at::PID, pid as u64),
            (at::PARENT, parent as u64),
            (at::WORDS, words as u64),
            (at::BLOCKS, blocks),
        ] {
            made.header(place).store(value, Ordering::Relaxed);
        }
        made.command(&[b"/bin/true", b"-x", b""]);
        made.header(at::MAGIC).store(ring::MAGIC, Ordering::Release);
        made
    }

    pub fn header(&self, at: usize) -> &AtomicU64 {
        // SAFETY: callers pass a constant of `at`, aligned and inside the header, which is mapped as long as `self`
        // lives.
        unsafe { &*self.base.add(at).cast::<AtomicU64>() }
    }

    pub fn command(&self, words: &[&[u8]]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| [word, b"\0".as_slice()].concat()).collect();
        let length = bytes.len().min(ring::HEADER - at::COMMAND);
        // SAFETY: `length` ends at the header's end, which is mapped; tests read the command on the thread that writes it.
        unsafe { self.base.add(at::COMMAND).copy_from(bytes.as_ptr(), length) };
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        let block = (self.published % self.blocks) as usize;
        assert!(index < self.words);
        // SAFETY: `index` is inside the block (asserted above), which is mapped and aligned.
        unsafe { &*self.base.add(ring::HEADER + (block * self.words + index) * 8).cast::<AtomicU64>() }
    }

    /// Whether there is a block to write into; waits for one. False when the consumer has stopped this producer.
    fn wait_for_block(&self) -> bool {
        let begun = Instant::now();
        loop {
            if self.header(at::CONSUMER_FLAGS).load(Ordering::Acquire) & ring::STOP != 0 {
                return false;
            }
            if self.published - self.header(at::CONSUMED).load(Ordering::Acquire) < self.blocks {
                return true;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "the consumer hangs");
            std::thread::yield_now();
        }
    }

    /// Writes the words of one event; false when the consumer has stopped this producer.
    pub fn write(&mut self, event: &[u64]) -> bool {
        assert!(!event.is_empty() && event.len() <= self.words);
        if self.filled + event.len() > self.words {
            self.publish();
        }
        if !self.wait_for_block() {
            return false;
        }
        // The first word last, so that a reader that finds it finds the others.
        for (index, &word) in event.iter().enumerate().rev() {
            self.word(self.filled + index).store(word, Ordering::Release);
        }
        self.filled += event.len();
        true
    }

    /// Publishes the block, however full it is.
    pub fn publish(&mut self) {
        self.published += 1;
        self.filled = 0;
        self.header(at::PUBLISHED).store(self.published, Ordering::Release);
        // SAFETY: the field is aligned and inside the header, which is mapped as long as `self` lives.
        let waits = unsafe { &*self.base.add(at::CONSUMER_WAITS).cast::<AtomicU32>() };
        waits.fetch_add(1, Ordering::AcqRel);
        ring::futex(waits, libc::FUTEX_WAKE, 1, None);
    }

    /// An event with a clock.
    pub fn clocked(&mut self, kind: EventKind, payload: u64, instructions: u64, more: &[u64]) -> bool {
        let mut words = vec![kind.word(payload), instructions, 0];
        words.extend_from_slice(more);
        self.write(&words)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        // SAFETY: `create` has made this mapping of this length; `&mut self` excludes borrows of it.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}
