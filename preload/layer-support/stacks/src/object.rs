//! An object in memory, as walks and recordings need it.

use core::ffi::{CStr, c_char};

use crate::system;

/// An object in memory.
#[derive(Clone, Copy)]
pub struct Object {
    /// Its first byte.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
    /// Its addresses in memory less those in its file.
    pub difference: usize,
    /// Null, or a C string that stays as long as the object is loaded; empty for the program itself.
    pub name: *const c_char,
    /// Its table of tables, `.eh_frame_hdr`; 0: none.
    pub header: usize,
}

impl Object {
    /// The path of its file, as far as `into` holds it; returns its length. The object must still be loaded.
    pub fn path(&self, into: &mut [u8]) -> usize {
        // SAFETY: null, or a string that stays as long as the object is loaded.
        let name = if self.name.is_null() { c"" } else { unsafe { CStr::from_ptr(self.name) } }.to_bytes();
        if name.is_empty() {
            // The program itself.
            return system::read_link(c"/proc/self/exe", into);
        }
        let length = name.len().min(into.len());
        into[..length].copy_from_slice(&name[..length]);
        length
    }
}
