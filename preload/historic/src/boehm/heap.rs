//! The heap: free lists of objects, chunks of them, and large objects.

use core::ffi::{CStr, c_int};
use core::ptr::{self, NonNull};

use heaptoll_runtime::{
    ADDRESSES, ALIGNMENT, Damage, Heap, Misuse, Piece, Reason, StatsReporter, WORD, round_up,
};

use crate::boehm::chunks::Chunks;
use crate::boehm::classes::{LISTS, MOST_CLASSES, MOST_WORDS};
use crate::boehm::header::CHUNK;
use crate::boehm::{BlackLists, LARGE, LARGE_POINTER_FREE, MarkStack, Mutators, Version};
use crate::support::{limit_from, status};

/// The variable of a heap's limit, bytes.
const LIMIT: &CStr = c"BW_HEAP";
/// A heap at its limit is full when a collection reclaims less than this part of it.
const SHORT: usize = 16;

/// A heap of a version of the collector.
pub struct Boehm<V: Version> {
    /// The free objects of each class, and of each class without pointers, linked through their first words, and zero after them.
    pub(crate) lists: [usize; LISTS],
    /// Bytes handed out since the last collection.
    pub(crate) allocated: usize,
    pub(crate) chunks: Chunks<V>,
    /// The chunks of each class that wait to be swept.
    pub(crate) pending: [usize; LISTS],
    pub(crate) stack: MarkStack,
    pub(crate) black_lists: BlackLists,
    pub(crate) mutators: Option<&'static dyn Mutators>,
    pub(crate) reporter: Option<&'static StatsReporter>,
    /// Collections finished or aborted.
    pub(crate) collections: u64,
    /// Live bytes after the last collection.
    pub(crate) live: usize,
    /// Bytes of roots in the last collection; stacks count twice.
    pub(crate) roots: usize,
    /// Bytes that the heap may have.
    limit: usize,
    /// The system, or the limit, has refused memory in this call.
    pub(crate) refused: bool,
    /// It was the limit.
    at_limit: bool,
    /// How many chunks the heap grows by next.
    pub increment: usize,
}

impl<V: Version> Boehm<V> {
    /// A heap that knows of no program: it never collects.
    pub const fn new() -> Boehm<V> {
        Boehm {
            lists: [0; LISTS],
            allocated: 0,
            chunks: Chunks::new(),
            pending: [0; LISTS],
            stack: MarkStack::new(),
            black_lists: BlackLists::new(),
            mutators: None,
            reporter: None,
            collections: 0,
            live: 0,
            roots: 0,
            limit: usize::MAX,
            refused: false,
            at_limit: false,
            increment: 0,
        }
    }

    /// A heap that collects what this program cannot reach.
    pub const fn of(mutators: &'static dyn Mutators) -> Boehm<V> {
        let mut heap = Boehm::new();
        heap.mutators = Some(mutators);
        heap
    }

    /// The heap's size, bytes.
    pub const fn bytes(&self) -> usize {
        self.chunks.region.end() - self.chunks.region.start()
    }

    /// Bytes handed out since the last collection.
    pub const fn allocated(&self) -> usize {
        self.allocated
    }

    /// Bytes of roots in the last collection, stacks counted twice.
    pub const fn roots(&self) -> usize {
        self.roots
    }

    /// Whether the class's list has an object.
    pub const fn has(&self, class: usize) -> bool {
        self.lists[class] != 0
    }

    /// Whether any chunk is free.
    pub const fn has_free_chunks(&self) -> bool {
        self.chunks.first_free != 0
    }

    /// Extends the heap by `most` chunks, or `least`, at least 1, if the system does not give as many. `None` when it
    /// does not give these either.
    pub fn grow(&mut self, least: usize, most: usize) -> Option<()> {
        // A call requests only once what it was refused.
        if self.refused {
            return None;
        }
        let least = least.checked_mul(CHUNK)?;
        let left = self.limit.saturating_sub(self.bytes());
        if least > left {
            (self.refused, self.at_limit) = (true, true);
            return None;
        }
        let grown = self.chunks.grow(least, most.saturating_mul(CHUNK).max(least).min(left));
        self.refused = grown.is_none();
        grown
    }

    /// Whether memory is short: the system, or the limit, refuses more of it, and `found` is so little that a program
    /// at its limit would spend its time in collections.
    pub const fn is_short(&self, found: &crate::boehm::CollectionOutcome) -> bool {
        self.refused && found.reclaimed_bytes < self.bytes() / SHORT
    }

    /// Takes a free run of `bytes`, whole chunks.
    pub fn take(&mut self, bytes: usize) -> Option<usize> {
        let (run, dirty) = self.chunks.take(bytes, &self.black_lists)?;
        if dirty || !V::KNOWS_CLEAN {
            // SAFETY: the run was just taken off the free list, and is longer than its header.
            unsafe {
                let front = Chunks::<V>::HEADER_BYTES;
                ptr::write_bytes((run + front) as *mut u8, 0, bytes - front);
            }
        }
        Some(run)
    }

    /// Carves a chunk just taken into objects of a class, all of them free.
    pub fn carve(&mut self, class: usize, chunk: usize) {
        let (size, front) = (V::CLASSES.bytes(class), Chunks::<V>::HEADER_BYTES);
        // SAFETY: the chunk was just taken, and `take` has cleared it.
        unsafe {
            let header = &mut *self.chunks.header(chunk);
            (header.size, header.extent, header.offset) = (size, CHUNK, front as u32);
            header.class = class as u8;
            let mut object = front;
            while object + size <= CHUNK {
                ((chunk + object) as *mut usize).write(self.lists[class]);
                self.lists[class] = chunk + object;
                object += size;
            }
        }
        self.chunks.install(chunk, CHUNK);
    }

    /// The class for a request; `None` for a large one.
    #[inline(always)]
    fn class(bytes: usize) -> Option<usize> {
        let words = (bytes + V::SLOP + WORD - 1) >> WORD.trailing_zeros();
        (words <= MOST_WORDS).then(|| V::CLASSES.of(words))
    }

    /// Takes the first object of a class's list.
    #[inline(always)]
    fn first(&mut self, class: usize) -> NonNull<u8> {
        let object = self.lists[class] as *mut usize;
        self.allocated += V::CLASSES.bytes(class);
        // SAFETY: the list is not empty; its objects are free, and not null.
        unsafe {
            self.lists[class] = object.read();
            object.write(0);
            NonNull::new_unchecked(object.cast())
        }
    }

    #[cold]
    #[inline(never)]
    fn refilled(&mut self, class: usize) -> Option<NonNull<u8>> {
        (self.refused, self.at_limit) = (false, false);
        self.stack.prepare()?;
        if V::refill(self, class).is_none() {
            return self.nothing();
        }
        Some(self.first(class))
    }

    /// The end of a call that returns null: reports whether the limit is the cause.
    fn nothing<T>(&self) -> Option<T> {
        if let (true, Some(reporter)) = (self.at_limit, self.reporter) {
            reporter.refused();
        }
        None
    }

    /// Gives the heap a limit, bytes: whole chunks.
    #[doc(hidden)]
    pub fn limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// A large object: chunks of its own.
    #[cold]
    #[inline(never)]
    fn large(&mut self, alignment: usize, bytes: usize, class: u8) -> Option<NonNull<u8>> {
        (self.refused, self.at_limit) = (false, false);
        self.stack.prepare()?;
        // Where it begins in its first chunk; for an alignment above a chunk, in the second.
        let offset = match Chunks::<V>::HEADER_BYTES {
            0 => 0,
            front => round_up(front, alignment.min(CHUNK)),
        };
        let bytes = bytes.max(1).checked_add(V::SLOP)?;
        let extent = round_up(bytes.checked_add(offset)?, CHUNK);
        let spare = alignment.saturating_sub(CHUNK);
        let whole = extent.checked_add(spare).filter(|&whole| whole < ADDRESSES)?;
        let Some(taken) = V::run(self, whole) else { return self.nothing() };
        // SAFETY: the run was just taken off the free list; what the alignment does not need goes back.
        unsafe {
            let run = round_up(taken + offset, alignment) - offset;
            if run > taken {
                self.chunks.release(taken, run - taken, true, 0);
            }
            let rest = taken + spare - run;
            if rest > 0 {
                self.chunks.release(run + extent, rest, true, 0);
            }
            let header = self.chunks.header(run);
            if run > taken {
                ptr::write_bytes(header, 0, 1);
            }
            (*header).size = extent - offset;
            (*header).extent = extent;
            (*header).offset = offset as u32;
            (*header).class = class;
            self.chunks.install(run, extent);
            self.allocated += extent - offset;
            NonNull::new((run + offset) as *mut u8)
        }
    }

    /// The object that begins at an address, and its size.
    fn beginning(&self, block: NonNull<u8>) -> Result<(crate::boehm::chunks::Object, usize), Misuse> {
        let address = block.as_ptr() as usize;
        let object = self.chunks.find(address).ok_or(Misuse::Foreign)?;
        if object.address != address {
            return Err(Misuse::Damaged);
        }
        // SAFETY: `find` returned the first chunk of a run in use, which has a header.
        Ok((object, unsafe { (*self.chunks.header(object.chunk)).size }))
    }
}

impl<V: Version> core::fmt::Debug for Boehm<V> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct(V::NAME).field("bytes", &self.bytes()).field("collections", &self.collections).finish()
    }
}

impl<V: Version> Default for Boehm<V> {
    fn default() -> Boehm<V> {
        Boehm::new()
    }
}

impl<V: Version> Heap for Boehm<V> {
    const NAME: &'static str = V::NAME;
    const FREES: bool = false;
    const CLEARS: bool = true;

    heaptoll_runtime::region_of_heap!(chunks.region);

    #[inline(always)]
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        match Self::class(bytes) {
            Some(class) if self.lists[class] != 0 => Some(self.first(class)),
            Some(class) => self.refilled(class),
            None => self.large(ALIGNMENT, bytes, LARGE),
        }
    }

    fn allocate_pointer_free(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        match Self::class(bytes).map(|class| class + MOST_CLASSES) {
            Some(list) if self.lists[list] != 0 => Some(self.first(list)),
            Some(list) => self.refilled(list),
            None => self.large(ALIGNMENT, bytes, LARGE_POINTER_FREE),
        }
    }

    fn allocate_aligned(&mut self, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        let fits = |class: &usize| {
            V::CLASSES.bytes(*class) % alignment == 0 && Chunks::<V>::HEADER_BYTES.is_multiple_of(alignment)
        };
        match Self::class(bytes).and_then(|class| (class..V::CLASSES.count()).find(fits)) {
            Some(class) if self.lists[class] != 0 => Some(self.first(class)),
            Some(class) => self.refilled(class),
            None => self.large(alignment, bytes, LARGE),
        }
    }

    #[inline(always)]
    unsafe fn free(&mut self, _: NonNull<u8>) -> Result<(), Misuse> {
        Ok(())
    }

    unsafe fn resize(&mut self, block: NonNull<u8>, bytes: usize) -> Result<bool, Misuse> {
        let (_, size) = self.beginning(block)?;
        let needed = bytes.saturating_add(V::SLOP);
        if needed > size || bytes < size / 2 {
            return Ok(false);
        }
        // What is no longer used must not keep anything alive.
        // SAFETY: the object is the caller's, as `Heap::resize` requires, and `beginning` has shown that it has `size`
        // bytes.
        unsafe { ptr::write_bytes(block.as_ptr().add(bytes), 0, size - bytes) };
        Ok(true)
    }

    unsafe fn discard(&mut self, block: NonNull<u8>) -> Result<(), Misuse> {
        let (object, size) = self.beginning(block)?;
        // SAFETY: the program no longer uses the object. One in a chunk that waits to be swept is left to the sweep.
        unsafe {
            let header = &mut *self.chunks.header(object.chunk);
            if Chunks::<V>::is_large(header) {
                let extent = header.extent;
                self.chunks.release(object.chunk, extent, true, 0);
            } else if header.pending {
                crate::boehm::header::clear(&mut header.marks, object.bit);
            } else {
                let class = usize::from(header.class);
                ptr::write_bytes(block.as_ptr(), 0, size);
                (object.address as *mut usize).write(self.lists[class]);
                self.lists[class] = object.address;
            }
            self.allocated = self.allocated.saturating_sub(size);
        }
        Ok(())
    }

    unsafe fn usable(&self, block: NonNull<u8>) -> usize {
        self.beginning(block).map_or(0, |(_, size)| size - V::SLOP)
    }

    fn walk(&self, visit: &mut dyn FnMut(Piece)) {
        self.walk_pieces(visit);
    }

    fn check(&self) -> Result<(), Damage> {
        self.check_all()
    }

    fn start(&mut self, reporter: &'static StatsReporter) {
        self.limit = limit_from(LIMIT);
        self.chunks.region.report_to(reporter);
        self.reporter = Some(reporter);
        if let Some(mutators) = self.mutators {
            mutators.start();
        }
    }

    fn collect(&mut self) -> c_int {
        if self.mutators.is_none() {
            return libc::ENOTSUP;
        }
        let collected = self.collect_for(Reason::Requested);
        self.sweep_pending();
        status(collected)
    }

    fn after_fork_in_child(&mut self) {
        if let Some(mutators) = self.mutators {
            mutators.after_fork_in_child();
        }
    }
}
