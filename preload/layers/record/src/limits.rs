//! Limits of the address space that the program sets itself: what is mapped for rings that are not used goes then, or the
//! program would not have what it allows itself.

use core::ffi::{c_int, c_uint, c_void};
use core::mem::transmute;

use heaptoll_runtime::{Next, missing};

use crate::RINGS;

type Setrlimit = unsafe extern "C" fn(c_uint, *const libc::rlimit) -> c_int;
type Prlimit = unsafe extern "C" fn(libc::pid_t, c_uint, *const libc::rlimit, *mut libc::rlimit) -> c_int;

static SETRLIMIT: Next = Next::new(c"setrlimit");
static PRLIMIT: Next = Next::new(c"prlimit");

/// Looks both up.
pub fn prepare() {
    for next in [&SETRLIMIT, &PRLIMIT] {
        let _ = next.get();
    }
}

/// A limit was perhaps set; what it is now, the kernel states.
fn was_set(resource: c_uint, status: c_int) -> c_int {
    if resource == libc::RLIMIT_AS && status == 0 {
        RINGS.leave_address_space();
    }
    status
}

/// # Safety
/// The arguments are valid for `setrlimit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setrlimit(resource: c_uint, limit: *const libc::rlimit) -> c_int {
    let Some(next) = SETRLIMIT.get() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    was_set(resource, unsafe { transmute::<*mut c_void, Setrlimit>(next)(resource, limit) })
}

/// # Safety
/// As [`setrlimit`], which has the same type on 64-bit machines.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setrlimit64(resource: c_uint, limit: *const libc::rlimit) -> c_int {
    // SAFETY: the contract of `setrlimit` is that of this function.
    unsafe { setrlimit(resource, limit) }
}

/// # Safety
/// The arguments are valid for `prlimit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prlimit(
    pid: libc::pid_t,
    resource: c_uint,
    new: *const libc::rlimit,
    old: *mut libc::rlimit,
) -> c_int {
    let Some(next) = PRLIMIT.get() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    let status = unsafe { transmute::<*mut c_void, Prlimit>(next)(pid, resource, new, old) };
    if new.is_null() { status } else { was_set(resource, status) }
}

/// # Safety
/// As [`prlimit`], which has the same type on 64-bit machines.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prlimit64(
    pid: libc::pid_t,
    resource: c_uint,
    new: *const libc::rlimit,
    old: *mut libc::rlimit,
) -> c_int {
    // SAFETY: the contract of `prlimit` is that of this function.
    unsafe { prlimit(pid, resource, new, old) }
}
