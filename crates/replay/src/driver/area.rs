//! Memory of the driver's own: mappings between two guards, so that the kernel joins none of them with a mapping of the
//! manager's and the heap can be distinguished from the rest.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes made resident since the baseline was taken: to be left out of what the heap takes.
static SINCE_BASELINE: AtomicU64 = AtomicU64::new(0);

/// Forgets what is resident until now.
pub fn begin_baseline() {
    SINCE_BASELINE.store(0, Relaxed);
}

/// Bytes that the driver made resident since the baseline.
pub fn since_baseline() -> u64 {
    SINCE_BASELINE.load(Relaxed)
}

/// Records that the driver made this much more resident.
pub fn became_resident(bytes: usize) {
    SINCE_BASELINE.fetch_add(bytes as u64, Relaxed);
}

/// A mapping. Not unmapped on drop: it lives as long as the process.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an area is an address range; each access through `start` is unsafe code of its own.
unsafe impl Send for Area {}
// SAFETY: an area is an address range that is never changed; each access through `start` is unsafe code of its own.
unsafe impl Sync for Area {}

/// Why the driver cannot begin.
pub fn no_memory(error: io::Error) -> String {
    format!("no memory for the driver's own tables: {error}")
}

/// A page; larger ones only make guards thicker than needed.
pub fn page() -> usize {
    // SAFETY: sysconf takes a plain number and writes no memory.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4096) as usize
}

impl Area {
    /// At least `bytes` of zeroes; the last `resident` are made resident now.
    pub fn new(bytes: usize, resident: usize) -> io::Result<Area> {
        let page = page();
        let bytes = bytes.max(1).next_multiple_of(page);
        let resident = resident.min(bytes).next_multiple_of(page);
        let whole = bytes.checked_add(2 * page).ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice; its inner part, checked to lie in it by the sum
        // above, is not shared yet.
        unsafe {
            let start = libc::mmap(ptr::null_mut(), whole, libc::PROT_NONE, flags, -1, 0);
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let inner = start.cast::<u8>().add(page);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            if libc::mprotect(inner.cast(), bytes, access) != 0 {
                let error = io::Error::last_os_error();
                libc::munmap(start, whole);
                return Err(error);
            }
            if resident > 0 {
                let from = inner.add(bytes - resident);
                // Before Linux 5.14 there is no such advice: then touch by hand.
                if libc::madvise(from.cast(), resident, libc::MADV_POPULATE_WRITE) != 0 {
                    (0..resident).step_by(page).for_each(|at| from.add(at).write_volatile(0));
                }
                became_resident(resident);
            }
            Ok(Area { start: NonNull::new_unchecked(inner), bytes })
        }
    }

    /// A table of `count` elements, all resident and zero.
    pub fn table<T>(count: usize) -> io::Result<Area> {
        let bytes = count.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Area::new(bytes, bytes)
    }

    /// First byte.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
