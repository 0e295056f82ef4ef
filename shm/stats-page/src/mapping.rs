//! The page in a process's memory, checked once.
//!
//! Every process of a run maps the page, and any of them may be hostile or have a wild pointer. So what an address
//! follows from is copied when the page is mapped and never read from it again; what is read from it later, the number
//! of a claim, is compared with the copy.

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::Ordering;

use crate::layout::{HEADER_BYTES, Header, MAGIC, SLOT_BYTES, Slot, VERSION};
use crate::shared;

/// A page is made of memory pages of this size, each of which holds whole slots.
const PAGE_BYTES: usize = 4096;
const _: () = assert!(HEADER_BYTES.is_multiple_of(PAGE_BYTES) && PAGE_BYTES.is_multiple_of(SLOT_BYTES));

/// A mapped page, for good.
#[derive(Debug, Clone, Copy)]
pub struct Mapping {
    /// Where it begins. The mapping holds a header and `slots` slots.
    header: *mut Header,
    /// How many slots there were when it was checked: never 0.
    slots: u32,
}

impl Mapping {
    /// Opens and maps the page at `path`; `None` when there is none, it is not one, or the file system is full.
    pub fn open(path: &CStr) -> Option<Mapping> {
        let file = shared::open(path, libc::O_RDWR)?;
        // SAFETY: an open descriptor that is closed once, here; all zeroes is a valid stat, and a valid place for
        // fstat's result; the mapping is new.
        let (map, length) = unsafe {
            let mut status: libc::stat = core::mem::zeroed();
            let known = libc::fstat(file, &mut status) == 0;
            let length = if known { usize::try_from(status.st_size).unwrap_or(0) } else { 0 };
            let map = if length >= HEADER_BYTES {
                let access = libc::PROT_READ | libc::PROT_WRITE;
                libc::mmap(ptr::null_mut(), length, access, libc::MAP_SHARED, file, 0)
            } else {
                libc::MAP_FAILED
            };
            libc::close(file);
            (map, length)
        };
        if map == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the mapping just made, of at least a header, with memory behind the header.
        let slots = if populate(map) { unsafe { slots_of(map.cast(), length) } } else { None };
        if slots.is_none() {
            // SAFETY: our own mapping, which nobody else has seen.
            unsafe { libc::munmap(map, length) };
        }
        Some(Mapping { header: map.cast(), slots: slots? })
    }

    /// The mapping that [`Mapping::open`] gave, put together again.
    ///
    /// # Safety
    /// `header` and `slots` are those of one mapping that is still there.
    pub unsafe fn from_parts(header: *mut Header, slots: u32) -> Mapping {
        Mapping { header, slots }
    }

    /// Where it begins, and how many slots it has.
    pub fn parts(self) -> (*mut Header, u32) {
        (self.header, self.slots)
    }

    /// Gives the mapping back.
    ///
    /// # Safety
    /// Nobody uses it or a slot of it.
    pub unsafe fn close(self) {
        // SAFETY: the mapping has at least this length, and is not used by the caller's promise. What of it is longer
        // than its slots stays mapped and is never touched.
        unsafe { libc::munmap(self.header.cast(), HEADER_BYTES + self.slots as usize * SLOT_BYTES) };
    }

    /// Claims the next slot; `None` when there is none left or no memory for it. By the rules it is the caller's alone.
    pub fn claim(self) -> Option<&'static Slot> {
        // SAFETY: the header is in the mapping, which stays.
        let number = unsafe { (*self.header).claimed.fetch_add(1, Ordering::AcqRel) };
        if number >= self.slots {
            return None;
        }
        let at = HEADER_BYTES + number as usize * SLOT_BYTES;
        // SAFETY: the mapping holds `self.slots` slots, of which `number` is one: both numbers are private copies.
        let slot = unsafe { self.header.cast::<u8>().add(at) };
        if !populate(slot.map_addr(|address| address & !(PAGE_BYTES - 1)).cast()) {
            return None;
        }
        // SAFETY: in the mapping, as above, which stays; aligned, since the mapping and SLOT_BYTES are; a slot is all
        // atomics, so that it does not matter who else writes to it.
        Some(unsafe { &*slot.cast::<Slot>() })
    }
}

/// The slots of a page of `length` bytes; `None` when it is not one.
///
/// # Safety
/// `header` is a mapping of so many bytes, HEADER_BYTES or more.
unsafe fn slots_of(header: *mut Header, length: usize) -> Option<u32> {
    // SAFETY: the header is in the mapping by the caller's promise; each member is read once.
    let (page, slots) = unsafe {
        let page = (*header).magic.load(Ordering::Acquire) == MAGIC
            && (*header).version.load(Ordering::Relaxed) == VERSION
            && (*header).header_bytes.load(Ordering::Relaxed) as usize == HEADER_BYTES
            && (*header).slot_bytes.load(Ordering::Relaxed) as usize == SLOT_BYTES;
        (page, (*header).slots.load(Ordering::Relaxed))
    };
    let fits = (length - HEADER_BYTES) / SLOT_BYTES >= slots as usize;
    (page && fits && slots > 0).then_some(slots)
}

/// Gives a memory page of the mapping its memory; whether there is any. A store to one that has none, because the file
/// system is full or the file has been cut, is a SIGBUS.
fn populate(page: *mut c_void) -> bool {
    // SAFETY: a page of the mapping, which the kernel looks at itself.
    unsafe { heaptoll_populate::populate(page.cast(), PAGE_BYTES) }.is_ok()
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::ffi::CString;
    use std::fs::{File, OpenOptions};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::FileExt;
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;

    const SLOTS: u32 = 16;

    /// A page of [`SLOTS`] slots, mapped; and its file, through which an enemy writes.
    fn page(folder: &tempfile::TempDir) -> (Mapping, File, CString) {
        let path =
            folder.path().join(std::format!("page{}", std::fs::read_dir(folder).expect("read").count()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("made");
        file.set_len((HEADER_BYTES + SLOTS as usize * SLOT_BYTES) as u64).expect("sized");
        let halves = [VERSION, HEADER_BYTES as u32, SLOT_BYTES as u32, SLOTS].map(u32::to_ne_bytes).concat();
        file.write_all_at(&MAGIC.to_ne_bytes(), 0)
            .and_then(|()| file.write_all_at(&halves, 8))
            .expect("written");
        let name = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
        (Mapping::open(&name).expect("it is a page"), file, name)
    }

    fn set(file: &File, slots: u32, claimed: u32) {
        file.write_all_at(&[slots.to_ne_bytes(), claimed.to_ne_bytes()].concat(), 20).expect("written");
    }

    #[test]
    fn a_header_that_changes_after_it_was_checked_leads_nowhere_outside_of_the_mapping() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mapping, file, _) = page(&folder);
        let first = mapping.header.addr() + HEADER_BYTES;
        // The attack: base + 0x700_0000 * 512 + 4096 was written to.
        for claimed in [SLOTS - 1, SLOTS, SLOTS + 1, 0x700_0000, i32::MAX as u32, u32::MAX - 1, u32::MAX] {
            for slots in [0, 1, SLOTS, SLOTS + 1, 0x700_0001, u32::MAX] {
                set(&file, slots, claimed);
                let slot = mapping.claim().map(|slot| ptr::from_ref(slot).addr());
                let right = (claimed < SLOTS).then_some(first + claimed as usize * SLOT_BYTES);
                assert_eq!(slot, right, "{slots} slots, {claimed} claimed");
            }
        }
    }

    #[test]
    fn a_page_that_is_cut_after_it_was_checked_gives_no_slot_and_no_sigbus() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mapping, file, _) = page(&folder);
        file.set_len(HEADER_BYTES as u64).expect("cut");
        assert!(mapping.claim().is_none());
    }

    #[test]
    fn what_is_no_page_is_not_mapped() {
        let folder = tempfile::tempdir().expect("a folder");
        let (_, file, name) = page(&folder);
        for slots in [0, SLOTS + 1, u32::MAX] {
            set(&file, slots, 0);
            assert!(Mapping::open(&name).is_none(), "{slots} slots");
        }
        set(&file, SLOTS, 0);
        assert!(Mapping::open(&name).is_some());
        for length in [0, 1, HEADER_BYTES - 1, HEADER_BYTES + SLOT_BYTES] {
            file.set_len(length as u64).expect("cut");
            assert!(Mapping::open(&name).is_none(), "{length} bytes");
        }
    }

    #[test]
    fn a_fifo_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = CString::new(folder.path().join("fifo").as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: a C string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        assert!(Mapping::open(&name).is_none());
        assert_eq!(shared::open(&name, libc::O_WRONLY | libc::O_APPEND), None);
    }

    #[test]
    fn a_users_own_file_has_the_users_number_behind_its_name() {
        let mut bytes = [0xff; 16];
        for user in [0, 9, 10, 65534, u32::MAX] {
            let own = shared::of_user(c"/a/b", user, &mut bytes).expect("fits");
            assert_eq!(own.to_bytes(), ["/a/b", ".", &user.to_string()].concat().as_bytes());
        }
        let long: Vec<u8> = [b'x'; 13].to_vec();
        assert_eq!(shared::of_user(&CString::new(long).expect("no NUL"), 42, &mut bytes), None, "17 bytes");
    }
}
