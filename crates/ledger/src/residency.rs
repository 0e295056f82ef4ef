//! Reads which pages of a process are in memory.
//!
//! Read by the ioctl `PAGEMAP_SCAN` of `/proc/PID/pagemap` (Linux 6.7, Documentation/admin-guide/mm/pagemap.rst), which
//! skips what was never touched and distinguishes the shared page of zeroes, which belongs to no resident set; on older
//! kernels by reading eight bytes a page.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::line::Amount;

/// Where a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// In memory.
    Resident,
    /// In memory, part of a huge page.
    Huge,
    /// On a swap device.
    Swapped,
}

/// Adjacent pages in the same state. What is in no run has no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// First address.
    pub start: u64,
    /// Address after it.
    pub end: u64,
    /// The state of its pages.
    pub state: State,
}

/// The page map of a process.
#[derive(Debug)]
pub struct PageMap {
    file: File,
    page: u64,
    scans: bool,
}

/// `struct pm_scan_arg` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_count: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;
/// `PAGE_IS_*`.
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO: u64 = 1 << 5;
const HUGE: u64 = 1 << 6;
/// Bits of an entry that is read.
const ENTRY_PRESENT: u64 = 1 << 63;
const ENTRY_SWAPPED: u64 = 1 << 62;

/// Regions requested at once.
const REGIONS: usize = 1024;
/// Entries read at once.
const ENTRIES: usize = 16 * 1024;

impl PageMap {
    /// Opens the page map in a folder as of `/proc/PID`.
    ///
    /// # Errors
    /// It does not exist or must not be read.
    pub fn open(folder: &Path, page: u64) -> io::Result<PageMap> {
        Ok(PageMap { file: File::open(folder.join("pagemap"))?, page, scans: true })
    }

    /// Adds the runs of `start..end` (multiples of a page) to `runs`, in order.
    ///
    /// # Errors
    /// The kernel refuses, or reports pages out of order; `ESRCH` or nothing at all when the process has ended.
    pub fn runs(&mut self, start: u64, end: u64, runs: &mut Vec<Run>) -> io::Result<()> {
        if self.scans {
            match self.scan(start, end, runs) {
                // Older kernels know no such request on this file.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTTY | libc::EINVAL)) => {
                    self.scans = false;
                }
                done => return done,
            }
        }
        self.read(start, end, runs)
    }

    fn scan(&self, start: u64, end: u64, runs: &mut Vec<Run>) -> io::Result<()> {
        let mut regions = [Region::default(); REGIONS];
        let mut at = start;
        while at < end {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                start: at,
                end,
                regions: regions.as_mut_ptr() as u64,
                regions_count: REGIONS as u64,
                category_anyof_mask: PRESENT | SWAPPED,
                return_mask: PRESENT | SWAPPED | ZERO | HUGE,
                ..Scan::default()
            };
            // SAFETY: `scan` is a `struct pm_scan_arg` whose `size` is its own, and whose `regions` and `regions_count`
            // are those of the array `regions`; the kernel writes to these two live locals only.
            let found = unsafe { libc::ioctl(self.file.as_raw_fd(), PAGEMAP_SCAN, &raw mut scan) };
            let found = usize::try_from(found).map_err(|_| io::Error::last_os_error())?;
            for region in &regions[..found.min(REGIONS)] {
                if region.start < at || region.end < region.start {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "PAGEMAP_SCAN reports pages out of order",
                    ));
                }
                at = region.end;
                let state = match region.categories {
                    bits if bits & ZERO != 0 => continue,
                    bits if bits & PRESENT != 0 && bits & HUGE != 0 => State::Huge,
                    bits if bits & PRESENT != 0 => State::Resident,
                    bits if bits & SWAPPED != 0 => State::Swapped,
                    _ => continue,
                };
                push(runs, Run { start: region.start, end: region.end, state });
            }
            // `walk_end` is not to be trusted: of more than 512 regions Linux 6.18 returns a place among those that it has
            // reported. It ends early only where it has used all regions.
            if found < REGIONS {
                break;
            }
        }
        Ok(())
    }

    fn read(&self, start: u64, end: u64, runs: &mut Vec<Run>) -> io::Result<()> {
        let mut buffer = vec![0; ENTRIES * 8];
        let mut at = start;
        while at < end {
            let wanted = (((end - at) / self.page) as usize).min(ENTRIES) * 8;
            let got = self.file.read_at(&mut buffer[..wanted], at / self.page * 8)?;
            if got < 8 {
                break;
            }
            for entry in buffer[..got].chunks_exact(8) {
                let entry = entry.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
                let state = match entry {
                    bits if bits & ENTRY_PRESENT != 0 => Some(State::Resident),
                    bits if bits & ENTRY_SWAPPED != 0 => Some(State::Swapped),
                    _ => None,
                };
                if let Some(state) = state {
                    push(runs, Run { start: at, end: at + self.page, state });
                }
                at += self.page;
            }
        }
        Ok(())
    }
}

/// Adds a run, merging it with the last one where it continues that.
fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.end == run.start && last.state == run.state => last.end = run.end,
        _ => runs.push(run),
    }
}

/// Walks along runs with ranges that come in order of address.
#[derive(Debug)]
pub struct Walk<'a> {
    runs: &'a [Run],
    at: usize,
}

/// The residency of a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RangeResidency {
    /// Its bytes by where they are.
    pub amount: Amount,
    /// Of the resident bytes, those on huge pages.
    pub huge: u64,
}

impl<'a> Walk<'a> {
    /// At the beginning of `runs`, which are in order and disjoint.
    pub fn new(runs: &'a [Run]) -> Walk<'a> {
        debug_assert!(runs.is_sorted_by(|one, next| one.end <= next.start), "runs are in order");
        Walk { runs, at: 0 }
    }

    /// Where the bytes of a range are. No range may begin before the previous one did.
    #[inline]
    pub fn measure(&mut self, start: u64, end: u64) -> RangeResidency {
        let mut found = RangeResidency::default();
        if end <= start {
            return found;
        }
        while self.runs.get(self.at).is_some_and(|run| run.end <= start) {
            self.at += 1;
        }
        let mut seen = 0;
        for run in &self.runs[self.at..] {
            if run.start >= end {
                break;
            }
            let bytes = run.end.min(end) - run.start.max(start);
            seen += bytes;
            match run.state {
                State::Resident => found.amount.resident += bytes,
                State::Huge => {
                    found.amount.resident += bytes;
                    found.huge += bytes;
                }
                State::Swapped => found.amount.swapped += bytes,
            }
        }
        found.amount.absent = end - start - seen;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    /// A mapping of the test's own, unmapped at the end.
    struct Map(u64, usize);

    impl Map {
        fn new(pages: usize) -> Map {
            let bytes = pages * PAGE as usize;
            // SAFETY: mmap without MAP_FIXED makes a new mapping and replaces none.
            let made = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            assert_ne!(made, libc::MAP_FAILED);
            Map(made as u64, bytes)
        }

        fn write(&self, page: usize) {
            // SAFETY: callers pass a `page` below the number that `Map::new` has mapped, readable and writable.
            unsafe { ((self.0 as usize + page * PAGE as usize) as *mut u8).write_volatile(1) }
        }

        fn read(&self, page: usize) {
            // SAFETY: callers pass a `page` below the number that `Map::new` has mapped, readable and writable.
            unsafe { ((self.0 as usize + page * PAGE as usize) as *const u8).read_volatile() };
        }
    }

    impl Drop for Map {
        fn drop(&mut self) {
            // SAFETY: the mapping is the one of `Map::new`; nothing keeps an address in it after this drop.
            unsafe { libc::munmap(self.0 as *mut _, self.1) };
        }
    }

    fn pages(map: &Map, runs: &[Run]) -> Vec<(u64, u64)> {
        runs.iter().map(|run| ((run.start - map.0) / PAGE, (run.end - map.0) / PAGE)).collect()
    }

    #[test]
    fn scanning_and_reading_find_the_pages_that_were_written() {
        let map = Map::new(64);
        for page in [3, 4, 5, 20, 63] {
            map.write(page);
        }
        let mut file = PageMap::open(Path::new("/proc/self"), PAGE).expect("ours");
        for scans in [true, false] {
            file.scans = scans;
            let mut runs = Vec::new();
            file.runs(map.0, map.0 + 64 * PAGE, &mut runs).expect("ours");
            assert_eq!(pages(&map, &runs), [(3, 6), (20, 21), (63, 64)], "scanned: {scans}");
            assert!(runs.iter().all(|run| run.state == State::Resident));
        }
    }

    #[test]
    fn the_page_of_zeroes_is_not_resident() {
        let map = Map::new(8);
        map.read(2);
        map.write(5);
        let mut file = PageMap::open(Path::new("/proc/self"), PAGE).expect("ours");
        let mut runs = Vec::new();
        file.runs(map.0, map.0 + 8 * PAGE, &mut runs).expect("ours");
        if file.scans {
            assert_eq!(pages(&map, &runs), [(5, 6)]);
        }
    }

    /// Before, some pages were counted twice, or the ledger died of it: the kernel has space for 512 regions of its own, and
    /// of more it returned a place to go on at that it had passed.
    #[test]
    fn every_region_is_found_once_however_many_there_are() {
        let map = Map::new(6 * REGIONS);
        let mut file = PageMap::open(Path::new("/proc/self"), PAGE).expect("ours");
        let mut written = 0;
        for many in [500, 700, 1000, REGIONS, REGIONS + 1, 2 * REGIONS + 700, 3 * REGIONS] {
            (written..many).for_each(|region| map.write(2 * region));
            written = many;
            let mut runs = Vec::new();
            file.runs(map.0, map.0 + 6 * REGIONS as u64 * PAGE, &mut runs).expect("ours");
            let expected: Vec<(u64, u64)> = (0..many as u64).map(|at| (2 * at, 2 * at + 1)).collect();
            assert_eq!(pages(&map, &runs), expected, "{many} regions");
        }
    }

    #[test]
    fn a_walk_splits_ranges() {
        let run = |start, end, state| Run { start, end, state };
        let runs = [run(10, 20, State::Resident), run(20, 30, State::Huge), run(40, 50, State::Swapped)];
        let mut walk = Walk::new(&runs);
        let amount = |resident, swapped, absent| Amount { resident, swapped, absent };
        assert_eq!(walk.measure(0, 5).amount, amount(0, 0, 5));
        assert_eq!(walk.measure(5, 45), RangeResidency { amount: amount(20, 5, 15), huge: 10 });
        assert_eq!(walk.measure(15, 25), RangeResidency { amount: amount(10, 0, 0), huge: 5 });
        assert_eq!(walk.measure(45, 60).amount, amount(0, 5, 10));
        assert_eq!(walk.measure(60, 60), RangeResidency::default());
    }
}
