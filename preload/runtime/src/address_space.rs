//! Limits of the address space (`ulimit -v`): what a layer maps, the program cannot have.

use crate::system_call;

/// A layer takes at most one part in this many.
const PART: u64 = 8;

/// The limit of the address space, bytes; `RLIM_INFINITY`: none, or it cannot be read.
fn limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: 0 };
    let place = &raw mut limit as usize;
    // SAFETY: the kernel writes to `limit`, a live local. If it refuses the call, `limit` stays as it is.
    unsafe { system_call(libc::SYS_prlimit64, [0, libc::RLIMIT_AS as usize, 0, place, 0, 0]) };
    limit.rlim_cur
}

/// Whether a layer may map `bytes` for its own use.
pub fn fits_address_space(bytes: usize) -> bool {
    bytes as u64 <= limit() / PART
}
