//! Makes a program of a trace with pointers, in two passes: the first finds every object's last touch and the words of
//! it that ever hold pointers, which replays must know from the beginning.

mod handles;
mod incoming;
mod lives;

use std::path::Path;

use heaptoll_moving_answers::Prepared;
use heaptoll_trace::graph::{Batch, Event, Reader};

use crate::error::Error;
use crate::program::{Access, Assembler, HANDLES, Operation, Program};
use handles::Handles;
use incoming::Edges;
use lives::Lives;

/// Reads the trace and writes the program.
///
/// # Errors
/// See [`Error`]: it is no trace with pointers, is empty, or too large for `memory_limit_bytes`.
pub fn prepare(trace: &Path, program: &Path, memory_limit_bytes: u64) -> Result<Prepared, Error> {
    let lives = Lives::read(trace, memory_limit_bytes)?;
    let mut reader = Reader::open(trace)?;
    let mut translation = Translation::new(trace, &lives, Assembler::new(program)?);
    translation.prepared.command.clone_from(&reader.header().command);
    let mut batch = Batch::default();
    while reader.read(&mut batch)? {
        let first = batch.next_event.saturating_sub(batch.events.len() as u64);
        for (number, event) in (first..).zip(&batch.events) {
            translation.release(number)?;
            translation.event(event)?;
        }
    }
    translation.release(u64::MAX - 1)?;
    let mut prepared = translation.finish()?;
    // Every replay would refuse it, and could not name the trace.
    Program::open(program).map_err(|error| match error {
        Error::Program { what, .. } => Error::Damaged { path: trace.display().to_string(), what },
        error => error,
    })?;
    prepared.warnings = reader.tables().incomplete();
    Ok(prepared)
}

struct Translation<'a> {
    trace: &'a Path,
    lives: &'a Lives,
    out: Assembler<'a>,
    handles: Handles,
    edges: Edges,
    /// Roots of the point that is open.
    roots: Vec<u32>,
    live_bytes: u64,
    prepared: Prepared,
}

impl<'a> Translation<'a> {
    fn new(trace: &'a Path, lives: &'a Lives, out: Assembler<'a>) -> Translation<'a> {
        let prepared = Prepared { objects: lives.len(), endless: lives.endless(), ..Prepared::default() };
        let (handles, edges) = (Handles::default(), Edges::default());
        Translation { trace, lives, out, handles, edges, roots: Vec::new(), live_bytes: 0, prepared }
    }

    /// Lets go of the objects whose last touch comes before the event of this number.
    fn release(&mut self, event: u64) -> Result<(), Error> {
        while let Some(handle) = self.handles.released_before(event) {
            self.out.push(Operation::Release(handle))?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<(), Error> {
        match *event {
            Event::Allocate { object, size, thread, .. } => self.allocate(object, size, thread),
            Event::Free { object, .. } => self.free(object),
            Event::Edge { from, offset, to, .. } => self.edge(from, offset, to),
            Event::Clear { from, offset } => self.clear(from, offset),
            Event::Touch { object } => match self.handles.of(object) {
                Some(handle) => self.out.push(Operation::Root(handle)),
                None => Ok(()),
            },
            Event::RootsBegin { .. } => {
                self.roots.clear();
                Ok(())
            }
            Event::Root { object, .. } => {
                self.roots.extend(self.handles.of(object));
                Ok(())
            }
            Event::RootsEnd { whole } => self.point(whole),
            Event::Access { object, offset, size, store, .. } => self.access(object, offset, size, store),
            Event::RequestBegin { thread } => self.out.push(Operation::RequestBegin(thread % HANDLES)),
            Event::RequestEnd { thread } => {
                self.prepared.requests += 1;
                self.out.push(Operation::RequestEnd(thread % HANDLES))
            }
            Event::Kept { .. } => Ok(()),
        }
    }

    /// An access that goes on beyond the object's end is cut off there: what lies behind it is another's in a replay.
    fn access(&mut self, object: u64, offset: u64, bytes: u64, store: bool) -> Result<(), Error> {
        let Some((handle, size)) = self.handles.with_size(object) else { return Ok(()) };
        self.prepared.accesses += 1;
        let own_bytes = size.next_multiple_of(8);
        let bytes = bytes.min(own_bytes.saturating_sub(offset)).min(u64::from(Access::MOST_BYTES)) as u32;
        if bytes == 0 {
            self.prepared.accesses_beyond += 1;
            return Ok(());
        }
        self.out.push(Operation::Access(Access { handle, offset, bytes, store }))
    }

    fn too_large(&self, what: &'static str) -> Error {
        Error::TooLarge { path: self.trace.display().to_string(), what }
    }

    fn allocate(&mut self, object: u64, size: u64, thread: u32) -> Result<(), Error> {
        let life = self.lives.of(object);
        let words =
            u32::try_from(size.div_ceil(8)).map_err(|_| self.too_large("an object of 32 GiB or more"))?;
        let handle = self
            .handles
            .add(object, size, life.last_touch)
            .ok_or_else(|| self.too_large("2^28 objects or more at once"))?;
        self.live_bytes += size;
        self.prepared.allocated_bytes += size;
        self.prepared.most_live_bytes = self.prepared.most_live_bytes.max(self.live_bytes);
        self.prepared.threads = self.prepared.threads.max(u64::from(thread) + 1);
        self.out.push(Operation::Allocate { handle, words, scanned: life.scanned.min(words) })
    }

    fn free(&mut self, object: u64) -> Result<(), Error> {
        let Some((handle, size)) = self.handles.end(object) else { return Ok(()) };
        self.live_bytes -= size;
        for (from, word) in self.edges.end(handle, self.lives.of(object).scanned) {
            self.prepared.dangling += 1;
            self.out.push(Operation::Clear { from, word })?;
        }
        self.out.push(Operation::End(handle))
    }

    fn edge(&mut self, from: u64, offset: u64, to: u64) -> Result<(), Error> {
        let (Some(from), Some(to)) = (self.handles.of(from), self.handles.of(to)) else { return Ok(()) };
        // Within the object, as the reader has proved: so below 2^32.
        let word = (offset / 8) as u32;
        self.prepared.edges += 1;
        self.edges.set(from, word, to);
        self.out.push(Operation::Edge { from, word, to })
    }

    fn clear(&mut self, from: u64, offset: u64) -> Result<(), Error> {
        let Some(from) = self.handles.of(from) else { return Ok(()) };
        let word = (offset / 8) as u32;
        if !self.edges.clear(from, word) {
            return Ok(());
        }
        self.out.push(Operation::Clear { from, word })
    }

    /// What was a root before is none any more, unless the scan was incomplete.
    fn point(&mut self, whole: bool) -> Result<(), Error> {
        self.prepared.root_points += 1;
        if whole {
            self.out.push(Operation::Point)?;
        } else {
            self.prepared.partial_root_points += 1;
        }
        self.roots.sort_unstable();
        self.roots.dedup();
        for handle in std::mem::take(&mut self.roots) {
            self.out.push(Operation::Root(handle))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Prepared, Error> {
        self.out.finish(self.handles.most())?;
        Ok(self.prepared)
    }
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
