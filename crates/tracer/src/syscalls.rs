//! Names of system calls, for refusals that a user reads.

use syscalls::Sysno;

/// `rseq` of 334; the number where it has no name.
pub fn name(number: u32) -> String {
    Sysno::new(number as usize).map_or_else(|| format!("system call {number}"), |call| call.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
