//! A trace as the driver reads it: a file of words, a stream of them for each thread.
//!
//! It is made once and read by every driver, under every manager and in every repetition, so that nothing is decoded
//! while something is measured. It lies in memory (a memfd) as long as it is small compared with the machine's, and in
//! an unlinked file of the temporary folder beyond that; drivers read it in blocks, into a buffer of their own.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ReplayError;

/// Words of a block: what is executed between two readings of the clock. Half of a usual second-level cache would be
/// too much to read in between; the clock's cost of about 0.5 µs is negligible against a block's.
pub const BLOCK: usize = 1 << 15;

/// In which order threads go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As recorded: one call at a time, whichever thread makes it.
    Exact,
    /// Each thread as fast as it can; only an object's own calls keep their order.
    PerThread,
}

/// Words in the program's file: where they begin, bytes, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent(pub u64, pub u32);

/// What a driver must know of a program in addition to its words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// The blocks of each thread, in order. Thread 0 is the process's first.
    pub streams: Vec<Vec<Extent>>,
    /// What frees the objects that the trace leaves.
    pub leftovers: Vec<Extent>,
    /// Whether [`crate::word::Code::Wait`] occurs, so that slots need generations.
    pub generations: bool,
    /// Slots.
    pub slots: u32,
    /// [`crate::word::Code::Mark`]s.
    pub marks: u64,
}

/// What was found while the program was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// Calls that are replayed.
    pub calls: u64,
    /// Of them, those for a new object.
    pub allocations: u64,
    /// Of them, resizes.
    pub resizes: u64,
    /// Of them, those that end an object.
    pub frees: u64,
    /// Requested bytes of allocations and growth of resizes: the byte clock at the end.
    pub allocated_bytes: u64,
    /// Largest sum of requested bytes of live objects.
    pub max_live_bytes: u64,
    /// Objects live at the end, and their bytes.
    pub left_objects: u64,
    /// See `left_objects`.
    pub left_bytes: u64,
    /// Threads.
    pub threads: u32,
    /// Calls whose slot another thread had used last.
    pub crossings: u64,
    /// Calls left out because they gave nothing when recorded.
    pub failed: u64,
    /// Calls left out because the trace does not know the block.
    pub foreign: u64,
    /// Calls left out because the object's allocation is in a hole of the trace.
    pub unknown: u64,
    /// Objects whose free is in a hole of the trace: freed when their slot was used again.
    pub overtaken: u64,
}

impl Facts {
    /// Calls left out.
    pub fn skipped(&self) -> u64 {
        self.failed + self.foreign + self.unknown
    }
}

/// A trace made ready.
#[derive(Debug)]
pub struct Program {
    file: File,
    /// What a driver must know.
    pub index: Index,
    /// What was found.
    pub facts: Facts,
    /// Order of its threads.
    pub order: Order,
    /// Events of the trace after which its marks are, where such were wanted.
    pub marked_after: Vec<u64>,
}

impl Program {
    pub(crate) fn new(file: File, index: Index, facts: Facts, order: Order) -> Program {
        Program { file, index, facts, order, marked_after: Vec::new() }
    }

    pub(crate) fn marked_after(self, events: Vec<u64>) -> Program {
        Program { marked_after: events, ..self }
    }

    /// Bytes of the words.
    ///
    /// # Errors
    /// The file's length cannot be read.
    pub fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// The words of some extents.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn words(&self, extents: &[Extent]) -> io::Result<Vec<u64>> {
        use std::os::unix::fs::FileExt;
        let mut all = Vec::new();
        for Extent(at, words) in extents {
            let mut bytes = vec![0; *words as usize * 8];
            self.file.read_exact_at(&mut bytes, *at)?;
            all.extend(bytes.chunks_exact(8).map(|word| {
                u64::from_le_bytes([word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7]])
            }));
        }
        Ok(all)
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The file while it is written.
pub(crate) struct Words {
    file: File,
    folder: PathBuf,
    in_memory: bool,
    written: u64,
    most_in_memory: u64,
    bytes: Vec<u8>,
}

impl Words {
    /// An empty file, which moves from memory to the temporary folder when it has this many bytes.
    pub(crate) fn create(most_in_memory: u64) -> Result<Words, ReplayError> {
        let descriptor = rustix::fs::memfd_create("heaptoll-replay", rustix::fs::MemfdFlags::CLOEXEC)
            .map_err(|error| ReplayError::system("make a file in memory")(error.into()))?;
        Ok(Words {
            file: File::from(descriptor),
            folder: std::env::temp_dir(),
            in_memory: true,
            written: 0,
            most_in_memory,
            bytes: Vec::new(),
        })
    }

    /// Appends words; gives where.
    pub(crate) fn append(&mut self, words: &[u64]) -> Result<Extent, ReplayError> {
        let at = self.written;
        self.bytes.clear();
        for word in words {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
        if self.in_memory && at + self.bytes.len() as u64 > self.most_in_memory {
            self.move_out().map_err(|error| self.no_space(error))?;
        }
        self.file.write_all(&self.bytes).map_err(|error| self.no_space(error))?;
        self.written += self.bytes.len() as u64;
        Ok(Extent(at, words.len() as u32))
    }

    /// Changes the last word of an extent.
    pub(crate) fn change_last(&mut self, extent: Extent, change: fn(u64) -> u64) -> Result<(), ReplayError> {
        use std::os::unix::fs::FileExt;
        let at = extent.0 + (u64::from(extent.1) - 1) * 8;
        let mut bytes = [0; 8];
        self.file
            .read_exact_at(&mut bytes, at)
            .and_then(|()| self.file.write_all_at(&change(u64::from_le_bytes(bytes)).to_le_bytes(), at))
            .map_err(|error| self.no_space(error))
    }

    fn no_space(&self, source: io::Error) -> ReplayError {
        let folder = if self.in_memory { PathBuf::from("memory") } else { self.folder.clone() };
        ReplayError::NoSpace { folder, needed_mib: self.written >> 20, source }
    }

    fn move_out(&mut self) -> io::Result<()> {
        self.in_memory = false;
        let mut there = tempfile::tempfile_in(&self.folder)?;
        self.file.rewind()?;
        io::copy(&mut self.file, &mut there)?;
        self.file = there;
        Ok(())
    }

    pub(crate) fn finish(self) -> File {
        self.file
    }
}
