//! The reservation: one region of addresses for each size of block, cut into chunks that threads take.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::{class_of, thread};

/// Bytes of addresses that a thread takes at a time; larger blocks are taken one by one.
pub const CHUNK: usize = 1 << 20;
/// Sizes of blocks: 16 bytes to 32 GiB.
const CLASSES: usize = 32;
/// Binary logarithm of a region's bytes, where nothing forbids: 512 GiB, 16 TiB in all.
const LARGEST: usize = 39;
/// And where a limit leaves no more.
const SMALLEST: usize = 21;

/// See [`crate::heaptoll_null_forget`].
pub static FORGETS: AtomicBool = AtomicBool::new(false);

/// Where the first region begins, a multiple of a region's bytes. Its lowest bits hold the binary logarithm of those.
/// 0: nothing is reserved yet.
static RESERVED: AtomicUsize = AtomicUsize::new(0);
/// How much of each region has been taken, bytes.
static TAKEN: [AtomicUsize; CLASSES] = [const { AtomicUsize::new(0) }; CLASSES];
/// Whether it has been said that a region is used up.
static SAID: AtomicBool = AtomicBool::new(false);

/// The reservation's beginning, and the binary logarithm of a region's bytes.
#[inline(always)]
fn reserved() -> Option<(usize, usize)> {
    match RESERVED.load(Ordering::Acquire) {
        0 => None,
        word => Some((word & !63, word & 63)),
    }
}

/// Bytes of a block, which is not null: its region says it.
#[inline(always)]
pub fn usable_size(block: *mut c_void) -> usize {
    match reserved() {
        Some((base, shift)) => 16 << (((block as usize).wrapping_sub(base) >> shift) & (CLASSES - 1)),
        // No block has been handed out: it is not ours.
        None => 0,
    }
}

/// A block when the thread has none of its size left, or never keeps any of it.
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
        return crate::refused(libc::ENOMEM);
    }
    let size = 16 << class;
    let piece = CHUNK.max(size);
    let taken = TAKEN[class].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
        if taken + piece <= region {
            Some(taken + piece)
        } else {
            // The region's first piece is given out again.
            FORGETS.load(Ordering::Relaxed).then_some(piece)
        }
    });
    let Ok(taken) = taken else { return used_up() };
    let start = base + (class << shift) + if taken + piece <= region { taken } else { 0 };
    let block = start + piece - size;
    if class < thread::CURSORS {
        thread::set_cursor(class, block);
    }
    block as *mut c_void
}

#[cold]
fn used_up() -> *mut c_void {
    if !SAID.swap(true, Ordering::Relaxed) {
        say(b"heaptoll: the null manager has used up its addresses: it never gives a block out twice\n");
    }
    crate::refused(libc::ENOMEM)
}

/// Reserves addresses, once: as many as the system gives.
#[cold]
fn reserve() -> (usize, usize) {
    for shift in (SMALLEST..=LARGEST).rev() {
        let region = 1_usize << shift;
        // One region more, to begin at a multiple of it.
        let bytes = region * (CLASSES + 1);
        // SAFETY: a new mapping, whose failure is tested.
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
                // SAFETY: the mapping just made, which nobody has seen: another thread was first.
                unsafe { libc::munmap(made, bytes) };
                return (word & !63, word & 63);
            }
        }
    }
    fatal(b"heaptoll: the null manager cannot reserve any addresses; raise the limit (ulimit -v)\n")
}

fn say(message: &[u8]) {
    // SAFETY: the message is readable for its length.
    unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
}

/// Says why and ends the process.
pub fn fatal(message: &[u8]) -> ! {
    say(message);
    // SAFETY: abort has no conditions.
    unsafe { libc::abort() }
}
