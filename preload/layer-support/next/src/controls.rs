//! The control structs of a process's objects (`include/heaptoll.h`), for layers that register event listeners with
//! managers.
//!
//! Several objects of one process may have one: a manager, and layers in front of it. They are read from the objects'
//! own tables, without the allocations of `dlsym`.

mod object;

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;

/// The symbol that managers export, see `include/heaptoll.h`.
const CONTROL: &[u8] = b"heaptoll_control_v1";

/// Maximum number of objects of one process whose control structs are visited.
pub const MOST: usize = 16;

/// `heaptoll_event_function`: takes an event, and the context that was registered with the function.
pub type Listener = unsafe extern "C" fn(*const Event, *mut c_void);

/// The beginning of `struct heaptoll_event`: the members of version 1.
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
/// `HEAPTOLL_COLLECTION_END`; the value is the bytes found live.
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
    /// Registers `listener` for events. Returns 0, or a positive errno value: `EBUSY` when another listener is
    /// registered, `ENOTSUP` when there are no events.
    ///
    /// # Safety
    /// `listener` obeys the contract of `heaptoll_event_function` (include/heaptoll.h) and may be called with
    /// `context`, on any thread, from now on.
    pub unsafe fn listen(&self, listener: Listener, context: *mut c_void) -> c_int {
        match self.listen {
            // SAFETY: by this function's contract `listener` may be called with `context`; `listen` is a member of the
            // object's control struct, whose version was checked by `each`, so it has this type.
            Some(listen) => unsafe { listen(listener, context) },
            None => libc::ENOTSUP,
        }
    }
}

/// Addresses of the objects' control functions.
struct Functions {
    addresses: UnsafeCell<[usize; MOST]>,
    count: UnsafeCell<usize>,
}

/// Visits the control struct of every object that is loaded now and has one, at most [`MOST`], in the order of loading.
pub fn each(mut visit: impl FnMut(&'static Control)) {
    let functions = Functions { addresses: UnsafeCell::new([0; MOST]), count: UnsafeCell::new(0) };
    // SAFETY: `visit_object` has the required type; `functions` outlives the call, and nothing else refers to it.
    unsafe { libc::dl_iterate_phdr(Some(visit_object), ptr::from_ref(&functions).cast_mut().cast()) };
    let (addresses, count) = (functions.addresses.into_inner(), functions.count.into_inner());
    // The loader's lock has been released: a manager may do anything in `listen`.
    for &address in &addresses[..count.min(MOST)] {
        // SAFETY: the address is that of the exported `heaptoll_control_v1`, which has this type (include/heaptoll.h).
        let control = unsafe { transmute::<usize, unsafe extern "C" fn() -> *const Control>(address)() };
        if control.is_null() {
            continue;
        }
        // SAFETY: the object's struct begins with these members in every version; there is no reference to the whole,
        // which may be shorter than a `Control`.
        let (version, size) =
            unsafe { ((&raw const (*control).version).read(), (&raw const (*control).size).read()) };
        if version >= 1 && size as usize >= size_of::<Control>() {
            // SAFETY: the struct is as long as a `Control`, as just checked, and lives as long as the object.
            visit(unsafe { &*control });
        }
    }
}

/// Adds the control function of one loaded object, if it has one.
unsafe extern "C" fn visit_object(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    functions: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid description of an object that stays mapped during the call, and the pointer
    // that `each` gave it, to which no other reference exists.
    unsafe {
        let functions = &*functions.cast::<Functions>();
        if let Some(address) = object::function(&*info, CONTROL) {
            let count = functions.count.get();
            if *count < MOST {
                (*functions.addresses.get())[*count] = address;
                *count += 1;
            }
        }
    }
    0
}
