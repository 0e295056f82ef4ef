//! Takes snapshots of a live process.

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use crate::attribution::{HeapRange, Shares, attribute};
use crate::block::{Block, Blocks, sort};
use crate::block_history::BlockHistory;
use crate::canvas::{Subject, picture};
use crate::census::Census;
use crate::error::LedgerError;
use crate::freed_blocks::FreedBlocks;
use crate::heap_ranges::{HeapRanges, Layout};
use crate::ledger::STEP;
use crate::line::{Amount, How, Term};
use crate::live_holders::live_holders;
use crate::mapped::{Mapped, Mapper, mappers};
use crate::mapping::{self, Mapping};
use crate::mapping_owners::{MappingOwners, image, resident};
use crate::picture::Picture;
use crate::pins::{Pins, pins};
use crate::residency::{PageMap, Run, State, Walk};
use crate::share::LineBuilder;
use crate::snapshot::Snapshot;
use crate::static_data::StaticData;

/// Facts of the process before the first sample.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Manager, by name: `glibc`, `tithe`, ...
    pub manager: String,
    /// Whether it is a collector.
    pub collector: bool,
    /// The recorder's shared file, which is mapped in the process.
    pub rings: Option<PathBuf>,
    /// If it was forked: the ranges of its parent's heap, whose blocks the record of this one does not have.
    pub inherited: Option<Vec<(u64, u64)>>,
}

/// Samples one process repeatedly: it remembers where blocks have been.
#[derive(Debug)]
pub struct Observer {
    pid: i32,
    /// `/proc/PID`.
    folder: PathBuf,
    /// Identifies the image of the process.
    image: Option<u64>,
    collector: bool,
    /// What the pages of the heap are in which no block has been.
    unused: Term,
    layout: Layout,
    heap_ranges: HeapRanges,
    /// Those of the last sample.
    heap: Vec<(u64, u64)>,
    mapping_owners: MappingOwners,
    page: u64,
    block_history: BlockHistory,
    /// Buffer for the blocks, kept from sample to sample.
    blocks: Vec<Block>,
    /// Most external fragmentation of a sample, bytes.
    most_pinned: u64,
    /// Static data of the sample with the largest resident set so far, where it is a notable part of that.
    static_data: StaticData,
    largest_rss: u64,
    /// Ranges of the last sample that are mapped, and those that the program may have mapped itself, with their lines.
    mapped: Vec<(u64, u64)>,
    others: Vec<(u64, u64, Term)>,
}

impl Observer {
    /// An observer of process `pid` as it is now: another image of it (exec) needs another observer.
    pub fn new(pid: i32, options: Options) -> Observer {
        Observer::of(PathBuf::from(format!("/proc/{pid}")), pid, options)
    }

    /// An observer of a process whose files are in `folder`.
    fn of(folder: PathBuf, pid: i32, options: Options) -> Observer {
        let page = rustix::param::page_size() as u64;
        let layout = Layout::of(&options.manager);
        Observer {
            pid,
            image: image(&folder),
            folder,
            collector: options.collector,
            unused: if options.inherited.is_some() { Term::Inherited } else { Term::Fresh },
            layout,
            heap_ranges: HeapRanges::new(layout, page, options.inherited.unwrap_or_default()),
            heap: Vec::new(),
            mapping_owners: MappingOwners::new(options.rings.as_deref()),
            page,
            block_history: BlockHistory::new(page, layout.header()),
            blocks: Vec::new(),
            most_pinned: 0,
            static_data: StaticData::default(),
            largest_rss: 0,
            mapped: Vec::new(),
            others: Vec::new(),
        }
    }

    /// The ranges of the heap in the last sample.
    pub fn heap(&self) -> &[(u64, u64)] {
        &self.heap
    }

    /// The static data of the sample with the largest resident set; none where it is less than a twentieth of that.
    pub fn static_data(&self) -> &StaticData {
        &self.static_data
    }

    /// The ledger now. The program's allocating threads should be paused and all their events drained, so that `blocks`
    /// are the live ones; `census` is what the manager reported during this pause.
    ///
    /// # Errors
    /// The process has ended or replaced itself by another program, or its memory map cannot be read.
    pub fn observe(
        &mut self,
        time_ns: u64,
        clock_bytes: u64,
        blocks: &dyn Blocks,
        census: Option<Census>,
    ) -> Result<Snapshot, LedgerError> {
        let begun = Instant::now();
        let (vm_rss_bytes, vm_hwm_bytes) = resident(&self.folder, self.pid)?;
        let mappings = mapping::mappings(&self.folder, self.pid)?;
        if mappings.is_empty() {
            return Err(LedgerError::Ended { pid: self.pid });
        }
        self.check_image()?;
        if !self.mapping_owners.is_recorded(&mappings) {
            return Err(LedgerError::Replaced { pid: self.pid });
        }
        sort(blocks, &mut self.blocks);
        let mut ever = Vec::new();
        blocks.ever(&mut |start, end| ever.push((start, end)));
        let is_known = !ever.is_empty();
        self.block_history.update(ever, &self.blocks, &mappings);

        let heap_ranges = self.heap_ranges.find(&mappings, &self.blocks, self.block_history.ranges());
        let (runs, no_pagemap) = self.runs_or_why_not(&mappings, &heap_ranges)?;
        // Pages of a process that ended meanwhile are missing.
        self.check_image()?;
        let (mut shares, defects) =
            attribute(&self.blocks, &heap_ranges, &runs, self.layout.header(), self.page);
        if defects.unmapped_blocks > 0 && shares.iter().all(|shares| shares.live.total() == 0) {
            // Not one byte of a block is mapped: the program replaced itself before the first sample.
            return Err(LedgerError::Replaced { pid: self.pid });
        }
        if no_pagemap.is_some() {
            estimate(&mut shares, &heap_ranges, &mappings);
        }
        let how = if no_pagemap.is_some() { How::Estimated } else { How::Counted };
        let (pins, picture) = match no_pagemap {
            None => self.pins_and_picture(&runs, clock_bytes, blocks.freed()),
            Some(_) => (None, None),
        };

        let mut snapshot = Snapshot {
            time_ns,
            clock_bytes,
            rss_bytes: mappings.iter().map(|mapping| mapping.rss).sum(),
            vm_rss_bytes,
            vm_hwm_bytes,
            live_blocks: self.blocks.len() as u64,
            live_bytes: self.blocks.iter().map(|block| block.requested).sum(),
            heap_bytes: heap_ranges.iter().map(|range| range.end - range.start).sum(),
            heap_ranges: heap_ranges.len() as u64,
            huge_bytes: shares.iter().map(|shares| shares.huge).sum(),
            huge_free_bytes: shares.iter().map(|shares| shares.huge_idle).sum(),
            no_pagemap,
            holders: Some(live_holders(&self.blocks)),
            pins,
            picture,
            defects,
            census,
            ..Snapshot::default()
        };
        let mut lines = of_blocks(&shares, how);
        if how == How::Counted && (is_known || self.unused == Term::Inherited) {
            let fresh = fresh(self.block_history.ranges(), &heap_ranges, &runs);
            let idle = *lines.amount(Term::Caches);
            *lines.amount(Term::Caches) = idle.without(fresh);
            lines.add(self.unused, idle.without(idle.without(fresh)), how);
        }
        self.rest(&mappings, &heap_ranges, &shares, &mut lines, &mut snapshot);
        if let Some(census) = census {
            lines.census(&census, self.collector);
        }
        snapshot.lines = lines.finish();
        self.keep_static_data(&mappings, &snapshot);
        snapshot.difference_bytes =
            (i128::from(snapshot.rss_bytes) - i128::from(snapshot.sum().resident)) as i64;
        snapshot.took_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(snapshot)
    }

    /// Who mapped what is not heap in the last sample; of what is no longer mapped nothing is kept.
    pub fn mappers(&self, mapped: &mut Mapped) -> Vec<Mapper> {
        mapped.forget(&self.mapped);
        let Ok(mut map) = PageMap::open(&self.folder, self.page) else { return Vec::new() };
        let mut parts = Vec::new();
        for &(start, end, term) in &self.others {
            for (from, to, site) in mapped.within(start, end) {
                let (from, to) = (from.max(start), to.min(end));
                let mut runs = Vec::new();
                // Where the pages cannot be read any more, what is mapped is known all the same.
                let _ = map.runs(from, to, &mut runs);
                let resident = Walk::new(&runs).measure(from, to).amount.resident;
                parts.push(Mapper { term, site, bytes: to - from, resident });
            }
        }
        mappers(parts.into_iter())
    }

    /// Keeps which pages of static data are in memory, if the resident set is larger than in each sample before.
    fn keep_static_data(&mut self, mappings: &[Mapping], snapshot: &Snapshot) {
        if snapshot.rss_bytes <= self.largest_rss {
            return;
        }
        self.largest_rss = snapshot.rss_bytes;
        self.static_data = StaticData::default();
        if snapshot.amount(Term::StaticData).resident < snapshot.rss_bytes / STEP {
            return;
        }
        let Ok(mut map) = PageMap::open(&self.folder, self.page) else { return };
        let mut found = StaticData::of(mappings);
        for number in (0..mappings.len()).filter(|&at| self.mapping_owners.is_static(mappings, at)) {
            let mapping = &mappings[number];
            if map.runs(mapping.start, mapping.end, &mut found.runs).is_err() {
                return;
            }
        }
        self.static_data = found;
    }

    /// Who holds the free bytes on live pages, and a picture where they are more than in each sample before.
    fn pins_and_picture(
        &mut self,
        runs: &[Run],
        clock_bytes: u64,
        freed: Option<&FreedBlocks>,
    ) -> (Option<Pins>, Option<Picture>) {
        let (header, page_size) = (self.layout.header(), self.page);
        let pins = pins(&self.blocks, runs, header, page_size, clock_bytes);
        if pins.bytes <= self.most_pinned {
            return (Some(pins), None);
        }
        self.most_pinned = pins.bytes;
        let subject = Subject { blocks: &self.blocks, runs, header, page_size, clock_bytes, freed };
        (Some(pins), Some(picture(&subject)))
    }

    /// The runs of pages in all ranges; where the kernel does not show them none, and why.
    ///
    /// # Errors
    /// The process has ended.
    fn runs_or_why_not(
        &self,
        mappings: &[Mapping],
        heap_ranges: &[HeapRange],
    ) -> Result<(Vec<Run>, Option<String>), LedgerError> {
        match self.runs(mappings, heap_ranges) {
            Ok(runs) => Ok((runs, None)),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                Err(LedgerError::Ended { pid: self.pid })
            }
            Err(error) => Ok((Vec::new(), Some(error.to_string()))),
        }
    }

    /// Whether the process still exists and executes the same program: then what was read until now is complete.
    fn check_image(&self) -> Result<(), LedgerError> {
        match (image(&self.folder), self.image) {
            (None, Some(_)) => Err(LedgerError::Ended { pid: self.pid }),
            (now, before) if now != before => Err(LedgerError::Replaced { pid: self.pid }),
            _ => Ok(()),
        }
    }

    /// The runs of pages in all ranges.
    fn runs(&self, mappings: &[Mapping], heap_ranges: &[HeapRange]) -> io::Result<Vec<Run>> {
        let mut map = PageMap::open(&self.folder, self.page)?;
        let mut runs = Vec::new();
        for range in heap_ranges {
            let mapping = &mappings[range.mapping];
            if mapping.rss + mapping.swap == 0 {
                continue;
            }
            let before = runs.len();
            map.runs(range.start, range.end, &mut runs)?;
            if mapping.swap == 0 {
                // The kernel's own marks cannot be distinguished from swapped pages.
                let mut at = 0;
                runs.retain(|run| {
                    at += 1;
                    at <= before || run.state != State::Swapped
                });
            }
        }
        Ok(runs)
    }

    /// Adds the rest of the mappings, without the ranges of the heap.
    fn rest(
        &mut self,
        mappings: &[Mapping],
        heap_ranges: &[HeapRange],
        shares: &[Shares],
        lines: &mut LineBuilder,
        snapshot: &mut Snapshot,
    ) {
        (snapshot.arena_windows, snapshot.arena_free_bytes) = self.heap_ranges.arenas(heap_ranges, shares);
        snapshot.threads = self.mapping_owners.find_stacks(&self.folder, mappings);
        self.mapped = mappings.iter().map(|mapping| (mapping.start, mapping.end)).collect();
        self.heap = heap_ranges.iter().map(|range| (range.start, range.end)).collect();
        self.others.clear();
        let mut heap = heap_ranges.iter().zip(shares).peekable();
        for (number, mapping) in mappings.iter().enumerate() {
            let mut taken = Amount::default();
            while let Some((_, shares)) = heap.next_if(|(range, _)| range.mapping == number) {
                taken += shares.total();
            }
            let left = mapping.bytes() - taken.total();
            if left == 0 {
                continue;
            }
            let resident = mapping.rss.saturating_sub(taken.resident).min(left);
            let swapped = mapping.swap.saturating_sub(taken.swapped).min(left - resident);
            let mut rest = Amount { resident, swapped, absent: left - resident - swapped };
            if !mapping.accessible {
                snapshot.reserved_bytes += rest.absent;
                rest.absent = 0;
            }
            let terms = self.mapping_owners.terms(mappings, number, rest);
            if matches!(terms[0].0, Term::OtherAnonymous | Term::Shared | Term::Code) {
                self.others.push((mapping.start, mapping.end, terms[0].0));
            }
            for (term, mut amount) in terms {
                if term == Term::Recorder {
                    // The shared file is as large as it may ever get.
                    snapshot.reserved_bytes += std::mem::take(&mut amount.absent);
                }
                lines.add(term, amount, How::Counted);
            }
        }
    }
}

/// The lines of the ranges with blocks.
fn of_blocks(shares: &[Shares], how: How) -> LineBuilder {
    let mut lines = LineBuilder::new();
    for shares in shares {
        lines.add(Term::Live, shares.live, how);
        lines.add(Term::Internal, shares.internal, how);
        lines.add(Term::Metadata, shares.headers, how);
        lines.add(Term::External, shares.pinned, how);
        lines.add(Term::Caches, shares.idle, how);
    }
    lines
}

/// Pages in ranges where no block has been seen.
fn fresh(block_history: &[(u64, u64)], heap_ranges: &[HeapRange], runs: &[Run]) -> Amount {
    let (mut all, mut walk) = (Amount::default(), Walk::new(runs));
    let mut at = 0;
    for range in heap_ranges {
        let mut from = range.start;
        while block_history.get(at).is_some_and(|&(_, end)| end <= from) {
            at += 1;
        }
        for &(start, end) in block_history[at..].iter().take_while(|&&(start, _)| start < range.end) {
            if start > from {
                all += walk.measure(from, start).amount;
            }
            from = from.max(end.min(range.end));
        }
        all += walk.measure(from, range.end).amount;
    }
    all
}

/// Without a page map: the resident and swapped bytes of a mapping are those of its ranges in proportion to their
/// lengths, and in a range, first those of pages with live blocks.
fn estimate(shares: &mut [Shares], heap_ranges: &[HeapRange], mappings: &[Mapping]) {
    for (range, shares) in heap_ranges.iter().zip(shares) {
        let mapping = &mappings[range.mapping];
        let bytes = range.end - range.start;
        let part =
            |all: u64| (u128::from(all) * u128::from(bytes) / u128::from(mapping.bytes().max(1))) as u64;
        let (mut resident, mut swapped) = (part(mapping.rss), part(mapping.swap));
        let parts = [
            &mut shares.live,
            &mut shares.headers,
            &mut shares.internal,
            &mut shares.pinned,
            &mut shares.idle,
        ];
        for amount in parts {
            amount.resident = resident.min(amount.absent);
            amount.absent -= amount.resident;
            resident -= amount.resident;
            amount.swapped = swapped.min(amount.absent);
            amount.absent -= amount.swapped;
            swapped -= amount.swapped;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A folder like that of our own process, without a page map.
    fn blind() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["smaps", "status", "stat"] {
            let text = std::fs::read(format!("/proc/self/{name}")).expect("ours");
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        folder
    }

    fn observer(folder: &tempfile::TempDir, rings: Option<PathBuf>) -> Observer {
        let options = Options { rings, ..Options::default() };
        Observer::of(folder.path().to_owned(), std::process::id() as i32, options)
    }

    /// Memory of a test's own, all of it written, between guard pages: the kernel merges it with no mapping of another
    /// test that is less resident. It lives as long as the process.
    fn memory() -> &'static [u8] {
        const BYTES: usize = 1 << 20;
        const GUARD: usize = 64 << 10;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: mmap makes a new mapping of `BYTES + 2 * GUARD`; `inner` and its `BYTES` lie in it, are made writable
        // before they are written, and are never unmapped.
        unsafe {
            let start = libc::mmap(std::ptr::null_mut(), BYTES + 2 * GUARD, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            let inner = start.cast::<u8>().add(GUARD);
            assert_eq!(libc::mprotect(inner.cast(), BYTES, libc::PROT_READ | libc::PROT_WRITE), 0);
            inner.write_bytes(1, BYTES);
            std::slice::from_raw_parts(inner, BYTES)
        }
    }

    /// A block with all of its memory written.
    fn block(memory: &[u8]) -> Block {
        let bytes = memory.len() as u64;
        Block { address: memory.as_ptr() as u64, requested: bytes - 100, usable: bytes, ..Block::default() }
    }

    #[test]
    fn without_a_page_map_residency_is_estimated_and_marked_and_the_sum_closes() {
        let memory = memory();
        let folder = blind();
        let snapshot = observer(&folder, None).observe(0, 0, &vec![block(memory)], None).expect("samples");
        assert!(snapshot.no_pagemap.is_some());
        assert!(snapshot.closes());
        assert_eq!(snapshot.difference_bytes, 0);
        assert_eq!(snapshot.amount(Term::Live).resident, (1 << 20) - 100);
        let live = snapshot.lines.iter().find(|line| line.term == Term::Live).expect("a line");
        assert_eq!(live.how, How::Estimated);
        let code = snapshot.lines.iter().find(|line| line.term == Term::Code).expect("a line");
        assert_eq!(code.how, How::Counted);
    }

    #[test]
    fn a_process_that_is_another_program_by_now_is_not_sampled() {
        let memory = memory();
        let blocks = vec![block(memory)];
        let folder = blind();
        let replaced = |sampled| matches!(sampled, Err(LedgerError::Replaced { .. }));
        // The recorder's file is not mapped.
        let rings = Some(PathBuf::from("/nowhere/rings"));
        assert!(replaced(observer(&folder, rings).observe(0, 0, &blocks, None)));
        // No block is there.
        let nowhere = vec![Block { address: 0x1000, requested: 10, usable: 16, ..Block::default() }];
        assert!(replaced(observer(&folder, None).observe(0, 0, &nowhere, None)));
        // Its stack begins elsewhere.
        let mut observer = observer(&folder, None);
        assert!(observer.observe(0, 0, &blocks, None).is_ok());
        let stat = std::fs::read_to_string(folder.path().join("stat")).expect("ours");
        let start = image(folder.path()).expect("given");
        std::fs::write(folder.path().join("stat"), stat.replace(&start.to_string(), "4096"))
            .expect("written");
        assert!(replaced(observer.observe(0, 0, &blocks, None)));
    }

    /// Blocks of a process that ends while they are being visited.
    struct Ending<'a>(Vec<Block>, &'a Path);

    impl Blocks for Ending<'_> {
        fn each(&self, visit: &mut dyn FnMut(Block)) {
            self.0.each(visit);
            let stat = std::fs::read_to_string(self.1.join("stat")).expect("ours");
            let start = image(self.1).expect("given").to_string();
            std::fs::write(self.1.join("stat"), stat.replace(&start, "0")).expect("written");
        }
    }

    #[test]
    fn a_process_that_ends_between_its_mappings_and_its_pages_has_no_snapshot() {
        let memory = memory();
        let folder = blind();
        let blocks = Ending(vec![block(memory)], folder.path());
        let sampled = observer(&folder, None).observe(0, 0, &blocks, None);
        assert!(matches!(sampled, Err(LedgerError::Ended { .. })), "{sampled:?}");
    }

    #[test]
    fn a_denied_file_is_named() {
        let error =
            mapping::failure(Path::new("/proc/1/smaps"), 1, io::Error::from_raw_os_error(libc::EACCES));
        assert!(error.to_string().contains("/proc/1/smaps"), "{error}");
    }
}
