//! Walking and checking a heap. Only the lists show which objects are free, so these are entered into a set of bits
//! outside the heap first.

use heaptoll_runtime::{Damage, Piece, WORD};

use crate::boehm::header::{CHUNK, Header, MARK_WORDS, has, set};
use crate::boehm::{Boehm, Version, first_bit, is_large};

impl<V: Version> Boehm<V> {
    /// Enters the free lists into the scratch bits. Fails at an object that cannot be on its list.
    fn note_free(&self) -> Result<(), Damage> {
        for run in self.chunks.runs() {
            // SAFETY: the scratch table has a place for each chunk.
            unsafe { *self.chunks.scratch(run.chunk) = [0; MARK_WORDS] };
        }
        for class in V::CLASSES.lists() {
            let mut address = self.lists[class];
            while address != 0 {
                let object = self.chunks.find(address).filter(|object| object.address == address);
                let Some(object) = object else {
                    return Err(Damage { address, invariant: "a free list leads from object to object" });
                };
                // SAFETY: the object's chunk has a header and a place in the scratch table.
                let (header, bits) =
                    unsafe { (&*self.chunks.header(object.chunk), &mut *self.chunks.scratch(object.chunk)) };
                let listed = usize::from(header.class) == class && !header.pending;
                Damage::unless(listed, address, "a free object is on the list of its class, and was swept")?;
                Damage::unless(!set(bits, object.bit), address, "an object is on its list once")?;
                // SAFETY: a free object, of which the first word is the link.
                address = unsafe { (address as *const usize).read() };
            }
        }
        Ok(())
    }

    /// Shows the pieces of a sound heap.
    pub(crate) fn walk_pieces(&self, visit: &mut dyn FnMut(Piece)) {
        if self.note_free().is_err() {
            return;
        }
        for run in self.chunks.runs() {
            if run.free {
                visit(Piece::free(run.chunk, run.extent, 0));
                continue;
            }
            // SAFETY: a run in use has a header, its first chunk a place in the scratch table.
            let (header, bits) =
                unsafe { (&*self.chunks.header(run.chunk), &*self.chunks.scratch(run.chunk)) };
            let offset = header.offset as usize;
            if is_large(header) {
                visit(Piece::live(run.chunk, run.extent, run.chunk + offset, offset + V::SLOP));
                continue;
            }
            if offset > 0 {
                visit(Piece::metadata(run.chunk, offset));
            }
            let mut at = offset;
            while at + header.size <= CHUNK {
                let (address, bit) = (run.chunk + at, at / WORD);
                let free = has(bits, bit) || header.pending && !has(&header.marks, bit);
                visit(match free {
                    true => Piece::free(address, header.size, 0),
                    false => Piece::live(address, header.size, address, V::SLOP),
                });
                at += header.size;
            }
            if at < CHUNK {
                visit(Piece::unused(run.chunk + at, CHUNK - at));
            }
        }
    }

    /// Proves every invariant.
    pub(crate) fn check_all(&self) -> Result<(), Damage> {
        let region = &self.chunks.region;
        let (mut at, mut free, mut was_free, mut waiting) =
            (region.start(), self.chunks.first_free, false, 0usize);
        while at < region.end() {
            // SAFETY: the first chunk of a run has a header, and the run's end was verified.
            let header = unsafe { &*self.chunks.header(at) };
            let whole = header.extent.is_multiple_of(CHUNK) && header.extent != 0;
            Damage::unless(
                whole && header.extent <= region.end() - at,
                at,
                "a run is of whole chunks of the heap",
            )?;
            let is_free = at == free;
            Damage::unless(
                is_free != self.chunks.is_head(at),
                at,
                "a run is in the map or on the list of free ones",
            )?;
            if is_free {
                Damage::unless(!was_free, at, "free runs that touch are one")?;
                let on = header.next == 0 || header.next > at;
                Damage::unless(on, at, "free runs are listed in order of address")?;
                self.check_free(at, header)?;
                free = header.next;
            } else {
                self.check_used(at, header)?;
                waiting += usize::from(header.pending);
            }
            was_free = is_free;
            at += header.extent;
        }
        Damage::unless(free == 0, free, "the free runs on the list lie in the heap")?;
        let rover = self.chunks.rover;
        let valid = rover == 0 || self.chunks.runs().any(|run| run.free && run.chunk == rover);
        Damage::unless(valid, rover, "the next search begins at a free run")?;
        self.note_free()?;
        self.check_waiting(waiting)
    }

    fn check_free(&self, run: usize, header: &Header) -> Result<(), Damage> {
        let mut chunk = run;
        while chunk < run + header.extent {
            Damage::unless(self.chunks.is_nothing(chunk), chunk, "a free chunk is not in the map")?;
            chunk += CHUNK;
        }
        if header.dirty {
            return Ok(());
        }
        let first = if V::HEADER_INSIDE { run + size_of::<Header>() } else { run };
        // SAFETY: the run's words, which no thread writes.
        let words = unsafe {
            core::slice::from_raw_parts(first as *const usize, (run + header.extent - first) / WORD)
        };
        let odd = words.iter().position(|&word| word != 0);
        Damage::unless(odd.is_none(), first + odd.unwrap_or(0) * WORD, "a clean free run is zero")
    }

    fn check_used(&self, run: usize, header: &Header) -> Result<(), Damage> {
        let header_bytes = crate::boehm::header_bytes::<V>();
        let mut allowed = [0; MARK_WORDS];
        if is_large(header) {
            let offset = header.offset as usize;
            Damage::unless(
                offset >= header_bytes && offset <= CHUNK,
                run,
                "a large object begins after its header",
            )?;
            Damage::unless(
                header.size == header.extent - offset,
                run,
                "a large object ends with its chunks",
            )?;
            set(&mut allowed, first_bit::<V>());
        } else {
            let class = usize::from(header.class);
            let known = V::CLASSES.lists().any(|list| list == class);
            Damage::unless(
                known && header.size == V::CLASSES.bytes(class),
                run,
                "a chunk's objects are of its class",
            )?;
            let one = header.extent == CHUNK && header.offset as usize == header_bytes;
            Damage::unless(one, run, "a chunk of small objects is one chunk")?;
            let mut at = header_bytes;
            while at + header.size <= CHUNK {
                set(&mut allowed, at / WORD);
                at += header.size;
            }
        }
        let stray = header.marks.iter().zip(&allowed).any(|(mark, allowed)| mark & !allowed != 0);
        Damage::unless(!stray, run, "marks are at the beginnings of objects")?;
        let marked = header.marks != [0; MARK_WORDS];
        Damage::unless(!(V::EAGER && marked), run, "no mark outlives its collection")?;
        let mut chunk = run + CHUNK;
        while chunk < run + header.extent {
            let back = self.chunks.find(chunk).is_some_and(|object| object.chunk == run);
            Damage::unless(back, chunk, "a large object's chunks lead back to its first")?;
            chunk += CHUNK;
        }
        Ok(())
    }

    fn check_waiting(&self, mut waiting: usize) -> Result<(), Damage> {
        for class in V::CLASSES.lists() {
            let mut chunk = self.pending[class];
            while chunk != 0 {
                let inside = self.chunks.region.contains(chunk) && self.chunks.is_head(chunk) && waiting > 0;
                Damage::unless(inside, chunk, "chunks that wait to be swept are there, each once")?;
                // SAFETY: something begins in the chunk, so it has a header.
                let header = unsafe { &*self.chunks.header(chunk) };
                let right = header.pending && usize::from(header.class) == class;
                Damage::unless(right, chunk, "a chunk waits with those of its class")?;
                waiting -= 1;
                chunk = header.next;
            }
        }
        Damage::unless(waiting == 0, 0, "a chunk that waits is on the list of those")
    }
}
