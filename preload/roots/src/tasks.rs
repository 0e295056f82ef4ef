//! The threads of the process, as the kernel lists them.

use core::ffi::CStr;

use heaptoll_assertions::assert_internal;

use crate::buffer::{Buffer, NoMemory};
use crate::kernel::{Error, File};

/// Where the kernel lists them; found through the process, so that a main thread that has ended does no harm.
const LIST: &CStr = c"/proc/self/task";
/// Bytes of directory entries read at once.
const ENTRIES_CAPACITY: usize = 16 << 10;
/// Offsets in a directory entry: its length, and its name.
const LENGTH_AT: usize = 16;
const NAME_AT: usize = 19;

/// Why there is no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TasksError {
    NoMemory,
    Unreadable,
}

impl From<NoMemory> for TasksError {
    fn from(_: NoMemory) -> TasksError {
        TasksError::NoMemory
    }
}

impl From<Error> for TasksError {
    fn from(_: Error) -> TasksError {
        TasksError::Unreadable
    }
}

/// The list, open.
#[derive(Debug)]
pub struct Tasks {
    list: File,
}

impl Tasks {
    pub fn open() -> Result<Tasks, TasksError> {
        Ok(Tasks { list: File::open(LIST)? })
    }

    /// Reads the list from its beginning. Threads that begin or end meanwhile may be in it or not.
    pub fn read(&self, tids: &mut Buffer<i32>, entries: &mut Buffer<u8>) -> Result<(), TasksError> {
        entries.reserve(ENTRIES_CAPACITY)?;
        tids.clear();
        self.list.rewind()?;
        loop {
            let got = self.list.entries(entries.capacity_mut())?;
            assert_internal!(got <= entries.capacity_mut().len(), "entries that are read have space");
            if got == 0 {
                return Ok(());
            }
            for tid in Names(entries.capacity_mut().get(..got).unwrap_or_default()) {
                tids.push(tid)?;
            }
        }
    }

    /// How many threads there are, by the number of the list's names: each is a directory, and two are `.` and `..`.
    pub fn count(&self) -> Option<usize> {
        self.list.links().ok()?.checked_sub(2)
    }
}

/// The names in directory entries that are numbers.
struct Names<'a>(&'a [u8]);

impl Iterator for Names<'_> {
    type Item = i32;

    fn next(&mut self) -> Option<i32> {
        loop {
            let length = u16::from_ne_bytes(*self.0.get(LENGTH_AT..)?.first_chunk()?) as usize;
            let name = self.0.get(NAME_AT..length)?;
            self.0 = self.0.get(length..)?;
            assert_internal!(length > NAME_AT, "an entry of a directory has a name");
            if let Some(tid) = number(name) {
                return Some(tid);
            }
        }
    }
}

/// The number that a name begins with, up to its zero byte.
fn number(name: &[u8]) -> Option<i32> {
    let end = name.iter().position(|&byte| byte == 0)?;
    core::str::from_utf8(name.get(..end)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &[u8], out: &mut std::vec::Vec<u8>) {
        let length = (NAME_AT + name.len() + 1).next_multiple_of(8);
        let start = out.len();
        out.resize(start + length, 0);
        out[start + LENGTH_AT..start + LENGTH_AT + 2].copy_from_slice(&(length as u16).to_ne_bytes());
        out[start + NAME_AT..start + NAME_AT + name.len()].copy_from_slice(name);
    }

    #[test]
    fn numbers_are_taken_and_other_names_skipped() {
        let mut entries = std::vec::Vec::new();
        for name in [&b"."[..], b"..", b"1", b"4194304", b"x1", b"99999999999"] {
            entry(name, &mut entries);
        }
        assert!(Names(&entries).eq([1, 4_194_304]));
        assert!(Names(&entries[..entries.len() - 9]).eq([1, 4_194_304]));
        assert!(Names(&[]).next().is_none());
    }

    #[test]
    fn this_thread_and_its_siblings_are_listed_and_counted() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let (sender, receiver) = std::sync::mpsc::channel();
        let sibling = std::thread::spawn(move || {
            sender.send(crate::kernel::thread()).expect("the test receives");
            let _ = wait.recv();
        });
        let (mut tids, mut entries) = (Buffer::new(), Buffer::new());
        let tasks = Tasks::open().expect("the list");
        let other = receiver.recv().expect("the sibling sends its number");
        for _ in 0..2 {
            tasks.read(&mut tids, &mut entries).expect("the list");
            for tid in [other, crate::kernel::thread(), crate::kernel::process()] {
                assert_eq!(tids.as_slice().iter().filter(|&&listed| listed == tid).count(), 1);
            }
        }
        assert!(tasks.count().expect("a count") >= 2);
        drop(stop);
        sibling.join().expect("the sibling");
    }
}
