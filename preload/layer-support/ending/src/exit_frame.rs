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

/// Finds the C library's own `exit`, past others that the program has.
pub fn find() {
    // SAFETY: dlopen and dlsym read C literals; what is not loaded is not loaded now, and the C library stays. `info` and `symbol` are local variables,
    // for which zeroes are valid; dladdr1 leaves in `symbol` null or the address of a symbol of the C library.
    unsafe {
        let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() {
            return;
        }
        let exit = libc::dlsym(library, c"exit".as_ptr());
        let mut info: Dl_info = core::mem::zeroed();
        let mut symbol: *mut Elf64_Sym = ptr::null_mut();
        if !exit.is_null()
            && dladdr1(exit, &raw mut info, (&raw mut symbol).cast(), RTLD_DL_SYMENT) != 0
            && !symbol.is_null()
        {
            BYTES.store((*symbol).st_size as usize, Ordering::Relaxed);
            START.store(exit as usize, Ordering::Release);
        }
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
