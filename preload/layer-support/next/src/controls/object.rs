//! Finds functions that a loaded object exports, in its own tables.
//!
//! `dlsym` would do, but if it fails it allocates an error message from the very manager whose blocks must not change.
//! The tables are those of the System V ABI (gABI 5) and GNU's hash table of symbols.

use core::ffi::CStr;
use core::slice;

use libc::{Elf64_Phdr, Elf64_Sym, dl_phdr_info};

const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const STT_FUNC: u8 = 2;

/// The address of the function of this name that the object exports.
///
/// # Safety
/// `info` is the argument of a callback of `dl_iterate_phdr` that is running.
pub unsafe fn function(info: &dl_phdr_info, name: &[u8]) -> Option<usize> {
    // SAFETY: by this function's contract the object is loaded, so the loader has mapped and processed its program
    // headers and the tables that its dynamic section names: they are well-formed.
    unsafe {
        let headers: &[Elf64_Phdr] = slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        let base = info.dlpi_addr as usize;
        let dynamic = headers.iter().find(|header| header.p_type == PT_DYNAMIC)?;
        let mut entry = (base + dynamic.p_vaddr as usize) as *const [u64; 2];
        let (mut strings, mut symbols, mut hash) = (0, 0, 0);
        while (*entry)[0] != 0 {
            let [tag, value] = *entry;
            // glibc relocates these in place, but not those of the kernel's own object.
            let address = if (value as usize) < base { base + value as usize } else { value as usize };
            match tag {
                DT_STRTAB => strings = address,
                DT_SYMTAB => symbols = address,
                DT_GNU_HASH => hash = address,
                _ => {}
            }
            entry = entry.add(1);
        }
        if strings == 0 || symbols == 0 || hash == 0 {
            return None;
        }
        let symbols = symbols as *const Elf64_Sym;
        let mut index = first_of_chain(hash as *const u32, name)?;
        loop {
            let (symbol, chained) = (&*symbols.add(index.0), *index.1);
            let called = CStr::from_ptr((strings + symbol.st_name as usize) as *const _).to_bytes();
            if called == name && symbol.st_shndx != 0 && symbol.st_info & 15 == STT_FUNC {
                return Some(base + symbol.st_value as usize);
            }
            // The lowest bit ends the chain.
            if chained & 1 != 0 {
                return None;
            }
            index = (index.0 + 1, index.1.add(1));
        }
    }
}

/// The first symbol whose name has the same bucket, and its entry in the table's chains.
unsafe fn first_of_chain(table: *const u32, name: &[u8]) -> Option<(usize, *const u32)> {
    let hash = name.iter().fold(5381u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
    // SAFETY: `function` passes the object's DT_GNU_HASH table, which consists of: number of buckets, first hashed
    // symbol, 64-bit words of the filter, a shift; then the filter, the buckets, the chains. The reads stay within
    // these.
    unsafe {
        let (buckets, first, filter) = (*table, *table.add(1) as usize, *table.add(2) as usize);
        if buckets == 0 {
            return None;
        }
        let bucket = table.add(4 + 2 * filter);
        let index = *bucket.add((hash % buckets) as usize) as usize;
        // An empty bucket.
        if index < first {
            return None;
        }
        Some((index, bucket.add(buckets as usize + index - first)))
    }
}
