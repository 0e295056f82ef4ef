//! Sweeping: objects without a mark go to the free lists, chunks without a marked object to the free runs.
//!
//! Objects are cleared when they are reclaimed, so that malloc's are zero, as both versions have it: what a dead object
//! held must not keep others alive.

use core::ptr;

use heaptoll_runtime::WORD;

use crate::boehm::header::{CHUNK, Header, MARK_WORDS, has};
use crate::boehm::{Boehm, Version, first_bit, is_large};

impl<V: Version> Boehm<V> {
    /// Links the objects of a chunk that have no mark into `list`, cleared. Returns the list, and whether an object has
    /// a mark.
    ///
    /// # Safety
    /// The header is a chunk's of small objects, of which none is on a list.
    unsafe fn sweep_chunk(chunk: usize, header: &Header, list: usize) -> (usize, bool) {
        let (mut list, mut any, mut object) = (list, false, header.offset as usize);
        while object + header.size <= CHUNK {
            if has(&header.marks, object / WORD) {
                any = true;
            } else {
                let address = (chunk + object) as *mut usize;
                // SAFETY: the object is not marked: the program cannot reach it.
                unsafe {
                    ptr::write_bytes(address.add(1), 0, header.size / WORD - 1);
                    address.write(list);
                }
                list = address as usize;
            }
            object += header.size;
        }
        (list, any)
    }

    /// Sweeps the whole heap, chunk by chunk in order of address, and clears the marks.
    pub(crate) fn sweep_all(&mut self) {
        self.lists.fill(0);
        let (mut at, mut last) = (self.chunks.region.start(), 0);
        while at < self.chunks.region.end() {
            // SAFETY: a run's first chunk has a header; runs without a mark are in use by nothing.
            unsafe {
                let header = &mut *self.chunks.header(at);
                let extent = header.extent;
                if !self.chunks.is_head(at) {
                    last = at;
                    at += extent;
                    continue;
                }
                let dead = if is_large(header) {
                    !has(&header.marks, first_bit::<V>())
                } else {
                    let class = usize::from(header.class);
                    let (list, any) = Self::sweep_chunk(at, header, self.lists[class]);
                    if any {
                        self.lists[class] = list;
                    } else {
                        self.unlink(at, header);
                    }
                    !any
                };
                header.marks = [0; MARK_WORDS];
                if dead {
                    let dirty = is_large(header);
                    last = self.chunks.release(at, extent, dirty, last);
                    at = last + (*self.chunks.header(last)).extent;
                } else {
                    at += extent;
                }
            }
        }
    }

    /// Clears the links of a chunk's objects, all free: the chunk is zero then.
    ///
    /// # Safety
    /// The chunk was swept, and is taken apart.
    unsafe fn unlink(&self, chunk: usize, header: &Header) {
        let mut object = header.offset as usize;
        while object + header.size <= CHUNK {
            // SAFETY: the chunk was swept, and is taken apart, as this function requires.
            unsafe { ((chunk + object) as *mut usize).write(0) };
            object += header.size;
        }
    }

    /// Frees what has no mark at all, and leaves the other chunks to be swept.
    pub(crate) fn queue_all(&mut self) {
        self.lists.fill(0);
        self.pending.fill(0);
        let (mut at, mut last) = (self.chunks.region.start(), 0);
        while at < self.chunks.region.end() {
            // SAFETY: a run's first chunk has a header; runs without a mark are in use by nothing.
            unsafe {
                let header = &mut *self.chunks.header(at);
                let extent = header.extent;
                if !self.chunks.is_head(at) {
                    last = at;
                } else if header.marks == [0; MARK_WORDS] {
                    last = self.chunks.release(at, extent, true, last);
                    at = last + (*self.chunks.header(last)).extent;
                    continue;
                } else if !is_large(header) {
                    let class = usize::from(header.class);
                    header.pending = true;
                    header.next = self.pending[class];
                    self.pending[class] = at;
                }
                at += extent;
            }
        }
    }

    /// Sweeps chunks of a class until its list has an object; false when there are no more.
    pub fn sweep_for(&mut self, class: usize) -> bool {
        while self.lists[class] == 0 {
            let chunk = self.pending[class];
            if chunk == 0 {
                return false;
            }
            // SAFETY: a chunk that waits has a header, and none of its objects is on a list.
            unsafe {
                let header = &mut *self.chunks.header(chunk);
                self.pending[class] = header.next;
                (header.next, header.pending) = (0, false);
                self.lists[class] = Self::sweep_chunk(chunk, header, self.lists[class]).0;
            }
        }
        true
    }

    /// Sweeps all chunks that wait.
    pub(crate) fn sweep_pending(&mut self) {
        for class in V::CLASSES.lists() {
            while self.pending[class] != 0 {
                let list = core::mem::take(&mut self.lists[class]);
                self.sweep_for(class);
                // The former list goes after what was found.
                let mut end = &raw mut self.lists[class];
                // SAFETY: the first words of the free objects that `sweep_for` has linked, up to the link that is 0.
                unsafe {
                    while *end != 0 {
                        end = *end as *mut usize;
                    }
                    end.write(list);
                }
            }
        }
    }
}
