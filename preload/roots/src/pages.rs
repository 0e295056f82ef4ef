//! Which pages of a mapping hold something: those that were never touched, and those that are still a file's, need no
//! reading, and reading them would give them memory.
//!
//! The kernel reports them by one of three means, the best that it has: the scan of `/proc/self/pagemap` (Linux 6.7 and
//! later), which skips holes; a word per page from the same file; or, where the program may not open it since it has
//! changed its user, `mincore`, which does not know of swapped pages.

use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicU8, Ordering};

use heaptoll_assertions::assert_internal;

use crate::buffer::{Buffer, NoMemory};
use crate::kernel::{self, Error, File, PAGE};
use crate::page_kind::PageKind;
use crate::proc;
use crate::scan::{self, REGIONS, Region, SCAN, Scan};

/// A main thread that has ended can open none through the process.
pub const PAGEMAP: &CStr = c"/proc/thread-self/pagemap";
const STATUS: &CStr = c"/proc/thread-self/status";

/// Bits of a page's word (the kernel's `pagemap.rst`).
const WORD_PRESENT: u64 = 1 << 63;
const WORD_SWAPPED: u64 = 1 << 62;
const WORD_FILE: u64 = 1 << 61;

/// Pages that one read of words or one `mincore` covers.
const BLOCK: usize = 4096;

const MADV_POPULATE_READ: usize = 22;
const MADV_POPULATE_WRITE: usize = 23;

/// The means by which resident pages are found, best first: the scan, a word per page, `mincore`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ResidencyMethod {
    Scan,
    Words,
    Core,
}

/// The best means that this kernel has been found to have.
static BEST: AtomicU8 = AtomicU8::new(ResidencyMethod::Scan as u8);

/// Scratch memory.
#[derive(Debug)]
pub struct PageBuffers {
    regions: Buffer<Region>,
    words: Buffer<u64>,
    flags: Buffer<u8>,
}

impl PageBuffers {
    pub const fn new() -> PageBuffers {
        PageBuffers { regions: Buffer::new(), words: Buffer::new(), flags: Buffer::new() }
    }

    /// The addresses that it occupies.
    pub fn ranges(&self) -> [Range<usize>; 3] {
        [self.regions.range(), self.words.range(), self.flags.range()]
    }
}

/// Finds the pages that hold something.
pub struct Pages<'a> {
    pagemap: Option<File>,
    method: ResidencyMethod,
    /// Up to which address the next scan may look ahead.
    pub reach: usize,
    /// What was scanned last, and how many regions were found there.
    scanned: Range<usize>,
    found: usize,
    /// Some page of this process may be swapped; only determined where the means do not show it.
    swapped: bool,
    buffers: &'a mut PageBuffers,
}

impl<'a> Pages<'a> {
    /// Of this process.
    pub fn open(buffers: &'a mut PageBuffers) -> Result<Pages<'a>, NoMemory> {
        let is_scanned = BEST.load(Ordering::Relaxed) == ResidencyMethod::Scan as u8;
        let method = if is_scanned { ResidencyMethod::Scan } else { ResidencyMethod::Words };
        Pages::by(method, buffers)
    }

    /// By these means, or by what is left if they are unavailable.
    pub fn by(method: ResidencyMethod, buffers: &'a mut PageBuffers) -> Result<Pages<'a>, NoMemory> {
        let is_opened = method != ResidencyMethod::Core;
        let pagemap = is_opened.then(|| File::open(PAGEMAP)).and_then(Result::ok);
        let method = if pagemap.is_none() { ResidencyMethod::Core } else { method };
        buffers.regions.reserve(REGIONS)?;
        let swapped = method == ResidencyMethod::Core && may_be_swapped();
        Ok(Pages { pagemap, method, reach: 0, scanned: 0..0, found: 0, swapped, buffers })
    }

    /// Whether the next scan begins at this address: the last one has not come so far.
    pub fn begins_at(&self, address: usize) -> bool {
        self.method == ResidencyMethod::Scan && !self.scanned.contains(&address)
    }

    /// Shows all parts of a range, in order, whose pages hold something and can be read. The range lies in one mapping
    /// of that kind.
    pub fn present(
        &mut self,
        range: Range<usize>,
        kind: PageKind,
        each: &mut dyn FnMut(Range<usize>),
    ) -> Result<(), NoMemory> {
        let pages = range.start & !(PAGE - 1)..range.end.next_multiple_of(PAGE);
        let (mut shown, first, last) = (range.start, pages.start, pages.end);
        let mut clipped = |found: Range<usize>| {
            assert_internal!(
                found.start.is_multiple_of(PAGE) && found.end.is_multiple_of(PAGE),
                "pages are shown whole"
            );
            assert_internal!(
                first <= found.start && found.end <= last,
                "pages that are shown lie in the range that was requested"
            );
            assert_internal!(
                shown <= found.end && shown <= found.start.max(range.start),
                "pages are shown once, in order"
            );
            shown = found.end;
            let found = found.start.max(range.start)..found.end.min(range.end);
            if !found.is_empty() {
                each(found);
            }
        };
        match kind {
            PageKind::SharedMemory => return self.resident(pages, kind, &mut clipped),
            PageKind::SharedFile => return self.in_file(pages, &mut clipped),
            PageKind::SparseFile | PageKind::Anonymous | PageKind::PrivateFile => {}
        }
        if self.method == ResidencyMethod::Core {
            if !self.swapped {
                return self.resident(pages, kind, &mut clipped);
            }
            let _ = readable(pages, kind == PageKind::Anonymous, &mut clipped);
            return Ok(());
        }
        self.mapped(pages, kind, &mut clipped)
    }

    /// Shows the pages that the page tables have, and that are no device's; none, where these are not to be had.
    fn mapped(
        &mut self,
        pages: Range<usize>,
        kind: PageKind,
        each: &mut dyn FnMut(Range<usize>),
    ) -> Result<(), NoMemory> {
        match self.method {
            ResidencyMethod::Scan => match self.scan(pages.clone(), kind, each) {
                Ok(()) => Ok(()),
                Err(from) => {
                    self.method = ResidencyMethod::Words;
                    BEST.store(ResidencyMethod::Words as u8, Ordering::Relaxed);
                    self.words(from..pages.end, kind, each)
                }
            },
            ResidencyMethod::Words => self.words(pages, kind, each),
            ResidencyMethod::Core => Ok(()),
        }
    }

    /// By the kernel's scan. The error is the address up to which it has come.
    fn scan(
        &mut self,
        pages: Range<usize>,
        kind: PageKind,
        each: &mut dyn FnMut(Range<usize>),
    ) -> Result<(), usize> {
        let mut at = pages.start;
        while at < pages.end {
            if !self.scanned.contains(&at) {
                self.probe(at..pages.end.max(self.reach)).map_err(|_| at)?;
            }
            let regions = self.buffers.regions.capacity_mut().get(..self.found).unwrap_or_default();
            let first = regions.partition_point(|region| region.end as usize <= at);
            for region in regions.iter().skip(first).take_while(|region| (region.start as usize) < pages.end)
            {
                let found = at.max(region.start as usize)..pages.end.min(region.end as usize);
                if kind == PageKind::PrivateFile && region.categories & scan::FILE != 0 {
                    continue;
                }
                if region.categories & scan::SWAPPED == 0 {
                    each(found);
                } else {
                    let _ = readable(found, kind == PageKind::Anonymous, each);
                }
            }
            at = self.scanned.end;
        }
        Ok(())
    }

    /// Has the kernel scan a range of pages, or a part from its beginning on.
    fn probe(&mut self, pages: Range<usize>) -> Result<(), Error> {
        self.scanned = pages.start..pages.start;
        let Some(pagemap) = &self.pagemap else { return Err(Error(libc::EBADF)) };
        let mut request = Scan {
            size: size_of::<Scan>() as u64,
            start: pages.start as u64,
            end: pages.end as u64,
            regions: self.buffers.regions.capacity_mut().as_mut_ptr() as u64,
            // The kernel allocates as many; pages have no more ranges than they are.
            regions_length: REGIONS.min(pages.len() / PAGE) as u64,
            inverted: scan::ZERO,
            all_of: scan::ZERO,
            any_of: scan::PRESENT | scan::SWAPPED,
            output_categories: scan::PRESENT | scan::SWAPPED | scan::FILE,
            ..Scan::default()
        };
        self.found = loop {
            // SAFETY: the request takes this structure; the regions are writable for `REGIONS` entries, which `by`
            // reserved.
            match unsafe { pagemap.control(SCAN, &mut request) } {
                Err(Error(libc::EINTR)) => {}
                done => break done?,
            }
        };
        // A huge page in which the range ends may be walked as a whole.
        let end = pages.end.min(request.walk_end as usize);
        if end <= pages.start {
            return Err(Error(libc::EIO));
        }
        self.scanned.end = end;
        Ok(())
    }

    /// By a word per page.
    fn words(
        &mut self,
        pages: Range<usize>,
        kind: PageKind,
        each: &mut dyn FnMut(Range<usize>),
    ) -> Result<(), NoMemory> {
        self.buffers.words.reserve(BLOCK)?;
        let mut at = pages.start;
        while at < pages.end {
            let wanted = ((pages.end - at) / PAGE).min(BLOCK);
            let words = self.buffers.words.capacity_mut().get_mut(..wanted).unwrap_or_default();
            let position = at / PAGE * size_of::<u64>();
            let got = self.pagemap.as_ref().and_then(|file| file.read_at(words, position).ok()).unwrap_or(0);
            if got < size_of::<u64>() {
                // What cannot be determined is shown.
                let _ = readable(at..pages.end, kind == PageKind::Anonymous, each);
                return Ok(());
            }
            assert_internal!(got <= size_of_val(words), "no more words are read than pages were requested");
            let words = &words[..got / size_of::<u64>()];
            let is_held = |word: u64| {
                word & (WORD_PRESENT | WORD_SWAPPED) != 0
                    && (kind != PageKind::PrivateFile || word & WORD_FILE == 0)
            };
            runs(
                words,
                |&word| is_held(word) as u8 + (is_held(word) && word & WORD_SWAPPED != 0) as u8,
                |run, held| {
                    let found = at + run.start * PAGE..at + run.end * PAGE;
                    match held {
                        0 => {}
                        1 => each(found),
                        _ => {
                            let _ = readable(found, kind == PageKind::Anonymous, each);
                        }
                    }
                },
            );
            at += words.len() * PAGE;
        }
        Ok(())
    }

    /// All pages of a file, those too that only a disk has.
    fn in_file(&mut self, pages: Range<usize>, each: &mut dyn FnMut(Range<usize>)) -> Result<(), NoMemory> {
        match readable(pages.clone(), false, each) {
            Ok(()) => Ok(()),
            Err(Refused) => self.mapped(pages, PageKind::SharedFile, each),
        }
    }

    /// By `mincore`. That a file's page is in memory does not mean that it may be read.
    fn resident(
        &mut self,
        pages: Range<usize>,
        kind: PageKind,
        each: &mut dyn FnMut(Range<usize>),
    ) -> Result<(), NoMemory> {
        self.buffers.flags.reserve(BLOCK)?;
        let mut refused = false;
        let mut at = pages.start;
        while at < pages.end {
            let count = ((pages.end - at) / PAGE).min(BLOCK);
            let flags = self.buffers.flags.capacity_mut().get_mut(..count).unwrap_or_default();
            // SAFETY: the kernel writes `count` bytes, one per page; `reserve` has made space for `BLOCK` flags.
            let got = unsafe {
                kernel::call(libc::SYS_mincore, [at, count * PAGE, flags.as_mut_ptr() as usize, 0, 0, 0])
            };
            if got.is_err() {
                // What cannot be determined is shown.
                flags.fill(1);
            }
            let checked = kind != PageKind::Anonymous || got.is_err();
            runs(
                flags,
                |flag| flag & 1,
                |run, held| {
                    let found = at + run.start * PAGE..at + run.end * PAGE;
                    if held == 0 || refused {
                    } else if checked {
                        refused = readable(found, false, each) == Err(Refused);
                    } else {
                        each(found);
                    }
                },
            );
            if refused {
                return self.mapped(at..pages.end, kind, each);
            }
            at += count * PAGE;
        }
        Ok(())
    }
}

/// Shows runs of equal class.
fn runs<T>(values: &[T], class: impl Fn(&T) -> u8, mut each: impl FnMut(Range<usize>, u8)) {
    let mut start = 0;
    assert_internal!(values.len() <= BLOCK, "pages are read a block at a time");
    for run in values.chunk_by(|one, next| class(one) == class(next)) {
        if let Some(first) = run.first() {
            each(start..start + run.len(), class(first));
        }
        start += run.len();
    }
    assert_internal!(start == values.len(), "every page is in one run");
}

/// The kernel brings no page of the mapping in for others: it is a device's, or secret (`memfd_secret`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refused;

/// Shows what of a range can be read, by having the kernel bring it in: a page may be a guard (`MADV_GUARD_INSTALL`,
/// which some kernels show as swapped), lie beyond a file's end or be damaged. Kernels without that call (before 5.14)
/// have no guards either: there anonymous memory can be read. Anonymous memory that can only be written is brought in by
/// a write, which changes nothing in it.
///
/// # Errors
/// [`Refused`]: nothing was shown.
fn readable(range: Range<usize>, anonymous: bool, each: &mut dyn FnMut(Range<usize>)) -> Result<(), Refused> {
    let populate = |range: &Range<usize>, access: usize| {
        // SAFETY: the call brings the pages in and changes nothing in them.
        unsafe { kernel::call(libc::SYS_madvise, [range.start, range.len(), access, 0, 0, 0]) }
    };
    let mut only_written = false;
    match populate(&range, MADV_POPULATE_READ) {
        Ok(_) => {
            each(range);
            return Ok(());
        }
        Err(Error(libc::EINVAL | libc::ENOSYS)) => {
            // Of no bytes, it fails only where it does not exist.
            let exists = populate(&(range.start..range.start), MADV_POPULATE_READ).is_ok();
            if anonymous && !exists {
                each(range);
                return Ok(());
            }
            if exists && !anonymous {
                return Err(Refused);
            }
            only_written = exists;
        }
        Err(_) => {}
    }
    for start in range.step_by(PAGE) {
        let page = start..start + PAGE;
        let is_there = if only_written {
            populate(&page, MADV_POPULATE_WRITE).is_ok()
        } else {
            kernel::is_copyable(start)
        };
        if is_there {
            each(page);
        }
    }
    Ok(())
}

/// Whether some page of the process may be swapped.
fn may_be_swapped() -> bool {
    let mut text = [0; 4096];
    let got = File::open(STATUS).and_then(|file| file.read(&mut text)).unwrap_or(0);
    let swapped = text.get(..got).and_then(|text| proc::field(text, b"VmSwap:"));
    swapped != Some(b"0 kB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::vec::Vec;

    const PAGES: usize = 40;
    const ALL: [ResidencyMethod; 3] = [ResidencyMethod::Scan, ResidencyMethod::Words, ResidencyMethod::Core];

    /// A mapping of the test's own.
    struct Mapping(usize, usize);

    impl Mapping {
        fn new(pages: usize, flags: i32, fd: i32) -> Mapping {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a new mapping. Huge pages would hold more than was touched.
            unsafe {
                let start = libc::mmap(core::ptr::null_mut(), pages * PAGE, access, flags, fd, 0);
                assert_ne!(start, libc::MAP_FAILED);
                libc::madvise(start, pages * PAGE, libc::MADV_NOHUGEPAGE);
                Mapping(start as usize, pages)
            }
        }

        fn private() -> Mapping {
            Mapping::new(PAGES, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
        }

        fn write(&self, page: usize) {
            // SAFETY: the page is the test's.
            unsafe { ((self.0 + page * PAGE) as *mut u8).write_volatile(1) };
        }

        fn read(&self, page: usize) -> u8 {
            // SAFETY: the page is the test's.
            unsafe { ((self.0 + page * PAGE) as *const u8).read_volatile() }
        }

        fn range(&self) -> Range<usize> {
            self.0..self.0 + self.1 * PAGE
        }

        /// The shown ranges of a part, in bytes from the start; what is shown is read.
        fn shown(&self, method: ResidencyMethod, kind: PageKind, part: Range<usize>) -> Vec<Range<usize>> {
            let (mut buffers, mut found) = (PageBuffers::new(), Vec::new());
            let mut pages = Pages::by(method, &mut buffers).expect("memory");
            let part = self.0 + part.start..self.0 + part.end;
            pages.present(part, kind, &mut |range| found.push(range)).expect("memory");
            assert_eq!(pages.method, method, "it is to be had here");
            for at in found.iter().cloned().flatten().step_by(64) {
                // SAFETY: what is shown can be read.
                unsafe { (at as *const u8).read_volatile() };
            }
            found.into_iter().map(|range| range.start - self.0..range.end - self.0).collect()
        }

        /// The pages shown.
        fn pages(&self, method: ResidencyMethod, kind: PageKind) -> Vec<usize> {
            let ranges = self.shown(method, kind, 0..self.1 * PAGE);
            assert!(ranges.iter().all(|range| (range.start | range.end).is_multiple_of(PAGE)));
            ranges.into_iter().flat_map(|range| range.step_by(PAGE)).map(|at| at / PAGE).collect()
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: the mapping is the test's.
            unsafe { libc::munmap(self.0 as *mut _, self.1 * PAGE) };
        }
    }

    fn file(pages: usize) -> std::fs::File {
        // SAFETY: a new descriptor.
        let file = unsafe { std::fs::File::from_raw_fd(libc::memfd_create(c"pages".as_ptr(), 0)) };
        file.set_len((pages * PAGE) as u64).expect("a length");
        file
    }

    proptest! {
        /// One scan looks ahead over several pieces, and over what lies between them.
        #[test]
        fn a_scan_of_several_pieces_shows_what_scans_of_each_show(
            written in prop::collection::btree_set(0..PAGES, 0..PAGES),
            borders in prop::collection::btree_set(0..PAGES, 2..9),
            reach in 0..PAGES,
        ) {
            let mapping = Mapping::new(PAGES, libc::MAP_PRIVATE, file(PAGES).as_raw_fd());
            (0..PAGES).for_each(|page| assert_eq!(mapping.read(page), 0));
            written.iter().for_each(|&page| mapping.write(page));
            let borders: Vec<usize> = borders.into_iter().map(|page| mapping.0 + page * PAGE).collect();
            let shown = |reach: usize| {
                let (mut buffers, mut found) = (PageBuffers::new(), Vec::new());
                let mut pages = Pages::by(ResidencyMethod::Scan, &mut buffers).expect("memory");
                for (at, pair) in borders.windows(2).enumerate().filter(|(at, _)| at % 2 == 0) {
                    let kind = if at % 4 == 0 { PageKind::PrivateFile } else { PageKind::Anonymous };
                    if pages.begins_at(pair[0]) {
                        pages.reach = reach;
                    }
                    pages.present(pair[0]..pair[1], kind, &mut |range| found.extend(range.step_by(PAGE))).expect("memory");
                }
                found
            };
            prop_assert_eq!(shown(mapping.0 + reach * PAGE), shown(0));
        }

        #[test]
        fn pages_that_were_written_are_shown(
            written in prop::collection::btree_set(0..PAGES, 0..PAGES),
            part in (0..PAGES * PAGE, 0..PAGES * PAGE),
        ) {
            let mapping = Mapping::private();
            written.iter().for_each(|&page| mapping.write(page));
            let part = part.0.min(part.1)..part.0.max(part.1) + 1;
            let expected: Vec<usize> =
                part.clone().filter(|at| written.contains(&(at / PAGE))).collect();
            for method in ALL {
                prop_assert!(mapping.pages(method, PageKind::Anonymous).iter().eq(&written), "by {:?}", method);
                let found = mapping.shown(method, PageKind::Anonymous, part.clone());
                prop_assert!(found.into_iter().flatten().eq(expected.iter().copied()), "by {:?}", method);
            }
        }

        #[test]
        fn of_a_private_file_only_what_was_written_is_shown(
            written in prop::collection::btree_set(0..PAGES, 0..10),
            read in prop::collection::btree_set(0..PAGES, 0..10),
        ) {
            let mapping = Mapping::new(PAGES, libc::MAP_PRIVATE, file(PAGES).as_raw_fd());
            read.iter().for_each(|&page| assert_eq!(mapping.read(page), 0));
            written.iter().for_each(|&page| mapping.write(page));
            for method in [ResidencyMethod::Scan, ResidencyMethod::Words] {
                prop_assert!(mapping.pages(method, PageKind::PrivateFile).iter().eq(&written), "by {:?}", method);
            }
            // `mincore` cannot distinguish a file's pages, and shows more.
            let found = mapping.pages(ResidencyMethod::Core, PageKind::PrivateFile);
            prop_assert!(written.iter().all(|page| found.contains(page)));
        }
    }

    #[test]
    fn more_ranges_than_one_scan_gives_are_shown() {
        let mapping = Mapping::new(4 * REGIONS, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1);
        (0..4 * REGIONS).step_by(2).for_each(|page| mapping.write(page));
        for method in ALL {
            let expected = (0..4 * REGIONS).step_by(2);
            assert!(mapping.pages(method, PageKind::Anonymous).into_iter().eq(expected), "by {method:?}");
        }
    }

    #[test]
    fn more_pages_than_one_block_are_shown() {
        let mapping = Mapping::new(3 * BLOCK, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1);
        let written = [0, BLOCK - 1, BLOCK, 2 * BLOCK + 5, 3 * BLOCK - 1];
        written.iter().for_each(|&page| mapping.write(page));
        for method in ALL {
            assert_eq!(mapping.pages(method, PageKind::Anonymous), written, "by {method:?}");
        }
    }

    #[test]
    fn pages_that_were_only_read_are_the_zero_page_which_the_scan_passes_over() {
        let mapping = Mapping::private();
        assert_eq!(mapping.read(3), 0);
        mapping.write(5);
        assert_eq!(mapping.pages(ResidencyMethod::Scan, PageKind::Anonymous), [5]);
        assert_eq!(mapping.pages(ResidencyMethod::Words, PageKind::Anonymous), [3, 5]);
    }

    #[test]
    fn shared_memory_is_shown_though_this_mapping_has_not_touched_it() {
        let file = file(PAGES);
        let one = Mapping::new(PAGES, libc::MAP_SHARED, file.as_raw_fd());
        let other = Mapping::new(PAGES, libc::MAP_SHARED, file.as_raw_fd());
        one.write(7);
        for method in ALL {
            assert_eq!(other.pages(method, PageKind::SharedMemory), [7], "by {method:?}");
        }
        // What lies after the file's end cannot be read.
        one.write(30);
        file.set_len(10 * PAGE as u64).expect("a length");
        for method in ALL {
            for kind in [PageKind::SharedMemory, PageKind::SparseFile, PageKind::PrivateFile] {
                assert!(other.pages(method, kind).iter().all(|&page| page == 7), "by {method:?}");
            }
        }
        for method in ALL {
            assert!(other.pages(method, PageKind::SharedFile).into_iter().eq(0..10), "by {method:?}");
        }
    }

    #[test]
    fn what_may_be_swapped_is_shown_as_far_as_it_can_be_read() {
        let mapping = Mapping::new(PAGES, libc::MAP_PRIVATE, file(10).as_raw_fd());
        let (mut buffers, mut found) = (PageBuffers::new(), Vec::new());
        let mut pages = Pages::by(ResidencyMethod::Core, &mut buffers).expect("memory");
        pages.swapped = true;
        pages
            .present(mapping.range(), PageKind::PrivateFile, &mut |range| found.extend(range))
            .expect("memory");
        assert!(found.into_iter().eq(mapping.0..mapping.0 + 10 * PAGE));
    }

    #[test]
    fn what_can_only_be_written_is_brought_in_without_its_guards() {
        const MADV_GUARD_INSTALL: i32 = 102;
        let mapping = Mapping::private();
        (0..PAGES).for_each(|page| mapping.write(page));
        // SAFETY: the mapping is the test's. Linux before 6.13 has no guards.
        let has_guard = unsafe {
            assert_eq!(libc::mprotect(mapping.0 as *mut _, PAGES * PAGE, libc::PROT_WRITE), 0);
            libc::madvise((mapping.0 + 5 * PAGE) as *mut _, PAGE, MADV_GUARD_INSTALL) == 0
        };
        let mut found = Vec::new();
        readable(mapping.range(), true, &mut |range| found.extend(range)).expect("anonymous memory");
        let expected = (0..PAGES).filter(|&page| !has_guard || page != 5);
        assert!(found.iter().step_by(PAGE).copied().eq(expected.map(|page| mapping.0 + page * PAGE)));
        found.iter().step_by(64).for_each(|&at| {
            // SAFETY: what is shown can be read.
            unsafe { (at as *const u8).read_volatile() };
        });
    }

    /// The kernel's page of times is mapped as a device's registers are.
    #[test]
    fn no_page_of_a_device_is_shown() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("the list");
        let line = maps.lines().find(|line| line.ends_with("[vvar]")).expect("the kernel's page");
        let number = |text: &str| usize::from_str_radix(text, 16).expect("an address");
        let (start, rest) = line.split_once('-').expect("a range");
        let range = number(start)..number(rest.split(' ').next().expect("an end"));
        for method in ALL {
            for kind in
                [PageKind::SharedMemory, PageKind::SharedFile, PageKind::SparseFile, PageKind::PrivateFile]
            {
                let mut buffers = PageBuffers::new();
                let mut pages = Pages::by(method, &mut buffers).expect("memory");
                let mut shown = false;
                pages.present(range.clone(), kind, &mut |_| shown = true).expect("memory");
                assert!(!shown, "{kind:?} by {method:?}");
            }
        }
        assert!(!kernel::is_copyable(range.start));
    }

    #[test]
    fn runs_are_maximal() {
        let mut found = Vec::new();
        runs(&[1, 1, 0, 2, 2, 2], |&value| value, |range, class| found.push((range, class)));
        assert_eq!(found, [(0..2, 1), (2..3, 0), (3..6, 2)]);
        runs(&[0_u8; 0], |&value| value, |_, _| panic!("there are none"));
    }
}
