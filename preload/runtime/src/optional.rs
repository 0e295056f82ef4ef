//! Symbols of the C library that only some of its versions have.

/// The address of a symbol that the C library need not have; 0 where it does not.
macro_rules! optional {
    ($symbol:literal) => {{
        let address: usize;
        // SAFETY: loads what the linker has put into the table: the symbol's address, or 0.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $symbol),
                concat!("mov {}, qword ptr [rip + ", $symbol, "@GOTPCREL]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}

pub(crate) use optional;
