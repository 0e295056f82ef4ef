//! Runs of chunks: first fit in a list of free runs in order of address, and the table that grows with the heap.

use heaptoll_runtime::PAGE;

use crate::haertel::{CHUNK, ChunkEntry, ChunkKind, Haertel, Table};

/// Entries of the first table: a heap of 4 MiB.
const FIRST_TABLE: u32 = 1024;

/// The largest heap, chunks: 4 TiB.
const MOST: u32 = 1 << 30;

const _: () = assert!(CHUNK == PAGE, "regions begin at a page, and so must chunks");

impl Haertel {
    /// Chunks that the heap has; they are numbered 1 to this.
    #[inline(always)]
    pub(crate) fn chunks(&self) -> u32 {
        ((self.region.end() - self.region.start()) / CHUNK) as u32
    }

    /// A chunk's address.
    #[inline(always)]
    pub(crate) fn address(&self, chunk: u32) -> usize {
        self.region.start() + (chunk as usize - 1) * CHUNK
    }

    /// The chunk of an address of the heap.
    #[inline(always)]
    pub(crate) fn chunk_of(&self, address: usize) -> u32 {
        ((address - self.region.start()) / CHUNK) as u32 + 1
    }

    /// A live run of so many chunks, by its first.
    pub(crate) fn take_run(&mut self, chunks: usize) -> Option<u32> {
        let chunks = u32::try_from(chunks).ok().filter(|&chunks| chunks < MOST)?;
        if self.table.capacity() == 0 {
            return self.grow(chunks);
        }
        let start = self.rover;
        let (mut run, mut steps) = (start, 1);
        while self.table[run].count < chunks {
            run = self.table[run].next;
            if run == start {
                self.search.record(steps);
                return self.grow(chunks);
            }
            steps += 1;
        }
        self.search.record(steps);
        self.cut(run, chunks);
        self.table[run] = ChunkEntry::run(ChunkKind::LIVE, chunks);
        Some(run)
    }

    /// Takes the first `chunks` of a free run out of the list; the rest keeps its place. The next search begins behind.
    fn cut(&mut self, run: u32, chunks: u32) {
        let ChunkEntry { count, next, previous, .. } = self.table[run];
        let rest = if count > chunks { run + chunks } else { next };
        if count > chunks {
            self.table[rest] =
                ChunkEntry { kind: ChunkKind::FREE, log: 0, count: count - chunks, next, previous };
            self.table[next].previous = rest;
        } else {
            self.table[next].previous = previous;
        }
        self.table[previous].next = rest;
        self.table[run] = ChunkEntry::INSIDE;
        self.rover = rest;
    }

    /// Makes a live run a free one, coalesced with its neighbours.
    pub(crate) fn free_run(&mut self, run: u32) {
        // The free run before it is sought from where the list was touched last, in either direction.
        let (mut before, mut steps) = (self.rover, 1);
        if before > run {
            while before > run {
                before = self.table[before].previous;
                steps += 1;
            }
        } else {
            loop {
                let next = self.table[before].next;
                if next == 0 || next > run {
                    break;
                }
                before = next;
                steps += 1;
            }
        }
        self.search.record(steps);
        let count = self.table[run].count;
        let mut whole = run;
        if before + self.table[before].count == run {
            self.table[before].count += count;
            self.table[run] = ChunkEntry::INSIDE;
            whole = before;
        } else {
            let next = self.table[before].next;
            self.table[run] = ChunkEntry { kind: ChunkKind::FREE, log: 0, count, next, previous: before };
            self.table[before].next = run;
            self.table[next].previous = run;
        }
        let ChunkEntry { count, next, .. } = self.table[whole];
        if whole + count == next {
            let ChunkEntry { count: more, next: after, .. } = self.table[next];
            self.table[whole].count = count + more;
            self.table[whole].next = after;
            self.table[after].previous = whole;
            self.table[next] = ChunkEntry::INSIDE;
        }
        self.rover = whole;
    }

    /// A live run of so many chunks at the heap's end, a free run there being a part of it.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, chunks: u32) -> Option<u32> {
        let end = self.chunks() + 1;
        let (mut run, mut have) = (end, 0);
        if self.table.capacity() != 0 {
            let last = self.table[0].previous;
            if last != 0 && last + self.table[last].count == end {
                (run, have) = (last, self.table[last].count);
            }
        }
        let old = self.extend(chunks - have)?;
        if have != 0 {
            self.cut(run, have);
        }
        self.table[run] = ChunkEntry::run(ChunkKind::LIVE, chunks);
        self.retire(old);
        Some(run)
    }

    /// Makes a live run larger where it is: over the free run behind it, or the heap's end. False if it cannot.
    pub(crate) fn enlarge(&mut self, run: u32, chunks: usize) -> bool {
        let Some(chunks) = u32::try_from(chunks).ok().filter(|&chunks| chunks < MOST) else { return false };
        let (has, end) = (self.table[run].count, self.chunks() + 1);
        let after = run + has;
        let following = if after < end && self.table[after].kind == ChunkKind::FREE {
            self.table[after].count
        } else {
            0
        };
        let mut old = Table::none();
        if has + following < chunks {
            if after + following != end {
                return false;
            }
            match self.extend(chunks - has - following) {
                Some(table) => old = table,
                None => return false,
            }
        }
        if following != 0 {
            self.cut(after, following.min(chunks - has));
        }
        self.table[run].count = chunks;
        self.retire(old);
        true
    }

    /// Gives back what a live run has beyond `chunks`.
    pub(crate) fn trim(&mut self, run: u32, chunks: u32) {
        let has = self.table[run].count;
        if has > chunks {
            self.table[run].count = chunks;
            self.table[run + chunks] = ChunkEntry::run(ChunkKind::LIVE, has - chunks);
            self.free_run(run + chunks);
        }
    }

    /// Makes the heap larger by so many chunks, which are in no run yet. Where the table has no entries for them, one
    /// at least twice as large follows them. Returns the table that was left; nothing has changed if the system
    /// refuses.
    fn extend(&mut self, chunks: u32) -> Option<Table> {
        let first = self.chunks() + 1;
        let end = first.checked_add(chunks).filter(|&end| end < MOST)?;
        if end <= self.table.capacity() {
            self.region.grow(chunks as usize * CHUNK)?;
            return Some(Table::none());
        }
        let mut capacity = self.table.capacity().max(FIRST_TABLE);
        while capacity < end + Table::chunks_for(capacity) {
            capacity *= 2;
        }
        let more = Table::chunks_for(capacity);
        self.region.grow((chunks + more) as usize * CHUNK)?;
        let old = self.table;
        // SAFETY: the region's last chunks are new, zeroed, and in no run.
        unsafe {
            self.table = Table::at(self.address(end), capacity);
            old.copy_to(&self.table);
        }
        self.table[0].kind = ChunkKind::FREE;
        self.table[end] = ChunkEntry::run(ChunkKind::TABLE, more);
        Some(old)
    }

    /// Makes the run of a table that was left a free one.
    fn retire(&mut self, old: Table) {
        if old.capacity() != 0 {
            self.free_run(self.chunk_of(old.address()));
        }
    }
}
