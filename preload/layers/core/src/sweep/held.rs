//! What becomes of a freed block's bytes while the guard layer holds it: they are cleared, so that they lead nowhere and
//! a program that reads them reads zeroes, and a later write is found by them.

use core::ops::Range;
use core::slice;

use heaptoll_runtime::{PAGE, system_call};

use crate::quarantine::fill::{Change, first_change};
use crate::sweep::side_tables::LARGE;

/// Pages whose residence is asked for at once.
const PAGES: usize = 512;

/// The whole pages of a block that is large; empty where none is to be given back.
fn whole_pages(block: &Range<usize>) -> Range<usize> {
    if block.len() < LARGE {
        return block.end..block.end;
    }
    block.start.next_multiple_of(PAGE)..block.end & !(PAGE - 1)
}

/// Clears a block. A large one gives its whole pages back to the system.
///
/// # Safety
/// The block is readable and writable, and the program has freed it.
pub unsafe fn clear(block: Range<usize>) {
    let pages = whole_pages(&block);
    // SAFETY: all of it lies in the block, which is writable, as this function requires.
    unsafe {
        if pages.is_empty() || !give_back(&pages) {
            return write_zeroes(block);
        }
        write_zeroes(block.start..pages.start);
        write_zeroes(pages.end..block.end);
    }
}

/// # Safety
/// The range is writable.
unsafe fn write_zeroes(range: Range<usize>) {
    // SAFETY: the range is writable, as this function requires.
    unsafe { (range.start as *mut u8).write_bytes(0, range.len()) };
}

/// Gives pages back to the system; whether they read as zeroes now. They do in memory of the process's own, which
/// managers have; in a mapping that is shared they would keep what they had, and locked ones cannot be given back. So
/// the first and the last are written before and read after.
///
/// # Safety
/// There is a page at least, and all are writable.
unsafe fn give_back(pages: &Range<usize>) -> bool {
    let probes = [pages.start, pages.end - PAGE].map(|page| page as *mut usize);
    // SAFETY: both lie in the pages, which are writable, as this function requires.
    let gone = || probes.iter().all(|probe| unsafe { probe.read_volatile() } == 0);
    // SAFETY: as above; what the pages held is not needed any more.
    unsafe {
        probes.iter().for_each(|probe| probe.write_volatile(1));
        let advice = libc::MADV_DONTNEED as usize;
        system_call(libc::SYS_madvise, [pages.start, pages.len(), advice, 0, 0, 0]) == 0 && gone()
    }
}

/// The first run of bytes that were written since the block was cleared. Pages that the system took back and that nobody
/// touched since are not read, which would bring them back.
///
/// # Safety
/// The block is readable, and of whole words. (A write to it meanwhile is the defect to be found.)
pub unsafe fn changed(block: Range<usize>) -> Option<Change> {
    let pages = whole_pages(&block);
    let find = |part: Range<usize>| {
        // SAFETY: the part lies in the block, which is readable, as this function requires.
        let bytes = unsafe { slice::from_raw_parts(part.start as *const u8, part.len()) };
        let change = first_change(bytes, 0)?;
        Some(Change { offset: part.start - block.start + change.offset, ..change })
    };
    if pages.is_empty() {
        // Nearly always nothing has changed, and most blocks are of a few words.
        let words = block.clone().step_by(size_of::<usize>());
        // SAFETY: the words are those of the block, which is readable, as this function requires.
        let changed = words.fold(0, |all, at| all | unsafe { (at as *const usize).read() });
        return if changed == 0 { None } else { find(block.clone()) };
    }
    find(block.start..pages.start)
        .or_else(|| {
            pages.clone().step_by(PAGES * PAGE).find_map(|at| {
                let mut resident = [0_u8; PAGES];
                let some = at..pages.end.min(at + PAGES * PAGE);
                let to = resident.as_mut_ptr() as usize;
                // SAFETY: the system writes a byte for each page, and there are `PAGES` at most.
                if unsafe { system_call(libc::SYS_mincore, [some.start, some.len(), to, 0, 0, 0]) } != 0 {
                    return None;
                }
                let touched = some.step_by(PAGE).zip(resident).filter(|(_, resident)| resident & 1 != 0);
                touched.map(|(page, _)| page..page + PAGE).find_map(find)
            })
        })
        .or_else(|| find(pages.end..block.end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::vec;

    use super::*;

    /// The addresses of some bytes from the first multiple of 8 on.
    fn within(memory: &mut [u64], skipped: usize, bytes: usize) -> Range<usize> {
        let start = memory.as_mut_ptr() as usize + skipped * 8;
        assert!(start + bytes <= memory.as_ptr_range().end as usize);
        start..start + bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_block_reads_as_zeroes_and_a_later_write_is_found(
            skipped in 1_usize..600,
            bytes in prop_oneof![2_usize..600, (LARGE / 8 - 600)..(LARGE / 8 + 600), 40_000_usize..400_000],
            written: proptest::sample::Index,
            to in 1_u8..,
        ) {
            let mut memory = vec![u64::MAX; skipped + bytes + 1];
            let block = within(&mut memory, skipped, bytes * 8);
            // SAFETY: words of the vector, which no other code uses.
            unsafe {
                clear(block.clone());
                prop_assert_eq!(changed(block.clone()), None);
                let offset = written.index(block.len());
                ((block.start + offset) as *mut u8).write(to);
                let mut found = [0; 16];
                found[0] = to;
                prop_assert_eq!(changed(block.clone()), Some(Change { offset, bytes: 1, found }));
                ((block.start + offset) as *mut u8).write(0);
            }
            prop_assert!(memory[skipped..skipped + bytes].iter().all(|&word| word == 0));
            prop_assert!([memory[skipped - 1], memory[skipped + bytes]] == [u64::MAX; 2], "the neighbours stay");
        }
    }

    /// Giving pages of a shared mapping back leaves what they held.
    #[test]
    fn a_large_block_in_a_shared_mapping_is_cleared_too() {
        let bytes = 64 * PAGE;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, which the test alone uses.
        unsafe {
            let start = libc::mmap(core::ptr::null_mut(), bytes, access, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            start.cast::<u8>().write_bytes(7, bytes);
            clear(start as usize..start as usize + bytes);
            assert!(slice::from_raw_parts(start.cast::<u8>(), bytes).iter().all(|&byte| byte == 0));
            assert_eq!(libc::munmap(start, bytes), 0);
        }
    }

    #[test]
    fn a_large_block_gives_its_pages_back_and_checking_does_not_bring_them_back() {
        let resident = |range: &Range<usize>| {
            let mut pages = vec![0_u8; range.len() / PAGE];
            // SAFETY: the vector has a byte for each page.
            let done = unsafe { libc::mincore(range.start as *mut _, range.len(), pages.as_mut_ptr()) };
            assert_eq!(done, 0);
            pages.iter().filter(|&page| page & 1 != 0).count()
        };
        let mut memory = vec![0_u64; 4 << 17];
        let block = within(&mut memory, 1, (4 << 20) - 64);
        // A huge page of zeroes would count as resident.
        // SAFETY: pages of the vector; the advice changes no content.
        let small = unsafe {
            let pages = whole_pages(&block);
            libc::madvise(pages.start as *mut _, pages.len(), libc::MADV_NOHUGEPAGE)
        };
        assert_eq!(small, 0);
        memory.fill(1);
        let pages = whole_pages(&block);
        assert_eq!(resident(&pages), pages.len() / PAGE);
        // SAFETY: words of the vector, which no other code uses.
        unsafe {
            clear(block.clone());
            // Those by which it knows that they are gone.
            assert!(resident(&pages) <= 2);
            assert_eq!(changed(block.clone()), None);
        }
        assert!(resident(&pages) <= 2);
    }
}
