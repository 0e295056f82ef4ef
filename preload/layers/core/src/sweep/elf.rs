//! How far a loaded object reaches: from its program headers, which the loader has mapped with it.

use core::ops::Range;

/// The addresses of the object whose ELF header lies at `base`, from its first loadable segment to the end of its last.
/// `None`: that is no ELF header of this machine's width, or it names no segments.
///
/// # Safety
/// `base` is where the loader has mapped a shared object, as `dladdr` gives it.
pub unsafe fn extent(base: usize) -> Option<Range<usize>> {
    // SAFETY: the loader has mapped the header and the program headers, which is how it knows them itself.
    let (header, headers) = unsafe {
        let header = &*(base as *const libc::Elf64_Ehdr);
        if header.e_ident[..5] != *b"\x7fELF\x02"
            || header.e_phentsize as usize != size_of::<libc::Elf64_Phdr>()
        {
            return None;
        }
        let first = (base + header.e_phoff as usize) as *const libc::Elf64_Phdr;
        (header, core::slice::from_raw_parts(first, header.e_phnum as usize))
    };
    let slide = if header.e_type == libc::ET_EXEC { 0 } else { base };
    let segments = headers.iter().filter(|segment| segment.p_type == libc::PT_LOAD);
    let start = segments.clone().map(|segment| segment.p_vaddr as usize).min()?;
    let end = segments.map(|segment| (segment.p_vaddr + segment.p_memsz) as usize).max()?;
    Some(slide + (start & !4095)..slide + end.next_multiple_of(4096))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_reaches_over_its_functions_and_data() {
        // SAFETY: dladdr fills the structure; the base is a loaded object's.
        let (range, data) = unsafe {
            let mut info: libc::Dl_info = core::mem::zeroed();
            let function = libc::malloc as *const core::ffi::c_void;
            assert_ne!(libc::dladdr(function, &mut info), 0);
            let range = extent(info.dli_fbase as usize).expect("an object");
            assert!(range.contains(&(function as usize)));
            let data = libc::dlsym(libc::RTLD_DEFAULT, c"stdout".as_ptr()) as usize;
            (range, data)
        };
        assert!(range.contains(&data));
        assert!(!range.contains(&(extent as *const () as usize)));
        assert_eq!(range.start % 4096, 0);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let page = [0_u64; 512];
        // SAFETY: the page is readable, and its first bytes are not those of an object.
        assert_eq!(unsafe { extent(page.as_ptr() as usize) }, None);
    }
}
