//! Objects that were recorded: which file's code lies where. They are recorded by the process itself, before the first
//! call stack that leads through them, since a process may have unloaded an object, or ended, before heaptoll can read
//! its mappings.
//!
//! An object is recorded as the definition of site 0, whose words are its first address, the one after its last, the
//! difference of its addresses in memory to those in its file, the number of bytes of its path, and the path, seven
//! bytes a word (a word of the ring holds sixty bits).

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::loaded::object;
use crate::object::Object;
use crate::system;

/// Objects at most. Frames in further ones have no names.
const MOST: usize = 2048;
/// Bytes of a path at most.
const PATH: usize = 1024;
/// Bytes of a path in a word.
pub const PATH_BYTES: usize = 7;
const WORDS: usize = 4 + PATH.div_ceil(PATH_BYTES);

#[repr(C)]
struct Range {
    start: AtomicUsize,
    end: AtomicUsize,
}

#[repr(C)]
struct Ranges {
    count: AtomicUsize,
    ranges: [Range; MOST],
}

/// The ranges of the objects that were recorded. A child of fork finds none: it records into another file.
pub struct RecordedObjects(NonNull<Ranges>);

// SAFETY: the memory holds atomics only, and is never unmapped, so any thread may use it.
unsafe impl Sync for RecordedObjects {}
// SAFETY: the memory holds atomics only, and is never unmapped, so any thread may use it.
unsafe impl Send for RecordedObjects {}

impl RecordedObjects {
    /// None yet; `None` when the system provides no memory.
    pub fn new() -> Option<RecordedObjects> {
        Some(RecordedObjects(system::map(size_of::<Ranges>(), true)?.cast()))
    }

    fn ranges(&self) -> &Ranges {
        // SAFETY: `new` mapped a `Ranges` of zeroes, which is a valid one, and it is never unmapped.
        unsafe { self.0.as_ref() }
    }

    fn knows(&self, address: usize) -> bool {
        let ranges = self.ranges();
        ranges.ranges[..ranges.count.load(Ordering::Relaxed).min(MOST)].iter().any(|range| {
            let end = range.end.load(Ordering::Acquire);
            range.start.load(Ordering::Relaxed) <= address && address < end
        })
    }

    /// Records the object that an address lies in, unless it has been recorded.
    pub fn record(&self, address: usize, define: &mut impl FnMut(u32, &[usize])) {
        if !self.knows(address) {
            self.record_new(address, define);
        }
    }

    #[inline(never)]
    fn record_new(&self, address: usize, define: &mut impl FnMut(u32, &[usize])) {
        let Some(object) = object(address) else { return };
        let ranges = self.ranges();
        let at = ranges.count.fetch_add(1, Ordering::Relaxed);
        let Some(range) = ranges.ranges.get(at) else {
            ranges.count.store(MOST, Ordering::Relaxed);
            return;
        };
        range.start.store(object.start, Ordering::Relaxed);
        range.end.store(object.end, Ordering::Release);
        let mut words = [0; WORDS];
        words[0] = object.start;
        words[1] = object.end;
        words[2] = object.difference;
        let (count, packed) = path_words(&object, &mut words[4..]);
        words[3] = count;
        define(0, &words[..4 + packed]);
    }

    /// An object is no longer there.
    pub fn forget(&self, start: usize) {
        let ranges = self.ranges();
        for range in &ranges.ranges[..ranges.count.load(Ordering::Relaxed).min(MOST)] {
            if range.start.load(Ordering::Relaxed) == start {
                range.end.store(0, Ordering::Release);
            }
        }
    }
}

/// Writes an object's path, [`PATH_BYTES`] bytes a word; returns its bytes and its words. Signal handlers have small
/// call stacks, so one buffer holds both forms.
fn path_words(object: &Object, words: &mut [usize]) -> (usize, usize) {
    // SAFETY: `words` are at least `PATH` bytes (`WORDS - 4` words), borrowed exclusively, and every bit pattern of
    // them is a word.
    let bytes = unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), PATH) };
    let length = object.path(bytes);
    let count = length.div_ceil(PATH_BYTES);
    bytes[length..].fill(0);
    // From the last word on: each is written at or after its bytes.
    for at in (0..count).rev() {
        let mut word = [0; 8];
        let (from, until) = (at * PATH_BYTES, ((at + 1) * PATH_BYTES).min(PATH));
        // SAFETY: `words` are at least `PATH` initialised bytes; the exclusive slice of them made before the loop is no
        // longer used, and this one is last used before `words` is written to.
        let bytes = unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<u8>(), PATH) };
        word[..until - from].copy_from_slice(&bytes[from..until]);
        words[at] = usize::from_le_bytes(word);
    }
    (length, count)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::String;
    use std::vec::Vec;

    use super::*;

    /// The path in an object's words, as heaptoll reads them.
    fn path(words: &[usize]) -> String {
        let bytes = words[4..].iter().flat_map(|word| word.to_le_bytes().into_iter().take(PATH_BYTES));
        String::from_utf8(bytes.take(words[3]).collect()).unwrap()
    }

    #[test]
    fn an_object_is_recorded_once_until_it_is_forgotten() {
        let objects = RecordedObjects::new().unwrap();
        let mut definitions: Vec<Vec<usize>> = Vec::new();
        let mut record = |address: usize| {
            objects.record(address, &mut |site, words: &[usize]| {
                assert_eq!(site, 0);
                definitions.push(words.to_vec());
            });
            definitions.len()
        };
        let own = path as *const () as usize;
        assert_eq!((record(own), record(own), record(own + 1)), (1, 1, 1));
        assert_eq!((record(libc::malloc as *const () as usize), record(8)), (2, 2));
        objects.forget(object(own).unwrap().start);
        assert_eq!(record(own), 3);
        let program = std::env::current_exe().unwrap();
        assert_eq!(path(&definitions[0]), program.to_str().unwrap());
        assert!((definitions[0][0]..definitions[0][1]).contains(&own));
        assert!(path(&definitions[1]).ends_with("/libc.so.6"), "{}", path(&definitions[1]));
        assert!(definitions.iter().flatten().all(|word| word >> 60 == 0));
    }
}
