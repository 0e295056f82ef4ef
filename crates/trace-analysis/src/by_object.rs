//! What a first pass finds about each object, for a second one: a few bytes an object, in memory while they are few, in
//! a temporary file that the system may page out when they are many.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Bytes of a segment.
pub const SEGMENT_BYTES: usize = 16 << 20;
/// Segments kept in memory: 64 MiB.
const IN_MEMORY: usize = 4;

/// What is kept of an object.
///
/// # Safety
/// Every bit pattern is a value, and [`SEGMENT_BYTES`] is a multiple of the size. Its alignment is at most a page's, and its
/// size is not 0.
pub unsafe trait Entry: Copy {
    /// Of an object of which nothing is known.
    const UNKNOWN: Self;
}

// SAFETY: every bit pattern is a number; 4 divides 16 MiB.
unsafe impl Entry for u32 {
    const UNKNOWN: u32 = u32::MAX;
}

// SAFETY: every bit pattern is two numbers; 16 divides 16 MiB.
unsafe impl Entry for [u64; 2] {
    const UNKNOWN: [u64; 2] = [u64::MAX; 2];
}

/// Entries by order of allocation.
#[derive(Debug)]
pub struct ByObject<T> {
    segments: Vec<Segment<T>>,
    file: Option<File>,
    count: usize,
}

impl<T> Default for ByObject<T> {
    fn default() -> ByObject<T> {
        ByObject { segments: Vec::new(), file: None, count: 0 }
    }
}

#[derive(Debug)]
enum Segment<T> {
    Memory(Vec<T>),
    Mapped(Mapping<T>),
}

/// A part of the temporary file.
#[derive(Debug)]
struct Mapping<T> {
    start: *mut T,
}

// SAFETY: `start` points to a mapping that this value alone owns (`Mapping::new`); it is reached only through
// references to this value, so another thread may own it.
unsafe impl<T: Send> Send for Mapping<T> {}
// SAFETY: a shared reference gives only `entries`, which reads; writing needs `&mut self`.
unsafe impl<T: Sync> Sync for Mapping<T> {}

impl<T: Entry> Mapping<T> {
    fn new(file: &File, index: usize) -> io::Result<Mapping<T>> {
        let offset = (index * SEGMENT_BYTES) as u64;
        file.set_len(offset + SEGMENT_BYTES as u64)?;
        // SAFETY: mmap without MAP_FIXED makes a new mapping and replaces none; the part of the file exists, since
        // `set_len` has just extended it, and no other process can shorten a file without a name.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SEGMENT_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start: start.cast() })
    }

    fn entries(&self) -> &[T] {
        // SAFETY: `new` has mapped `SEGMENT_BYTES` at `start`, which is aligned to pages, readable and writable, until
        // `drop`; every bit pattern is a value (`Entry`).
        unsafe { std::slice::from_raw_parts(self.start, entries_each::<T>()) }
    }

    fn entries_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `entries`; `&mut self` excludes other references.
        unsafe { std::slice::from_raw_parts_mut(self.start, entries_each::<T>()) }
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: `new` mapped this range, and no slice of it outlives `self`.
        unsafe { libc::munmap(self.start.cast(), SEGMENT_BYTES) };
    }
}

/// Entries of a segment.
const fn entries_each<T>() -> usize {
    SEGMENT_BYTES / size_of::<T>()
}

impl<T: Entry> ByObject<T> {
    /// A new object, of which nothing is known; returns its number.
    pub fn add(&mut self) -> io::Result<usize> {
        let number = self.count;
        if number == self.segments.len() * entries_each::<T>() {
            self.grow()?;
        }
        self.set(number, T::UNKNOWN);
        self.count += 1;
        Ok(number)
    }

    #[cold]
    fn grow(&mut self) -> io::Result<()> {
        let index = self.segments.len();
        if index < IN_MEMORY {
            self.segments.push(Segment::Memory(vec![T::UNKNOWN; entries_each::<T>()]));
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile()?);
        }
        if let Some(file) = &self.file {
            // Space is reserved now: a full disk shows here and not as a fault at some later write.
            let offset = ((index - IN_MEMORY) * SEGMENT_BYTES) as libc::off_t;
            // SAFETY: `file` owns the open descriptor; posix_fallocate takes no pointers.
            let refused =
                unsafe { libc::posix_fallocate(file.as_raw_fd(), offset, SEGMENT_BYTES as libc::off_t) };
            if refused != 0 {
                return Err(io::Error::from_raw_os_error(refused));
            }
            self.segments.push(Segment::Mapped(Mapping::new(file, index - IN_MEMORY)?));
        }
        Ok(())
    }

    pub fn set(&mut self, number: usize, entry: T) {
        let entries = match &mut self.segments[number / entries_each::<T>()] {
            Segment::Memory(entries) => &mut entries[..],
            Segment::Mapped(mapping) => mapping.entries_mut(),
        };
        entries[number % entries_each::<T>()] = entry;
    }

    pub fn get(&self, number: usize) -> T {
        match self.segments.get(number / entries_each::<T>()) {
            Some(Segment::Memory(entries)) => entries[number % entries_each::<T>()],
            Some(Segment::Mapped(mapping)) => mapping.entries()[number % entries_each::<T>()],
            None => T::UNKNOWN,
        }
    }

    /// Objects.
    pub fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_entries_go_to_a_file_and_come_back() {
        let mut entries = ByObject::<u32>::default();
        let count = entries_each::<u32>() * (IN_MEMORY + 2) + 17;
        for number in 0..count {
            assert_eq!(entries.add().unwrap(), number);
            if number % 3 == 0 {
                entries.set(number / 2, (number / 2) as u32);
            }
        }
        assert!(entries.file.is_some());
        assert_eq!(entries.count(), count);
        for number in (0..count).step_by(1009) {
            let was_set = (2 * number).is_multiple_of(3) || (2 * number + 1).is_multiple_of(3);
            let expected = if was_set && 2 * number < count { number as u32 } else { u32::UNKNOWN };
            assert_eq!(entries.get(number), expected, "{number}");
        }
    }
}
