//! Which pages were written since the last scan: what the tracker shows, and when it shows nothing but that all may have
//! been. On kernels before 6.7 there is nothing to test.

mod common;

use std::collections::BTreeSet;
use std::io::Write;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use heaptoll_roots::{Untracked, WriteTracker};

const PAGE: usize = 4096;
const PAGES: usize = 64;

/// Memory of a test, and a tracker of it.
struct Tracked {
    start: usize,
    pages: usize,
    tracker: WriteTracker,
}

fn map(at: usize, pages: usize, flags: i32, file: i32) -> usize {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, or one in place of the test's own.
    let made = unsafe { libc::mmap(at as *mut _, pages * PAGE, access, flags, file, 0) };
    assert_ne!(made, libc::MAP_FAILED);
    made as usize
}

const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

impl Tracked {
    /// `None`: this kernel records no writes.
    fn new(pages: usize, advice: i32) -> Option<Tracked> {
        let mut tracker = WriteTracker::new();
        if let Err(cause) = tracker.open() {
            eprintln!("not tested: {cause:?}");
            return None;
        }
        let start = map(0, pages, PRIVATE, -1);
        // SAFETY: advice on the test's own mapping.
        unsafe { libc::madvise(start as *mut _, pages * PAGE, advice) };
        let tracked = Tracked { start, pages, tracker };
        (0..pages).for_each(|page| tracked.write(page));
        Some(tracked)
    }

    fn small() -> Option<Tracked> {
        Tracked::new(PAGES, libc::MADV_NOHUGEPAGE)
    }

    fn range(&self) -> Range<usize> {
        self.start..self.start + self.pages * PAGE
    }

    fn address(&self, page: usize) -> *mut u8 {
        (self.start + page * PAGE) as *mut u8
    }

    fn write(&self, page: usize) {
        // SAFETY: the page is the test's.
        unsafe { self.address(page).add(8).write_volatile(7) };
    }

    fn read(&self, page: usize) {
        // SAFETY: the page is the test's.
        unsafe { self.address(page).read_volatile() };
    }

    /// The pages that a scan of all memory shows.
    fn scan(&mut self) -> Result<Vec<usize>, Untracked> {
        self.scan_part(0..self.pages)
    }

    fn scan_part(&mut self, pages: Range<usize>) -> Result<Vec<usize>, Untracked> {
        let (start, range) = (self.start, self.range());
        let mut found = Vec::new();
        let mut scan = self.tracker.scan(range)?;
        scan.written(start + pages.start * PAGE..start + pages.end * PAGE, &mut |range| {
            found.extend(range.step_by(PAGE).map(|at| (at - start) / PAGE));
        })?;
        Ok(found)
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        // SAFETY: the mapping is the test's.
        unsafe { libc::munmap(self.start as *mut _, self.pages * PAGE) };
    }
}

/// The numbers of all userfaultfds of this process.
fn descriptors() -> BTreeSet<i32> {
    (3..1024)
        .filter(|number| {
            std::fs::read_link(format!("/proc/self/fd/{number}"))
                .is_ok_and(|target| target.to_string_lossy().contains("userfaultfd"))
        })
        .collect()
}

/// Runs a test, or a part of one, in a child of fork, which has one thread. Tests leave gaps in their memory and fill them
/// again: what another thread maps there meanwhile would be lost (found in one run of sixty).
fn in_child(work: impl FnOnce()) {
    let work = AssertUnwindSafe(work);
    let status = common::in_child(|| {
        let Err(cause) = catch_unwind(work) else { return 0 };
        // What the harness captures of a child is lost.
        let text =
            cause.downcast_ref::<String>().map(String::as_str).or(cause.downcast_ref::<&str>().copied());
        let _ = writeln!(std::io::stderr(), "{}", text.unwrap_or("a panic without words"));
        1
    });
    assert_eq!(status, 0, "a test in the child");
}

#[test]
fn what_was_written_is_shown_once_and_nothing_else() {
    in_child(|| {
        let Some(mut tracked) = Tracked::small() else { return };
        assert_eq!(tracked.scan(), Ok((0..PAGES).collect()), "all of it is new");
        let mut state = 12345_u64;
        for _ in 0..200 {
            let mut expected: Vec<usize> = (0..state as usize % 9)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (state >> 40) as usize % PAGES
                })
                .collect();
            state = state.wrapping_add(1 << 33);
            expected.iter().for_each(|&page| tracked.write(page));
            (0..PAGES).for_each(|page| tracked.read(page));
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(tracked.scan(), Ok(expected));
        }
        assert_eq!(tracked.scan(), Ok(vec![]));
    });
}

#[test]
fn a_page_outside_the_scanned_part_stays_written() {
    in_child(|| {
        let Some(mut tracked) = Tracked::small() else { return };
        tracked.scan().expect("it is tracked");
        [3, 30, 60].iter().for_each(|&page| tracked.write(page));
        assert_eq!(tracked.scan_part(0..20), Ok(vec![3]));
        assert_eq!(tracked.scan_part(0..40), Ok(vec![30]));
        assert_eq!(tracked.scan(), Ok(vec![60]));
    });
}

#[test]
fn more_runs_of_pages_than_one_scan_gives_are_shown() {
    in_child(|| {
        let Some(mut tracked) = Tracked::new(4096, libc::MADV_NOHUGEPAGE) else { return };
        tracked.scan().expect("it is tracked");
        let written: Vec<usize> = (0..4096).step_by(2).collect();
        written.iter().for_each(|&page| tracked.write(page));
        assert_eq!(tracked.scan(), Ok(written));
    });
}

#[test]
fn of_a_huge_page_the_part_that_was_written_is_shown() {
    in_child(|| {
        let Some(mut tracked) = Tracked::new(2048, libc::MADV_HUGEPAGE) else { return };
        tracked.scan().expect("it is tracked");
        tracked.write(700);
        let found = tracked.scan().expect("it is tracked");
        assert!(found.contains(&700) && found.len() <= 512, "{} pages", found.len());
    });
}

#[test]
fn writes_by_the_kernel_are_shown() {
    in_child(|| {
        let Some(mut tracked) = Tracked::small() else { return };
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        tracked.scan().expect("it is tracked");
        writer.write_all(&[1; 100]).expect("space in the pipe");
        // SAFETY: the pages are the test's.
        let got = unsafe { libc::read(reader.as_raw_fd(), tracked.address(5).add(PAGE - 50).cast(), 100) };
        assert_eq!(got, 100);
        assert_eq!(tracked.scan(), Ok(vec![5, 6]));
    });
}

#[test]
fn pages_that_were_dropped_are_shown_and_so_are_new_ones() {
    in_child(|| {
        let Some(mut tracked) = Tracked::small() else { return };
        tracked.scan().expect("it is tracked");
        // SAFETY: the page is the test's.
        unsafe { libc::madvise(tracked.address(9).cast(), PAGE, libc::MADV_DONTNEED) };
        assert_eq!(tracked.scan(), Ok(vec![9]), "its contents have changed");
        tracked.pages -= 8;
        let end = tracked.range().end;
        // SAFETY: the pages are the test's.
        unsafe { libc::munmap(end as *mut _, 8 * PAGE) };
        tracked.scan().expect("it is tracked");
        map(end, 8, PRIVATE | libc::MAP_FIXED, -1);
        tracked.pages += 8;
        tracked.write(PAGES - 3);
        let found = tracked.scan().unwrap_or_else(|_| tracked.scan().expect("it is registered again"));
        assert!(found.contains(&(PAGES - 3)), "{found:?}");
    });
}

#[test]
fn memory_that_grows_is_new_at_its_end_only() {
    in_child(|| {
        let Some(mut tracked) = Tracked::small() else { return };
        tracked.pages = 40;
        assert_eq!(tracked.scan(), Ok((0..40).collect()));
        tracked.pages = PAGES;
        tracked.write(1);
        assert_eq!(tracked.scan(), Ok([vec![1], (40..PAGES).collect()].concat()));
        assert_eq!(tracked.scan(), Ok(vec![]));
    });
}

#[test]
fn memory_that_was_released_is_new_to_the_next_scan() {
    in_child(|| {
        let Some(mut tracked) = Tracked::small() else { return };
        for _ in 0..2 {
            assert_eq!(tracked.scan(), Ok((0..PAGES).collect()));
            assert_eq!(tracked.scan(), Ok(vec![]));
            tracked.tracker.release();
            tracked.write(2);
        }
    });
}

/// After a mapping was replaced or moved the scan must fail once, and then show all.
fn counts_as_written_once(tracked: &mut Tracked) {
    assert_eq!(tracked.scan(), Err(Untracked::Mapping));
    assert_eq!(tracked.scan(), Ok((0..PAGES).collect()), "all counts as written");
    tracked.write(2);
    assert_eq!(tracked.scan(), Ok(vec![2]), "it is tracked again");
}

#[test]
fn memory_that_was_replaced_is_not_taken_for_clean() {
    in_child(|| {
        let Some(mut tracked) = Tracked::small() else { return };
        tracked.scan().expect("it is tracked");
        map(tracked.address(20) as usize, 4, PRIVATE | libc::MAP_FIXED, -1);
        (20..24).for_each(|page| tracked.write(page));
        counts_as_written_once(&mut tracked);
    });
}

#[test]
fn memory_that_was_moved_and_written_is_not_taken_for_clean() {
    in_child(|| {
        let Some(mut tracked) = Tracked::small() else { return };
        tracked.scan().expect("it is tracked");
        let elsewhere = map(0, 4, PRIVATE, -1);
        let moving = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: both are the test's: pages go there, are written, and come back.
        unsafe {
            let there = libc::mremap(tracked.address(20).cast(), 4 * PAGE, 4 * PAGE, moving, elsewhere);
            assert_eq!(there as usize, elsewhere);
            (there as *mut u8).add(100).write_volatile(1);
            let back = libc::mremap(there, 4 * PAGE, 4 * PAGE, moving, tracked.address(20));
            assert_eq!(back as usize, tracked.address(20) as usize);
        }
        counts_as_written_once(&mut tracked);
    });
}

#[test]
fn a_page_that_was_moved_over_another_is_not_taken_for_clean() {
    in_child(|| {
        let Some(mut tracked) = Tracked::small() else { return };
        tracked.scan().expect("it is tracked");
        let moving = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the pages are the test's; the gap is filled again.
        unsafe { libc::mremap(tracked.address(30).cast(), PAGE, PAGE, moving, tracked.address(10)) };
        map(tracked.address(30) as usize, 1, PRIVATE | libc::MAP_FIXED, -1);
        tracked.write(30);
        counts_as_written_once(&mut tracked);
    });
}

#[test]
fn shared_memory_and_files_are_never_tracked() {
    in_child(|| {
        // SAFETY: a new descriptor.
        let file = unsafe { std::fs::File::from_raw_fd(libc::memfd_create(c"written".as_ptr(), 0)) };
        file.set_len(4 * PAGE as u64).expect("a length");
        for flags in [libc::MAP_SHARED, libc::MAP_PRIVATE] {
            let Some(mut tracked) = Tracked::small() else { return };
            tracked.scan().expect("it is tracked");
            map(tracked.address(8) as usize, 4, flags | libc::MAP_FIXED, file.as_raw_fd());
            for _ in 0..3 {
                assert_eq!(tracked.scan(), Err(Untracked::Mapping));
            }
        }
    });
}

#[test]
fn a_gap_is_not_taken_for_clean() {
    in_child(|| {
        let Some(mut tracked) = Tracked::small() else { return };
        tracked.scan().expect("it is tracked");
        // SAFETY: the page is the test's.
        unsafe { libc::munmap(tracked.address(33).cast(), PAGE) };
        assert_eq!(tracked.scan(), Err(Untracked::Mapping));
    });
}

#[test]
fn memory_that_the_program_has_registered_itself_is_not_tracked() {
    in_child(|| {
        let Some(mut tracked) = Tracked::small() else { return };
        let Some(mut other) = Tracked::small() else { return };
        std::mem::swap(&mut tracked.start, &mut other.start);
        other.scan().expect("it is tracked by the first");
        std::mem::swap(&mut tracked.start, &mut other.start);
        // `other` has registered what is now `tracked`'s.
        assert_eq!(tracked.scan(), Err(Untracked::Kernel(libc::EBUSY)));
    });
}

#[test]
fn a_closed_descriptor_and_a_reused_number_end_the_tracking() {
    in_child(|| {
        for reused in [false, true] {
            in_child(|| {
                let before = descriptors();
                let Some(mut tracked) = Tracked::small() else { return };
                tracked.scan().expect("it is tracked");
                let number = *descriptors().difference(&before).next().expect("a descriptor");
                assert!(number >= 100, "it lies high");
                // SAFETY: the child's only user of the descriptor is the tracker, which is to notice.
                unsafe { libc::close(number) };
                let mut other = WriteTracker::new();
                if reused {
                    other.open().expect("another one");
                    assert!(descriptors().contains(&number), "the number is used again");
                }
                tracked.write(3);
                for _ in 0..3 {
                    assert_eq!(tracked.scan(), Err(Untracked::Closed));
                }
                drop(other);
            });
        }
    });
}

#[test]
fn a_forked_child_has_a_tracker_of_its_own_and_leaves_its_parents_alone() {
    in_child(|| {
        let Some(mut tracked) = Tracked::small() else { return };
        tracked.scan().expect("it is tracked");
        tracked.write(4);
        in_child(|| {
            let (start, pages) = (tracked.start, tracked.pages);
            let mut child = Tracked { start, pages, tracker: std::mem::take(&mut tracked.tracker) };
            child.tracker.after_fork_in_child();
            assert_eq!(child.scan(), Ok((0..PAGES).collect()), "nothing of it is known");
            child.write(1);
            assert_eq!(child.scan(), Ok(vec![1]));
            std::mem::forget(child);
        });
        tracked.write(50);
        assert_eq!(tracked.scan(), Ok(vec![4, 50]), "what the child did is not the parent's");
    });
}

#[test]
fn a_child_that_was_not_announced_does_not_use_its_parents_descriptor() {
    in_child(|| {
        let Some(mut tracked) = Tracked::small() else { return };
        tracked.scan().expect("it is tracked");
        tracked.write(4);
        in_child(|| {
            let (start, pages) = (tracked.start, tracked.pages);
            let mut child = Tracked { start, pages, tracker: std::mem::take(&mut tracked.tracker) };
            assert_eq!(child.scan(), Err(Untracked::Closed));
            std::mem::forget(child);
        });
        assert_eq!(tracked.scan(), Ok(vec![4]));
    });
}

#[test]
fn no_descriptor_is_opened_after_a_filter() {
    in_child(|| {
        in_child(|| {
            let allow = [libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000 }];
            let program = libc::sock_fprog { len: 1, filter: allow.as_ptr().cast_mut() };
            // SAFETY: the filter is valid as long as the call lasts, and allows everything.
            let set = unsafe {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
            };
            assert_eq!(set, 0);
            let before = descriptors();
            let mut tracker = WriteTracker::new();
            assert_eq!(tracker.open(), Err(Untracked::Filtered));
            assert_eq!(descriptors(), before);
        });
    });
}

#[test]
fn with_a_ring_of_requests_nothing_is_tracked() {
    in_child(|| {
        in_child(|| {
            let Some(mut tracked) = Tracked::small() else { return };
            tracked.scan().expect("it is tracked");
            let mut parameters = [0_u32; 30];
            // SAFETY: the kernel writes its 120 bytes of parameters; the ring's memory is mapped as it states.
            unsafe {
                let ring = libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr());
                if ring < 0 {
                    eprintln!("not tested: no io_uring here");
                    return;
                }
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let made = libc::mmap(std::ptr::null_mut(), PAGE, access, libc::MAP_SHARED, ring as i32, 0);
                assert_ne!(made, libc::MAP_FAILED);
            }
            assert_eq!(tracked.scan(), Err(Untracked::Pinned));
        });
    });
}
