//! The reservation: one region of addresses for each block size, split into chunks that threads take.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::class_of;
use crate::cursors::{CHUNK_CLASSES, CURSORS};

/// Bytes of address space that a thread takes at a time; larger blocks are taken one by one.
pub const CHUNK: usize = 1 << 20;
/// Number of block sizes: 16 bytes to 32 GiB.
const CLASSES: usize = 32;
/// Binary logarithm of a region's bytes without a limit: 512 GiB, 16 TiB in all.
const LARGEST: usize = 39;
/// The smallest one, under a limit.
const SMALLEST: usize = 21;

/// See [`crate::heaptoll_null_forget`].
pub static FORGETS: AtomicBool = AtomicBool::new(false);

/// The address of the first region, a multiple of a region's bytes. Its lowest bits hold the binary logarithm of those.
/// 0: nothing is reserved yet.
static RESERVED: AtomicUsize = AtomicUsize::new(0);
/// Bytes taken from each region.
static TAKEN: [AtomicUsize; CLASSES] = [const { AtomicUsize::new(0) }; CLASSES];
/// Whether the exhaustion of a region has been reported.
static REPORTED: AtomicBool = AtomicBool::new(false);

/// The reservation's first address, and the binary logarithm of a region's bytes.
#[inline(always)]
fn reserved() -> Option<(usize, usize)> {
    match RESERVED.load(Ordering::Acquire) {
        0 => None,
        word => Some((word & !63, word & 63)),
    }
}

/// Bytes of a block, which is not null, by its region.
#[inline(always)]
pub fn usable_size(block: *mut c_void) -> usize {
    match reserved() {
        Some((base, shift)) => 16 << (((block as usize).wrapping_sub(base) >> shift) & (CLASSES - 1)),
        // No block has been handed out: it is not this manager's.
        None => 0,
    }
}

/// Allocates a block when the thread's chunk of its size is exhausted, or the size has no chunks.
#[cold]
#[inline(never)]
pub fn refill(bytes: usize) -> *mut c_void {
    if bytes == 0 {
        return crate::malloc(1);
    }
    let class = class_of(bytes);
    let (base, shift) = reserved().unwrap_or_else(reserve);
    let region = 1_usize << shift;
    if class >= CLASSES || 16 << class > region {
        return crate::fail(libc::ENOMEM);
    }
    let size = 16 << class;
    let piece = CHUNK.max(size);
    let taken = TAKEN[class].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
        if taken + piece <= region {
            Some(taken + piece)
        } else {
            // The region's first piece is handed out again.
            FORGETS.load(Ordering::Relaxed).then_some(piece)
        }
    });
    let Ok(taken) = taken else { return exhausted() };
    let start = base + (class << shift) + if taken + piece <= region { taken } else { 0 };
    let block = start + piece - size;
    if class < CHUNK_CLASSES {
        // SAFETY: `class` is below `CHUNK_CLASSES`, as just checked, and there are that many words.
        unsafe { CURSORS::set(class, block) };
    }
    block as *mut c_void
}

#[cold]
fn exhausted() -> *mut c_void {
    if !REPORTED.swap(true, Ordering::Relaxed) {
        write_message(
            b"heaptoll: the null manager has used up its addresses: it never hands out a block twice\n",
        );
    }
    crate::fail(libc::ENOMEM)
}

/// Reserves addresses, once: as many as the system permits.
#[cold]
fn reserve() -> (usize, usize) {
    for shift in (SMALLEST..=LARGEST).rev() {
        let region = 1_usize << shift;
        // One region more, so that the first can be aligned.
        let bytes = region * (CLASSES + 1);
        // SAFETY: with a null address mmap maps memory that nothing uses; its failure is checked below.
        let made = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if made == libc::MAP_FAILED {
            continue;
        }
        let base = (made as usize).next_multiple_of(region);
        match RESERVED.compare_exchange(0, base | shift, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return (base, shift),
            Err(word) => {
                // SAFETY: mmap returned this mapping above, and the exchange has not published it: another thread was
                // first.
                unsafe { libc::munmap(made, bytes) };
                return (word & !63, word & 63);
            }
        }
    }
    fatal(b"heaptoll: the null manager cannot reserve any addresses; raise the limit (ulimit -v)\n")
}

fn write_message(message: &[u8]) {
    // SAFETY: write reads `message` within its length.
    unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
}

/// Prints a message and aborts.
pub fn fatal(message: &[u8]) -> ! {
    write_message(message);
    // SAFETY: abort takes no pointers and does not return.
    unsafe { libc::abort() }
}
