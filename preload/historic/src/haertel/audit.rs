//! What the heap shows of itself: the walk and the check. Both take time in the heap's size: a chunk's free fragments
//! are adjacent in their list and are visited once.

use heaptoll_runtime::{Damage, Piece};

use crate::haertel::fragments::Fragment;
use crate::haertel::{CHUNK, ChunkEntry, ChunkKind, Haertel, LARGEST, SMALLEST, Table};

/// A bit for each of a chunk's fragments, 256 at most.
type FragmentSet = [u64; 4];

impl Haertel {
    /// Which of a chunk's fragments are free.
    fn free_fragments(&self, chunk: u32) -> Result<FragmentSet, Damage> {
        let entry = self.table[chunk];
        let (mut fragments, mut fragment) = (FragmentSet::default(), Fragment(self.first_free(chunk)));
        for _ in 0..entry.count {
            let at = fragment.0;
            let inside = self.region.contains(at) && self.chunk_of(at) == chunk;
            Damage::unless(inside, at, "a chunk's free fragments stand together")?;
            Damage::unless(at % (1 << entry.log) == 0, at, "fragments are aligned to their size")?;
            let place = (at % CHUNK) >> entry.log;
            Damage::unless(fragments[place / 64] >> (place % 64) & 1 == 0, at, "a fragment is free once")?;
            fragments[place / 64] |= 1 << (place % 64);
            // SAFETY: a whole fragment of the heap is there.
            fragment = unsafe { fragment.next() };
        }
        Ok(fragments)
    }

    /// Shows the pieces of a sound heap.
    pub(crate) fn show(&self, visit: &mut dyn FnMut(Piece)) {
        let mut chunk = 1;
        while chunk <= self.chunks() {
            let (entry, address) = (self.table[chunk], self.address(chunk));
            if entry.kind == ChunkKind::FRAGMENTS {
                let fragments = self.free_fragments(chunk).unwrap_or_default();
                for place in 0..entry.fragments() as usize {
                    let (at, bytes) = (address + (place << entry.log), 1 << entry.log);
                    visit(match fragments[place / 64] >> (place % 64) & 1 {
                        0 => Piece::live(at, bytes, at, 0),
                        _ => Piece::free(at, bytes, 0),
                    });
                }
                chunk += 1;
                continue;
            }
            let bytes = entry.count as usize * CHUNK;
            visit(match entry.kind {
                ChunkKind::FREE => Piece::free(address, bytes, 0),
                ChunkKind::TABLE => Piece::metadata(address, bytes),
                _ => Piece::live(address, bytes, address, 0),
            });
            chunk += entry.count.max(1);
        }
    }

    pub(crate) fn audit(&self) -> Result<(), Damage> {
        if self.chunks() == 0 {
            let none = self.classes.iter().all(|&first| first == Fragment::NONE);
            return Damage::unless(none, 0, "an empty heap has no fragments");
        }
        let enough = self.table.capacity() > self.chunks() && self.region.contains(self.table.address());
        Damage::unless(enough, self.table.address(), "the table has an entry for every chunk")?;
        let free_runs = self.audit_chunks()?;
        self.audit_runs(free_runs)?;
        (SMALLEST..=LARGEST).try_for_each(|class| self.audit_class(class))
    }

    /// That runs and chunks of fragments tile the heap; returns the number of free runs.
    fn audit_chunks(&self) -> Result<u32, Damage> {
        let (mut free_runs, mut tables, mut free_before) = (0, 0, false);
        let (mut chunk, end) = (1, self.chunks() + 1);
        while chunk < end {
            let (entry, at) = (self.table[chunk], self.address(chunk));
            let mut length = entry.count;
            match entry.kind {
                ChunkKind::FREE => free_runs += 1,
                ChunkKind::LIVE => {}
                ChunkKind::TABLE => {
                    tables += 1;
                    let right =
                        at == self.table.address() && entry.count == Table::chunks_for(self.table.capacity());
                    Damage::unless(right, at, "the table's run is where the table is, and as long")?;
                }
                ChunkKind::FRAGMENTS => {
                    length = 1;
                    let class = (SMALLEST..=LARGEST).contains(&(entry.log as u32));
                    Damage::unless(class, at, "fragments have one of the sizes")?;
                    let some = entry.count < entry.fragments() && entry.next < entry.fragments();
                    Damage::unless(some, at, "a chunk all of whose fragments are free is given back")?;
                    self.free_fragments(chunk)?;
                }
                _ => return Err(Damage { address: at, invariant: "runs tile the heap" }),
            }
            Damage::unless(length > 0 && length <= end - chunk, at, "runs end with the heap")?;
            let inside = (chunk + 1..chunk + length).all(|chunk| self.table[chunk].kind == ChunkKind::INSIDE);
            Damage::unless(inside, at, "entries inside a run are marked as inside")?;
            let free = entry.kind == ChunkKind::FREE;
            Damage::unless(!free || !free_before, at, "free neighbours are coalesced")?;
            (free_before, chunk) = (free, chunk + length);
        }
        Damage::unless(tables == 1, self.table.address(), "there is one table")?;
        Ok(free_runs)
    }

    /// That the list of free runs has all of them, in order of address, with mutual links.
    fn audit_runs(&self, runs: u32) -> Result<(), Damage> {
        let (mut before, mut count, mut rover) = (0, 0, self.rover == 0);
        let head: ChunkEntry = self.table[0];
        let empty = head.kind == ChunkKind::FREE && head.count == 0;
        Damage::unless(empty, self.table.address(), "the list's head is a run of no chunks")?;
        loop {
            let run = self.table[before].next;
            if run == 0 {
                break;
            }
            let known = run > before && run <= self.chunks();
            Damage::unless(known, self.table.address(), "free runs are listed in order of address")?;
            let (entry, at) = (self.table[run], self.address(run));
            Damage::unless(entry.kind == ChunkKind::FREE, at, "what is in the list of free runs is one")?;
            Damage::unless(entry.previous == before, at, "links of free runs are mutual")?;
            count += 1;
            rover |= run == self.rover;
            before = run;
        }
        Damage::unless(head.previous == before, self.table.address(), "the list's head knows the last run")?;
        Damage::unless(count == runs, self.table.address(), "every free run is in the list")?;
        Damage::unless(rover, self.table.address(), "a search begins at a free run, or the list's head")
    }

    /// That a class's list has the free fragments of its chunks and no others, with mutual links.
    fn audit_class(&self, class: u32) -> Result<(), Damage> {
        let mut wanted = 0;
        for chunk in 1..=self.chunks() {
            let entry = self.table[chunk];
            if entry.kind == ChunkKind::FRAGMENTS && entry.log as u32 == class {
                wanted += entry.count as u64;
            }
        }
        let (mut fragment, mut before, mut found) = (self.classes[class as usize], Fragment::NONE, 0);
        let mut of = 0;
        while fragment != Fragment::NONE {
            let at = fragment.0;
            found += 1;
            Damage::unless(found <= wanted, at, "a class's list has no more than its chunks count")?;
            Damage::unless(self.region.contains(at), at, "what is in a class's list is in the heap")?;
            let chunk = self.chunk_of(at);
            let entry = self.table[chunk];
            let right =
                entry.kind == ChunkKind::FRAGMENTS && entry.log as u32 == class && at % (1 << class) == 0;
            Damage::unless(right, at, "a class's list has fragments of its size")?;
            let first = chunk == of || at == self.first_free(chunk);
            Damage::unless(first, at, "a chunk's entry names its first free fragment")?;
            // SAFETY: a whole fragment of the heap is there.
            let (next, previous) = unsafe { (fragment.next(), fragment.previous()) };
            Damage::unless(previous == before, at, "links of fragments are mutual")?;
            (of, before, fragment) = (chunk, fragment, next);
        }
        Damage::unless(found == wanted, before.0, "every free fragment is in its class's list")
    }
}
