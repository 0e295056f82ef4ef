//! One call of each function of the family, before any program depends on them: a `calloc` that gcc made call itself, or
//! an aligned allocation that gives nothing, would otherwise be found by the first program that calls it, at the time
//! limit of each of its runs.
//!
//! Where `HEAPTOLL_PREFLIGHT_FAMILY` is set, the layer calls all functions of the next family when it starts, each
//! after its name on standard error; what is wrong with a result ends the process. So the last line names the function
//! that did not return. Whether blocks are aligned is not tested: that is a defect to report, which
//! `heaptoll-conformance` does, and no reason to refuse a measurement (Debian's mimalloc 2.0 has it).

use core::ffi::c_void;
use core::ptr;

use heaptoll_next::forward;

const VARIABLE: &core::ffi::CStr = c"HEAPTOLL_PREFLIGHT_FAMILY";
/// Exit status of a process whose manager returned what it must not.
const WRONG: i32 = 91;
const SMALL: usize = 100;
const LARGE: usize = 3000;
const ALIGNED: usize = 256;
const FILL: u8 = 0xA5;

/// Calls every function, where that is requested.
pub fn try_all() {
    if heaptoll_process::environment::variable(VARIABLE).is_none() {
        return;
    }
    // SAFETY: each block is used within its size, as its manager states it, and freed or resized once.
    unsafe {
        begin(b"malloc\n");
        let block = filled(forward::malloc(SMALL), SMALL);
        begin(b"malloc_usable_size\n");
        // 0 is what is known of the blocks of a manager without it.
        let usable = forward::usable_size(block);
        require(usable == 0 || usable >= SMALL, b"fewer bytes than were requested\n");
        begin(b"realloc\n");
        let block = forward::realloc(block, LARGE);
        require(!block.is_null() && holds(block, SMALL), b"the block's content is lost\n");
        begin(b"reallocarray\n");
        let block = forward::reallocarray(block, SMALL, 2);
        require(!block.is_null() && holds(block, SMALL), b"the block's content is lost\n");
        begin(b"free\n");
        forward::free(block);
        begin(b"calloc\n");
        let block = forward::calloc(SMALL, 3);
        require(!block.is_null(), b"it gives no block\n");
        require((0..3 * SMALL).all(|at| *block.cast::<u8>().add(at) == 0), b"the block is not clear\n");
        forward::free(block);
        begin(b"memalign\n");
        forward::free(filled(forward::memalign(ALIGNED, SMALL), SMALL));
        begin(b"aligned_alloc\n");
        forward::free(filled(forward::aligned_alloc(ALIGNED, 2 * ALIGNED), 2 * ALIGNED));
        begin(b"posix_memalign\n");
        let mut block = ptr::null_mut();
        require(forward::posix_memalign(&mut block, ALIGNED, SMALL) == 0, b"it gives no block\n");
        forward::free(filled(block, SMALL));
        begin(b"valloc\n");
        forward::free(filled(forward::valloc(SMALL), SMALL));
        begin(b"pvalloc\n");
        forward::free(filled(forward::pvalloc(SMALL), 4096));
    }
}

/// A block of so many bytes, filled.
///
/// # Safety
/// `block` is null or a block of at least `size` bytes that nothing else uses.
unsafe fn filled(block: *mut c_void, size: usize) -> *mut c_void {
    require(!block.is_null(), b"it gives no block\n");
    // SAFETY: by this function's contract the block has `size` bytes; it is not null, which was just required.
    unsafe { ptr::write_bytes(block.cast::<u8>(), FILL, size) };
    block
}

/// # Safety
/// The block has at least `size` bytes.
unsafe fn holds(block: *mut c_void, size: usize) -> bool {
    // SAFETY: by this function's contract.
    (0..size).all(|at| unsafe { *block.cast::<u8>().add(at) } == FILL)
}

fn begin(name: &[u8]) {
    write(name);
}

fn require(is: bool, otherwise: &[u8]) {
    if !is {
        write(otherwise);
        // SAFETY: exit_group takes no pointers and does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, WRONG) };
    }
}

fn write(text: &[u8]) {
    // SAFETY: write reads `text` within its length.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}
