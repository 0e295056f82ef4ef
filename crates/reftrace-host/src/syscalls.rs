//! Names of system calls, for messages about refused calls.

use syscalls::Sysno;

/// `rseq` for 334; the number where it has no name.
pub fn name(number: u32) -> String {
    Sysno::new(number as usize).map_or_else(|| format!("system call {number}"), |call| call.name().to_owned())
}

/// Whether a refusal changes nothing: the C library makes threads and processes with `clone` where there is no
/// `clone3`, and our collectors find out with one call whether waits can be continued by `restart_syscall`. The manager's
/// path is the same. Every report of refused calls consults this.
pub fn changes_nothing(number: u32, errno: u32) -> bool {
    [libc::SYS_clone3, libc::SYS_restart_syscall].contains(&i64::from(number)) && errno == libc::ENOSYS as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_call_that_the_c_library_does_without_changes_nothing() {
        let number = |call: i64| u32::try_from(call).expect("a number");
        let (missing, full) = (libc::ENOSYS as u32, libc::EAGAIN as u32);
        assert!(changes_nothing(number(libc::SYS_clone3), missing));
        assert!(!changes_nothing(number(libc::SYS_clone3), full));
        assert!(changes_nothing(number(libc::SYS_restart_syscall), missing));
        assert!(!changes_nothing(number(libc::SYS_rseq), missing));
    }

    #[test]
    fn numbers_have_names_of_this_machine() {
        for (number, called) in
            [(libc::SYS_rseq, "rseq"), (libc::SYS_brk, "brk"), (libc::SYS_clone3, "clone3")]
        {
            assert_eq!(name(u32::try_from(number).expect("a number")), called);
        }
        assert_eq!(name(99_999), "system call 99999");
    }
}
