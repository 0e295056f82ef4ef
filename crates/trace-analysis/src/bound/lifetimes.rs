//! The lifetime of each object, known after the first pass: four bytes an object, in memory while they are few, in
//! a temporary file that the system may page out when they are many.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Entries of a segment: 16 MiB.
const SEGMENT: usize = 4 << 20;
/// Segments kept in memory: 64 MiB.
const IN_MEMORY: usize = 4;
/// Lives to the end, or longer than the entry can hold.
pub(super) const FOR_EVER: u32 = u32::MAX;

/// Lifetimes by order of allocation, in events.
#[derive(Debug, Default)]
pub(super) struct Lifetimes {
    segments: Vec<Segment>,
    file: Option<File>,
    count: usize,
}

#[derive(Debug)]
enum Segment {
    Memory(Vec<u32>),
    Mapped(Mapping),
}

/// A part of the temporary file.
#[derive(Debug)]
struct Mapping {
    start: *mut u32,
}

// SAFETY: `start` points to a mapping that this value alone owns (`Mapping::new`); it is reached only through
// references to this value, so another thread may own it.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives only `entries`, which reads; writing needs `&mut self`.
unsafe impl Sync for Mapping {}

impl Mapping {
    const BYTES: usize = SEGMENT * size_of::<u32>();

    fn new(file: &File, index: usize) -> io::Result<Mapping> {
        let offset = (index * Mapping::BYTES) as u64;
        file.set_len(offset + Mapping::BYTES as u64)?;
        // SAFETY: mmap without MAP_FIXED makes a new mapping and replaces none; the part of the file exists, since
        // `set_len` has just extended it, and no other process can shorten a file without a name.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Mapping::BYTES,
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

    fn entries(&self) -> &[u32] {
        // SAFETY: `new` has mapped `SEGMENT` entries at `start`, readable and writable, until `drop`; every bit pattern
        // is a u32.
        unsafe { std::slice::from_raw_parts(self.start, SEGMENT) }
    }

    fn entries_mut(&mut self) -> &mut [u32] {
        // SAFETY: `new` has mapped `SEGMENT` entries at `start`, readable and writable, until `drop`; `&mut self`
        // excludes other references.
        unsafe { std::slice::from_raw_parts_mut(self.start, SEGMENT) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` mapped this range, and no slice of it outlives `self`.
        unsafe { libc::munmap(self.start.cast(), Mapping::BYTES) };
    }
}

impl Lifetimes {
    /// A new object that is live; returns its number.
    pub(super) fn add(&mut self) -> io::Result<usize> {
        let number = self.count;
        if number == self.segments.len() * SEGMENT {
            self.grow()?;
        }
        self.set(number, FOR_EVER);
        self.count += 1;
        Ok(number)
    }

    #[cold]
    fn grow(&mut self) -> io::Result<()> {
        let index = self.segments.len();
        if index < IN_MEMORY {
            self.segments.push(Segment::Memory(vec![FOR_EVER; SEGMENT]));
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile()?);
        }
        if let Some(file) = &self.file {
            // Space is reserved now: a full disk shows here and not as a fault at some later write.
            let offset = ((index - IN_MEMORY) * Mapping::BYTES) as libc::off_t;
            // SAFETY: `file` owns the open descriptor; posix_fallocate takes no pointers.
            let refused =
                unsafe { libc::posix_fallocate(file.as_raw_fd(), offset, Mapping::BYTES as libc::off_t) };
            if refused != 0 {
                return Err(io::Error::from_raw_os_error(refused));
            }
            self.segments.push(Segment::Mapped(Mapping::new(file, index - IN_MEMORY)?));
        }
        Ok(())
    }

    pub(super) fn set(&mut self, number: usize, lifetime: u32) {
        let entries = match &mut self.segments[number / SEGMENT] {
            Segment::Memory(entries) => &mut entries[..],
            Segment::Mapped(mapping) => mapping.entries_mut(),
        };
        entries[number % SEGMENT] = lifetime;
    }

    pub(super) fn get(&self, number: usize) -> u32 {
        match self.segments.get(number / SEGMENT) {
            Some(Segment::Memory(entries)) => entries[number % SEGMENT],
            Some(Segment::Mapped(mapping)) => mapping.entries()[number % SEGMENT],
            None => FOR_EVER,
        }
    }

    /// Objects.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_lifetimes_go_to_a_file_and_come_back() {
        let mut lifetimes = Lifetimes::default();
        let count = SEGMENT * (IN_MEMORY + 2) + 17;
        for number in 0..count {
            assert_eq!(lifetimes.add().unwrap(), number);
            if number % 3 == 0 {
                lifetimes.set(number / 2, (number / 2) as u32);
            }
        }
        assert!(lifetimes.file.is_some());
        assert_eq!(lifetimes.count(), count);
        for number in (0..count).step_by(1009) {
            let was_set = (2 * number).is_multiple_of(3) || (2 * number + 1).is_multiple_of(3);
            let expected = if was_set && 2 * number < count { number as u32 } else { FOR_EVER };
            assert_eq!(lifetimes.get(number), expected, "{number}");
        }
    }
}
