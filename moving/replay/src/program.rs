//! A replay as a program: what a trace has a collector do, decoded beforehand, so that replays spend no time on the
//! trace's own form.
//!
//! A program names objects by handles: small numbers that are used again when the trace has ended an object. It lives
//! from `prepare` to the last `replay`; both are this program's, so no other program needs to know its form.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use crate::error::Error;

const MAGIC: u32 = 0x4850_4d31;
const HEAD_WORDS: usize = 4;
/// Bytes that are read at a time.
const PART: usize = 1 << 20;
/// Handles that an operation can name.
pub const HANDLES: u32 = 1 << 28;

/// What a replay does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object; no word of it holds a reference.
    Allocate {
        /// Its handle.
        handle: u32,
        /// Its size.
        words: u32,
        /// Words from its start that ever hold references.
        scanned: u32,
    },
    /// A word holds a reference from here on.
    Edge {
        /// The object that contains the word.
        from: u32,
        /// The word.
        word: u32,
        /// What it leads to.
        to: u32,
    },
    /// A word holds no reference any more.
    Clear {
        /// The object.
        from: u32,
        /// The word.
        word: u32,
    },
    /// The object is a root until the next [`Operation::Point`].
    Root(u32),
    /// Roots end here: those of the next root point follow.
    Point,
    /// Its last touch is over.
    Release(u32),
    /// The trace ends the object; the handle is used again.
    End(u32),
    /// The program loads or stores.
    Access(Access),
    /// A request of this thread begins.
    RequestBegin(u32),
    /// It ends.
    RequestEnd(u32),
}

/// A load or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The object.
    pub handle: u32,
    /// First byte, from the first word of the program's own.
    pub offset: u64,
    /// Bytes, from 1 to [`Access::MOST_BYTES`].
    pub bytes: u32,
    /// It stores.
    pub store: bool,
}

impl Access {
    /// Most bytes of one.
    pub const MOST_BYTES: u32 = (1 << 10) - 1;
    /// Bits of an offset in the shorter form.
    const SHORT_OFFSET_BITS: u32 = 21;

    /// The second word of the shorter form, or the third of the longer, with the offset's part that belongs there.
    fn tail(self, offset: u64) -> u32 {
        offset as u32 | self.bytes << Self::SHORT_OFFSET_BITS | u32::from(self.store) << 31
    }

    fn encode(self, out: &mut Vec<u32>) {
        if self.offset >> Self::SHORT_OFFSET_BITS == 0 {
            out.extend([7 << 28 | self.handle, self.tail(self.offset)]);
        } else {
            out.extend([8 << 28 | self.handle, self.offset as u32, self.tail(self.offset >> 32)]);
        }
    }

    #[inline(always)]
    fn decode(handle: u32, tail: u32) -> Access {
        Access {
            handle,
            offset: u64::from(tail & ((1 << Self::SHORT_OFFSET_BITS) - 1)),
            bytes: tail >> Self::SHORT_OFFSET_BITS & Self::MOST_BYTES,
            store: tail >> 31 != 0,
        }
    }

    #[inline(always)]
    fn decode_long(handle: u32, low: u32, tail: u32) -> Access {
        let short = Access::decode(handle, tail);
        Access { offset: short.offset << 32 | u64::from(low), ..short }
    }
}

impl Operation {
    fn encode(self, out: &mut Vec<u32>) {
        match self {
            Operation::Allocate { handle, words, scanned } => out.extend([handle, words, scanned]),
            Operation::Edge { from, word, to } => out.extend([1 << 28 | from, word, to]),
            Operation::Clear { from, word } => out.extend([2 << 28 | from, word]),
            Operation::Root(handle) => out.push(3 << 28 | handle),
            Operation::Point => out.push(4 << 28),
            Operation::Release(handle) => out.push(5 << 28 | handle),
            Operation::End(handle) => out.push(6 << 28 | handle),
            Operation::Access(access) => access.encode(out),
            Operation::RequestBegin(thread) => out.push(9 << 28 | thread),
            Operation::RequestEnd(thread) => out.push(10 << 28 | thread),
        }
    }

    #[inline(always)]
    fn decode(rest: &[u32]) -> Option<(Operation, usize)> {
        let first = *rest.first()?;
        let handle = first & (HANDLES - 1);
        Some(match first >> 28 {
            0 => (Operation::Allocate { handle, words: *rest.get(1)?, scanned: *rest.get(2)? }, 3),
            1 => (Operation::Edge { from: handle, word: *rest.get(1)?, to: *rest.get(2)? }, 3),
            2 => (Operation::Clear { from: handle, word: *rest.get(1)? }, 2),
            3 => (Operation::Root(handle), 1),
            4 => (Operation::Point, 1),
            5 => (Operation::Release(handle), 1),
            6 => (Operation::End(handle), 1),
            7 => (Operation::Access(Access::decode(handle, *rest.get(1)?)), 2),
            8 => (Operation::Access(Access::decode_long(handle, *rest.get(1)?, *rest.get(2)?)), 3),
            9 => (Operation::RequestBegin(handle), 1),
            10 => (Operation::RequestEnd(handle), 1),
            _ => return None,
        })
    }
}

/// Writes a program to a file.
#[derive(Debug)]
pub struct Assembler<'a> {
    path: &'a Path,
    file: BufWriter<File>,
    buffer: Vec<u32>,
    words: u64,
}

impl<'a> Assembler<'a> {
    /// Begins one.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn new(path: &'a Path) -> Result<Assembler<'a>, Error> {
        let file = File::create(path).map_err(Error::system("make", path))?;
        let mut new =
            Assembler { path, file: BufWriter::with_capacity(1 << 18, file), buffer: Vec::new(), words: 0 };
        new.write(&[0; HEAD_WORDS])?;
        Ok(new)
    }

    /// Appends an operation.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push(&mut self, operation: Operation) -> Result<(), Error> {
        operation.encode(&mut self.buffer);
        if self.buffer.len() < 4096 {
            return Ok(());
        }
        self.flush()
    }

    /// Ends it, with the number of handles that it names.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self, handles: u32) -> Result<(), Error> {
        use std::io::Seek;
        self.flush()?;
        let head = [MAGIC, handles, self.words as u32, (self.words >> 32) as u32];
        self.file.rewind().map_err(Error::system("write", self.path))?;
        self.write(&head)?;
        self.file.flush().map_err(Error::system("write", self.path))
    }

    fn flush(&mut self) -> Result<(), Error> {
        let words = std::mem::take(&mut self.buffer);
        self.words += words.len() as u64;
        self.write(&words)?;
        self.buffer = words;
        self.buffer.clear();
        Ok(())
    }

    fn write(&mut self, words: &[u32]) -> Result<(), Error> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.file.write_all(&bytes).map_err(Error::system("write", self.path))
    }
}

/// A program in memory. Every operation names handles below [`Program::handles`], and words and bytes that its object
/// has.
#[derive(Debug)]
pub struct Program {
    words: Vec<u32>,
    handles: u32,
}

impl Program {
    /// Reads and checks one.
    ///
    /// # Errors
    /// The file cannot be read, or is not what [`Assembler::finish`] left.
    pub fn open(path: &Path) -> Result<Program, Error> {
        let damaged = |what| Error::Program { path: path.display().to_string(), what };
        let mut file = File::open(path).map_err(Error::system("open", path))?;
        let mut words = read_words(&mut file).map_err(Error::system("read", path))?;
        if words.len() < HEAD_WORDS || words[0] != MAGIC {
            return Err(damaged("it does not begin as one"));
        }
        let handles = words[1];
        let expected = u64::from(words[2]) | u64::from(words[3]) << 32;
        words.drain(..HEAD_WORDS);
        if words.len() as u64 != expected || handles > HANDLES {
            return Err(damaged("its length is not what it states"));
        }
        let program = Program { words, handles };
        program.check().map_err(damaged)?;
        Ok(program)
    }

    /// One that was never in a file: what tests of collectors run.
    ///
    /// # Errors
    /// An operation names what is not there.
    pub fn of(operations: &[Operation], handles: u32) -> Result<Program, &'static str> {
        let mut words = Vec::new();
        operations.iter().for_each(|operation| operation.encode(&mut words));
        let program = Program { words, handles };
        program.check()?;
        Ok(program)
    }

    /// Handles that it names.
    pub fn handles(&self) -> u32 {
        self.handles
    }

    /// Its operations, in order.
    pub fn operations(&self) -> Operations<'_> {
        Operations { rest: &self.words }
    }

    fn check(&self) -> Result<(), &'static str> {
        let mut sizes: Vec<Option<Size>> = vec![None; self.handles as usize];
        let mut operations = self.operations();
        for operation in operations.by_ref() {
            check_operation(&operation, &mut sizes).ok_or("an operation names what is not there")?;
        }
        if operations.rest.is_empty() { Ok(()) } else { Err("an operation is none") }
    }
}

/// All of a file, in words; in parts, so that it is not in memory twice.
fn read_words(file: &mut File) -> std::io::Result<Vec<u32>> {
    let mut words = Vec::new();
    let mut bytes = Vec::with_capacity(PART);
    while Read::by_ref(file).take(PART as u64).read_to_end(&mut bytes)? > 0 {
        words.extend(
            bytes.chunks_exact(4).map(|four| u32::from_ne_bytes([four[0], four[1], four[2], four[3]])),
        );
        bytes.clear();
    }
    Ok(words)
}

/// What is known of a live object.
#[derive(Debug, Clone, Copy)]
struct Size {
    words: u32,
    scanned: u32,
}

fn check_operation(operation: &Operation, sizes: &mut [Option<Size>]) -> Option<()> {
    let live = |sizes: &[Option<Size>], handle: u32| sizes.get(handle as usize).copied().flatten();
    match *operation {
        Operation::Allocate { handle, words, scanned } => {
            let entry = sizes.get_mut(handle as usize)?;
            (entry.is_none() && scanned <= words).then(|| *entry = Some(Size { words, scanned }))
        }
        Operation::Edge { from, word, to } => {
            live(sizes, to)?;
            (word < live(sizes, from)?.scanned).then_some(())
        }
        Operation::Clear { from, word } => (word < live(sizes, from)?.scanned).then_some(()),
        Operation::Root(handle) | Operation::Release(handle) => live(sizes, handle).map(|_| ()),
        Operation::Point | Operation::RequestBegin(_) | Operation::RequestEnd(_) => Some(()),
        Operation::End(handle) => sizes.get_mut(handle as usize)?.take().map(|_| ()),
        Operation::Access(access) => {
            let end = access.offset + u64::from(access.bytes);
            (access.bytes > 0 && end <= 8 * u64::from(live(sizes, access.handle)?.words)).then_some(())
        }
    }
}

/// Operations in order.
#[derive(Debug)]
pub struct Operations<'a> {
    rest: &'a [u32],
}

impl Iterator for Operations<'_> {
    type Item = Operation;

    #[inline(always)]
    fn next(&mut self) -> Option<Operation> {
        let (operation, length) = Operation::decode(self.rest)?;
        self.rest = &self.rest[length..];
        Some(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(operations: &[Operation], handles: u32) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let mut assembler = Assembler::new(&path).unwrap();
        for operation in operations {
            assembler.push(*operation).unwrap();
        }
        assembler.finish(handles).unwrap();
        (folder, path)
    }

    const fn access(handle: u32, offset: u64, bytes: u32, store: bool) -> Operation {
        Operation::Access(Access { handle, offset, bytes, store })
    }

    const LEGAL: [Operation; 13] = [
        Operation::Allocate { handle: 0, words: 3, scanned: 2 },
        Operation::Allocate { handle: 1, words: 0, scanned: 0 },
        Operation::Edge { from: 0, word: 1, to: 1 },
        Operation::Point,
        Operation::Root(1),
        Operation::Release(0),
        Operation::Clear { from: 0, word: 1 },
        Operation::RequestBegin(3),
        access(0, 0, 24, true),
        access(0, 23, 1, false),
        Operation::RequestEnd(3),
        Operation::End(1),
        Operation::Point,
    ];

    #[test]
    fn a_program_is_read_as_it_was_written() {
        let (_folder, path) = written(&LEGAL, 2);
        let program = Program::open(&path).unwrap();
        assert_eq!(program.operations().collect::<Vec<_>>(), LEGAL);
        assert_eq!(program.handles(), 2);
    }

    #[test]
    fn accesses_of_large_objects_have_offsets_beyond_four_gigabytes() {
        let large = u32::MAX;
        let last = 8 * u64::from(large) - u64::from(Access::MOST_BYTES);
        let mut all = vec![Operation::Allocate { handle: 0, words: large, scanned: 0 }];
        for offset in [0, (1 << 21) - 1, 1 << 21, (1 << 32) - 1, 1 << 32, last] {
            all.extend([access(0, offset, 1, true), access(0, offset, Access::MOST_BYTES, false)]);
        }
        let program = Program::of(&all, 1).unwrap();
        assert_eq!(program.operations().collect::<Vec<_>>(), all);
        all.push(access(0, last + 1, Access::MOST_BYTES, false));
        assert!(Program::of(&all, 1).is_err());
    }

    #[test]
    fn operations_on_what_is_not_there_are_refused() {
        let edge = |from, word, to| Operation::Edge { from, word, to };
        let accesses =
            [access(0, 24, 1, false), access(0, 20, 5, true), access(1, 0, 1, false), access(0, 0, 0, false)];
        let others = [edge(0, 2, 1), edge(0, 0, 2), edge(2, 0, 0), Operation::End(7), LEGAL[0]];
        for wrong in others.into_iter().chain(accesses) {
            let (_folder, path) = written(&[&LEGAL[..3], &[wrong]].concat(), 2);
            assert!(Program::open(&path).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_program_that_was_cut_is_refused() {
        let (_folder, path) = written(&LEGAL, 2);
        let bytes = std::fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert!(Program::open(&path).is_err(), "{length} bytes");
        }
    }
}
