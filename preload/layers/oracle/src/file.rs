//! The recorded file: read piece by piece, opened each time, and its tables copied once.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::slice;

use heaptoll_layer_core::oracle::reader::Source;
use heaptoll_next::memory;
use heaptoll_oracle_file::{HEADER_BYTES, Header, Section, UNREACHABLE_BYTES, Unreachable};
use heaptoll_runtime::system_call;

/// Bytes of a path, its end included.
pub const PATH: usize = 4096;

/// A file by its path.
#[derive(Clone, Copy)]
pub struct Path {
    text: [u8; PATH],
}

impl Path {
    /// `None` for a path that is too long.
    pub fn new(path: &[u8]) -> Option<Path> {
        let mut text = [0; PATH];
        text[..PATH - 1].get_mut(..path.len())?.copy_from_slice(path);
        Some(Path { text })
    }

    fn open(&self) -> Option<c_int> {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) as usize;
        let arguments = [libc::AT_FDCWD as usize, self.text.as_ptr() as usize, flags, 0, 0, 0];
        // SAFETY: the path ends with a zero byte.
        c_int::try_from(unsafe { system_call(libc::SYS_openat, arguments) }).ok().filter(|file| *file >= 0)
    }

    /// Bytes of the file.
    fn length(&self) -> Option<u64> {
        let file = self.open()?;
        // SAFETY: the file was opened here; `lseek` takes no pointers.
        let length =
            unsafe { system_call(libc::SYS_lseek, [file as usize, 0, libc::SEEK_END as usize, 0, 0, 0]) };
        close(file);
        u64::try_from(length).ok()
    }
}

fn close(file: c_int) {
    // SAFETY: the caller opened the file and does not use it any more.
    unsafe { system_call(libc::SYS_close, [file as usize, 0, 0, 0, 0, 0]) };
}

/// A descriptor exists only while the layer has the thread, so the program's own have the same numbers as always.
impl Source for Path {
    fn read(&mut self, at: u64, into: &mut [u8]) -> bool {
        let Some(file) = self.open() else { return false };
        let mut done = 0;
        while done < into.len() {
            let rest = &mut into[done..];
            let arguments = [file as usize, rest.as_mut_ptr() as usize, rest.len(), at as usize + done, 0, 0];
            // SAFETY: the kernel writes to `rest`, at most its length.
            match unsafe { system_call(libc::SYS_pread64, arguments) } {
                count if count > 0 => done += count as usize,
                error if error == -(libc::EINTR as isize) => {}
                _ => break,
            }
        }
        close(file);
        done == into.len()
    }
}

/// The header, checked against the file's length.
pub fn header(mut path: Path) -> Option<Header> {
    let length = path.length()?;
    let mut bytes = [0; HEADER_BYTES];
    if !path.read(0, &mut bytes) {
        return None;
    }
    Header::of(&bytes, length).ok()
}

/// The schedule of unreachability, checked against the file's length; `None` where there is none.
pub fn unreachable(mut path: Path, header: &Header) -> Option<Unreachable> {
    let length = path.length()?;
    let mut bytes = [0; UNREACHABLE_BYTES];
    if !header.has_unreachable || !path.read(HEADER_BYTES as u64, &mut bytes) {
        return None;
    }
    Unreachable::of(&bytes, length).ok()
}

/// A copy of a section of words.
pub fn words(path: Path, section: Section) -> Option<&'static [u64]> {
    let words = usize::try_from(section.count).ok()?;
    let memory = table::<u64>(words)?;
    // SAFETY: `table` mapped so many words, which nothing else uses yet.
    let bytes = unsafe { slice::from_raw_parts_mut(memory.cast::<u8>(), words * 8) };
    let mut path = path;
    // SAFETY: the memory is never unmapped, and nothing writes to it any more.
    path.read(section.start, bytes).then(|| unsafe { slice::from_raw_parts(memory, words) })
}

/// A copy of a section of bytes.
pub fn bytes(path: Path, section: Section) -> Option<&'static [u8]> {
    let length = usize::try_from(section.count).ok()?;
    let memory = table::<u8>(length)?;
    // SAFETY: `table` mapped so many bytes, which nothing else uses yet.
    let bytes = unsafe { slice::from_raw_parts_mut(memory, length) };
    let mut path = path;
    path.read(section.start, bytes).then_some(&*bytes)
}

/// A table of cells, all zero.
///
/// # Safety
/// All zeroes are a value of `T`.
pub unsafe fn cells<T>(count: usize) -> Option<&'static [Cell<T>]> {
    let memory = table::<Cell<T>>(count)?;
    // SAFETY: `table` mapped so many zeroed cells, which are never unmapped; by this function's contract zeroes are valid.
    Some(unsafe { slice::from_raw_parts(memory, count) })
}

/// Zeroed memory for so many values.
fn table<T>(count: usize) -> Option<*mut T> {
    let bytes = count.checked_mul(size_of::<T>())?;
    if bytes == 0 {
        return Some(ptr::dangling_mut());
    }
    memory::map(bytes).map(|memory: ptr::NonNull<c_void>| memory.cast().as_ptr())
}
