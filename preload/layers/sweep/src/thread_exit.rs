//! What the manager does when a thread ends, by hooks of its own: keys of thread-specific data, and destructors of
//! C++'s thread-local objects.
//!
//! The C library calls these without the layer, and they take the manager's locks; a collection must not stop a thread
//! in the middle of one. So the layer exports the functions that register them, and passes on, for those of the
//! manager's object, a function of its own that enters the gate around the manager's. There are few, so each has a slot
//! in a table and a function that knows its slot.

use core::arch::naked_asm;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use heaptoll_next::family;

use crate::{gate, mappings, start};

type Destructor = unsafe extern "C" fn(*mut c_void);

/// How many there may be; further ones are called without the layer.
const SLOTS: usize = 16;
static HOOKS: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];

unsafe extern "C" fn enclosed<const SLOT: usize>(argument: *mut c_void) {
    let hook = HOOKS[SLOT].load(Ordering::Acquire);
    // This may wait for a collection, as at any entry; what is inside already stays so.
    let entry = gate::enter();
    if entry == gate::Entry::First {
        start::thread_begins();
    }
    // SAFETY: registered as such a function, for this argument.
    unsafe { core::mem::transmute::<usize, Destructor>(hook)(argument) };
    gate::leave_from(entry);
}

macro_rules! slots {
    ($($slot:literal)*) => { [$(enclosed::<$slot> as Destructor),*] };
}

static ENCLOSED: [Destructor; SLOTS] = slots! { 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 };

/// The function to be registered in place of the manager's `hook`.
fn enclose(hook: usize, caller: usize) -> usize {
    // Managers' constructors run before the layer's, and hold locks meanwhile: nothing is started here.
    mappings::find_manager();
    if hook == 0 || !mappings::is_of_manager(hook) && !mappings::is_of_manager(caller) {
        return hook;
    }
    for (slot, known) in HOOKS.iter().enumerate() {
        match known.compare_exchange(0, hook, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return ENCLOSED[slot] as usize,
            Err(other) if other == hook => return ENCLOSED[slot] as usize,
            Err(_) => {}
        }
    }
    hook
}

/// The next function of this name; 0: there is none.
fn next(slot: &AtomicUsize, name: &CStr) -> usize {
    match slot.load(Ordering::Relaxed) {
        0 => {
            let found = family::symbol(name).map_or(0, |function| function as usize);
            slot.store(found, Ordering::Relaxed);
            found
        }
        known => known,
    }
}

unsafe extern "C" fn create_key(key: *mut libc::pthread_key_t, hook: usize, caller: usize) -> c_int {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = next(&NEXT, c"pthread_key_create");
    if next == 0 {
        return libc::EAGAIN;
    }
    // SAFETY: the C library's function of that name and type; `key` is the caller's own, unchanged.
    unsafe {
        let create = core::mem::transmute::<
            usize,
            unsafe extern "C" fn(*mut libc::pthread_key_t, usize) -> c_int,
        >(next);
        create(key, enclose(hook, caller))
    }
}

unsafe extern "C" fn at_thread_exit(
    hook: usize,
    object: *mut c_void,
    library: *mut c_void,
    caller: usize,
) -> c_int {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = next(&NEXT, c"__cxa_thread_atexit_impl");
    if next == 0 {
        return -1;
    }
    // SAFETY: the C library's function of that name and type; the other arguments are the caller's own, unchanged.
    unsafe {
        let register = core::mem::transmute::<
            usize,
            unsafe extern "C" fn(usize, *mut c_void, *mut c_void) -> c_int,
        >(next);
        register(enclose(hook, caller), object, library)
    }
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn pthread_key_create() {
    naked_asm!("mov rdx, qword ptr [rsp]", "jmp {to}", to = sym create_key);
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn __cxa_thread_atexit_impl() {
    naked_asm!("mov rcx, qword ptr [rsp]", "jmp {to}", to = sym at_thread_exit);
}
