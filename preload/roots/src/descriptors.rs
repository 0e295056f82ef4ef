//! The descriptors that a process has open: a ring of io_uring whose memory is the program's own has no mapping by which it
//! could be found.

use core::ffi::CStr;

use crate::buffer::Buffer;
use crate::entries;
use crate::kernel::{Error, File};

/// The calling thread's: threads may have tables of their own.
const LIST: &CStr = c"/proc/thread-self/fd";
/// What the link of a ring's descriptor begins with.
const RING: &[u8] = b"anon_inode:[io_uring]";

/// Whether a ring of requests is open. `scratch` has at least [`crate::entries::CAPACITY`] bytes.
///
/// # Errors
/// The descriptors cannot be read.
pub fn has_ring(scratch: &mut Buffer<u8>) -> Result<bool, Error> {
    let list = File::open(LIST)?;
    let mut found = false;
    entries::numbers::<Error>(&list, scratch, &mut |descriptor| {
        let mut link = [0; RING.len()];
        // A descriptor that is gone meanwhile is not this stopped program's.
        found |= list.link(descriptor, &mut link).is_ok_and(|length| link.get(..length) == Some(RING));
        Ok(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_found_while_it_is_open() {
        let mut text = Buffer::new();
        text.reserve(entries::CAPACITY).expect("memory");
        assert_eq!(has_ring(&mut text), Ok(false));
        // `struct io_uring_params`, all zero.
        let mut parameters = [0_u32; 30];
        // SAFETY: the kernel fills the structure, which is as long as the kernel's.
        let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) };
        if ring < 0 {
            return;
        }
        assert_eq!(has_ring(&mut text), Ok(true));
        // SAFETY: the test's own descriptor.
        unsafe { libc::close(ring as i32) };
        assert_eq!(has_ring(&mut text), Ok(false));
    }
}
