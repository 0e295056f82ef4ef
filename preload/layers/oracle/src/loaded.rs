//! Which object file an address of code lies in, by the loader's own list.

use core::ffi::{CStr, c_char, c_void};

use heaptoll_oracle_core::sites::Loaded;

/// `struct link_map` of glibc's `link.h`, as far as it is public.
#[repr(C)]
struct LinkMap {
    /// Difference between addresses in memory and in the file.
    difference: usize,
    /// Path of the file; empty for the program.
    name: *const c_char,
}

/// Request of `dladdr1` for the link map.
const RTLD_DL_LINKMAP: i32 = 2;

unsafe extern "C" {
    fn dladdr1(address: *const c_void, info: *mut libc::Dl_info, extra: *mut *mut c_void, flags: i32) -> i32;
}

/// The objects of this process.
pub struct Process;

impl Loaded for Process {
    fn find(&self, address: usize, found: &mut dyn FnMut(&[u8], u64)) {
        // SAFETY: an all-zero Dl_info is valid for dladdr1 to write to; the link map that it gives is one of the loader's,
        // whose name is a C string or null, and stays while code of the object runs.
        unsafe {
            let mut info: libc::Dl_info = core::mem::zeroed();
            let mut map: *mut c_void = core::ptr::null_mut();
            if dladdr1(address as *const c_void, &mut info, &mut map, RTLD_DL_LINKMAP) == 0 {
                return;
            }
            let Some(map) = map.cast::<LinkMap>().as_ref() else { return };
            let path = if map.name.is_null() { b"" } else { CStr::from_ptr(map.name).to_bytes() };
            let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
            found(name, address.wrapping_sub(map.difference) as u64);
        }
    }
}
