//! Finds the family: the functions of the object that `malloc` comes from. Others have to be emulated.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use heaptoll_runtime::thread_pointer;

use crate::loader::is_relocating;

/// `malloc`, `valloc`, `pvalloc`, `heaptoll_malloc_pointer_free`.
pub type Allocate = unsafe extern "C" fn(usize) -> *mut c_void;
/// `free`.
pub type Free = unsafe extern "C" fn(*mut c_void);
/// `calloc`, `memalign`, `aligned_alloc`.
pub type AllocatePair = unsafe extern "C" fn(usize, usize) -> *mut c_void;
/// `realloc`.
pub type Resize = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
/// `posix_memalign`.
pub type PosixMemalign = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;
/// `malloc_usable_size`.
pub type UsableSize = unsafe extern "C" fn(*mut c_void) -> usize;

/// The functions of one object. A function that is `None` is not exported by the object that exports `malloc`;
/// [`crate::forward`] emulates it by the others or fails.
#[derive(Clone, Copy)]
pub struct Family {
    pub malloc: Allocate,
    pub free: Free,
    pub calloc: Option<AllocatePair>,
    pub realloc: Option<Resize>,
    pub memalign: Option<AllocatePair>,
    pub posix_memalign: Option<PosixMemalign>,
    pub aligned_alloc: Option<AllocatePair>,
    pub valloc: Option<Allocate>,
    pub pvalloc: Option<Allocate>,
    pub usable_size: Option<UsableSize>,
}

struct FamilyCell(UnsafeCell<MaybeUninit<Family>>);

// SAFETY: `find` writes it once, on the thread that moved `STATE` from UNKNOWN to RESOLVING; `ready` reads it only
// after READY, which is stored with release and loaded with acquire.
unsafe impl Sync for FamilyCell {}

const UNKNOWN: u32 = 0;
const RESOLVING: u32 = 1;
const READY: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
static FAMILY: FamilyCell = FamilyCell(UnsafeCell::new(MaybeUninit::uninit()));

/// The thread that looks for the next family: what it allocates meanwhile is not the program's.
static RESOLVER: AtomicUsize = AtomicUsize::new(0);

/// Whether the calling thread looks for the next family.
pub fn is_resolving() -> bool {
    RESOLVER.load(Ordering::Relaxed) == thread_pointer()
}

/// The next family; `None` while it is being resolved, by this thread (`dlsym` allocates) or by another, and while the
/// loader relocates the process's objects: the caller then allocates from the bootstrap arena instead of waiting.
#[inline(always)]
pub fn next() -> Option<&'static Family> {
    match ready() {
        None => find(),
        family => family,
    }
}

/// The next family, if it has been found already: checked by the fast paths of all functions, so that everything else
/// is a tail call and needs no stack frame.
#[inline(always)]
pub fn ready() -> Option<&'static Family> {
    // SAFETY: `find` stores READY only after it has written the cell, which is never written again.
    (STATE.load(Ordering::Acquire) == READY).then(|| unsafe { (*FAMILY.0.get()).assume_init_ref() })
}

#[cold]
#[inline(never)]
fn find() -> Option<&'static Family> {
    if is_relocating() {
        return None;
    }
    if STATE.compare_exchange(UNKNOWN, RESOLVING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return None;
    }
    RESOLVER.store(thread_pointer(), Ordering::Relaxed);
    let Some(family) = resolve() else {
        fatal(c"heaptoll: no next malloc and free from one shared object after this layer; preload it in front of a manager or of libc.so.6\n");
    };
    // SAFETY: only the thread that moved `STATE` to RESOLVING gets here, and no thread reads the cell before READY.
    unsafe { (*FAMILY.0.get()).write(family) };
    STATE.store(READY, Ordering::Release);
    crate::preflight_report::report(family.malloc as *const c_void);
    next()
}

/// Looks up every function after the calling object and drops those that come from another object than `malloc`.
fn resolve() -> Option<Family> {
    let malloc = symbol(c"malloc")?;
    let home = object_of(malloc as usize)?;
    let own = |name| symbol(name).filter(|&address| object_of(address as usize) == Some(home));
    let free = own(c"free")?;
    // SAFETY: each address was looked up by the name of a standard function, whose type the C library defines.
    unsafe {
        Some(Family {
            malloc: transmute::<*mut c_void, Allocate>(malloc),
            free: transmute::<*mut c_void, Free>(free),
            calloc: own(c"calloc").map(|f| transmute::<*mut c_void, AllocatePair>(f)),
            realloc: own(c"realloc").map(|f| transmute::<*mut c_void, Resize>(f)),
            memalign: own(c"memalign").map(|f| transmute::<*mut c_void, AllocatePair>(f)),
            posix_memalign: own(c"posix_memalign").map(|f| transmute::<*mut c_void, PosixMemalign>(f)),
            aligned_alloc: own(c"aligned_alloc").map(|f| transmute::<*mut c_void, AllocatePair>(f)),
            valloc: own(c"valloc").map(|f| transmute::<*mut c_void, Allocate>(f)),
            pvalloc: own(c"pvalloc").map(|f| transmute::<*mut c_void, Allocate>(f)),
            usable_size: own(c"malloc_usable_size").map(|f| transmute::<*mut c_void, UsableSize>(f)),
        })
    }
}

/// What `heaptoll_malloc_pointer_free` is of the next object; 0 as long as it is not known.
static POINTER_FREE: AtomicUsize = AtomicUsize::new(0);

/// The next `heaptoll_malloc_pointer_free`; `malloc` where the object that exports that has none.
///
/// It is looked up when a program first calls it, not with the others: a lookup that fails allocates its message, which
/// would count as a call of every program.
#[inline(always)]
pub fn pointer_free(family: &Family) -> Allocate {
    match POINTER_FREE.load(Ordering::Relaxed) {
        0 => find_pointer_free(family),
        // SAFETY: `find_pointer_free` stored the address of a function of this type.
        address => unsafe { transmute::<usize, Allocate>(address) },
    }
}

#[cold]
#[inline(never)]
fn find_pointer_free(family: &Family) -> Allocate {
    let home = object_of(family.malloc as usize);
    let found = symbol(c"heaptoll_malloc_pointer_free").filter(|&f| object_of(f as usize) == home);
    // SAFETY: `include/heaptoll.h` defines the type of what has this name.
    let found = found.map_or(family.malloc, |f| unsafe { transmute::<*mut c_void, Allocate>(f) });
    POINTER_FREE.store(found as usize, Ordering::Relaxed);
    found
}

/// The next definition of `name` after the object into which this code is linked.
#[inline(never)]
pub fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym reads `name`, a C string. (It finds the calling object by its return address, which lies in this
    // function.)
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Base address of the object that contains an address.
pub fn object_of(address: usize) -> Option<usize> {
    object(address).map(|info| info.dli_fbase as usize)
}

/// Path of the object of the family, which is never unloaded, as the loader knows it.
pub fn path_of(family: &Family) -> Option<&'static CStr> {
    let info = object(family.malloc as *const () as usize).filter(|info| !info.dli_fname.is_null())?;
    // SAFETY: the name is a C string of the loader's, which lives as long as the object: it is not unloaded, for this
    // layer calls it.
    Some(unsafe { CStr::from_ptr(info.dli_fname) })
}

fn object(address: usize) -> Option<libc::Dl_info> {
    // SAFETY: dladdr writes to `info`, a local variable, for which all zeroes are valid, and only compares the address.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        (libc::dladdr(address as *const c_void, &mut info) != 0).then_some(info)
    }
}

/// Prints a message and aborts.
pub fn fatal(message: &CStr) -> ! {
    let bytes = message.to_bytes();
    // SAFETY: write reads `bytes` within its length; abort takes no pointers and does not return.
    unsafe {
        libc::write(2, bytes.as_ptr().cast(), bytes.len());
        libc::abort()
    }
}
