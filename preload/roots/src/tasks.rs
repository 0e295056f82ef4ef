//! The threads of the process, as the kernel lists them.

use crate::buffer::{Buffer, NoMemory};
use crate::entries::{self, CAPACITY};
use crate::kernel::{Error, File};

/// Why there is no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TasksError {
    NoMemory,
    NoDescriptor,
    Unreadable,
}

impl From<NoMemory> for TasksError {
    fn from(_: NoMemory) -> TasksError {
        TasksError::NoMemory
    }
}

impl From<Error> for TasksError {
    fn from(error: Error) -> TasksError {
        if error.is_out_of_descriptors() { TasksError::NoDescriptor } else { TasksError::Unreadable }
    }
}

/// The list, open.
pub struct Tasks {
    list: File,
}

impl Tasks {
    /// That of this process.
    pub fn open() -> Result<Tasks, TasksError> {
        // Found through the process, so that a main thread that has ended does no harm.
        Ok(Tasks { list: File::open(c"/proc/self/task")? })
    }

    /// Whether the calling thread is the only one: then no other can begin any.
    pub fn is_of_one(&self) -> bool {
        self.count() == Some(1)
    }

    /// Reads the list from its beginning. Threads that begin or end meanwhile may be in it or not.
    pub fn read(&self, tids: &mut Buffer<i32>, entries: &mut Buffer<u8>) -> Result<(), TasksError> {
        entries.reserve(CAPACITY)?;
        tids.clear();
        self.list.rewind()?;
        entries::numbers(&self.list, entries, &mut |tid| Ok(tids.push(tid)?))
    }

    /// How many threads there are, by the number of the list's names: each is a directory, and two are `.` and `..`.
    pub fn count(&self) -> Option<usize> {
        (self.list.status().ok()?.st_nlink as usize).checked_sub(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(tasks.count().expect("a count") >= 2 && !tasks.is_of_one());
        drop(stop);
        sibling.join().expect("the sibling");
    }
}
