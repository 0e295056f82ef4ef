//! Descriptors that stay open from one collection to the next: to open a file of `/proc` costs several times what its use
//! does.
//!
//! A program may close what it does not know, and have a file of its own under the number. So descriptors lie high, where
//! such programs rarely reach them, and each is verified before its use: by device and inode, and by the process that has
//! opened it, since a child that runs no handler of fork has its parent's descriptors.

use core::ffi::{CStr, c_int};
use core::mem::ManuallyDrop;
use core::ops::Deref;

use heaptoll_runtime::{Guard, Lock};

use crate::kernel::{self, Error, File};

/// Where a descriptor is put, if the limit on open files allows.
pub const HIGH: [c_int; 3] = [100, 50, 10];

/// A file is opened for more than one use so often at most: where threads have tables of descriptors of their own, each
/// time may leave one open in another thread's.
const OPENINGS_MAX: u32 = 16;

/// A descriptor that is verified before each use. Never closed by a drop: the number may be the program's by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    descriptor: usize,
    /// Device and inode.
    identity: (u64, u64),
}

impl Held {
    /// Holds a file that was just opened, under a high number.
    ///
    /// # Errors
    /// It has no status.
    pub fn new(file: File) -> Result<Held, Error> {
        let file = HIGH.into_iter().find_map(|least| file.duplicate(least).ok()).unwrap_or(file);
        let identity = file.status().map(|status| (status.st_dev, status.st_ino))?;
        Ok(Held { descriptor: file.into_descriptor(), identity })
    }

    /// The number.
    pub fn number(&self) -> c_int {
        self.descriptor as c_int
    }

    /// The file under the number, to be closed by nobody.
    pub fn file(&self) -> ManuallyDrop<File> {
        ManuallyDrop::new(File::of(self.descriptor))
    }

    /// The file's status, if the number is still its own.
    pub fn verified(&self) -> Option<libc::stat> {
        self.file().status().ok().filter(|status| (status.st_dev, status.st_ino) == self.identity)
    }

    /// Closes it, if the number is still its own.
    pub fn close(self) {
        if self.verified().is_some() {
            drop(File::of(self.descriptor));
        }
    }
}

/// What is held of a file.
#[derive(Debug)]
struct State {
    /// With the process that has opened it.
    held: Option<(i32, Held)>,
    openings: u32,
}

/// A file of `/proc` that is held once it was opened.
pub struct ProcFile {
    path: &'static CStr,
    /// By which a thread opens it that is not the main thread, for one use. `None`: by the same path, and it is held.
    path_of_thread: Option<&'static CStr>,
    state: Lock<State>,
}

/// The threads of the process; found through the process, so that a main thread that has ended does no harm.
pub static TASKS: ProcFile = ProcFile::new(c"/proc/self/task", None);

/// The list of mappings. What a thread has opened can be read while the thread lives; a main thread counts as living until
/// the process ends, but once it has called `pthread_exit` it can open only an empty list.
pub static MAPS: ProcFile = ProcFile::new(c"/proc/self/maps", Some(c"/proc/thread-self/maps"));

/// A word for each page, which is of the process whatever becomes of the thread that has opened it. A main thread that has
/// ended can open none.
pub static PAGEMAP: ProcFile = ProcFile::new(c"/proc/thread-self/pagemap", None);

/// In the child of a fork: closes its copies of what its parent holds, which show the parent.
pub fn after_fork_in_child() {
    for file in [&TASKS, &MAPS, &PAGEMAP] {
        // A lock that a thread held which the child has not stays so: the child holds nothing.
        if let Some(mut state) = file.state.try_lock() {
            state.openings = 0;
            if let Some((_, held)) = state.held.take() {
                held.close();
            }
        }
    }
}

impl ProcFile {
    const fn new(path: &'static CStr, path_of_thread: Option<&'static CStr>) -> ProcFile {
        ProcFile { path, path_of_thread, state: Lock::new(State { held: None, openings: 0 }) }
    }

    /// The file, for the calling thread alone, of this process, whose number was asked of the kernel.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&'static self, process: i32) -> Result<OpenFile, Error> {
        let Some(mut state) = self.state.try_lock() else { return self.open_once() };
        let known = state.held.filter(|(opener, _)| *opener == process).map(|(_, held)| held);
        if let Some(held) = known
            && let Some(status) = held.verified()
        {
            return Ok(OpenFile {
                file: held.file(),
                links: Some(status.st_nlink as usize),
                held: Some(state),
            });
        }
        let is_other_thread = self.path_of_thread.is_some() && kernel::thread() != process;
        if state.openings == OPENINGS_MAX || is_other_thread {
            return self.open_once();
        }
        let held = Held::new(File::open(self.path)?)?;
        (state.held, state.openings) = (Some((process, held)), state.openings + 1);
        Ok(OpenFile { file: held.file(), links: None, held: Some(state) })
    }

    fn open_once(&self) -> Result<OpenFile, Error> {
        let file = File::open(self.path_of_thread.unwrap_or(self.path))?;
        Ok(OpenFile { file: ManuallyDrop::new(file), links: None, held: None })
    }
}

/// A file of `/proc` in use.
pub struct OpenFile {
    file: ManuallyDrop<File>,
    /// How many names it had when it was verified.
    pub links: Option<usize>,
    /// It is held when this is dropped.
    held: Option<Guard<'static, State>>,
}

impl Deref for OpenFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if self.held.is_none() {
            // SAFETY: the file is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}
