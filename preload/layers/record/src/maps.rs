//! Large mappings that the program makes itself, of memory, of files and of shared segments, with the call stacks that make
//! them: the ledger names who holds memory that is not the heap's. Otherwise they only forward. They take no lock, because
//! managers call them within their own.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use heaptoll_next::family::symbol;

use crate::{RINGS, STACKS};

type Mmap = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, libc::off_t) -> *mut c_void;
type Mremap = unsafe extern "C" fn(*mut c_void, usize, usize, c_int, *mut c_void) -> *mut c_void;
type Shmat = unsafe extern "C" fn(c_int, *const c_void, c_int) -> *mut c_void;

/// Smaller mappings are not noted.
const LARGE: usize = 256 << 10;

/// The next object's `mmap`, `mremap` and `shmat`; null: not looked up yet.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static NEXT_MREMAP: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static NEXT_SHMAT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Whether mappings are noted.
static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// Looks them up: a lookup takes locks, which a caller of `mmap` may hold. `is_wanted`: mappings are noted from now on, and
/// call stacks are ready.
pub fn prepare(is_wanted: bool) {
    IS_WANTED.store(is_wanted, Ordering::Release);
    for (next, name) in [(&NEXT, c"mmap"), (&NEXT_MREMAP, c"mremap"), (&NEXT_SHMAT, c"shmat")] {
        if let Some(found) = symbol(name) {
            next.store(found, Ordering::Release);
        }
    }
}

/// Notes a mapping that was made, or changed: then `before` is what it was.
fn note(place: *mut c_void, length: usize, before: Option<[usize; 2]>) {
    let largest = before.map_or(length, |[_, bytes]| bytes.max(length));
    if largest < LARGE || place == libc::MAP_FAILED || !IS_WANTED.load(Ordering::Acquire) || RINGS.detached()
    {
        return;
    }
    let site = STACKS.site(|site, frames| {
        if let Some(mut producer) = RINGS.thread() {
            producer.define_site(site, frames);
        }
    });
    if let Some(mut producer) = RINGS.thread() {
        let now = [place as usize, length];
        match before {
            Some(before) => producer.remapped(site, before, now),
            None => producer.mapped(site, now),
        }
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
    note(place, length, None);
    place
}

/// Variadic in C; `to` is there with `MREMAP_FIXED` alone.
///
/// # Safety
/// The arguments are valid for `mremap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    from: *mut c_void,
    old_length: usize,
    length: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    let next = NEXT_MREMAP.load(Ordering::Acquire);
    // SAFETY: `next` was looked up by the name of this function; its arguments are passed in these registers, variadic or
    // not, and are valid for it and for the system call.
    let place = unsafe {
        if next.is_null() {
            libc::syscall(libc::SYS_mremap, from, old_length, length, flags, to) as *mut c_void
        } else {
            transmute::<*mut c_void, Mremap>(next)(from, old_length, length, flags, to)
        }
    };
    note(place, length, Some([from as usize, old_length]));
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

/// A segment of System V. Its length is read only where it is noted.
///
/// # Safety
/// The arguments are valid for `shmat`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shmat(segment: c_int, address: *const c_void, flags: c_int) -> *mut c_void {
    let next = NEXT_SHMAT.load(Ordering::Acquire);
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid for
    // it, and for the system call.
    let place = unsafe {
        if next.is_null() {
            libc::syscall(libc::SYS_shmat, segment, address, flags) as *mut c_void
        } else {
            transmute::<*mut c_void, Shmat>(next)(segment, address, flags)
        }
    };
    if IS_WANTED.load(Ordering::Acquire) && place != libc::MAP_FAILED {
        let mut facts = core::mem::MaybeUninit::<libc::shmid_ds>::zeroed();
        // SAFETY: the kernel writes to this live local only, whose type is that of the request; all zero is valid for it.
        // `errno` is the program's: after a success it is not defined.
        let length = unsafe {
            match libc::shmctl(segment, libc::IPC_STAT, facts.as_mut_ptr()) {
                0 => facts.assume_init().shm_segsz,
                _ => 0,
            }
        };
        note(place, length, None);
    }
    place
}
