//! This process as the kernel sees it: resident set, high-water mark, mappings. Read without allocating anything.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};

use super::area::{self, Area};

/// A file of /proc, read piece by piece.
struct ProcFile(libc::c_int);

impl ProcFile {
    fn open(path: &CStr, flags: libc::c_int) -> Option<ProcFile> {
        // SAFETY: `path` is a C string.
        let descriptor = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
        (descriptor >= 0).then_some(ProcFile(descriptor))
    }

    fn read(&self, into: &mut [u8]) -> usize {
        // SAFETY: `open` set the descriptor, which stays open until drop; `into` is passed with its length.
        let got = unsafe { libc::read(self.0, into.as_mut_ptr().cast(), into.len()) };
        usize::try_from(got).unwrap_or(0)
    }
}

impl Drop for ProcFile {
    fn drop(&mut self) {
        // SAFETY: `open` set the descriptor, which nothing else closes.
        unsafe { libc::close(self.0) };
    }
}

/// The KiB after a label at the beginning of a line, as bytes.
fn labelled(path: &CStr, label: &[u8]) -> Option<u64> {
    let file = ProcFile::open(path, libc::O_RDONLY)?;
    let mut text = [0; 4096];
    let mut length = 0;
    loop {
        match file.read(&mut text[length..]) {
            0 => break,
            got => length += got,
        }
    }
    let line = text[..length].split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(label))?;
    let digits =
        line.iter().skip_while(|byte| !byte.is_ascii_digit()).take_while(|byte| byte.is_ascii_digit());
    Some(1024 * digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// The resident set, bytes: counted page by page where the kernel can, else its running count, which may be some
/// hundred KiB off.
pub fn rss() -> u64 {
    labelled(c"/proc/self/smaps_rollup", b"Rss:")
        .or_else(|| labelled(c"/proc/self/status", b"VmRSS:"))
        .unwrap_or(0)
}

/// The resident set without file mappings, bytes.
pub fn anonymous() -> u64 {
    labelled(c"/proc/self/smaps_rollup", b"Anonymous:")
        .or_else(|| labelled(c"/proc/self/status", b"RssAnon:"))
        .unwrap_or(0)
}

/// The high-water mark of the resident set since [`forget_high_water`], bytes.
pub fn high_water() -> u64 {
    labelled(c"/proc/self/status", b"VmHWM:").unwrap_or(0)
}

/// Restarts the high-water mark; whether the kernel can.
pub fn forget_high_water() -> bool {
    let Some(file) = ProcFile::open(c"/proc/self/clear_refs", libc::O_WRONLY) else { return false };
    // SAFETY: `file` holds an open descriptor until it is dropped; the string has the one byte.
    unsafe { libc::write(file.0, b"5".as_ptr().cast(), 1) == 1 }
}

/// Linux counts resident pages by CPU and adds up now and then: marks may be off by this many bytes a CPU.
const LAG_A_CPU: u64 = 256 << 10;

/// What a high-water mark may be off by, bytes.
pub fn lag() -> u64 {
    // SAFETY: sysconf takes a plain number and writes no memory.
    LAG_A_CPU * unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as u64
}

/// Minor and major faults of this process.
pub fn faults() -> (u64, u64) {
    // SAFETY: all zeroes is a valid rusage; getrusage fills this live local.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    (usage.ru_minflt as u64, usage.ru_majflt as u64)
}

/// Bits of an address that user space has.
const ADDRESS_BITS: u32 = 47;
/// Bits of a page: of the heap, and of the table of counts.
const PAGE_BITS: u32 = 12;
/// A page of the table counts the blocks of as many pages of the heap, in bits.
const SUMMARY_BITS: u32 = PAGE_BITS - 1;

/// How many live blocks begin in each page, so that the heap's mappings can be distinguished from others.
pub struct Pages {
    /// Two bytes a page: no manager has blocks below a byte.
    counts: Area,
    /// Which pages of the table have been used, a bit each.
    summary: Area,
}

impl Pages {
    /// None yet. `None` where the address space is limited.
    pub fn new() -> Option<Pages> {
        let counts = Area::new(2 << (ADDRESS_BITS - PAGE_BITS), 0).ok()?;
        let summary = 1 << (ADDRESS_BITS - PAGE_BITS - SUMMARY_BITS - 3);
        Some(Pages { counts, summary: Area::new(summary, summary).ok()? })
    }

    fn page(block: *mut u8) -> usize {
        (block as usize & ((1 << ADDRESS_BITS) - 1)) >> PAGE_BITS
    }

    fn count(&self, page: usize) -> &AtomicU16 {
        debug_assert!(2 * page < self.counts.bytes());
        // SAFETY: within the area, as asserted above, since it covers the pages of all addresses; aligned, and only
        // accessed as this atomic.
        unsafe { AtomicU16::from_ptr(self.counts.start().cast::<u16>().add(page)) }
    }

    fn used(&self, region: usize) -> &AtomicU64 {
        debug_assert!(region / 8 < self.summary.bytes());
        // SAFETY: within the summary, as asserted above for regions of addresses that it covers; aligned, and only
        // accessed as this atomic.
        unsafe { AtomicU64::from_ptr(self.summary.start().cast::<u64>().add(region / 64)) }
    }

    /// A block begins here.
    #[inline(always)]
    pub fn note(&self, block: *mut u8) {
        let page = Self::page(block);
        let region = page >> SUMMARY_BITS;
        if self.used(region).load(Relaxed) >> (region % 64) & 1 == 0 {
            self.note_first(region);
        }
        self.count(page).fetch_add(1, Relaxed);
    }

    #[cold]
    fn note_first(&self, region: usize) {
        let old = self.used(region).fetch_or(1 << (region % 64), Relaxed);
        if old >> (region % 64) & 1 == 0 {
            // The table's page of this region becomes resident with the count.
            area::became_resident(1 << PAGE_BITS);
        }
    }

    /// A block that began here is no more.
    #[inline(always)]
    pub fn forget(&self, block: *mut u8) {
        self.count(Self::page(block)).fetch_sub(1, Relaxed);
    }

    /// Whether a live block begins in this range of addresses.
    fn any_in(&self, start: usize, end: usize) -> bool {
        let last = (1 << ADDRESS_BITS) - 1;
        let end = (end.min(last) + (1 << PAGE_BITS) - 1) >> PAGE_BITS;
        let mut page = start.min(last) >> PAGE_BITS;
        while page < end {
            let region = page >> SUMMARY_BITS;
            let next = ((region + 1) << SUMMARY_BITS).min(end);
            let is_used = self.used(region).load(Relaxed) >> (region % 64) & 1 == 1;
            if is_used && (page..next).any(|page| self.count(page).load(Relaxed) != 0) {
                return true;
            }
            page = next;
        }
        false
    }

    /// Address space of the anonymous mappings in which live blocks begin, the brk segment among them, bytes. As the
    /// recorder computes a program's heap.
    pub fn heap(&self) -> u64 {
        let mut heap = 0;
        each_mapping(|start, end, anonymous| {
            if anonymous && self.any_in(start, end) {
                heap += (end - start) as u64;
            }
        });
        heap
    }
}

/// Calls `each` for every mapping of this process: start, end, whether it is anonymous.
fn each_mapping(mut each: impl FnMut(usize, usize, bool)) {
    let Some(file) = ProcFile::open(c"/proc/self/maps", libc::O_RDONLY) else { return };
    let mut text = [0; 8192];
    let mut kept = 0;
    loop {
        let got = file.read(&mut text[kept..]);
        let length = kept + got;
        if got == 0 || length == 0 {
            return;
        }
        let mut at = 0;
        while let Some(end) = text[at..length].iter().position(|byte| *byte == b'\n') {
            if let Some((start, stop, anonymous)) = mapping(&text[at..at + end]) {
                each(start, stop, anonymous);
            }
            at += end + 1;
        }
        // A line longer than the buffer is none of the kernel's: paths have at most 4096 bytes.
        text.copy_within(at..length, 0);
        kept = length - at;
    }
}

fn mapping(line: &[u8]) -> Option<(usize, usize, bool)> {
    let hex = |digits: &[u8]| usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let range = words.next()?;
    let dash = range.iter().position(|byte| *byte == b'-')?;
    // Access, offset, device and inode come first.
    let path = words.nth(4).unwrap_or_default();
    let anonymous = path.is_empty() || path == b"[heap]" || path.starts_with(b"[anon");
    Some((hex(&range[..dash])?, hex(&range[dash + 1..])?, anonymous))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_distinguish_heap_mappings_from_others() {
        let pages = Pages::new().expect("address space");
        let (heap, other) =
            (Area::new(1 << 20, 0).expect("a mapping"), Area::new(1 << 20, 0).expect("a mapping"));
        assert_eq!(pages.heap(), 0);
        pages.note(heap.start().wrapping_add(70_000));
        assert_eq!(pages.heap(), 1 << 20);
        pages.note(heap.start().wrapping_add(900_000));
        assert_eq!(pages.heap(), 1 << 20);
        pages.note(other.start().wrapping_add((1 << 20) - 16));
        assert_eq!(pages.heap(), 2 << 20);
        pages.forget(heap.start().wrapping_add(70_000));
        assert_eq!(pages.heap(), 2 << 20);
        pages.forget(heap.start().wrapping_add(900_000));
        assert_eq!(pages.heap(), 1 << 20, "a mapping without live blocks is none of the heap's");
    }

    #[test]
    fn mappings_are_those_of_the_kernel() {
        let area = Area::new(1 << 20, 0).expect("a mapping");
        let code = mapping as *const () as usize;
        let (mut own, mut ours) = (false, true);
        each_mapping(|start, end, anonymous| {
            own |= anonymous && start == area.start() as usize && end - start == area.bytes();
            ours &= !(start..end).contains(&code) || !anonymous;
        });
        assert!(own, "memory is anonymous");
        assert!(ours, "code is not");
        assert!(rss() > 0);
        assert!(high_water() >= 1 << 20);
    }
}
