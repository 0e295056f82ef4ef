//! Threads that begin, where the manager exports `pthread_create` (rpmalloc does): it stores the thread's argument in
//! a block that it allocates internally, and the program may keep the only address of a block there until the thread
//! runs. So the layer stores it too, in a block that is pinned.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};

use heaptoll_next::family;

use crate::calls::{malloc, release};
use crate::{gate, mappings, pinned};

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut libc::pthread_t, *const c_void, Start, *mut c_void) -> c_int;

/// What a thread is to do.
struct Task {
    start: Start,
    argument: *mut c_void,
}

extern "C" fn begin(task: *mut c_void) -> *mut c_void {
    // SAFETY: the task that `pthread_create` has made for this thread; it is copied to this stack before it goes.
    let Task { start, argument } = unsafe { task.cast::<Task>().read() };
    let argument = core::hint::black_box(argument);
    forget(task);
    start(argument)
}

/// Frees a task.
fn forget(task: *mut c_void) {
    // SAFETY: the task is a block of the layer's, and no thread uses it any more.
    unsafe { release(task) };
}

/// `pthread_create`.
///
/// # Safety
/// As POSIX's.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const c_void,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let mut next = NEXT.load(Ordering::Relaxed);
    if next == 0 {
        let Some(found) = family::symbol(c"pthread_create") else { return libc::EAGAIN };
        next = found as usize;
        NEXT.store(next, Ordering::Relaxed);
    }
    // SAFETY: `next` is the address of the next `pthread_create`, which `family::symbol` found.
    let create = unsafe { transmute::<usize, Create>(next) };
    if !mappings::is_of_manager(next) {
        // SAFETY: the arguments are those of the caller of `pthread_create`, unchanged.
        return unsafe { create(thread, attributes, start, argument) };
    }
    let task = malloc(size_of::<Task>());
    if task.is_null() {
        return libc::EAGAIN;
    }
    // SAFETY: `malloc` has just returned this block of the task's size.
    unsafe { task.cast::<Task>().write(Task { start, argument }) };
    if !gate::inside(|| pinned::add(task as usize)) {
        return libc::EAGAIN;
    }
    // SAFETY: as POSIX requires of the caller of `pthread_create`; the task is the thread's from now on.
    let status = unsafe { create(thread, attributes, begin, task) };
    if status != 0 {
        forget(task);
    }
    status
}
