//! What the kernel says of the file of a shared mapping: whether it may hold pointers of this process, and whether a disk
//! may hold pages of it that memory does not.

use core::ffi::CStr;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::sync::atomic::{AtomicI64, Ordering};

use heaptoll_runtime::MapsEntry;

use crate::areas::PageKind;
use crate::kernel::{self, Error, PAGE};

/// A longer path is not looked up: its file counts as one that was removed.
const PATH_CAPACITY: usize = 512;

/// How much later than a file's time a change may have been, seconds: file systems round it down.
const TIME_ERROR: i64 = 10;

/// Up to this size a mapping is read whole if its file has holes, bytes. Holes that are read become memory.
const SMALL: usize = 64 << 20;

/// The kinds of file systems that have no disk (the kernel's `magic.h`): tmpfs, ramfs, hugetlbfs.
const IN_MEMORY: [i64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

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
fn is_changed(time: i64, [_, ahead]: [i64; 2]) -> bool {
    let [begun, ahead_then] = [0, 1].map(|at: usize| BEGINNING[at].load(Ordering::Relaxed));
    time >= begun - TIME_ERROR || ahead < ahead_then - TIME_ERROR / 2
}

/// The part of a shared mapping that may hold pointers, and the kind of its pages; `None`: it holds none.
pub fn shared_part(line: &MapsEntry<'_>) -> Option<(Range<usize>, PageKind)> {
    let on_block_device = line.file.0 >> 32 != 0;
    let mut path = [0; PATH_CAPACITY];
    let Some((path, status)) = look_up(line, &mut path) else {
        let on_disk = on_block_device && line.range.len() <= SMALL;
        let kind = if on_disk { PageKind::SharedFile } else { PageKind::SharedMemory };
        return Some((line.range.clone(), kind));
    };
    if status.st_mode & libc::S_IFMT != libc::S_IFREG || !on_block_device && is_in_memory(path) {
        return Some((line.range.clone(), PageKind::SharedMemory));
    }
    // Only file systems of block devices are known to change the time when a mapping is written to.
    if on_block_device && !is_changed(status.st_ctime, clock()) {
        return None;
    }
    let in_file = (status.st_size as usize).saturating_sub(line.offset).next_multiple_of(PAGE);
    let range = line.range.start..line.range.start + in_file.min(line.range.len());
    let on_disk = range.len() <= SMALL.max(2 * BLOCK * status.st_blocks as usize);
    let kind = if on_disk { PageKind::SharedFile } else { PageKind::SharedMemory };
    (!range.is_empty()).then_some((range, kind))
}

/// The path of a mapping's file and what the kernel says of it, if the path still leads there.
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

/// Whether the file system of a path has no disk; one that is unknown has none.
fn is_in_memory(path: &CStr) -> bool {
    let mut status = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the kernel reads `path`, which a zero byte ends, and writes to `status`, for which zero bytes are a value.
    let kind = unsafe {
        let place = status.as_mut_ptr() as usize;
        kernel::call(libc::SYS_statfs, [path.as_ptr() as usize, place, 0, 0, 0, 0])
            .map(|_| status.assume_init().f_type)
    };
    kind.map_or(true, |kind| IN_MEMORY.contains(&kind))
}
