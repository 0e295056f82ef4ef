//! Words that only the kernel holds, where `/proc` shows them: the data of epoll's entries and the values of timers. With
//! them the values of signals that wait ([`crate::queued_values`]).
//!
//! To look for sets of epoll is costly in a process with many descriptors, so it is done only after one was made, or after a
//! known one has gone: it may live on as a copy of its descriptor. Calls that make sets and timers are seen where
//! [`interpose_kernel_calls!`](crate::interpose_kernel_calls) stands in for them; elsewhere each collection looks.

use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use heaptoll_assertions::assert_internal;
use heaptoll_stats_page::UnreadPlaces;

use crate::buffer::Buffer;
use crate::entries;
use crate::kernel::{self, File};
use crate::maps::MapsError;
use crate::{lines, queued_values};

/// What the kernel writes of each descriptor of the calling thread; and the descriptors themselves. The second may be closed
/// to a process that has changed its user.
const FACTS: &CStr = c"/proc/thread-self/fdinfo";
const DESCRIPTORS: &CStr = c"/proc/thread-self/fd";
const TIMERS: &CStr = c"/proc/self/timers";

/// What the link of a set's descriptor begins with.
const SET: &[u8] = b"anon_inode:[eventpoll]";

/// All calls that make a set or a timer are seen.
static INTERPOSED: AtomicBool = AtomicBool::new(false);
/// A set was made since the descriptors were looked through.
static SET_MADE: AtomicBool = AtomicBool::new(false);
/// A timer was made since the process began.
static TIMER_MADE: AtomicBool = AtomicBool::new(false);

/// From now on calls are seen; all before were.
pub fn are_interposed() {
    INTERPOSED.store(true, Ordering::Relaxed);
}

/// Makes a set: by the system call in `call`, before and after which a stop may come.
pub fn makes_set<T>(call: impl FnOnce() -> T) -> T {
    SET_MADE.store(true, Ordering::SeqCst);
    let made = call();
    SET_MADE.store(true, Ordering::SeqCst);
    made
}

/// Makes a timer.
pub fn makes_timer<T>(call: impl FnOnce() -> T) -> T {
    TIMER_MADE.store(true, Ordering::SeqCst);
    call()
}

/// The words, and the descriptors that are sets, or may be.
#[derive(Debug)]
pub struct HeldWords {
    words: Buffer<usize>,
    sets: Buffer<i32>,
    /// What could not be read.
    pub unread: UnreadPlaces,
}

impl HeldWords {
    pub const fn new() -> HeldWords {
        HeldWords { words: Buffer::new(), sets: Buffer::new(), unread: UnreadPlaces::NONE }
    }

    /// The addresses that its buffers occupy.
    pub fn ranges(&self) -> [Range<usize>; 2] {
        [self.words.range(), self.sets.range()]
    }

    /// Reads all words, and returns where they are. The world is stopped, and `pending` are the signals that wait for any
    /// thread. `text` and `entries` are scratch memory.
    ///
    /// # Errors
    /// [`MapsError`]: not all could be read. Files that are closed to this process are left out.
    pub fn read(
        &mut self,
        pending: u64,
        text: &mut Buffer<u8>,
        entries: &mut Buffer<u8>,
    ) -> Result<Range<usize>, MapsError> {
        self.words.clear();
        let is_interposed = INTERPOSED.load(Ordering::Relaxed);
        if !is_interposed || TIMER_MADE.load(Ordering::SeqCst) {
            let read = self.read_timers(text);
            self.pass(read)?;
        }
        if SET_MADE.swap(false, Ordering::SeqCst) || !is_interposed || !self.are_known() {
            // Found again if it fails.
            SET_MADE.store(true, Ordering::SeqCst);
            let found = self.find_sets(entries);
            self.pass(found)?;
            SET_MADE.store(false, Ordering::SeqCst);
        }
        if !self.sets.as_slice().is_empty() {
            let read = self.read_sets(text);
            self.pass(read)?;
        }
        queued_values::visit(pending, &mut |value| self.words.push(value))?;
        if queued_values::are_lost() {
            self.unread.add(UnreadPlaces::SIGNALS);
        }
        let words = self.words.as_slice().as_ptr_range();
        Ok(words.start as usize..words.end as usize)
    }

    /// Whether each descriptor that was found is still one that may be a set.
    fn are_known(&self) -> bool {
        self.sets.as_slice().iter().all(|&descriptor| may_be_set(descriptor))
    }

    /// Finds the sets among the descriptors.
    fn find_sets(&mut self, entries: &mut Buffer<u8>) -> Result<(), MapsError> {
        let HeldWords { sets, .. } = self;
        sets.clear();
        entries.reserve(entries::CAPACITY)?;
        let facts = File::open(FACTS)?;
        let descriptors = match File::open(DESCRIPTORS) {
            Ok(descriptors) => Some(descriptors),
            Err(error) if error.is_out_of_descriptors() => return Err(error.into()),
            Err(_) => None,
        };
        entries::numbers(&facts, entries, &mut |descriptor| {
            let mut link = [0; SET.len()];
            let found = descriptors.as_ref().and_then(|list| list.link(descriptor, &mut link).ok());
            let is_other = found.is_some_and(|length| link.get(..length) != Some(SET));
            if may_be_set(descriptor) && !is_other {
                sets.push(descriptor)?;
            }
            Ok(())
        })
    }

    /// Reads the data of the sets' entries.
    fn read_sets(&mut self, text: &mut Buffer<u8>) -> Result<(), MapsError> {
        let facts = File::open(FACTS)?;
        for &descriptor in self.sets.as_slice() {
            let set = facts.entry(descriptor)?;
            read_words(&set, text, &mut self.words, b"tfd:", b"data:")?;
        }
        Ok(())
    }

    /// Goes on without what is closed to this process.
    fn pass(&mut self, read: Result<(), MapsError>) -> Result<(), MapsError> {
        if read == Err(MapsError::Unreadable) {
            self.unread.add(UnreadPlaces::CLOSED);
            return Ok(());
        }
        read
    }

    /// Reads the values of the timers.
    fn read_timers(&mut self, text: &mut Buffer<u8>) -> Result<(), MapsError> {
        read_words(&File::open(TIMERS)?, text, &mut self.words, b"signal:", b"/")
    }
}

/// Whether a descriptor has no file of its own, as those of sets have not: they share one without a kind.
fn may_be_set(descriptor: i32) -> bool {
    kernel::file_mode(descriptor).is_some_and(|mode| mode & libc::S_IFMT == 0)
}

/// Reads a number from each line of a file that begins so, after a mark in it.
fn read_words(
    file: &File,
    text: &mut Buffer<u8>,
    words: &mut Buffer<usize>,
    begins: &[u8],
    mark: &[u8],
) -> Result<(), MapsError> {
    lines::each::<MapsError>(text, |to| file.read(to), &mut |line| {
        if line.starts_with(begins)
            && let Some(word) = number_after(line, mark)
        {
            words.push(word)?;
        }
        Ok(())
    })
    .map(drop)
}

/// The hexadecimal number in a line after a mark and white space.
fn number_after(line: &[u8], mark: &[u8]) -> Option<usize> {
    let at = line.windows(mark.len()).position(|part| part == mark)?;
    let rest = line.get(at + mark.len()..)?.trim_ascii_start();
    let end = rest.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(rest.len());
    assert_internal!(end <= rest.len(), "a number ends in its line");
    usize::from_str_radix(core::str::from_utf8(&rest[..end]).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_after_their_mark() {
        let epoll = b"tfd:        4 events:       19 data:     5631e88cf2a0  pos:0 ino:40e sdev:10";
        assert_eq!(number_after(epoll, b"data:"), Some(0x5631_e88c_f2a0));
        assert_eq!(number_after(b"tfd: 4 data: ffffffffffffffff  pos:0", b"data:"), Some(usize::MAX));
        assert_eq!(number_after(b"signal: 10/00007f0012345678", b"/"), Some(0x7f00_1234_5678));
        assert_eq!(number_after(b"signal: 10", b"/"), None);
        assert_eq!(number_after(b"data: ", b"data:"), None);
    }
}
