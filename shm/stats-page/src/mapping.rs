//! The page as mapped into a process, checked once.
//!
//! Every process of a run maps the page, and any of them may be hostile or write through a corrupted pointer. So the
//! figures from which addresses are computed are copied when the page is mapped and never read from it again; the
//! number of a claim, which is read from it later, is compared with the copy.

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;

use crate::layout::{HEADER_BYTES, Header, MAGIC, SLOT_BYTES, Slot, VERSION};
use crate::shared;

/// A page is made of memory pages of this size, each of which holds whole slots.
const PAGE_BYTES: usize = 4096;
const _: () = assert!(HEADER_BYTES.is_multiple_of(PAGE_BYTES) && PAGE_BYTES.is_multiple_of(SLOT_BYTES));

/// A mapped page, which normally stays mapped.
#[derive(Debug, Clone, Copy)]
pub struct Mapping {
    /// The first byte. The mapping holds a header and `slots` slots.
    header: *mut Header,
    /// The number of slots when it was checked: never 0.
    slots: u32,
}

impl Mapping {
    /// Opens and maps the page at `path`; `None` when there is none, it is not one, or the file system is full.
    pub fn open(path: &CStr) -> Option<Mapping> {
        let file = shared::open(path, libc::O_RDWR)?;
        // SAFETY: `file` is an open descriptor that is closed once, here; all zeroes is a valid stat, to which fstat
        // writes; with a null address mmap maps memory that nothing uses.
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
        // SAFETY: `map` is the mapping just made, of at least a header, whose memory `populate` has reserved.
        let slots = if populate(map) { unsafe { slots_of(map.cast(), length) } } else { None };
        if slots.is_none() {
            // SAFETY: mmap returned this mapping above, and no pointer to it has been published.
            unsafe { libc::munmap(map, length) };
        }
        Some(Mapping { header: map.cast(), slots: slots? })
    }

    /// Reassembles a mapping that [`Mapping::open`] returned.
    ///
    /// # Safety
    /// `header` and `slots` are the parts of one mapping that has not been closed.
    pub unsafe fn from_parts(header: *mut Header, slots: u32) -> Mapping {
        assert_internal!(!header.is_null() && slots > 0, "a mapping has a header and slots");
        Mapping { header, slots }
    }

    /// Its first byte and its number of slots.
    pub fn parts(self) -> (*mut Header, u32) {
        (self.header, self.slots)
    }

    /// Unmaps it.
    ///
    /// # Safety
    /// Neither it nor a slot of it is used afterwards.
    pub unsafe fn close(self) {
        // SAFETY: the mapping has at least this length, and by this function's contract it is not used any more. A rest
        // after its slots stays mapped and is never touched.
        unsafe { libc::munmap(self.header.cast(), HEADER_BYTES + self.slots as usize * SLOT_BYTES) };
    }

    /// Claims the next slot; `None` when there is none left or no memory for it. By the rules only the caller writes to
    /// it.
    pub fn claim(self) -> Option<&'static Slot> {
        // SAFETY: `open` mapped the header and populated its memory; callers of `close` use the mapping no more.
        let number = unsafe { (*self.header).claimed.fetch_add(1, Ordering::AcqRel) };
        if number >= self.slots {
            return None;
        }
        let at = HEADER_BYTES + number as usize * SLOT_BYTES;
        assert_internal!(
            at + SLOT_BYTES <= HEADER_BYTES + self.slots as usize * SLOT_BYTES,
            "a claimed slot lies in the page"
        );
        // SAFETY: the mapping holds `self.slots` slots, of which `number` is one: both numbers are private copies.
        let slot = unsafe { self.header.cast::<u8>().add(at) };
        if !populate(slot.map_addr(|address| address & !(PAGE_BYTES - 1)).cast()) {
            return None;
        }
        assert_internal!(slot.cast::<Slot>().is_aligned(), "a claimed slot is aligned");
        // SAFETY: `slot` is in the mapping, as computed from `number` above, and the mapping stays; it is aligned,
        // since the mapping and SLOT_BYTES are; a slot consists of atomics, so concurrent writers are allowed.
        Some(unsafe { &*slot.cast::<Slot>() })
    }
}

/// The slots of a page of `length` bytes; `None` when it is not one.
///
/// # Safety
/// `header` is a mapping of `length` bytes, at least HEADER_BYTES, whose first page has memory.
unsafe fn slots_of(header: *mut Header, length: usize) -> Option<u32> {
    // SAFETY: by this function's contract the header is mapped and has memory; each member is atomic and read once.
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

/// Reserves the memory of a page of the mapping; returns whether there is any. A store to a page that has none, because
/// the file system is full or the file was truncated, raises SIGBUS.
fn populate(page: *mut c_void) -> bool {
    // SAFETY: callers pass a page of a mapping that is open for writing; where the file is shorter the kernel returns
    // an error.
    unsafe { heaptoll_process::populate::populate(page.cast(), PAGE_BYTES) }.is_ok()
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

    /// A page of [`SLOTS`] slots, mapped; and its file, through which an attacker writes.
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
    fn a_page_that_is_truncated_after_it_was_checked_gives_no_slot_and_no_sigbus() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mapping, file, _) = page(&folder);
        file.set_len(HEADER_BYTES as u64).expect("truncated");
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
            file.set_len(length as u64).expect("truncated");
            assert!(Mapping::open(&name).is_none(), "{length} bytes");
        }
    }

    #[test]
    fn a_fifo_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = CString::new(folder.path().join("fifo").as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: mkfifo reads `name`, a C string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        assert!(Mapping::open(&name).is_none());
        assert_eq!(shared::open(&name, libc::O_WRONLY | libc::O_APPEND), None);
    }

    #[test]
    fn a_users_own_file_has_the_users_number_after_its_name() {
        let mut bytes = [0xff; 16];
        for user in [0, 9, 10, 65534, u32::MAX] {
            let own = shared::of_user(c"/a/b", user, &mut bytes).expect("fits");
            assert_eq!(own.to_bytes(), ["/a/b", ".", &user.to_string()].concat().as_bytes());
        }
        let long: Vec<u8> = [b'x'; 13].to_vec();
        assert_eq!(shared::of_user(&CString::new(long).expect("no NUL"), 42, &mut bytes), None, "17 bytes");
    }
}
