//! The object that an address lies in, with its unwind tables.
//!
//! It is found by `_dl_find_object`, which takes no lock and is made for unwinding within signal handlers (glibc 2.35).
//! That is a weak symbol here: without it the kernel's list of mappings is read ([`mappings`](crate::mappings)).

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::mappings;
use crate::object::Object;

/// glibc's result, `struct dl_find_object` of <dlfcn.h>.
#[repr(C)]
struct DlFindObject {
    flags: u64,
    map_start: usize,
    map_end: usize,
    link_map: *const LinkMap,
    eh_frame_header: *const c_void,
    reserved: [u64; 7],
}

/// The public head of the dynamic linker's description, `struct link_map` of <link.h>.
#[repr(C)]
struct LinkMap {
    difference: usize,
    name: *const c_char,
}

type Find = unsafe extern "C" fn(*const c_void, *mut DlFindObject) -> c_int;

core::arch::global_asm!(".weak _dl_find_object");

/// Set by tests: the way of an older glibc.
static MAPPINGS_ONLY: AtomicBool = AtomicBool::new(false);

/// From now on objects are found as under a glibc without `_dl_find_object`.
pub fn search_mappings_only() {
    MAPPINGS_ONLY.store(true, Ordering::Relaxed);
}

/// The object that an address lies in.
pub fn object(address: usize) -> Option<Object> {
    match linker() {
        Some(find) => of_linker(find, address),
        None => mappings::object(address),
    }
}

/// Whether the object that began at an address is still there, after some object was unloaded.
pub fn remains(start: usize) -> bool {
    if linker().is_none() {
        mappings::forget(start);
    }
    object(start).is_some()
}

/// glibc's function, if there is one.
fn linker() -> Option<Find> {
    let function: usize;
    // SAFETY: loads the symbol's address from the global offset table, 0 when there is no such function.
    unsafe {
        core::arch::asm!(
            "mov {}, qword ptr [rip + _dl_find_object@GOTPCREL]",
            out(reg) function,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    if function == 0 || MAPPINGS_ONLY.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: `function` is not 0, so it is glibc's `_dl_find_object`, which has had this type since glibc 2.35
    // introduced it.
    Some(unsafe { core::mem::transmute::<*const c_void, Find>(function as *const c_void) })
}

fn of_linker(find: Find, address: usize) -> Option<Object> {
    let mut found = DlFindObject {
        flags: 0,
        map_start: 0,
        map_end: 0,
        link_map: core::ptr::null::<LinkMap>(),
        eh_frame_header: core::ptr::null(),
        reserved: [0; 7],
    };
    // SAFETY: `_dl_find_object` accepts any address and writes to `found`, which has the size of glibc's structure.
    let nothing = unsafe { find(address as *const c_void, &mut found) } != 0;
    let (start, end, header) = (found.map_start, found.map_end, found.eh_frame_header as usize);
    if nothing || start >= end || found.link_map.is_null() {
        return None;
    }
    // SAFETY: `link_map` is not null, and the dynamic linker keeps it as long as the object is loaded, in which code is
    // being executed.
    let LinkMap { difference, name } = unsafe { found.link_map.read() };
    Some(Object { start, end, difference, name, header })
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::ffi::CStr;
    use std::path::{Path, PathBuf};
    use std::vec::Vec;

    use super::*;

    /// Addresses in the code of each loaded object but the kernel's own.
    fn code_of_each() -> Vec<usize> {
        unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, to: *mut c_void) -> c_int {
            // SAFETY: the C library passes its live description of an object, and `to` is the vector below.
            let (info, to) = unsafe { (&*info, &mut *to.cast::<Vec<usize>>()) };
            // SAFETY: the dynamic linker's headers of an object, this many.
            let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
            let code =
                headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & 1 != 0);
            // SAFETY: the dynamic linker's string.
            let name = unsafe { CStr::from_ptr(info.dlpi_name) };
            if !name.to_bytes().starts_with(b"linux-vdso") {
                to.extend(code.map(|header| (info.dlpi_addr + header.p_vaddr + header.p_memsz / 2) as usize));
            }
            0
        }
        let mut addresses = Vec::new();
        // SAFETY: `each` has the type that is called, and the vector outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut addresses).cast()) };
        addresses
    }

    fn path(object: &Object) -> PathBuf {
        let mut bytes = [0; 1024];
        let length = object.path(&mut bytes);
        let path = Path::new(std::str::from_utf8(&bytes[..length]).unwrap());
        path.canonicalize().unwrap()
    }

    #[test]
    fn both_ways_find_the_same_of_each_object() {
        let find = linker().expect("tests run under glibc 2.35 or later");
        let addresses = code_of_each();
        assert!(addresses.len() >= 4, "the program, the C library, libgcc, the dynamic linker");
        for address in addresses {
            let (theirs, ours) = (of_linker(find, address).unwrap(), mappings::object(address).unwrap());
            let parts = |object: &Object| (object.start, object.end, object.difference, object.header);
            assert_eq!(parts(&theirs), parts(&ours), "{}", path(&theirs).display());
            assert_eq!(path(&theirs), path(&ours));
        }
    }

    #[test]
    fn neither_way_finds_an_object_where_there_is_none() {
        let find = linker().unwrap();
        let heap = std::boxed::Box::new(5_u64);
        for address in [0, 8, &raw const *heap as usize, &raw const find as usize, usize::MAX - 4096] {
            assert!(of_linker(find, address).is_none() && mappings::object(address).is_none(), "{address:x}");
        }
    }
}
