//! Whether a thread is in the C library's `exit`: that never returns, so its stack then holds the address to which the
//! callee would return.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use libc::{Dl_info, Elf64_Sym};

// `dladdr1` is in a library of its own before glibc 2.34, and a program need not load it.
#[link(name = "dl")]
unsafe extern "C" {
    fn dladdr1(address: *const c_void, info: *mut Dl_info, extra: *mut *mut c_void, flags: c_int) -> c_int;
}

/// Of <dlfcn.h>: `dladdr1` finds the symbol.
const RTLD_DL_SYMENT: c_int = 1;

/// Words that are searched. Between a handler and `exit` are two of the C library's functions, of 20 words together;
/// between a handler and what else may call it, `dlclose` and the end of a thread, are more words than these.
const WORDS: usize = 48;

/// Where `exit` is; 0: not known.
static START: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Finds the C library's own `exit`, past one that the program may have. Not by `dlopen`, which allocates.
pub fn find() {
    // SAFETY: dlsym reads a C literal.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"exit".as_ptr()) };
    let Some((library, _)) = symbol_at(libc::__errno_location as *const c_void) else { return };
    for exit in [libc::exit as *const c_void, next] {
        if let Some((object, bytes)) = symbol_at(exit)
            && object == library
        {
            BYTES.store(bytes, Ordering::Relaxed);
            START.store(exit as usize, Ordering::Release);
            return;
        }
    }
}

/// Where the object of a function begins, and the function's length.
fn symbol_at(address: *const c_void) -> Option<(usize, usize)> {
    // SAFETY: zeroes are valid for both local variables; dladdr1 leaves in `symbol` null or the address of a symbol of an
    // object, which stays loaded: the C library, or what was looked up just now.
    unsafe {
        let mut info: Dl_info = core::mem::zeroed();
        let mut symbol: *mut Elf64_Sym = ptr::null_mut();
        let found = dladdr1(address, &raw mut info, (&raw mut symbol).cast(), RTLD_DL_SYMENT) != 0;
        (found && !symbol.is_null()).then(|| (info.dli_fbase as usize, (*symbol).st_size as usize))
    }
}

/// Whether a function that was called with this stack pointer was called by `exit`.
///
/// # Safety
/// It is the calling thread's, at the entry of a handler that the C library calls.
pub unsafe fn is_above(stack: *const usize) -> bool {
    let start = START.load(Ordering::Acquire);
    // The call is the last instruction, so that its return address may be the function's end.
    start != 0
        && (0..WORDS).any(|word| {
            // SAFETY: by this function's contract the C library's frames and its callers' are here, and above a
            // thread's first frame is the thread's descriptor.
            let address = unsafe { stack.add(word).read_volatile() };
            (1..=BYTES.load(Ordering::Relaxed)).contains(&address.wrapping_sub(start))
        })
}
