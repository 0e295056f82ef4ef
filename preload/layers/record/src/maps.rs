//! Large mappings that the program makes itself, with the call stacks that make them: the ledger names who holds memory
//! that is not the heap's. Otherwise they only forward. They take no lock, because managers call them within their own.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use heaptoll_next::family::symbol;

use crate::{RINGS, STACKS};

type Mmap = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, libc::off_t) -> *mut c_void;

/// Smaller mappings are not noted.
const LARGE: usize = 256 << 10;

/// The next object's `mmap`; null: not looked up yet.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Whether mappings are noted.
static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// Looks it up: a lookup takes locks, which a caller of `mmap` may hold. `is_wanted`: mappings are noted from now on, and
/// call stacks are ready.
pub fn prepare(is_wanted: bool) {
    IS_WANTED.store(is_wanted, Ordering::Release);
    if let Some(found) = symbol(c"mmap") {
        NEXT.store(found, Ordering::Release);
    }
}

/// Notes a mapping that was made.
fn note(place: *mut c_void, length: usize, flags: c_int) {
    let is_noted = length >= LARGE && flags & libc::MAP_ANONYMOUS != 0 && place != libc::MAP_FAILED;
    if !is_noted || !IS_WANTED.load(Ordering::Acquire) || RINGS.detached() {
        return;
    }
    let site = STACKS.site(|site, frames| {
        if let Some(mut producer) = RINGS.thread() {
            producer.define_site(site, frames);
        }
    });
    if let Some(mut producer) = RINGS.thread() {
        producer.mapped(site, place as usize, length);
    }
}

/// # Safety
/// The arguments are valid for `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    let next = NEXT.load(Ordering::Acquire);
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid for
    // it, and for the system call.
    let place = unsafe {
        if next.is_null() {
            libc::syscall(libc::SYS_mmap, address, length, protection, flags, file, offset) as *mut c_void
        } else {
            transmute::<*mut c_void, Mmap>(next)(address, length, protection, flags, file, offset)
        }
    };
    note(place, length, flags);
    place
}

/// The same under its other name.
///
/// # Safety
/// The arguments are valid for `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: the caller's arguments are valid, and `off_t` has 64 bits.
    unsafe { mmap(address, length, protection, flags, file, offset) }
}
