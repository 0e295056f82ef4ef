//! Objects found in the kernel's list of mappings, for a glibc without `_dl_find_object` (before 2.35).
//!
//! Other unwinders call `dl_iterate_phdr` there. It takes the dynamic linker's lock, and that is not safe in `malloc`:
//! where a program forks while another of its threads throws an exception or loads an object, the lock stays locked in
//! the child for ever, and the child's first `malloc` would wait for it. (A signal handler that interrupts the linker
//! would find its list half changed.) A list that was taken beforehand, outside of `malloc`, would lack what `dlopen` has
//! loaded since: code of an object runs before `dlopen` returns, and a layer that interposes `dlopen` changes which
//! search path it uses.
//!
//! The kernel's list is right at any time, and is read by system calls alone. So there is no lock: it can be read in
//! `malloc`, in signal handlers, after fork and vfork, and while the dynamic linker is at work. What it costs:
//!
//! - Time: some 100 us once an object, which is then kept, and once a range of code without an object (that of a
//!   compiler at run time). Such a range is looked up again at its first, second, fourth, ... use: an object may have
//!   been loaded there.
//! - A descriptor is open meanwhile. If another thread closes descriptors that it does not own, it may close this one;
//!   the list is read by `pread`, so that if its number then is another file's, nothing is consumed of that file.
//! - A sandbox that does not allow `openat` refuses it: call stacks then end at objects not seen before.
//!
//! Only the header of the object that an address lies in is read from its memory: it stays loaded, since one of its
//! functions is being executed.

use core::cell::UnsafeCell;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use heaptoll_runtime::MapsEntry;

use crate::elf_header::{self, Described};
use crate::object::Object;
use crate::system::{self, File, PAGE};

/// Objects at most, those that were unloaded included. Call stacks end at further ones.
const MOST: usize = 2048;
/// Ranges without an object that are kept.
const EMPTY: usize = 256;
/// Bytes of a path at most, with a zero at its end.
const PATH: usize = 1024;
/// Text of the list that is held at once: the longest line and what is read with it.
const TEXT: usize = 4 * PAGE;

/// An object. All zeroes: none.
#[repr(C)]
struct Known {
    start: AtomicUsize,
    /// 0 until the entry is whole, and when it is forgotten.
    end: AtomicUsize,
    difference: AtomicUsize,
    header: AtomicUsize,
    /// A C string, written before `end`.
    path: UnsafeCell<[u8; PATH]>,
}

/// Addresses without an object.
#[repr(C)]
struct Empty {
    start: AtomicUsize,
    end: AtomicUsize,
    uses: AtomicU32,
}

#[repr(C)]
struct Table {
    count: AtomicUsize,
    known: [Known; MOST],
    next_empty: AtomicUsize,
    empty: [Empty; EMPTY],
}

// SAFETY: all members but `path` are atomics; a path is written by the one call that has taken its entry, before it
// stores `end`, and read after `end` was seen.
unsafe impl Sync for Table {}

/// A child of fork keeps its parent's: it has the same objects.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());

/// The object that an address lies in.
pub fn object(address: usize) -> Option<Object> {
    let table = table()?;
    table.object(address).or_else(|| if table.is_empty(address) { None } else { search(table, address) })
}

/// Some object was unloaded: the one that begins here may be gone.
pub fn forget(start: usize) {
    if let Some(table) = table() {
        for known in table.known().filter(|known| known.start.load(Ordering::Relaxed) == start) {
            known.end.store(0, Ordering::Release);
        }
    }
}

fn table() -> Option<&'static Table> {
    let mut place = TABLE.load(Ordering::Acquire);
    if place.is_null() {
        let new = system::map(size_of::<Table>(), false)?.cast::<Table>();
        match TABLE.compare_exchange(ptr::null_mut(), new.as_ptr(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => place = new.as_ptr(),
            Err(other) => {
                // SAFETY: just mapped, and not published.
                unsafe { system::unmap(new.cast(), size_of::<Table>()) };
                place = other;
            }
        }
    }
    // SAFETY: not null, so a mapped `Table`, for which all zeroes are valid; it is never unmapped.
    Some(unsafe { &*place })
}

impl Table {
    fn known(&self) -> impl Iterator<Item = &Known> {
        self.known[..self.count.load(Ordering::Relaxed).min(MOST)].iter()
    }

    fn object(&self, address: usize) -> Option<Object> {
        self.known().find_map(|known| {
            let (end, start) = (known.end.load(Ordering::Acquire), known.start.load(Ordering::Relaxed));
            (start..end).contains(&address).then(|| known.object(end))
        })
    }

    /// Whether an address is known to lie in no object. Now and then it is not, so that it is looked up again.
    fn is_empty(&self, address: usize) -> bool {
        self.empty.iter().any(|empty| {
            let range = empty.start.load(Ordering::Relaxed)..empty.end.load(Ordering::Acquire);
            range.contains(&address) && !(empty.uses.fetch_add(1, Ordering::Relaxed) + 1).is_power_of_two()
        })
    }

    fn keep_empty(&self, range: Range<usize>) {
        let same = |empty: &&Empty| {
            (empty.start.load(Ordering::Relaxed), empty.end.load(Ordering::Relaxed))
                == (range.start, range.end)
        };
        if self.empty.iter().any(|empty| same(&empty)) {
            return;
        }
        let at = self.next_empty.fetch_add(1, Ordering::Relaxed) % EMPTY;
        let empty = &self.empty[at];
        empty.end.store(0, Ordering::Release);
        empty.start.store(range.start, Ordering::Relaxed);
        empty.uses.store(0, Ordering::Relaxed);
        empty.end.store(range.end, Ordering::Release);
    }

    /// Keeps an object; `None` when there are too many.
    fn keep(&self, found: &Described, name: &[u8]) -> Option<Object> {
        let at = self.count.fetch_add(1, Ordering::Relaxed);
        let Some(known) = self.known.get(at) else {
            self.count.store(MOST, Ordering::Relaxed);
            return None;
        };
        let length = name.len().min(PATH - 1);
        // SAFETY: this call alone has taken the entry, whose path is `PATH` bytes, and no other reads it while `end` is
        // 0. The bytes were zeroes, so one follows.
        unsafe { ptr::copy_nonoverlapping(name.as_ptr(), known.path.get().cast::<u8>(), length) };
        known.start.store(found.range.start, Ordering::Relaxed);
        known.difference.store(found.difference, Ordering::Relaxed);
        known.header.store(found.header, Ordering::Relaxed);
        known.end.store(found.range.end, Ordering::Release);
        Some(known.object(found.range.end))
    }
}

impl Known {
    fn object(&self, end: usize) -> Object {
        Object {
            start: self.start.load(Ordering::Relaxed),
            end,
            difference: self.difference.load(Ordering::Relaxed),
            name: self.path.get().cast(),
            header: self.header.load(Ordering::Relaxed),
        }
    }
}

/// Looks an address up in the list, and keeps what is there.
#[cold]
#[inline(never)]
fn search(table: &Table, address: usize) -> Option<Object> {
    // The main thread's list is empty when it has ended by `pthread_exit`; so this thread's is read.
    let list = File::open(c"/proc/thread-self/maps")?;
    let text = system::map(TEXT, false)?;
    let mut search = Search { address, first: None, last_end: 0 };
    let mut object = None;
    let mut take = |line: &MapsEntry<'_>| match search.take(line) {
        None => true,
        Some(Ok(found)) => {
            object = table.keep(&found, line.name);
            false
        }
        Some(Err(range)) => {
            table.keep_empty(range);
            false
        }
    };
    // SAFETY: `TEXT` bytes were mapped, and nothing else refers to them.
    each_line(&list, unsafe { core::slice::from_raw_parts_mut(text.as_ptr(), TEXT) }, &mut take);
    // SAFETY: mapped above; the slice of it is used no more.
    unsafe { system::unmap(text, TEXT) };
    object
}

/// Shows each line of the list, until `take` returns false. A list that cannot be read ends early.
fn each_line(list: &File, text: &mut [u8], take: &mut dyn FnMut(&MapsEntry<'_>) -> bool) {
    // The beginning of a line that was read, and how much was read in all.
    let (mut kept, mut position) = (0, 0);
    loop {
        let got = list.read_at(&mut text[kept..], position);
        if got == 0 {
            return;
        }
        position += got;
        let (filled, mut done) = (kept + got, 0);
        while let Some(length) = text[done..filled].iter().position(|&byte| byte == b'\n') {
            match MapsEntry::parse(&text[done..done + length]) {
                Some(line) if take(&line) => done += length + 1,
                _ => return,
            }
        }
        text.copy_within(done..filled, 0);
        kept = filled - done;
    }
}

/// A search in the list, line by line.
struct Search {
    address: usize,
    /// Which file's beginning was mapped last, and where.
    first: Option<((usize, usize), Range<usize>)>,
    /// Where the mapping before ends.
    last_end: usize,
}

impl Search {
    /// `None` while the address has not been reached; then the object, or the range around the address without one.
    fn take(&mut self, line: &MapsEntry<'_>) -> Option<Result<Described, Range<usize>>> {
        let (address, gap) = (self.address, self.last_end..line.range.start);
        self.last_end = line.range.end;
        if address < line.range.start {
            return Some(Err(gap));
        }
        // Objects are mapped privately; what is shared may be a device, whose memory is not to be touched.
        let is_file = line.private && (line.file.1 != 0 || line.name == b"[vdso]");
        if is_file && line.readable && line.offset == 0 {
            self.first = Some((line.file, line.range.clone()));
        }
        if address >= line.range.end {
            return None;
        }
        let first = self.first.take().filter(|(file, _)| is_file && *file == line.file);
        let offset = line.offset.wrapping_add(address - line.range.start);
        // SAFETY: the mapping is readable, and belongs to the file whose code is being executed at `address`.
        let found = first.and_then(|(_, first)| unsafe { elf_header::described(first, address, offset) });
        Some(found.ok_or(line.range.clone()))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    /// A page of code that returns, in memory without a file.
    fn generated() -> usize {
        let (access, flags) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: makes a new mapping and replaces none.
        let place = unsafe { libc::mmap(ptr::null_mut(), PAGE, access, flags, -1, 0) };
        assert_ne!(place, libc::MAP_FAILED);
        place as usize
    }

    #[test]
    fn code_without_an_object_is_searched_for_at_growing_distances() {
        let address = generated();
        let table = table().unwrap();
        assert!(object(address).is_none());
        let searches = (0..1000).filter(|_| !table.is_empty(address)).count();
        assert_eq!(searches, 10, "the first, second, fourth, ... 512th use");
    }

    #[test]
    fn an_object_that_is_loaded_later_is_found_and_one_that_is_gone_is_not() {
        // SAFETY: a library of the C library's own, which runs nothing when it is loaded.
        let handle = unsafe { libc::dlopen(c"libBrokenLocale.so.1".as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "glibc's library for old programs");
        // SAFETY: a live handle and a C string.
        let code = unsafe { libc::dlsym(handle, c"__ctype_get_mb_cur_max".as_ptr()) } as usize;
        let found = object(code).unwrap();
        // SAFETY: the path stays as long as the object is loaded.
        let path = unsafe { core::ffi::CStr::from_ptr(found.name) }.to_str().unwrap();
        assert!(path.contains("libBrokenLocale"), "{path}");
        // SAFETY: a live handle, closed once.
        unsafe { libc::dlclose(handle) };
        assert!(object(code).is_some(), "kept until it is forgotten");
        forget(found.start);
        assert!(object(code).is_none());
    }

    #[test]
    fn a_lock_of_the_dynamic_linker_is_not_waited_for() {
        use std::sync::mpsc::{Receiver, Sender, channel};
        type Ends = (Sender<()>, Receiver<()>);
        unsafe extern "C" fn hold(
            _: *mut libc::dl_phdr_info,
            _: usize,
            ends: *mut libc::c_void,
        ) -> libc::c_int {
            // SAFETY: the ends of the channels of the thread below.
            let (held, release) = unsafe { &*ends.cast::<Ends>() };
            held.send(()).unwrap();
            release.recv().unwrap();
            1
        }
        let ((held, is_held), (release, released)) = (channel(), channel());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut ends: Ends = (held, released);
                // SAFETY: `hold` has the type that is called, and `ends` outlives the call.
                unsafe { libc::dl_iterate_phdr(Some(hold), (&raw mut ends).cast()) };
            });
            is_held.recv().unwrap();
            let code = libc::qsort as *const () as usize;
            object(code).into_iter().for_each(|object| forget(object.start));
            let found = object(code);
            release.send(()).unwrap();
            assert!(found.is_some());
        });
    }
}
