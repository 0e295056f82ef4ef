//! The file of a mapping that shows its pages: whether it may hold pointers of this process, and whether a disk may hold
//! pages of it that memory does not.

use core::ffi::CStr;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::sync::atomic::{AtomicI64, Ordering};

use heaptoll_runtime::MapsEntry;

use crate::kernel::{self, Error, PAGE};
use crate::page_kind::PageKind;

/// A longer path is not looked up: its file counts as one that was removed.
const PATH_CAPACITY: usize = 512;

/// How much later than a file's time a change may have been, seconds: file systems round it down.
const TIME_ERROR: i64 = 10;

/// Up to this size a mapping is read whole if its file has holes, bytes. Holes that are read become memory.
const SMALL: usize = 64 << 20;

/// Kinds of file systems (the kernel's `magic.h`) that have no disk: tmpfs, ramfs.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];
/// Of a huge page the kernel does not show whether it is in memory: all are read. A hole becomes memory, which the system
/// has reserved for it.
const HUGE: i64 = 0x9584_58f6;
/// Huge pages without a file.
pub const HUGE_ANONYMOUS: &[u8] = b"/anon_hugepage";
/// Those that change a file's time when a mapping is written to, as all of block devices do: Btrfs and ZFS.
const TIMED: [i64; 2] = [0x9123_683e, 0x2fc1_2fc1];
/// overlayfs does so if its upper layer does, which may be in memory.
const OVERLAY: i64 = 0x794c_7630;

/// Bytes of a unit in which the kernel counts what a file occupies.
const BLOCK: usize = 512;

/// When the process began to allocate, by the clock of files, and how far that clock was ahead of the time since the
/// system started, seconds.
static BEGINNING: [AtomicI64; 2] = [const { AtomicI64::new(0) }; 2];

fn clock() -> [i64; 2] {
    let [now, running] = [libc::CLOCK_REALTIME, libc::CLOCK_BOOTTIME].map(kernel::seconds);
    [now, now - running]
}

/// Called before the program can have a pointer to the heap.
pub fn begin() {
    for (place, value) in BEGINNING.iter().zip(clock()) {
        place.store(value, Ordering::Relaxed);
    }
}

/// Whether a file that was changed last at `time` was changed since the beginning. A clock that was set back does not
/// show that it was not.
fn is_changed(time: i64) -> bool {
    let [begun, ahead_then] = [0, 1].map(|at: usize| BEGINNING[at].load(Ordering::Relaxed));
    let [_, ahead] = clock();
    time >= begun - TIME_ERROR || ahead < ahead_then - TIME_ERROR / 2
}

/// The part of a mapping that shows a file's pages which may hold pointers, and their kind; `None`: it holds none.
pub fn shared_part(line: &MapsEntry<'_>) -> Option<(Range<usize>, PageKind)> {
    let on_block_device = line.file.0 >> 32 != 0;
    let mut path = [0; PATH_CAPACITY];
    let Some((path, status)) = look_up(line, &mut path) else {
        let on_disk = on_block_device && line.range.len() <= SMALL;
        let kind = if on_disk || line.name.starts_with(HUGE_ANONYMOUS) {
            PageKind::SharedFile
        } else {
            PageKind::SharedMemory
        };
        return Some((line.range.clone(), kind));
    };
    let in_memory = Some((line.range.clone(), PageKind::SharedMemory));
    if status.st_mode & libc::S_IFMT != libc::S_IFREG {
        return in_memory;
    }
    let system = if on_block_device { None } else { file_system(path) };
    let is_timed = match system {
        None if !on_block_device => return in_memory,
        Some(system) if IN_MEMORY.contains(&system) => return in_memory,
        None => true,
        Some(OVERLAY) => !line.writable,
        Some(system) => TIMED.contains(&system),
    };
    if is_timed && !is_changed(status.st_ctime) {
        return None;
    }
    let in_file = (status.st_size as usize).saturating_sub(line.offset).next_multiple_of(PAGE);
    let range = line.range.start..line.range.start + in_file.min(line.range.len());
    let is_small = range.len() <= SMALL.max(2 * BLOCK * status.st_blocks as usize);
    let kind = if is_small || system == Some(HUGE) { PageKind::SharedFile } else { PageKind::SparseFile };
    (!range.is_empty()).then_some((range, kind))
}

/// The path of a mapping's file and the file's status, if the path still leads there.
fn look_up<'a>(line: &MapsEntry<'_>, path: &'a mut [u8; PATH_CAPACITY]) -> Option<(&'a CStr, libc::stat)> {
    if !line.name.starts_with(b"/") || line.name.contains(&b'\\') {
        return None;
    }
    path.get_mut(..line.name.len())?.copy_from_slice(line.name);
    let path = CStr::from_bytes_until_nul(path).ok()?;
    let status = status(path).ok()?;
    let device = (libc::major(status.st_dev) as usize) << 32 | libc::minor(status.st_dev) as usize;
    ((device, status.st_ino as usize) == line.file).then_some((path, status))
}

fn status(path: &CStr) -> Result<libc::stat, Error> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    let (place, flags) = (status.as_mut_ptr() as usize, libc::AT_NO_AUTOMOUNT as usize);
    // SAFETY: the kernel reads `path`, which a zero byte ends, and fills `status`, for which zero bytes are a value.
    unsafe {
        let from = libc::AT_FDCWD as usize;
        kernel::call(libc::SYS_newfstatat, [from, path.as_ptr() as usize, place, flags, 0, 0])?;
        Ok(status.assume_init())
    }
}

/// The kind of file system that a path leads to.
fn file_system(path: &CStr) -> Option<i64> {
    let mut status = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the kernel reads `path`, which a zero byte ends, and fills `status`, for which zero bytes are a value.
    unsafe {
        let place = status.as_mut_ptr() as usize;
        kernel::call(libc::SYS_statfs, [path.as_ptr() as usize, place, 0, 0, 0, 0]).ok()?;
        Some(status.assume_init().f_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::maps;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    const MIB: usize = 1 << 20;

    /// What is read of a file of a length that is mapped in a length.
    fn part_of(file: &File, bytes: usize) -> Option<(usize, PageKind)> {
        // SAFETY: a new mapping.
        let start = unsafe {
            libc::mmap(core::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        } as usize;
        let (mut text, mut found) = (Buffer::new(), None);
        maps::read(&mut text, &mut |line| {
            if line.range.start == start {
                assert_eq!(line.range.len(), bytes);
                found = shared_part(&line);
            }
            Ok(())
        })
        .expect("the list");
        // SAFETY: the mapping made above.
        unsafe { libc::munmap(start as *mut _, bytes) };
        found.map(|(range, kind)| {
            assert_eq!(range.start, start);
            (range.len(), kind)
        })
    }

    #[test]
    fn files_are_read_to_their_ends_and_holes_only_where_they_are_small() {
        use std::os::unix::ffi::OsStringExt;
        let folder = std::env::temp_dir();
        let c_folder = std::ffi::CString::new(folder.clone().into_os_string().into_vec()).expect("a path");
        if file_system(&c_folder).is_none_or(|system| IN_MEMORY.contains(&system)) {
            std::eprintln!("not tested: {} is on no disk", folder.display());
            return;
        }
        let path = folder.join(std::format!("heaptoll-files-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.expect("a temporary file");
        let part = |length: usize, bytes: usize| {
            file.set_len(length as u64).expect("its length");
            part_of(&file, bytes)
        };
        begin();
        assert_eq!(part(5 * PAGE - 1, 8 * PAGE), Some((5 * PAGE, PageKind::SharedFile)));
        assert_eq!(part(0, PAGE), None, "nothing can be read after a file's end");
        assert_eq!(part(1 << 30, 1 << 30), Some((1 << 30, PageKind::SparseFile)));
        // SAFETY: the call takes no pointers.
        assert_eq!(unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, 80 << 20) }, 0);
        assert_eq!(part(80 * MIB, 80 * MIB), Some((80 * MIB, PageKind::SharedFile)));
        // Every file was changed longer ago than a process that begins so late.
        BEGINNING[0].fetch_add(1000, Ordering::Relaxed);
        let later = part(PAGE, PAGE);
        BEGINNING[1].fetch_add(1000, Ordering::Relaxed);
        let clock_was_set_back = part(PAGE, PAGE);
        begin();
        std::fs::remove_file(&path).expect("the file");
        assert_eq!(clock_was_set_back, Some((PAGE, PageKind::SharedFile)));
        let device = std::os::linux::fs::MetadataExt::st_dev(&file.metadata().expect("the file"));
        if libc::major(device) != 0 {
            assert_eq!(later, None);
            assert_eq!(part(PAGE, 2 * PAGE), Some((2 * PAGE, PageKind::SharedFile)));
        }
    }

    #[test]
    fn memory_without_a_disk_is_read_where_it_is_in_memory() {
        use std::os::fd::FromRawFd;
        // SAFETY: a new descriptor, owned from here on.
        let memory = unsafe { File::from_raw_fd(libc::memfd_create(c"files".as_ptr(), 0)) };
        memory.set_len(MIB as u64).expect("a length");
        assert_eq!(part_of(&memory, 2 * MIB), Some((2 * MIB, PageKind::SharedMemory)));
    }
}
