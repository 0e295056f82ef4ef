//! Shared mappings: a pointer is found wherever its page is, in memory or on a disk, and no disk is read for files that
//! have none of this process.

mod common;

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;

use common::{Mapping, Occurrences, Secret, alone, in_child, search};

const PAGE: usize = 4096;
const READ: i32 = libc::PROT_READ;
const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
const FOUND: Occurrences = Occurrences { registers: 0, stack: 0, statics: 0, mapping: 1, kernel: 0 };

/// A file of some pages, in this folder, removed when dropped.
struct Temporary(std::path::PathBuf, File);

impl Temporary {
    fn new(folder: &Path, pages: usize) -> Temporary {
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = folder.join(format!("heaptoll-roots-{}-{count}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
        file.set_len((pages * PAGE) as u64).expect("its length");
        Temporary(path, file)
    }

    fn map(&self, access: i32) -> Mapping {
        let length = self.1.metadata().expect("the file").len() as usize;
        Mapping::new(length, access, libc::MAP_SHARED, self.1.as_raw_fd())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A disk, as a rule; and two file systems in memory, the last among devices.
fn folders() -> impl Iterator<Item = std::path::PathBuf> {
    let may_write = |folder: &std::path::PathBuf| {
        Temporary::can_be_made(folder) || {
            eprintln!("not tested: no file can be made in {}", folder.display());
            false
        }
    };
    [std::env::temp_dir(), "/dev/shm".into(), "/dev".into()].into_iter().filter(may_write)
}

impl Temporary {
    fn can_be_made(folder: &Path) -> bool {
        let path = folder.join(format!("heaptoll-roots-{}-try", std::process::id()));
        let made = File::create_new(&path).is_ok();
        let _ = std::fs::remove_file(&path);
        made
    }
}

fn advise(mapping: &Mapping, advice: i32) {
    // SAFETY: the mapping is shared: what is dropped of it is in its file.
    unsafe { libc::madvise(mapping.start as *mut _, mapping.bytes, advice) };
}

fn write_back(mapping: &Mapping) {
    // SAFETY: the mapping is the test's.
    assert_eq!(unsafe { libc::msync(mapping.start as *mut _, mapping.bytes, libc::MS_SYNC) }, 0);
}

#[test]
fn a_word_in_a_shared_file_is_found_by_a_forked_child_that_has_not_touched_it() {
    let _alone = alone(None, 5000);
    for folder in folders() {
        let file = Temporary::new(&folder, 4);
        let mapping = file.map(READ_WRITE);
        let secret = Secret::new();
        secret.write(mapping.word(PAGE + 8));
        let in_child = in_child(|| i32::from(search(secret) != FOUND));
        assert_eq!(in_child, 0, "{}", folder.display());
        secret.erase(mapping.word(PAGE + 8));
    }
}

#[test]
fn a_word_in_a_page_that_the_page_tables_or_memory_have_let_go_is_found() {
    let _alone = alone(None, 5000);
    for folder in folders() {
        for (removed, advice) in
            [libc::MADV_DONTNEED, libc::MADV_PAGEOUT].into_iter().flat_map(|a| [(false, a), (true, a)])
        {
            let file = Temporary::new(&folder, 4);
            let mapping = file.map(READ_WRITE);
            if removed {
                std::fs::remove_file(&file.0).expect("the file");
            }
            let secret = Secret::new();
            secret.write(mapping.word(2 * PAGE));
            write_back(&mapping);
            advise(&mapping, advice);
            assert_eq!(search(secret), FOUND, "{}, removed: {removed}, {advice}", folder.display());
            secret.erase(mapping.word(2 * PAGE));
        }
    }
}

#[test]
fn a_word_in_shared_memory_that_can_only_be_read_is_found() {
    let _alone = alone(None, 5000);
    for folder in folders() {
        let file = Temporary::new(&folder, 1);
        // Through a mapping that is gone.
        let (view, secret) = (file.map(READ), Secret::new());
        let other = file.map(READ_WRITE);
        secret.write(other.word(0));
        drop(other);
        assert_eq!(search(secret), FOUND, "{}", folder.display());
        drop(view);
        // Through a mapping that was protected.
        let (file, secret) = (Temporary::new(&folder, 1), Secret::new());
        let mapping = file.map(READ_WRITE);
        secret.write(mapping.word(64));
        mapping.protect(READ);
        assert_eq!(search(secret), FOUND, "{}", folder.display());
        drop(mapping);
        // By a system call.
        let (file, mut word, secret) = (Temporary::new(&folder, 1), 0_usize, Secret::new());
        let _view = file.map(READ);
        secret.write(&mut word);
        // SAFETY: the kernel reads a word.
        assert_eq!(unsafe { libc::pwrite(file.1.as_raw_fd(), (&raw const word).cast(), 8, 0) }, 8);
        secret.erase(&mut word);
        assert_eq!(search(secret), FOUND, "{}", folder.display());
    }
}

#[test]
fn a_word_in_a_private_view_of_a_file_without_a_name_is_found() {
    let _alone = alone(None, 5000);
    for folder in folders() {
        for access in [READ, READ_WRITE] {
            let (file, secret) = (Temporary::new(&folder, 1), Secret::new());
            let other = file.map(READ_WRITE);
            secret.write(other.word(0));
            drop(other);
            let view = Mapping::new(PAGE, access, libc::MAP_PRIVATE, file.1.as_raw_fd());
            std::fs::remove_file(&file.0).expect("the file");
            let found = search(secret);
            assert_eq!(found.mapping + found.statics, 1, "{}, access {access}", folder.display());
            drop(view);
        }
    }
}

#[test]
fn a_word_in_memory_that_can_only_be_written_is_found() {
    let _alone = alone(None, 5000);
    for kind in [libc::MAP_PRIVATE, libc::MAP_SHARED] {
        let secret = Secret::new();
        let mapping = Mapping::new(4 * PAGE, libc::PROT_WRITE, kind | libc::MAP_ANONYMOUS, -1);
        secret.write(mapping.word(2 * PAGE));
        // Next to a library it counts as the library's data.
        let found = search(secret);
        assert_eq!(found.mapping + found.statics, 1, "of kind {kind}: {found:?}");
    }
}

#[test]
fn a_word_in_secret_memory_is_found() {
    let _alone = alone(None, 5000);
    // SAFETY: the call takes no pointers.
    let secretive = unsafe { libc::syscall(libc::SYS_memfd_secret, 0) };
    if secretive < 0 {
        eprintln!("not tested: this kernel has no secret memory");
        return;
    }
    // SAFETY: a new descriptor, owned from here on.
    let file = unsafe { File::from_raw_fd(secretive as i32) };
    file.set_len(PAGE as u64).expect("its length");
    let mapping = Mapping::new(PAGE, READ_WRITE, libc::MAP_SHARED, file.as_raw_fd());
    let secret = Secret::new();
    secret.write(mapping.word(0));
    assert_eq!(search(secret), FOUND);
}
