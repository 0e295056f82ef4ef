//! Every form of C++'s `operator new` with the `operator delete` that a compiler pairs it with (Itanium C++ ABI).

use libc::{c_void, size_t};

use crate::smoke::pattern::fill;

/// `std::nothrow` by its address: no form reads it.
static NOTHROW: u8 = 0;
/// An alignment that the malloc family does not give by itself.
const ALIGNMENT: size_t = 64;

type New = unsafe extern "C" fn(size_t) -> *mut c_void;
type NewNothrow = unsafe extern "C" fn(size_t, *const u8) -> *mut c_void;
type NewAligned = unsafe extern "C" fn(size_t, size_t) -> *mut c_void;
type NewBoth = unsafe extern "C" fn(size_t, size_t, *const u8) -> *mut c_void;
type Delete = unsafe extern "C" fn(*mut c_void);
type DeleteNothrow = unsafe extern "C" fn(*mut c_void, *const u8);
type DeleteSized = unsafe extern "C" fn(*mut c_void, size_t);
type DeleteAligned = unsafe extern "C" fn(*mut c_void, size_t);
type DeleteBoth = unsafe extern "C" fn(*mut c_void, size_t, size_t);
type DeleteAlignedNothrow = unsafe extern "C" fn(*mut c_void, size_t, *const u8);

/// Makes blocks by each form and deletes them by its partners.
pub(crate) fn try_all(lookup: impl Fn(&str) -> Option<*mut c_void>) -> Result<(), String> {
    for (new, letter) in [("w", "l"), ("a", "a")] {
        plain(&lookup, new, letter)?;
        aligned(&lookup, new, letter)?;
    }
    Ok(())
}

/// The function of a name.
///
/// # Safety
/// `F` is the type that the ABI gives the name.
unsafe fn function<F: Copy>(lookup: &impl Fn(&str) -> Option<*mut c_void>, name: &str) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let address = lookup(name).ok_or_else(|| format!("{name} is missing"))?;
    // SAFETY: both are of a pointer's size, and the caller promises the type.
    Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
}

fn plain(lookup: &impl Fn(&str) -> Option<*mut c_void>, new: &str, delete: &str) -> Result<(), String> {
    // SAFETY: the Itanium C++ ABI gives these symbols exactly these types; each block is filled within its size and deleted
    // once, by a form that pairs with the one that made it.
    unsafe {
        let throwing: New = function(lookup, &format!("_Zn{new}m"))?;
        let nothrow: NewNothrow = function(lookup, &format!("_Zn{new}mRKSt9nothrow_t"))?;
        let usual: Delete = function(lookup, &format!("_Zd{delete}Pv"))?;
        let sized: DeleteSized = function(lookup, &format!("_Zd{delete}Pvm"))?;
        let unthrown: DeleteNothrow = function(lookup, &format!("_Zd{delete}PvRKSt9nothrow_t"))?;
        for size in (1..5000).step_by(37) {
            let made = || filled(throwing(size), size, 1);
            usual(made()?);
            sized(made()?, size);
            unthrown(made()?, &NOTHROW);
            usual(filled(nothrow(size, &NOTHROW), size, 1)?);
        }
    }
    Ok(())
}

fn aligned(lookup: &impl Fn(&str) -> Option<*mut c_void>, new: &str, delete: &str) -> Result<(), String> {
    // SAFETY: as the ABI has them, and each block is filled and deleted once, by a form that pairs with its own.
    unsafe {
        let throwing: NewAligned = function(lookup, &format!("_Zn{new}mSt11align_val_t"))?;
        let nothrow: NewBoth = function(lookup, &format!("_Zn{new}mSt11align_val_tRKSt9nothrow_t"))?;
        let usual: DeleteAligned = function(lookup, &format!("_Zd{delete}PvSt11align_val_t"))?;
        let sized: DeleteBoth = function(lookup, &format!("_Zd{delete}PvmSt11align_val_t"))?;
        let unthrown: DeleteAlignedNothrow =
            function(lookup, &format!("_Zd{delete}PvSt11align_val_tRKSt9nothrow_t"))?;
        for size in (1..5000).step_by(137) {
            let made = || filled(throwing(size, ALIGNMENT), size, ALIGNMENT);
            usual(made()?, ALIGNMENT);
            sized(made()?, size, ALIGNMENT);
            unthrown(made()?, ALIGNMENT, &NOTHROW);
            usual(filled(nothrow(size, ALIGNMENT, &NOTHROW), size, ALIGNMENT)?, ALIGNMENT);
        }
    }
    Ok(())
}

/// The block with its bytes written.
///
/// # Safety
/// A block that is not null has `size` writable bytes.
unsafe fn filled(block: *mut c_void, size: usize, alignment: usize) -> Result<*mut c_void, String> {
    if block.is_null() || !block.addr().is_multiple_of(alignment) {
        return Err(format!("operator new gave {block:p} for {size} bytes at a multiple of {alignment}"));
    }
    // SAFETY: it is not null, and the caller promises its bytes.
    unsafe { fill(block, size, size) };
    Ok(block)
}
