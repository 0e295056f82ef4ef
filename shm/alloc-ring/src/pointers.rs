//! Pointers to the parts of a mapping of the file, for both sides. They are computed, not dereferenced, here.

use crate::atomic::AtomicU64;
use crate::layout::{Control, Exec, Geometry, Header, Process};

/// An entry of the process table.
pub(crate) fn process_entry(header: *const Header, index: usize) -> *const Process {
    // The table follows the header.
    header.wrapping_add(1).cast::<Process>().wrapping_add(index)
}

/// A ring's control words.
pub(crate) fn control(header: *const Header, geometry: Geometry, ring: usize) -> *const Control {
    header.cast::<u8>().wrapping_add(geometry.directory()).cast::<Control>().wrapping_add(ring)
}

/// An entry of the table of execs.
pub(crate) fn exec(header: *const Header, geometry: Geometry, index: usize) -> *const Exec {
    header.cast::<u8>().wrapping_add(geometry.execs()).cast::<Exec>().wrapping_add(index)
}

/// A ring's first word.
pub(crate) fn ring_words(header: *const Header, geometry: Geometry, ring: usize) -> *mut AtomicU64 {
    header
        .cast::<u8>()
        .wrapping_add(geometry.first_ring() + ring * geometry.ring_bytes())
        .cast_mut()
        .cast::<AtomicU64>()
}
