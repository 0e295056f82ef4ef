//! The header of an object in memory: how far it extends, and where its unwind tables are.

use core::ops::Range;

use crate::system::PAGE;

/// What an object's header states about it.
pub struct Described {
    /// Its memory, as the dynamic linker counts it: from its first page to the end of its last segment.
    pub range: Range<usize>,
    /// Its addresses in memory less those in its file.
    pub difference: usize,
    /// Its `.eh_frame_hdr`; 0: none.
    pub header: usize,
}

/// The object whose file's beginning is mapped at `first`, if a segment of it has the file's byte `offset` at `address`.
///
/// # Safety
/// `first` can be read, and stays mapped during the call.
pub unsafe fn described(first: Range<usize>, address: usize, offset: usize) -> Option<Described> {
    // SAFETY: by this function's contract; a program's code is not written to.
    let bytes = unsafe { core::slice::from_raw_parts(first.start as *const u8, first.end - first.start) };
    of_bytes(bytes, address, offset)
}

fn of_bytes(bytes: &[u8], address: usize, offset: usize) -> Option<Described> {
    let file: libc::Elf64_Ehdr = read(bytes, 0)?;
    if file.e_ident[..5] != [0x7f, b'E', b'L', b'F', libc::ELFCLASS64]
        || usize::from(file.e_phentsize) != size_of::<libc::Elf64_Phdr>()
    {
        return None;
    }
    let start = bytes.as_ptr() as usize;
    let headers = || {
        (0..usize::from(file.e_phnum)).map_while(|n| {
            let place = n.checked_mul(size_of::<libc::Elf64_Phdr>())?.checked_add(file.e_phoff as usize)?;
            read::<libc::Elf64_Phdr>(bytes, place)
        })
    };
    let loaded = || headers().filter(|header| header.p_type == libc::PT_LOAD);
    let page = |place: u64| place as usize & !(PAGE - 1);
    let head = loaded().find(|header| page(header.p_offset) == 0)?;
    let difference = start.wrapping_sub(page(head.p_vaddr));
    let fits = |header: libc::Elf64_Phdr| {
        let within = address.wrapping_sub(difference).wrapping_sub(page(header.p_vaddr));
        within < (header.p_memsz as usize).saturating_add(PAGE)
            && page(header.p_offset).wrapping_add(within) == offset
    };
    if !loaded().any(fits) {
        return None;
    }
    let low = loaded().map(|header| page(header.p_vaddr)).min()?;
    let high = loaded().map(|header| header.p_vaddr.saturating_add(header.p_memsz) as usize).max()?;
    let tables = headers().find(|header| header.p_type == libc::PT_GNU_EH_FRAME);
    Some(Described {
        range: difference.wrapping_add(low)..difference.wrapping_add(high),
        difference,
        header: tables.map_or(0, |header| difference.wrapping_add(header.p_vaddr as usize)),
    })
}

/// A structure of plain numbers at a place in a file.
fn read<T: Copy>(bytes: &[u8], place: usize) -> Option<T> {
    let part = bytes.get(place..place.checked_add(size_of::<T>())?)?;
    // SAFETY: `part` has the size of `T`, one of libc's two ELF headers, for which every bit pattern is valid.
    Some(unsafe { part.as_ptr().cast::<T>().read_unaligned() })
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;
    use std::vec::Vec;

    use super::*;

    fn own() -> Vec<u8> {
        let mut file = std::fs::read("/proc/self/exe").unwrap();
        file.truncate(PAGE);
        file
    }

    #[test]
    fn an_address_that_is_not_where_the_file_has_it_belongs_to_another_object() {
        let bytes = own();
        let start = bytes.as_ptr() as usize;
        assert!(of_bytes(&bytes, start + 100, 100).is_some());
        assert!(of_bytes(&bytes, start + 100, 100 + PAGE).is_none());
        assert!(of_bytes(&bytes, start.wrapping_sub(PAGE), 100).is_none());
    }

    proptest! {
        #[test]
        fn damaged_headers_are_read_or_refused(
            changes in prop::collection::vec((0..1000_usize, any::<u8>()), 1..20),
            length in 0..PAGE,
        ) {
            let mut bytes = own();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            let start = bytes.as_ptr() as usize;
            let _ = of_bytes(&bytes[..length], start + 100, 100);
        }
    }
}
