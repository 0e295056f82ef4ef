//! The control structs of a process's objects (`include/heaptoll.h`), for layers that listen to what managers tell.
//!
//! Several objects of one process may have one: a manager, and layers in front of it. They are read from the objects'
//! own tables, without the allocations of `dlsym`.
#![no_std]

mod object;

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;

/// The symbol that managers export, see `include/heaptoll.h`.
const CONTROL: &[u8] = b"heaptoll_control_v1";

/// Objects of one process that are asked.
pub const MOST: usize = 16;

/// `heaptoll_event_function`: an event, and the context that was given with the function.
pub type Listener = unsafe extern "C" fn(*const Event, *mut c_void);

/// The beginning of `struct heaptoll_event`: all of it that there was in version 1.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub size: u32,
    /// `enum heaptoll_event_kind`.
    pub kind: u32,
    /// `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// Number of the collection, from 1.
    pub collection: u64,
    pub value: u64,
    pub mapped_bytes: u64,
}

/// `HEAPTOLL_COLLECTION_START`; the value is the reason.
pub const COLLECTION_START: u32 = 1;
/// `HEAPTOLL_COLLECTION_END`; the value is bytes found live.
pub const COLLECTION_END: u32 = 2;

/// The beginning of `struct heaptoll_control`.
#[repr(C)]
pub struct Control {
    version: u32,
    size: u32,
    name: *const c_char,
    manager_version: *const c_char,
    census: *const c_void,
    collect: *const c_void,
    listen: Option<unsafe extern "C" fn(Listener, *mut c_void) -> c_int>,
}

impl Control {
    /// Has events told to `listener`. Gives 0, or a positive errno value: `EBUSY` when another one listens, `ENOTSUP`
    /// when nothing is told.
    ///
    /// # Safety
    /// `listener` keeps the conditions of `heaptoll_event_function` and may be called with `context` from now on.
    pub unsafe fn listen(&self, listener: Listener, context: *mut c_void) -> c_int {
        match self.listen {
            // SAFETY: the caller's word; the function is the object's, of this type.
            Some(listen) => unsafe { listen(listener, context) },
            None => libc::ENOTSUP,
        }
    }
}

/// Addresses of control functions.
struct Found {
    addresses: UnsafeCell<[usize; MOST]>,
    count: UnsafeCell<usize>,
}

/// Visits the control struct of every object that is loaded now and has one, at most [`MOST`], in the order of loading.
pub fn each(mut visit: impl FnMut(&'static Control)) {
    let found = Found { addresses: UnsafeCell::new([0; MOST]), count: UnsafeCell::new(0) };
    // SAFETY: the callback has the type that is asked for; `found` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), ptr::from_ref(&found).cast_mut().cast()) };
    let (addresses, count) = (found.addresses.into_inner(), found.count.into_inner());
    // The loader's lock is free again: a manager may do in `listen` what it likes.
    for &address in &addresses[..count.min(MOST)] {
        // SAFETY: the address was found under the name whose type it is given; the struct it returns lives as long as the
        // object and has the members that its size covers.
        let control =
            unsafe { transmute::<usize, unsafe extern "C" fn() -> *const Control>(address)().as_ref() };
        if let Some(control) = control
            && control.version >= 1
            && control.size as usize >= size_of::<Control>()
        {
            visit(control);
        }
    }
}

/// Looks at one loaded object.
unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader gives a valid description of an object that stays mapped while this runs; `found` is that of
    // `each`, of which there is no other reference.
    unsafe {
        let found = &*found.cast::<Found>();
        if let Some(address) = object::function(&*info, CONTROL) {
            let count = found.count.get();
            if *count < MOST {
                (*found.addresses.get())[*count] = address;
                *count += 1;
            }
        }
    }
    0
}
