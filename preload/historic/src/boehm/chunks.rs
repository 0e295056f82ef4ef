//! The heap as chunks: which are in use, which are free, and what object an address lies in.
//!
//! Free chunks form runs on a list in order of address; neighbours are joined. A map has a byte for each chunk: nothing
//! there, the first chunk of something, or how far back that is.

use core::marker::PhantomData;
use core::ptr;

use heaptoll_runtime::{Region, round_up};

use crate::boehm::header::{Bits, CHUNK, HEADER, Header};
use crate::boehm::{BlackLists, Buffer, Version};

/// No object lies in the chunk.
const NOTHING: u8 = 0;
/// The chunk has a header of small objects or of a large one.
const HEAD: u8 = 0x7f;
/// The farthest that a step back goes; there may be several.
const FARTHEST: usize = 0x7e;

/// An object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// The chunk with its header.
    pub chunk: usize,
    /// Its address.
    pub address: usize,
    /// Its mark bit.
    pub bit: usize,
}

/// The chunks of a heap.
pub struct Chunks<V> {
    pub region: Region,
    map: Buffer<u8>,
    /// The headers, where they do not lie in the chunks.
    table: Buffer<Header>,
    /// A set of bits for each chunk, for walks and checks; nothing of it is touched otherwise.
    scratch: Buffer<Bits>,
    /// The first free run, 0 for none.
    pub first_free: usize,
    /// The free run after which the next search begins; 0 for before the first.
    pub rover: usize,
    of: PhantomData<V>,
}

impl<V: Version> Chunks<V> {
    pub const fn new() -> Chunks<V> {
        Chunks {
            region: Region::new(),
            map: Buffer::new(),
            table: Buffer::new(),
            scratch: Buffer::new(),
            first_free: 0,
            rover: 0,
            of: PhantomData,
        }
    }

    /// Bytes of a chunk before its objects.
    pub const HEADER_BYTES: usize = if V::HEADER_INSIDE { HEADER } else { 0 };

    /// Ranges of the collector's own, to be left out of the roots.
    pub fn own(&self) -> [core::ops::Range<usize>; 4] {
        [self.region.start()..self.region.end(), self.map.range(), self.table.range(), self.scratch.range()]
    }

    /// A chunk's number.
    #[inline(always)]
    pub fn number(&self, chunk: usize) -> usize {
        (chunk - self.region.start()) / CHUNK
    }

    /// A chunk's header.
    #[inline(always)]
    pub fn header(&self, chunk: usize) -> *mut Header {
        if V::HEADER_INSIDE { chunk as *mut Header } else { self.table.at(self.number(chunk)) }
    }

    /// A chunk's bits for walks and checks.
    pub fn scratch(&self, chunk: usize) -> *mut Bits {
        self.scratch.at(self.number(chunk))
    }

    /// Whether something begins in the chunk.
    pub fn is_head(&self, chunk: usize) -> bool {
        // SAFETY: the map has a byte for each chunk of the region.
        unsafe { self.map.at(self.number(chunk)).read() == HEAD }
    }

    /// Whether the chunk is free.
    pub fn is_nothing(&self, chunk: usize) -> bool {
        // SAFETY: the map has a byte for each chunk of the region.
        unsafe { self.map.at(self.number(chunk)).read() == NOTHING }
    }

    /// The object that an address lies in.
    #[inline(always)]
    pub fn find(&self, address: usize) -> Option<Object> {
        if !self.region.contains(address) {
            return None;
        }
        let mut chunk = address & !(CHUNK - 1);
        loop {
            // SAFETY: the map has a byte for each chunk of the region; steps back do not leave the region.
            match unsafe { self.map.at(self.number(chunk)).read() } {
                HEAD => break,
                NOTHING => return None,
                back => chunk -= usize::from(back) * CHUNK,
            }
        }
        // SAFETY: the map has shown that the chunk is the first of a run in use, which has a header.
        let header = unsafe { &*self.header(chunk) };
        let offset = header.offset as usize;
        let displacement = (address - chunk).checked_sub(offset)?;
        if Self::is_large(header) {
            return (displacement < header.size).then_some(Object {
                chunk,
                address: chunk + offset,
                bit: Self::first_bit(),
            });
        }
        let start = offset + V::CLASSES.which(usize::from(header.class), displacement) * header.size;
        (start + header.size <= CHUNK).then_some(Object { chunk, address: chunk + start, bit: start / 8 })
    }

    /// Whether a header is that of a large object.
    #[inline(always)]
    pub const fn is_large(header: &Header) -> bool {
        crate::boehm::is_large(header)
    }

    /// The mark bit of a large object.
    pub const fn first_bit() -> usize {
        Self::HEADER_BYTES / 8
    }

    /// Chunk by chunk that something begins in, and run by run that is free, in order of address.
    pub fn runs(&self) -> Runs<'_, V> {
        Runs { chunks: self, at: self.region.start(), free: self.first_free }
    }

    /// Makes a chunk, or the first of a run, one in which objects begin.
    pub fn install(&self, chunk: usize, extent: usize) {
        // SAFETY: the map has a byte for each chunk of the region.
        unsafe {
            let first = self.map.at(self.number(chunk));
            first.write(HEAD);
            for back in 1..extent / CHUNK {
                first.add(back).write(back.min(FARTHEST) as u8);
            }
        }
    }

    /// Extends the heap by `most` bytes, or `least` if the system does not give as much; whole chunks, not nothing.
    /// `None` when it does not give these either.
    pub fn grow(&mut self, least: usize, most: usize) -> Option<()> {
        debug_assert!(least > 0 && least <= most);
        let mut most = most;
        while self.prepare(most).is_none() {
            if most == least {
                return None;
            }
            most = round_up(most / 2, CHUNK).max(least);
        }
        let (start, bytes) = self.region.grow_within(least, most)?;
        // SAFETY: `grow_within` returned chunks that are new and zero.
        unsafe { self.release(start.as_ptr() as usize, bytes, false, 0) };
        Some(())
    }

    /// Makes space in the tables for `bytes` more.
    fn prepare(&mut self, bytes: usize) -> Option<()> {
        let chunks = (self.region.end() - self.region.start()).checked_add(bytes)? / CHUNK;
        self.map.reserve(chunks)?;
        self.scratch.reserve(chunks)?;
        if !V::HEADER_INSIDE {
            self.table.reserve(chunks)?;
        }
        Some(())
    }

    /// Makes a run of chunks a free one, and joins it with its neighbours. `dirty`: its bytes after a header's are not
    /// zero. Returns the run it is in now, from where the search for a later one may begin (0: from the first).
    ///
    /// # Safety
    /// The run is in use by nothing; `from` is a free run before it, or 0.
    pub unsafe fn release(&mut self, run: usize, extent: usize, dirty: bool, from: usize) -> usize {
        // SAFETY: chunks of the region, whose headers the heap writes; free runs are on the list.
        unsafe {
            ptr::write_bytes(self.map.at(self.number(run)), NOTHING, extent / CHUNK);
            // Joining may take the run away that the next search was to begin at.
            self.rover = 0;
            let (mut before, mut after) = (0, if from == 0 { self.first_free } else { from });
            while after != 0 && after < run {
                (before, after) = (after, (*self.header(after)).next);
            }
            let header = self.header(run);
            self.wipe(run);
            (*header).extent = extent;
            (*header).dirty = dirty;
            (*header).next = after;
            if after == run + extent {
                self.join(run, after);
            }
            match before {
                0 => self.first_free = run,
                before if before + (*self.header(before)).extent == run => {
                    self.join(before, run);
                    return before;
                }
                before => (*self.header(before)).next = run,
            }
            run
        }
    }

    /// Joins a free run and the one after it.
    ///
    /// # Safety
    /// The second begins where the first ends, and both are free.
    unsafe fn join(&mut self, first: usize, second: usize) {
        // SAFETY: both runs are free, as this function requires, and free runs have headers.
        unsafe {
            let (first, other) = (self.header(first), self.header(second));
            (*first).extent += (*other).extent;
            (*first).next = (*other).next;
            (*first).dirty |= (*other).dirty;
            if !(*first).dirty {
                self.wipe(second);
            }
        }
    }

    /// Clears a header.
    ///
    /// # Safety
    /// The chunk is in use by nothing.
    unsafe fn wipe(&self, chunk: usize) {
        // SAFETY: the chunk is in use by nothing, as this function requires.
        unsafe { ptr::write_bytes(self.header(chunk), 0, 1) };
    }

    /// Takes a run of `bytes`, whole chunks, off the list: the next that is large enough, from where the last search
    /// ended on. A version with black lists skips runs that are larger than the next is that would do, and chunks that
    /// are listed. Its header is wiped; returns whether its bytes are not known to be zero.
    pub fn take(&mut self, bytes: usize, lists: &BlackLists) -> Option<(usize, bool)> {
        let (mut before, mut wrapped) = (self.rover, false);
        loop {
            // SAFETY: `before` is a free run or 0, as `next` is.
            let run = unsafe { if before == 0 { self.first_free } else { (*self.header(before)).next } };
            if wrapped && before == self.rover {
                return None;
            }
            wrapped = true;
            if run == 0 {
                // Once around from the end of the list to its beginning.
                if before == 0 {
                    return None;
                }
                before = 0;
                continue;
            }
            // SAFETY: `run` was taken from the list of free runs, which have headers.
            let (extent, next) = unsafe { ((*self.header(run)).extent, (*self.header(run)).next) };
            let start = if extent >= bytes { self.start_in(run, extent, next, bytes, lists) } else { None };
            let Some(start) = start else {
                before = run;
                continue;
            };
            // SAFETY: `start_in` has found that the free run has `bytes` from `start` on.
            return Some(unsafe { self.cut(before, run, start, bytes) });
        }
    }

    /// Where in a free run that is large enough to begin; `None` where not to.
    fn start_in(
        &self,
        run: usize,
        extent: usize,
        next: usize,
        bytes: usize,
        lists: &BlackLists,
    ) -> Option<usize> {
        if !V::BLACK_LISTS {
            return Some(run);
        }
        let next = if next == 0 { self.first_free } else { next };
        // SAFETY: `next` is on the list of free runs, which is not empty: `run` is on it.
        let other = unsafe { (*self.header(next)).extent };
        if other < extent && other >= bytes && lists.listed(next, bytes).is_none() {
            return None;
        }
        let mut start = run;
        while run + extent - start >= bytes {
            match lists.listed(start, bytes) {
                None => return Some(start),
                Some(listed) => start = listed + CHUNK,
            }
        }
        None
    }

    /// Takes `bytes` from `start` on out of a free run.
    ///
    /// # Safety
    /// The run is free, behind `before` on the list (0: the first), and large enough.
    unsafe fn cut(&mut self, before: usize, run: usize, start: usize, bytes: usize) -> (usize, bool) {
        // SAFETY: the run is free, behind `before` on the list (0: the first), and large enough, as this function
        // requires; what remains before and behind is free still.
        unsafe {
            let Header { extent, next, dirty, .. } = ptr::read(self.header(run));
            let rest = start + bytes;
            let mut after = next;
            if rest < run + extent {
                self.wipe(rest);
                let header = self.header(rest);
                (*header).extent = run + extent - rest;
                (*header).next = next;
                (*header).dirty = dirty;
                after = rest;
            }
            if start > run {
                (*self.header(run)).extent = start - run;
                (*self.header(run)).next = after;
            } else {
                match before {
                    0 => self.first_free = after,
                    before => (*self.header(before)).next = after,
                }
            }
            // The first version goes on at what remains, the second behind it.
            self.rover = if V::BLACK_LISTS { after } else { before };
            self.wipe(start);
            (start, dirty)
        }
    }
}

/// See [`Chunks::runs`].
pub struct Runs<'a, V> {
    chunks: &'a Chunks<V>,
    at: usize,
    free: usize,
}

/// A chunk with objects, or a large object's or free run of them.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub chunk: usize,
    pub extent: usize,
    pub free: bool,
}

impl<V: Version> Iterator for Runs<'_, V> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let chunk = self.at;
        if chunk >= self.chunks.region.end() {
            return None;
        }
        let free = chunk == self.free;
        // SAFETY: a free run of the list, or the first chunk after a run, which has a header.
        let header = unsafe { &*self.chunks.header(chunk) };
        if free {
            self.free = header.next;
        }
        self.at += header.extent;
        Some(Run { chunk, extent: header.extent, free })
    }
}
