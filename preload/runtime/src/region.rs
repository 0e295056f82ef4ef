//! Memory from the system: one region that only grows, as `sbrk` gave it to the managers of 1992.
//!
//! The region is mapped far from everything else and extended at its end, so that it stays in one piece; the program
//! and its libraries may use the real break as they like. Unlike a large reservation, it counts towards `RLIMIT_AS`
//! and the process's size no more than it is.

use core::ffi::c_void;
use core::ops::Range;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};

use heaptoll_assertions::assert_internal;

use crate::{StatsReporter, round_up};

/// The unit in which the heap's size is counted, bytes.
pub const PAGE: usize = 4096;

/// Memory is mapped in steps of this size, bytes. What a manager has not taken of a step is not part of the heap: no
/// page of it has been touched.
const STEP: usize = 128 << 10;

/// Where regions are put, if nothing is there: above what Linux hands out by itself from below, below what it hands
/// out from above. The upper half of such an address is no round number, so that a pair of small integers is rarely
/// taken for one by a conservative collector. The lower ones are for machines and simulators with fewer address bits.
const BASES: [usize; 4] = [0x15a7 << 32, 64 << 30, 32 << 30, 8 << 30];
/// Address space between two regions of a process, bytes.
const APART: usize = 1 << 40;
/// How many such slots there are above the first base.
const SLOTS: usize = 56;

const _: () = {
    assert!(STEP.is_multiple_of(PAGE) && APART.is_multiple_of(STEP));
    // All slots lie in the address space of a process.
    assert!(BASES[0] + SLOTS * APART <= crate::ADDRESSES);
};

/// The next slot: a process normally has one region, a test has many.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A contiguous region that grows at its end.
#[derive(Debug)]
pub struct Region {
    start: usize,
    /// End of what the manager has taken.
    end: usize,
    /// End of what the system has given.
    mapped_end: usize,
    requests: u64,
    fail_every: u64,
    reporter: Option<&'static StatsReporter>,
}

impl Region {
    /// An empty region; the first growth maps memory.
    pub const fn new() -> Region {
        Region { start: 0, end: 0, mapped_end: 0, requests: 0, fail_every: 0, reporter: None }
    }

    /// Address of the first byte, a multiple of [`PAGE`]; 0 before the first growth.
    #[inline(always)]
    pub const fn start(&self) -> usize {
        self.start
    }

    /// Address after the last byte.
    #[inline(always)]
    pub const fn end(&self) -> usize {
        self.end
    }

    /// Whether the address lies in it.
    #[inline(always)]
    pub const fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.end - self.start
    }

    /// All that the system has given, what the manager has not taken yet too: nothing was written there.
    pub const fn mapped(&self) -> Range<usize> {
        self.start..self.mapped_end
    }

    /// The heap's size, bytes, in whole pages. As the region never shrinks this is also its high-water mark.
    pub const fn mapped_bytes(&self) -> usize {
        round_up(self.end - self.start, PAGE)
    }

    /// Makes every `every`-th request for growth fail from now on, 0 none: the tests' faults.
    pub fn fail_every(&mut self, every: u64) {
        self.fail_every = every;
        self.requests = 0;
    }

    /// Reports each growth from now on, on the thread that caused it.
    pub fn report_to(&mut self, reporter: &'static StatsReporter) {
        self.reporter = Some(reporter);
    }

    /// Extends the region by `bytes`, a multiple of [`crate::WORD`], zeroed. `None` when the system gives no more;
    /// `errno` is kept.
    #[cold]
    #[inline(never)]
    pub fn grow(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        Some(self.grow_within(bytes, bytes)?.0)
    }

    /// As [`Region::grow`], by `most` bytes, or by half of it, and so on, down to `least`. Also returns by how much.
    pub fn grow_within(&mut self, least: usize, most: usize) -> Option<(NonNull<u8>, usize)> {
        assert_internal!(
            least.is_multiple_of(crate::WORD) && most.is_multiple_of(crate::WORD),
            "regions grow by whole words"
        );
        assert_internal!(least <= most, "a region grows by the least to the most that is requested");
        assert_internal!(self.is_in_order(), "what a manager has taken of a region is mapped");
        let before = self.end;
        self.requests += 1;
        if self.fail_every != 0 && self.requests.is_multiple_of(self.fail_every) {
            return None;
        }
        // SAFETY: errno's address is valid for the calling thread.
        let errno = unsafe { *libc::__errno_location() };
        let mut bytes = most;
        let extended = loop {
            match self.extend(bytes) {
                Some(start) => break Some((start, bytes)),
                None if bytes <= least => break None,
                None => bytes = least.max(round_up(bytes / 2, PAGE)),
            }
        };
        // SAFETY: errno's address is valid for the calling thread.
        unsafe { *libc::__errno_location() = errno };
        assert_internal!(
            extended.map_or(before == self.end || before == 0, |(start, bytes)| {
                start.as_ptr() as usize + bytes == self.end
                    && (before == 0 || start.as_ptr() as usize == before)
            }),
            "a region grows at its end, by what is returned"
        );
        assert_internal!(
            extended.is_none_or(|(_, bytes)| (least..=most).contains(&bytes)),
            "a region grows by the least to the most that is requested"
        );
        assert_internal!(self.is_in_order(), "what a manager has taken of a region is mapped");
        if extended.is_some()
            && let Some(reporter) = self.reporter
        {
            reporter.grown(self.mapped_bytes());
        }
        extended
    }

    /// As [`Region::grow`], by `at_least` bytes and on to the next page boundary. Also returns by how much.
    pub fn grow_to_page(&mut self, at_least: usize) -> Option<(NonNull<u8>, usize)> {
        let bytes = round_up(self.end.checked_add(at_least)?, PAGE).checked_sub(self.end)?;
        Some((self.grow(bytes)?, bytes))
    }

    /// Whether its parts are in order: for assertions.
    const fn is_in_order(&self) -> bool {
        self.start <= self.end
            && self.end <= self.mapped_end
            && self.start.is_multiple_of(PAGE)
            && self.mapped_end.is_multiple_of(PAGE)
    }

    fn extend(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        if self.start == 0 {
            self.choose_base()?;
        }
        let end = self.end.checked_add(bytes)?;
        if end > self.mapped_end {
            let exact = round_up(end, PAGE).checked_sub(self.mapped_end)?;
            let ample = round_up(end.checked_add(STEP)?, STEP).checked_sub(self.mapped_end)?;
            // Where the ample step is too much for a limit, the exact one may not be.
            assert_internal!(exact <= ample, "the ample step of a region is no smaller than the exact one");
            let got = [ample, exact].into_iter().find(|&more| map(self.mapped_end, more))?;
            self.mapped_end += got;
        }
        assert_internal!(end <= self.mapped_end, "what a manager takes of a region is mapped");
        let taken = NonNull::new(self.end as *mut u8);
        self.end = end;
        taken
    }

    /// Finds a base for the region and maps its first step.
    fn choose_base(&mut self) -> Option<()> {
        // Where this object lies is random if the system randomises, and the same each time if it does not.
        let random = (ptr::from_ref(&NEXT) as usize >> 12 & 0xfff) << 21;
        for _ in 0..SLOTS {
            let slot = NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS;
            let base = BASES[0] + slot * APART + random;
            assert_internal!(
                random + STEP < APART && base + APART < crate::ADDRESSES,
                "a region lies in its slot, and the slot in the address space"
            );
            if !is_free(BASES[0] + slot * APART) {
                continue;
            }
            if map(base, STEP) {
                return self.start_at(base);
            }
            if slot == 0 {
                // A machine with few address bits refuses the first base, and will refuse the others.
                if let Some(&base) = BASES[1..].iter().find(|&&base| map(base + random, STEP)) {
                    return self.start_at(base + random);
                }
            }
        }
        None
    }

    fn start_at(&mut self, base: usize) -> Option<()> {
        assert_internal!(self.start == 0, "a region never moves");
        assert_internal!(base.is_multiple_of(PAGE) && base != 0, "a region begins at a page");
        self.start = base;
        self.end = base;
        self.mapped_end = base + STEP;
        Some(())
    }
}

impl Default for Region {
    fn default() -> Region {
        Region::new()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.start != 0 {
            assert_internal!(self.is_in_order(), "what a manager has taken of a region is mapped");
            // SAFETY: this region alone mapped the range, and every block in it ends with it.
            unsafe { libc::munmap(self.start as *mut c_void, self.mapped_end - self.start) };
        }
    }
}

/// Whether nothing is in a slot yet. Another object of the process, a layer in front of a manager, has regions too, and
/// counts slots by itself: two in one slot would end each other's growth. Where the system refuses so large a mapping
/// for another reason, a limit, it is taken to be free.
fn is_free(slot: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a new mapping that replaces nothing, is inaccessible and unmapped at once; errno's address is valid.
    unsafe {
        let got = libc::mmap(slot as *mut c_void, APART, libc::PROT_NONE, flags, -1, 0);
        if got == libc::MAP_FAILED {
            return *libc::__errno_location() != libc::EEXIST;
        }
        libc::munmap(got, APART);
    }
    true
}

/// Maps zeroed memory exactly there; false when the system refuses or something is there.
fn map(address: usize, bytes: usize) -> bool {
    // SAFETY: a new anonymous mapping that replaces nothing.
    let got = unsafe {
        libc::mmap(
            address as *mut c_void,
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if got == libc::MAP_FAILED {
        return false;
    }
    if got as usize == address {
        return true;
    }
    // Kernels before 4.17, and some simulators, take the address for a hint.
    // SAFETY: the mapping just made, to which there is no reference.
    unsafe { libc::munmap(got, bytes) };
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A layer's tables lay 40 MiB above a manager's heap, which could not grow beyond: both objects took their first
    /// slot.
    #[test]
    fn a_slot_that_is_in_use_is_skipped() {
        let mut region = Region::new();
        region.grow(48).expect("the first growth");
        let slot = |address: usize| (address - BASES[0]) / APART;
        // What another object does, which counts for itself.
        let other = BASES[0] + slot(region.start()) * APART;
        assert!(!is_free(other));
        NEXT.fetch_sub(1, Ordering::Relaxed);
        let mut second = Region::new();
        second.grow(48).expect("a slot");
        assert_ne!(slot(second.start()), slot(region.start()));
        drop(region);
        drop(second);
    }

    #[test]
    fn growth_is_contiguous_zeroed_and_counted_in_pages() {
        let mut region = Region::new();
        let first = region.grow(48).expect("the first growth").as_ptr() as usize;
        assert_eq!((first, region.mapped_bytes()), (region.start(), PAGE));
        let (second, bytes) = region.grow_to_page(1).expect("the second growth");
        assert_eq!((second.as_ptr() as usize, bytes), (first + 48, PAGE - 48));
        let third = region.grow(3 * STEP).expect("a growth over several steps").as_ptr();
        // SAFETY: the word is the last of the `3 * STEP` bytes that `grow` has just returned.
        assert_eq!(unsafe { third.add(3 * STEP).cast::<usize>().sub(1).read() }, 0);
        assert_eq!(region.mapped_bytes(), PAGE + 3 * STEP);
        assert!(region.contains(region.end() - 1) && !region.contains(region.end()));
        assert!(!region.contains(region.start() - 1) && !region.contains(0));
    }

    #[test]
    fn regions_keep_apart() {
        let mut regions = [const { Region::new() }; 3];
        for region in &mut regions {
            region.grow(PAGE).expect("growth");
        }
        assert!(regions[0].start().abs_diff(regions[1].start()) >= APART);
        assert!(regions[1].start().abs_diff(regions[2].start()) >= APART);
    }

    #[test]
    fn faults_come_at_the_requested_rate_and_leave_the_region_as_it_was() {
        let mut region = Region::new();
        region.fail_every(3);
        let given = (0..9).filter(|_| region.grow(PAGE).is_some()).count();
        assert_eq!((given, region.mapped_bytes()), (6, 6 * PAGE));
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        let mut region = Region::new();
        assert!(region.grow(isize::MAX as usize & !15).is_none());
        assert!(region.grow(PAGE).is_some());
        assert!(region.grow_to_page(usize::MAX - 100).is_none());
        assert_eq!(region.mapped_bytes(), PAGE);
    }

    #[test]
    fn less_is_taken_where_the_system_does_not_give_the_most() {
        let mut region = Region::new();
        let (first, bytes) = region.grow_within(PAGE, 3 * PAGE).expect("the most");
        assert_eq!((first.as_ptr() as usize, bytes), (region.start(), 3 * PAGE));
        let (second, bytes) = region.grow_within(PAGE, isize::MAX as usize & !15).expect("less");
        assert_eq!(second.as_ptr() as usize, region.start() + 3 * PAGE);
        assert!((PAGE..1 << 47).contains(&bytes), "{bytes} bytes");
        region.fail_every(1);
        assert!(region.grow_within(PAGE, 2 * PAGE).is_none(), "one request, one fault");
    }

    #[test]
    fn nothing_is_contained_before_the_first_growth() {
        let region = Region::new();
        assert!(!region.contains(0) && !region.contains(usize::MAX));
    }
}
