//! A process's file: its sums by call stack, in memory that it shares with the tool.
//!
//! No page is touched before it is reserved: a store to one for which there is no memory would end the program.

use core::ffi::CStr;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use heaptoll_process::populate::populate;
use heaptoll_sampling::layout::{
    FILE_BYTES, GROUP, Header, MAGIC, MOST_OBJECTS, MOST_SITES, OBJECTS_AT, ObjectRecord, PAGE, PATH,
    SITES_AT, SiteRecord, VERSION,
};

use crate::sample::control::RunControl;
use crate::sample::system;

const GROUPS: usize = MOST_SITES / GROUP;
const RESERVED: u8 = 1;
const REFUSED: u8 = 2;

/// What a process knows of its file. All zero: it has none yet.
#[repr(C)]
pub struct ProcessFile {
    at: AtomicPtr<u8>,
    /// Which groups of sites have memory.
    groups: [AtomicU8; GROUPS],
}

/// A file in use.
#[derive(Clone, Copy)]
pub struct Records<'a> {
    at: NonNull<u8>,
    groups: &'a [AtomicU8; GROUPS],
}

/// How many files of one process number are tried: one an `exec`.
const MOST_IMAGES: u32 = 100_000;

/// `PID.N` as text.
fn name(pid: u32, image: u32, into: &mut [u8; 24]) -> usize {
    let mut used = 0;
    for (number, end) in [(pid, Some(b'.')), (image, None)] {
        let mut digits = [0; 10];
        let (mut first, mut rest) = (digits.len(), number);
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        for byte in digits[first..].iter().copied().chain(end) {
            into[used] = byte;
            used += 1;
        }
    }
    used
}

/// Makes a file that no image before has made.
fn create(control: &RunControl, pid: u32) -> Option<NonNull<u8>> {
    for image in 1..MOST_IMAGES {
        let mut text = [0; 24];
        let used = name(pid, image, &mut text);
        let made = control
            .with_path(&text[..used], |path| Some(system::open(path, libc::O_CREAT | libc::O_EXCL)))?;
        return match made {
            Ok(file) if system::set_length(&file, FILE_BYTES) => system::map(&file, FILE_BYTES),
            Err(error) if error == -(libc::EEXIST as isize) => continue,
            _ => None,
        };
    }
    None
}

impl ProcessFile {
    /// The file, if there is one.
    pub fn records(&self) -> Option<Records<'_>> {
        NonNull::new(self.at.load(Ordering::Acquire)).map(|at| Records { at, groups: &self.groups })
    }

    /// Makes the file. Called once.
    pub fn begin(&self, control: &RunControl, manager: &CStr) -> Option<Records<'_>> {
        let pid = system::process();
        let at = create(control, pid)?;
        // SAFETY: the file's first page is mapped for writing.
        unsafe { populate(at.as_ptr(), PAGE) }.ok()?;
        let records = Records { at, groups: &self.groups };
        records.reserved(0).then_some(())?;
        let header = at.cast::<Header>().as_ptr();
        // SAFETY: the header lies in the first page, which has memory, and no other thread knows the mapping yet.
        unsafe {
            let exe = &mut (*header).exe;
            let bytes = system::executable(exe);
            (*header).exe_bytes.store(bytes as u32, Ordering::Relaxed);
            let manager = manager.to_bytes();
            let kept = manager.len().min(PATH);
            (&mut (*header).manager)[..kept].copy_from_slice(&manager[..kept]);
            (*header).manager_bytes.store(kept as u32, Ordering::Relaxed);
            (*header).version.store(VERSION, Ordering::Relaxed);
            (*header).pid.store(pid, Ordering::Relaxed);
            (*header).started_unix_ns.store(system::unix_ns(), Ordering::Relaxed);
            (*header).sites.store(1, Ordering::Relaxed);
            (*header).magic.store(MAGIC, Ordering::Release);
        }
        self.at.store(at.as_ptr(), Ordering::Release);
        Some(records)
    }
}

impl<'a> Records<'a> {
    /// The head.
    pub fn header(&self) -> &'a Header {
        // SAFETY: the header lies in the first page of the mapping, which has memory and is never unmapped; all that is
        // changed after `begin` is atomic.
        unsafe { self.at.cast::<Header>().as_ref() }
    }

    /// Whether the group of a site has memory, which is reserved where it is not.
    fn reserved(&self, site: usize) -> bool {
        let Some(group) = self.groups.get(site / GROUP) else { return false };
        match group.load(Ordering::Acquire) {
            RESERVED => true,
            REFUSED => false,
            _ => {
                let bytes = GROUP * size_of::<SiteRecord>();
                let start = SITES_AT + site / GROUP * bytes;
                // SAFETY: the group's records are whole pages within the mapping.
                let made = unsafe { populate(self.at.as_ptr().add(start), bytes) }.is_ok();
                // One that was refused stays so: what its stacks are would not be known.
                let state = if made { RESERVED } else { REFUSED };
                group
                    .compare_exchange(0, state, Ordering::AcqRel, Ordering::Acquire)
                    .map_or_else(|other| other == RESERVED, |_| made)
            }
        }
    }

    /// Whether a call stack has a record of its own.
    pub fn has_site(&self, site: u32) -> bool {
        (site as usize) < MOST_SITES && self.reserved(site as usize)
    }

    /// The record of a call stack; that of site 0 where it has none.
    pub fn site(&self, site: u32) -> &'a SiteRecord {
        let index = if self.has_site(site) { site } else { 0 };
        if self.header().sites.load(Ordering::Relaxed) <= index {
            self.header().sites.fetch_max(index + 1, Ordering::Relaxed);
        }
        // SAFETY: the record lies in the mapping, its group has memory (that of site 0 since `begin`), and all of it is
        // atomic.
        unsafe { &*self.at.as_ptr().add(SITES_AT).cast::<SiteRecord>().add(index as usize) }
    }

    /// A definition by the layer's call stacks: of a stack, or, as site 0, of an object.
    pub fn define(&self, site: u32, words: &[usize]) {
        if site == 0 {
            self.define_object(words);
            return;
        }
        if !self.has_site(site) {
            return;
        }
        let record = self.site(site);
        let count = words.len().min(record.words.len());
        for (place, &word) in record.words.iter().zip(words) {
            place.store(word as u64, Ordering::Relaxed);
        }
        record.objects.store(self.header().objects.load(Ordering::Relaxed), Ordering::Relaxed);
        record.count.store(count as u32, Ordering::Release);
    }

    fn define_object(&self, words: &[usize]) {
        let number = self.header().objects.fetch_add(1, Ordering::Relaxed) as usize;
        if number >= MOST_OBJECTS {
            self.header().objects.store(MOST_OBJECTS as u32, Ordering::Relaxed);
            return;
        }
        let start = OBJECTS_AT + number * size_of::<ObjectRecord>();
        let (first, end) = (start & !(PAGE - 1), (start + size_of::<ObjectRecord>()).next_multiple_of(PAGE));
        // SAFETY: the pages lie in the mapping, as the records of objects end at a page.
        if unsafe { populate(self.at.as_ptr().add(first), end - first) }.is_err() {
            return;
        }
        // SAFETY: the record lies in pages that have memory, and all of it is atomic.
        let record = unsafe { &*self.at.as_ptr().add(start).cast::<ObjectRecord>() };
        record.recorded_unix_s.store(system::unix_ns() / 1_000_000_000, Ordering::Relaxed);
        let count = words.len().min(record.words.len());
        for (place, &word) in record.words.iter().zip(words) {
            place.store(word as u64, Ordering::Relaxed);
        }
        record.count.store(count as u32, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers() {
        let mut text = [0; 24];
        let used = name(u32::MAX, 100_000, &mut text);
        assert_eq!(&text[..used], b"4294967295.100000");
        let used = name(0, 1, &mut text);
        assert_eq!(&text[..used], b"0.1");
    }
}
