//! Whether the loader still relocates the objects of the process.
//!
//! An ifunc resolver is called while that is done, and may allocate. The layer may not be relocated itself by then:
//! nothing of another object can be called, and thread-local words cannot be reached. Where it is, such words still
//! change: the loader gives them their first values at the end.

use core::arch::asm;
use core::ffi::{c_int, c_void};

/// `struct r_debug` of glibc's `link.h`.
#[repr(C)]
struct Debug {
    version: c_int,
    map: *const c_void,
    breakpoint: usize,
    state: c_int,
}

/// No object is being added or removed.
const CONSISTENT: c_int = 0;

/// Whether it does. The answer is about the start of a process: it is also yes while a library is opened later.
pub fn is_relocating() -> bool {
    let debug: *const Debug;
    // SAFETY: the instruction reads the address of the loader's variable; 0 as long as this object is not relocated.
    unsafe {
        asm!("mov {}, qword ptr [rip + _r_debug@GOTPCREL]", out(reg) debug, options(nostack, preserves_flags))
    };
    // SAFETY: null, or the loader's variable, which stays. Another thread cannot exist before the end of the start.
    unsafe { debug.as_ref().is_none_or(|debug| debug.state != CONSISTENT) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_process_that_has_started_is_relocated() {
        assert!(!super::is_relocating());
    }
}
