//! Clears the vector registers, which a call need not preserve: what a copy has left there would keep blocks alive, for the
//! registers of a stopped thread are roots.

use core::arch::x86_64::{__cpuid_count, CpuidResult};
use core::arch::{asm, naked_asm};
use core::sync::atomic::{AtomicU8, Ordering};

const UNKNOWN: u8 = 0;
const NONE: u8 = 1;
/// `ymm0` to `ymm15`.
const SIXTEEN: u8 = 2;
/// And `zmm16` to `zmm31`, where the C library copies if it can.
const ALL: u8 = 3;

/// Clears those of the calling thread.
pub extern "C" fn clear() {
    static KIND: AtomicU8 = AtomicU8::new(UNKNOWN);
    let mut kind = KIND.load(Ordering::Relaxed);
    if kind == UNKNOWN {
        kind = present();
        KIND.store(kind, Ordering::Relaxed);
    }
    match kind {
        // SAFETY: the processor and the kernel have AVX-512 with short vectors; a call preserves no vector register.
        ALL => unsafe { clear_all() },
        // SAFETY: they have AVX; as above.
        SIXTEEN => unsafe { clear_sixteen() },
        _ => (),
    }
}

/// Those that the processor has and the kernel saves.
fn present() -> u8 {
    const OSXSAVE_AND_AVX: u32 = 1 << 27 | 1 << 28;
    const AVX512F_AND_VL: u32 = 1 << 16 | 1 << 31;
    if cpuid(1).ecx & OSXSAVE_AND_AVX != OSXSAVE_AND_AVX {
        return NONE;
    }
    let saved: u32;
    // SAFETY: the processor has announced the instruction.
    unsafe { asm!("xgetbv", in("ecx") 0, out("eax") saved, out("edx") _, options(nomem, nostack)) };
    let has_wide = cpuid(0).eax >= 7 && cpuid(7).ebx & AVX512F_AND_VL == AVX512F_AND_VL;
    match saved {
        _ if saved & 0xe6 == 0xe6 && has_wide => ALL,
        _ if saved & 0x6 == 0x6 => SIXTEEN,
        _ => NONE,
    }
}

// Safe in later versions of Rust.
#[allow(unused_unsafe)]
fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: every processor of this architecture has the instruction.
    unsafe { __cpuid_count(leaf, 0) }
}

/// # Safety
/// The processor and the kernel have AVX.
#[unsafe(naked)]
unsafe extern "C" fn clear_sixteen() {
    naked_asm!("vzeroall", "ret")
}

/// # Safety
/// They have AVX-512 with short vectors.
#[unsafe(naked)]
unsafe extern "C" fn clear_all() {
    naked_asm!(
        "vzeroall",
        ".irp n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
        "vpxord xmm\\n, xmm\\n, xmm\\n",
        ".endr",
        "ret",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_register_has_nothing_of_a_copy() {
        let words = [usize::MAX; 2];
        let mut left = [1_usize; 2];
        if present() == NONE {
            return;
        }
        // SAFETY: the function preserves no vector register, as a call may; both arrays are of 16 bytes.
        unsafe {
            asm!(
                "movups xmm5, [{}]",
                "call {}",
                "movups [{}], xmm5",
                in(reg) &raw const words,
                in(reg) clear as extern "C" fn(),
                in(reg) &raw mut left,
                clobber_abi("C"),
            );
        }
        assert_eq!(left, [0; 2]);
    }
}
