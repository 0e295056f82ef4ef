//! Looks at a live process.

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use crate::attribution::{Place, Shares, attribute};
use crate::block::{Block, Blocks, sort};
use crate::census::Census;
use crate::error::LedgerError;
use crate::mapping::{self, Mapping};
use crate::moment::{Amount, How, Moment, Term};
use crate::places::{Layout, Places};
use crate::residency::{PageMap, Run, State, Walk};
use crate::seen::Seen;
use crate::share::Lines;
use crate::tenants::{Tenants, image, resident};

/// What is known of the process before the first look.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Manager, by name: `glibc`, `tithe`, ...
    pub manager: String,
    /// Whether it is a collector.
    pub collector: bool,
    /// The recorder's shared file, which is mapped in the process.
    pub rings: Option<PathBuf>,
}

/// Looks at one process, again and again: it remembers where blocks have been.
#[derive(Debug)]
pub struct Observer {
    pid: i32,
    /// `/proc/PID`.
    folder: PathBuf,
    /// Which image of the process.
    image: Option<u64>,
    collector: bool,
    layout: Layout,
    places: Places,
    tenants: Tenants,
    page: u64,
    seen: Seen,
    /// Room for the blocks, kept from look to look.
    blocks: Vec<Block>,
}

impl Observer {
    /// An observer of process `pid` as it is now: another image of it (exec) wants another observer.
    pub fn new(pid: i32, options: Options) -> Observer {
        Observer::of(PathBuf::from(format!("/proc/{pid}")), pid, options)
    }

    /// An observer of a process whose files are in `folder`.
    fn of(folder: PathBuf, pid: i32, options: Options) -> Observer {
        // SAFETY: sysconf has no preconditions.
        let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let layout = Layout::of(&options.manager);
        Observer {
            pid,
            image: image(&folder),
            folder,
            collector: options.collector,
            layout,
            places: Places::new(layout, page),
            tenants: Tenants::new(options.rings.as_deref()),
            page,
            seen: Seen::new(page),
            blocks: Vec::new(),
        }
    }

    /// The ledger now. The program's allocating threads should be paused and all that they said drained, so that
    /// `blocks` are the live ones; `census` is what the manager said at this pause.
    ///
    /// # Errors
    /// The process has ended or replaced itself by another program, or its memory map cannot be read.
    pub fn observe(
        &mut self,
        time_ns: u64,
        clock_bytes: u64,
        blocks: &dyn Blocks,
        census: Option<Census>,
    ) -> Result<Moment, LedgerError> {
        let begun = Instant::now();
        let vm_rss_bytes = resident(&self.folder, self.pid)?;
        let mappings = mapping::mappings(&self.folder, self.pid)?;
        if mappings.is_empty() {
            return Err(LedgerError::Ended { pid: self.pid });
        }
        self.check_image()?;
        if !self.tenants.is_recorded(&mappings) {
            return Err(LedgerError::Replaced { pid: self.pid });
        }
        sort(blocks, &mut self.blocks);
        let mut ever = Vec::new();
        blocks.ever(&mut |start, end| ever.push((start, end)));
        let is_known = !ever.is_empty();
        self.seen.look(ever, &self.blocks, &mappings);

        let places = self.places.find(&mappings, &self.blocks, self.seen.ranges());
        let (runs, no_pagemap) = match self.runs(&mappings, &places) {
            Ok(runs) => (runs, None),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                return Err(LedgerError::Ended { pid: self.pid });
            }
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        // Pages of a process that ended meanwhile are missing.
        self.check_image()?;
        let (mut shares, defects) = attribute(&self.blocks, &places, &runs, self.layout.header(), self.page);
        if defects.unmapped_blocks > 0 && shares.iter().all(|shares| shares.live.total() == 0) {
            // Not one byte of a block is there: a program that replaced itself before anybody looked.
            return Err(LedgerError::Replaced { pid: self.pid });
        }
        if no_pagemap.is_some() {
            estimate(&mut shares, &places, &mappings);
        }
        let how = if no_pagemap.is_some() { How::Estimated } else { How::Counted };

        let mut moment = Moment {
            time_ns,
            clock_bytes,
            rss_bytes: mappings.iter().map(|mapping| mapping.rss).sum(),
            vm_rss_bytes,
            live_blocks: self.blocks.len() as u64,
            live_bytes: self.blocks.iter().map(|block| block.requested).sum(),
            heap_bytes: places.iter().map(|place| place.end - place.start).sum(),
            heap_places: places.len() as u64,
            huge_bytes: shares.iter().map(|shares| shares.huge).sum(),
            huge_free_bytes: shares.iter().map(|shares| shares.huge_idle).sum(),
            no_pagemap,
            defects,
            census,
            ..Moment::default()
        };
        let mut lines = Lines::new();
        for shares in &shares {
            lines.add(Term::Live, shares.live, how);
            lines.add(Term::Internal, shares.internal, how);
            lines.add(Term::Metadata, shares.headers, how);
            lines.add(Term::External, shares.pinned, how);
            lines.add(Term::Caches, shares.idle, how);
        }
        if how == How::Counted && is_known {
            let fresh = fresh(self.seen.ranges(), &places, &runs);
            let caches = lines.amount(Term::Caches);
            *caches = caches.without(fresh);
            lines.add(Term::Fresh, fresh, how);
        }
        self.rest(&mappings, &places, &shares, &mut lines, &mut moment);
        if let Some(census) = census {
            lines.census(&census, self.collector);
        }
        moment.lines = lines.finish();
        moment.difference_bytes = (i128::from(moment.rss_bytes) - i128::from(moment.sum().resident)) as i64;
        moment.took_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(moment)
    }

    /// Whether the process is there and the program that it was: what was read until now is all of it.
    fn check_image(&self) -> Result<(), LedgerError> {
        match (image(&self.folder), self.image) {
            (None, Some(_)) => Err(LedgerError::Ended { pid: self.pid }),
            (now, before) if now != before => Err(LedgerError::Replaced { pid: self.pid }),
            _ => Ok(()),
        }
    }

    /// The runs of pages in all places.
    fn runs(&self, mappings: &[Mapping], places: &[Place]) -> io::Result<Vec<Run>> {
        let mut map = PageMap::open(&self.folder, self.page)?;
        let mut runs = Vec::new();
        for place in places {
            let mapping = &mappings[place.mapping];
            if mapping.rss + mapping.swap == 0 {
                continue;
            }
            let before = runs.len();
            map.runs(place.start, place.end, &mut runs)?;
            if mapping.swap == 0 {
                // Marks of the kernel's own look like swapped pages.
                let mut at = 0;
                runs.retain(|run| {
                    at += 1;
                    at <= before || run.state != State::Swapped
                });
            }
        }
        Ok(runs)
    }

    /// What is in mappings beside the places of the heap.
    fn rest(
        &mut self,
        mappings: &[Mapping],
        places: &[Place],
        shares: &[Shares],
        lines: &mut Lines,
        moment: &mut Moment,
    ) {
        self.tenants.look_for_stacks(&self.folder, mappings);
        let mut heap = places.iter().zip(shares).peekable();
        for (number, mapping) in mappings.iter().enumerate() {
            let mut taken = Amount::default();
            while let Some((_, shares)) = heap.next_if(|(place, _)| place.mapping == number) {
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
                moment.reserved_bytes += rest.absent;
                rest.absent = 0;
            }
            for (term, mut amount) in self.tenants.terms(mappings, number, rest) {
                if term == Term::Recorder {
                    // The shared file is as large as it may ever get.
                    moment.reserved_bytes += std::mem::take(&mut amount.absent);
                }
                lines.add(term, amount, How::Counted);
            }
        }
    }
}

/// Pages in places of which nothing has been seen.
fn fresh(seen: &[(u64, u64)], places: &[Place], runs: &[Run]) -> Amount {
    let (mut all, mut walk) = (Amount::default(), Walk::new(runs));
    let mut at = 0;
    for place in places {
        let mut from = place.start;
        while seen.get(at).is_some_and(|&(_, end)| end <= from) {
            at += 1;
        }
        for &(start, end) in seen[at..].iter().take_while(|&&(start, _)| start < place.end) {
            if start > from {
                all += walk.look(from, start).amount;
            }
            from = from.max(end.min(place.end));
        }
        all += walk.look(from, place.end).amount;
    }
    all
}

/// Without a page map: the resident and swapped bytes of a mapping are those of its places in proportion to their
/// lengths, and in a place, first those of pages with live blocks.
fn estimate(shares: &mut [Shares], places: &[Place], mappings: &[Mapping]) {
    for (place, shares) in places.iter().zip(shares) {
        let mapping = &mappings[place.mapping];
        let bytes = place.end - place.start;
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

    /// A folder as of our own process, without a page map.
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

    /// Memory of a test's own, all of it written, between guards: the kernel joins it with no mapping of another test's,
    /// of which less is resident. It lives as long as the process.
    fn memory() -> &'static [u8] {
        const BYTES: usize = 1 << 20;
        const GUARD: usize = 64 << 10;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, of which the middle is made writable, written, and never given back.
        unsafe {
            let start = libc::mmap(std::ptr::null_mut(), BYTES + 2 * GUARD, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            let inner = start.cast::<u8>().add(GUARD);
            assert_eq!(libc::mprotect(inner.cast(), BYTES, libc::PROT_READ | libc::PROT_WRITE), 0);
            inner.write_bytes(1, BYTES);
            std::slice::from_raw_parts(inner, BYTES)
        }
    }

    /// A block of ours, all of it written.
    fn block(memory: &[u8]) -> Block {
        let bytes = memory.len() as u64;
        Block { address: memory.as_ptr() as u64, requested: bytes - 100, usable: bytes }
    }

    #[test]
    fn without_a_page_map_residency_is_estimated_and_marked_and_the_sum_closes() {
        let memory = memory();
        let folder = blind();
        let moment = observer(&folder, None).observe(0, 0, &vec![block(memory)], None).expect("looks");
        assert!(moment.no_pagemap.is_some());
        assert!(moment.closes());
        assert_eq!(moment.difference_bytes, 0);
        assert_eq!(moment.amount(Term::Live).resident, (1 << 20) - 100);
        let live = moment.lines.iter().find(|line| line.term == Term::Live).expect("a line");
        assert_eq!(live.how, How::Estimated);
        let code = moment.lines.iter().find(|line| line.term == Term::Code).expect("a line");
        assert_eq!(code.how, How::Counted);
    }

    #[test]
    fn a_process_that_is_another_program_by_now_is_not_looked_at() {
        let memory = memory();
        let blocks = vec![block(memory)];
        let folder = blind();
        let replaced = |looked| matches!(looked, Err(LedgerError::Replaced { .. }));
        // The recorder's file is not mapped.
        let rings = Some(PathBuf::from("/nowhere/rings"));
        assert!(replaced(observer(&folder, rings).observe(0, 0, &blocks, None)));
        // No block is there.
        let nowhere = vec![Block { address: 0x1000, requested: 10, usable: 16 }];
        assert!(replaced(observer(&folder, None).observe(0, 0, &nowhere, None)));
        // Its stack begins elsewhere.
        let mut observer = observer(&folder, None);
        assert!(observer.observe(0, 0, &blocks, None).is_ok());
        let stat = std::fs::read_to_string(folder.path().join("stat")).expect("ours");
        let start = image(folder.path()).expect("told");
        std::fs::write(folder.path().join("stat"), stat.replace(&start.to_string(), "4096"))
            .expect("written");
        assert!(replaced(observer.observe(0, 0, &blocks, None)));
    }

    /// Blocks of a process that ends while they are being told.
    struct Ending<'a>(Vec<Block>, &'a Path);

    impl Blocks for Ending<'_> {
        fn each(&self, show: &mut dyn FnMut(Block)) {
            self.0.each(show);
            let stat = std::fs::read_to_string(self.1.join("stat")).expect("ours");
            let start = image(self.1).expect("told").to_string();
            std::fs::write(self.1.join("stat"), stat.replace(&start, "0")).expect("written");
        }
    }

    #[test]
    fn a_process_that_ends_between_its_mappings_and_its_pages_has_no_moment() {
        let memory = memory();
        let folder = blind();
        let blocks = Ending(vec![block(memory)], folder.path());
        let looked = observer(&folder, None).observe(0, 0, &blocks, None);
        assert!(matches!(looked, Err(LedgerError::Ended { .. })), "{looked:?}");
    }

    #[test]
    fn a_denied_file_is_told_by_its_name() {
        let error =
            mapping::failure(Path::new("/proc/1/smaps"), 1, io::Error::from_raw_os_error(libc::EACCES));
        assert!(error.to_string().contains("/proc/1/smaps"), "{error}");
    }
}
