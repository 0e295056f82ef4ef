//! Finding the family: which functions come from the object that `malloc` comes from, and which have to be made up.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::sync::atomic::{AtomicU32, Ordering};

/// `malloc`, `valloc`, `pvalloc`.
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

/// The functions of one object. A `None` is not exported by the object that exports `malloc`; [`crate::forward`]
/// makes it up from the others or refuses.
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

struct Found(UnsafeCell<MaybeUninit<Family>>);

// SAFETY: written once, by the thread that moved `STATE` from UNKNOWN to ASKING; read only after READY, which is
// stored with release and loaded with acquire.
unsafe impl Sync for Found {}

const UNKNOWN: u32 = 0;
const ASKING: u32 = 1;
const READY: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
static FOUND: Found = Found(UnsafeCell::new(MaybeUninit::uninit()));

/// The next family; `None` while it is being looked for, by this thread (`dlsym` allocates) or by another: the
/// caller takes from the bootstrap arena then, and waits for nobody.
#[inline(always)]
pub fn next() -> Option<&'static Family> {
    match ready() {
        None => find(),
        family => family,
    }
}

/// The next family, if it has been found already: what the short ways of all functions ask, so that everything else
/// can be a jump to elsewhere and nothing need be kept on the stack for it.
#[inline(always)]
pub fn ready() -> Option<&'static Family> {
    // SAFETY: READY is stored after the family was written, for good.
    (STATE.load(Ordering::Acquire) == READY).then(|| unsafe { (*FOUND.0.get()).assume_init_ref() })
}

#[cold]
#[inline(never)]
fn find() -> Option<&'static Family> {
    if STATE.compare_exchange(UNKNOWN, ASKING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return None;
    }
    let Some(family) = resolve() else {
        fatal(c"heaptoll: no next malloc and free from one shared object behind this layer; preload it in front of a manager or of libc.so.6\n");
    };
    // SAFETY: this thread alone is in ASKING, nobody reads before READY.
    unsafe { (*FOUND.0.get()).write(family) };
    STATE.store(READY, Ordering::Release);
    crate::behind::tell(family.malloc as *const c_void);
    next()
}

/// Looks every function up behind the calling object and drops those that come from elsewhere than `malloc`.
fn resolve() -> Option<Family> {
    let malloc = symbol(c"malloc")?;
    let home = object_of(malloc as usize)?;
    let own = |name| symbol(name).filter(|&address| object_of(address as usize) == Some(home));
    let free = own(c"free")?;
    // SAFETY: each address was found under the name whose type it is given; the C library fixes those types.
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

/// The next definition of `name` behind the object this code is linked into.
#[inline(never)]
pub fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `name` is a C string. dlsym finds the calling object by its return address, which lies in this function.
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Base address of the object that an address lies in.
pub fn object_of(address: usize) -> Option<usize> {
    // SAFETY: an all-zero Dl_info is a valid place for dladdr's answer.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        (libc::dladdr(address as *const c_void, &mut info) != 0).then_some(info.dli_fbase as usize)
    }
}

/// Says why and ends the process: there is no memory to go on with.
pub fn fatal(message: &CStr) -> ! {
    let bytes = message.to_bytes();
    // SAFETY: the message is readable for its length; abort has no conditions.
    unsafe {
        libc::write(2, bytes.as_ptr().cast(), bytes.len());
        libc::abort()
    }
}
