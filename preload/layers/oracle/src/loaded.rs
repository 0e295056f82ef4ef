//! Which object file an address of code lies in, by the loader's own list.

use core::ffi::{CStr, c_char, c_void};
use core::fmt::Write;

use heaptoll_layer_core::oracle::sites::Loaded;
use heaptoll_next::stderr_line::StderrLine;
use heaptoll_oracle_file::NameWord;

/// `struct link_map` of glibc's `link.h`, as far as it is public.
#[repr(C)]
struct LinkMap {
    /// Difference between addresses in memory and in the file.
    difference: usize,
    /// Path of the file; empty for the program itself.
    name: *const c_char,
}

/// Request of `dladdr1` for the link map.
const RTLD_DL_LINKMAP: i32 = 2;

unsafe extern "C" {
    fn dladdr1(address: *const c_void, info: *mut libc::Dl_info, extra: *mut *mut c_void, flags: i32) -> i32;
}

/// Bytes of a path, at most.
const PATH: usize = 4096;

/// The objects of this process.
pub struct Process;

/// Calls `found` with the path of the program's own file, for which the loader has no name.
fn with_program(found: impl FnOnce(&[u8])) {
    with_target(c"/proc/self/exe", found);
}

/// Calls `found` with what a link leads to.
fn with_target(link: &CStr, found: impl FnOnce(&[u8])) {
    let mut path = [0u8; PATH];
    // SAFETY: the kernel writes at most as many bytes as the array has.
    let length = unsafe { libc::readlink(link.as_ptr(), path.as_mut_ptr().cast(), PATH) };
    found(&path[..usize::try_from(length).unwrap_or(0)]);
}

/// Calls `found` with the path of a file without links in it, by which it was recorded: a library is mostly loaded by the
/// name of a link. The descriptor that the kernel names it by is open only while the layer has the thread.
fn with_real_path(path: &CStr, found: impl FnOnce(&[u8])) {
    // SAFETY: the path is a C string; the descriptor is closed below.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    if file < 0 {
        return found(path.to_bytes());
    }
    let mut link = StderrLine::new();
    let begins = link.as_bytes().len();
    // A number has at most ten digits.
    let _ = write!(link, "/proc/self/fd/{file}\0");
    match CStr::from_bytes_until_nul(&link.as_bytes()[begins..]) {
        Ok(link) => with_target(link, found),
        Err(_) => found(path.to_bytes()),
    }
    // SAFETY: it was opened here.
    unsafe { libc::close(file) };
}

/// Whether this process runs the program of the file: the first of its object files.
pub fn is_program(objects: &[u64], text: &[u8]) -> bool {
    let Some(name) = objects.first().map(|word| NameWord::of(*word)) else { return false };
    let start = name.start as usize;
    let recorded = text.get(start..start.saturating_add(name.length as usize));
    let mut same = false;
    with_program(|path| same = recorded == Some(last_component(path)));
    same
}

fn last_component(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

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
            let path = if map.name.is_null() { c"" } else { CStr::from_ptr(map.name) };
            let address = address.wrapping_sub(map.difference) as u64;
            let found = |path: &[u8]| found(last_component(path), address);
            if path.is_empty() { with_program(found) } else { with_real_path(path, found) }
        }
    }
}
