//! Which pages of a mapping hold something: those that were never touched, and those that are still a file's, need no
//! reading, and reading them would give them memory.
//!
//! The kernel tells by one of three means, the best that it has: the scan of `/proc/self/pagemap` (Linux 6.7 and
//! later), which passes over holes; a word per page from the same file; or, where the program may not open it since
//! it has changed its user, `mincore`, which does not know of swapped pages.

use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::areas::Kind;
use crate::buffer::{Buffer, NoMemory};
use crate::kernel::{self, Error, File, PAGE};
use crate::proc;

/// Asked of the calling thread: a main thread that has ended has none.
const PAGEMAP: &CStr = c"/proc/thread-self/pagemap";
const STATUS: &CStr = c"/proc/thread-self/status";

/// Bits of a page's word (the kernel's `pagemap.rst`).
const WORD_PRESENT: u64 = 1 << 63;
const WORD_SWAPPED: u64 = 1 << 62;
const WORD_FILE: u64 = 1 << 61;

/// Pages looked at by one reading of words or by one `mincore`.
const BLOCK: usize = 4096;
/// Ranges given by one scan.
const REGIONS: usize = 512;

/// The scan's request number: `_IOWR('f', 16, struct pm_scan_arg)`.
const SCAN: u64 = 0xC060_6610;
const SCAN_FILE: u64 = 1 << 2;
const SCAN_PRESENT: u64 = 1 << 3;
const SCAN_SWAPPED: u64 = 1 << 4;
const SCAN_ZERO: u64 = 1 << 5;

/// The kernel's `struct pm_scan_arg`.
#[derive(Debug, Default)]
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_length: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    told: u64,
}

/// The kernel's `struct page_region`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

const MADV_POPULATE_READ: usize = 22;

/// The means by which pages are found out about, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Means {
    Scan,
    Words,
    Core,
}

/// The best means that this kernel has been seen to have.
static BEST: AtomicU8 = AtomicU8::new(Means::Scan as u8);

/// Room to work in.
#[derive(Debug)]
pub struct Room {
    regions: Buffer<Region>,
    words: Buffer<u64>,
    flags: Buffer<u8>,
}

impl Room {
    pub const fn new() -> Room {
        Room { regions: Buffer::new(), words: Buffer::new(), flags: Buffer::new() }
    }

    /// The addresses that it occupies.
    pub fn ranges(&self) -> [Range<usize>; 3] {
        [self.regions.range(), self.words.range(), self.flags.range()]
    }
}

/// Tells of pages.
pub struct Pages<'a> {
    pagemap: Option<File>,
    means: Means,
    /// Some page of this process may be swapped; only asked for where the means do not tell.
    swapped: bool,
    room: &'a mut Room,
}

impl<'a> Pages<'a> {
    pub fn open(room: &'a mut Room) -> Result<Pages<'a>, NoMemory> {
        Pages::by(
            if BEST.load(Ordering::Relaxed) == Means::Scan as u8 { Means::Scan } else { Means::Words },
            room,
        )
    }

    /// By such means, or by what is left if they are not to be had.
    pub fn by(means: Means, room: &'a mut Room) -> Result<Pages<'a>, NoMemory> {
        let pagemap = if means == Means::Core { None } else { File::open(PAGEMAP).ok() };
        let means = if pagemap.is_none() { Means::Core } else { means };
        room.regions.reserve(REGIONS)?;
        let swapped = means == Means::Core && may_be_swapped();
        Ok(Pages { pagemap, means, swapped, room })
    }

    /// Shows all parts of a range, in order, whose pages hold something and can be read. The range lies in one mapping
    /// of that kind.
    pub fn present(
        &mut self,
        range: Range<usize>,
        kind: Kind,
        each: &mut dyn FnMut(Range<usize>),
    ) -> Result<(), NoMemory> {
        let pages = range.start & !(PAGE - 1)..range.end.next_multiple_of(PAGE);
        let mut clipped = |found: Range<usize>| {
            let found = found.start.max(range.start)..found.end.min(range.end);
            if !found.is_empty() {
                each(found);
            }
        };
        if kind == Kind::SharedMemory {
            return self.resident(pages, true, &mut clipped);
        }
        match self.means {
            Means::Scan => match self.scan(pages.clone(), kind, &mut clipped) {
                Ok(()) => Ok(()),
                Err(from) => {
                    self.means = Means::Words;
                    BEST.store(Means::Words as u8, Ordering::Relaxed);
                    self.words(from..pages.end, kind, &mut clipped)
                }
            },
            Means::Words => self.words(pages, kind, &mut clipped),
            Means::Core if self.swapped => {
                readable(pages, kind == Kind::Anonymous, &mut clipped);
                Ok(())
            }
            Means::Core => self.resident(pages, kind != Kind::Anonymous, &mut clipped),
        }
    }

    /// By the kernel's scan. The error is the address up to which it has come.
    fn scan(
        &mut self,
        pages: Range<usize>,
        kind: Kind,
        each: &mut dyn FnMut(Range<usize>),
    ) -> Result<(), usize> {
        let Some(pagemap) = &self.pagemap else { return Err(pages.start) };
        let file = if kind == Kind::PrivateFile { SCAN_FILE } else { 0 };
        let mut at = pages.start;
        while at < pages.end {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                start: at as u64,
                end: pages.end as u64,
                regions: self.room.regions.room().as_mut_ptr() as u64,
                regions_length: REGIONS as u64,
                inverted: SCAN_ZERO | file,
                all_of: SCAN_ZERO | file,
                any_of: SCAN_PRESENT | SCAN_SWAPPED,
                told: SCAN_PRESENT | SCAN_SWAPPED,
                ..Scan::default()
            };
            // SAFETY: the request takes this structure; the regions are writable for so many.
            let got = unsafe { pagemap.control(SCAN, &mut scan) };
            let regions = match got {
                Ok(count) => self.room.regions.room().get(..count).unwrap_or_default(),
                Err(Error(libc::EINTR)) => continue,
                Err(_) => return Err(at),
            };
            for region in regions {
                let found = region.start as usize..region.end as usize;
                if region.categories & SCAN_SWAPPED == 0 {
                    each(found);
                } else {
                    readable(found, kind == Kind::Anonymous, each);
                }
            }
            let end = scan.walk_end as usize;
            if end <= at {
                return Err(at);
            }
            at = end;
        }
        Ok(())
    }

    /// By a word per page.
    fn words(
        &mut self,
        pages: Range<usize>,
        kind: Kind,
        each: &mut dyn FnMut(Range<usize>),
    ) -> Result<(), NoMemory> {
        self.room.words.reserve(BLOCK)?;
        let mut at = pages.start;
        while at < pages.end {
            let wanted = ((pages.end - at) / PAGE).min(BLOCK);
            let words = self.room.words.room().get_mut(..wanted).unwrap_or_default();
            let position = (at / PAGE * size_of::<u64>()) as u64;
            let got = self.pagemap.as_ref().and_then(|file| file.read_at(words, position).ok()).unwrap_or(0);
            if got < size_of::<u64>() {
                // What cannot be told is shown.
                readable(at..pages.end, kind == Kind::Anonymous, each);
                return Ok(());
            }
            let words = &words[..got / size_of::<u64>()];
            let is_held = |word: u64| {
                word & (WORD_PRESENT | WORD_SWAPPED) != 0
                    && (kind != Kind::PrivateFile || word & WORD_FILE == 0)
            };
            runs(
                words,
                |&word| is_held(word) as u8 + (is_held(word) && word & WORD_SWAPPED != 0) as u8,
                |run, held| {
                    let found = at + run.start * PAGE..at + run.end * PAGE;
                    match held {
                        0 => {}
                        1 => each(found),
                        _ => readable(found, kind == Kind::Anonymous, each),
                    }
                },
            );
            at += words.len() * PAGE;
        }
        Ok(())
    }

    /// By `mincore`. `checked`: that a page is in memory does not mean that it may be read.
    fn resident(
        &mut self,
        pages: Range<usize>,
        checked: bool,
        each: &mut dyn FnMut(Range<usize>),
    ) -> Result<(), NoMemory> {
        self.room.flags.reserve(BLOCK)?;
        let mut at = pages.start;
        while at < pages.end {
            let count = ((pages.end - at) / PAGE).min(BLOCK);
            let flags = self.room.flags.room().get_mut(..count).unwrap_or_default();
            // SAFETY: the flags are writable for one byte per page.
            let got = unsafe {
                kernel::call(libc::SYS_mincore, [at, count * PAGE, flags.as_mut_ptr() as usize, 0, 0, 0])
            };
            if got.is_err() {
                // What cannot be told is shown.
                flags.fill(1);
            }
            let checked = checked || got.is_err();
            runs(
                flags,
                |flag| flag & 1,
                |run, held| {
                    let found = at + run.start * PAGE..at + run.end * PAGE;
                    if held == 0 {
                    } else if checked {
                        readable(found, false, each);
                    } else {
                        each(found);
                    }
                },
            );
            at += count * PAGE;
        }
        Ok(())
    }
}

/// Shows runs of equal class.
fn runs<T>(values: &[T], class: impl Fn(&T) -> u8, mut each: impl FnMut(Range<usize>, u8)) {
    let mut start = 0;
    for run in values.chunk_by(|one, next| class(one) == class(next)) {
        if let Some(first) = run.first() {
            each(start..start + run.len(), class(first));
        }
        start += run.len();
    }
}

/// Shows what of a range can be read, by having the kernel bring it in: a page may be a guard (`MADV_GUARD_INSTALL`,
/// which some kernels show as swapped), lie beyond a file's end or be damaged. Kernels without that call (before 5.14)
/// have no guards either: there anonymous memory can be read.
fn readable(range: Range<usize>, anonymous: bool, each: &mut dyn FnMut(Range<usize>)) {
    let populate = |range: &Range<usize>| {
        // SAFETY: reads the pages only.
        unsafe { kernel::call(libc::SYS_madvise, [range.start, range.len(), MADV_POPULATE_READ, 0, 0, 0]) }
    };
    match populate(&range) {
        Ok(_) => return each(range),
        Err(Error(libc::EINVAL | libc::ENOSYS)) => {
            if anonymous {
                each(range);
            }
            return;
        }
        Err(_) => {}
    }
    for start in range.step_by(PAGE) {
        let page = start..start + PAGE;
        if populate(&page).is_ok() {
            each(page);
        }
    }
}

/// Whether some page of the process may be swapped.
fn may_be_swapped() -> bool {
    let mut text = [0; 4096];
    let got = File::open(STATUS).and_then(|file| file.read(&mut text)).unwrap_or(0);
    let swapped = text.get(..got).and_then(|text| proc::field(text, b"VmSwap:"));
    swapped != Some(b"0 kB")
}
