//! Limits of the address space and of private memory (`ulimit -v`, `-d`): what is mapped for us, the program cannot have.

use crate::system_call;

/// Each of our tables and files takes at most one part in this many.
const PART: usize = 8;

/// The limit of the address space, bytes; `None`: there is none, or it cannot be read. Preserves `errno`.
pub fn limit() -> Option<usize> {
    limit_of(libc::RLIMIT_AS as usize)
}

fn limit_of(resource: usize) -> Option<usize> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: 0 };
    let place = &raw mut limit as usize;
    // SAFETY: the kernel writes to `limit`, a live local. If it refuses the call, `limit` stays as it is.
    unsafe { system_call(libc::SYS_prlimit64, [0, resource, 0, place, 0, 0]) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
}

/// Whether we may map `bytes` for our own use under this limit.
pub const fn leaves_enough(bytes: usize, limit: usize) -> bool {
    bytes <= limit / PART
}

/// Whether we may map `bytes` for our own use in this process.
pub fn fits(bytes: usize) -> bool {
    limit().is_none_or(|limit| leaves_enough(bytes, limit))
}

/// The same of private memory, which has a limit of its own.
pub fn private_fits(bytes: usize) -> bool {
    fits(bytes) && limit_of(libc::RLIMIT_DATA as usize).is_none_or(|limit| leaves_enough(bytes, limit))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::process::Command;
    use std::string::String;
    use std::{env, println};

    use super::*;

    #[test]
    fn one_part_in_eight_of_a_limit_is_ours() {
        // A child of its own: all tests share this process's limits.
        let program = env::current_exe().expect("this program");
        let under = |limits: &str| {
            let words = "exec \"$0\" --exact address_space::tests::as_a_child --ignored --nocapture";
            let words = std::format!("ulimit {limits}; {words}");
            let output = Command::new("sh").arg("-c").arg(words).arg(&program).output().expect("a shell");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let out = under("-v 2097152");
        assert!(out.contains("Some(2147483648) true false, private true false, errno 99"), "{out}");
        // Before, call stacks took private memory that the program needed.
        let out = under("-d 2097152");
        assert!(out.contains("None true true, private true false, errno 99"), "{out}");
    }

    #[test]
    #[ignore = "run by one_part_in_eight_of_a_limit_is_ours"]
    fn as_a_child() {
        // SAFETY: `__errno_location` returns the address of this thread's errno.
        let errno = unsafe { &raw mut *libc::__errno_location() };
        // SAFETY: the address is this thread's errno.
        unsafe { *errno = 99 };
        let [fits, private] = [fits, private_fits].map(|fits| [fits(1 << 28), fits((1 << 28) + 1)]);
        let ([one, more], [one_private, more_private], limit) = (fits, private, limit());
        // SAFETY: the address is this thread's errno.
        let errno = unsafe { *errno };
        println!("{limit:?} {one} {more}, private {one_private} {more_private}, errno {errno}");
    }
}
