//! The file, open and mapped by the tool, as long as a part of the tool uses it.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::atomic::{AtomicU64, Ordering};
use crate::flags::Flags;
use crate::layout::{Control, ENTRY_GROUP, Exec, Geometry, Header, PAGE, Process};
use crate::pointers::{control, exec, process_entry, ring_words};
use crate::sys;

/// Maximum number of threads of a process; a larger count is corrupted.
const MOST_THREADS: u32 = 1 << 24;

#[derive(Debug)]
pub(crate) struct Map {
    pub path: PathBuf,
    /// Holds the lock on the file.
    _file: File,
    pub geometry: Geometry,
    /// What producers are to record; the header's copy may have been overwritten since.
    pub flags: Flags,
    /// The header's value when the file was made, as for `namespace`.
    pub created_ns: u64,
    pub namespace: u64,
    pub base: *mut u8,
    /// Groups of the process table that are known to have memory.
    pub entry_groups: Box<[AtomicBool]>,
    /// No ring from this index on has been adopted.
    pub highest: AtomicUsize,
    /// Entries of processes whose arrival was reported and that have not ended.
    pub live: Mutex<Vec<usize>>,
}

// SAFETY: everything in the mapping is atomic, and `base` stays mapped until this is dropped, on whichever thread.
unsafe impl Send for Map {}
// SAFETY: threads that share this access the mapping only through atomics, and `base` never changes.
unsafe impl Sync for Map {}

impl Map {
    /// Prepares a new file, and reserves the parts that are touched without being reserved individually.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: PathBuf, file: File, geometry: Geometry, flags: Flags) -> io::Result<Map> {
        let bytes = geometry.bytes(geometry.rings);
        file.set_len(bytes as u64)?;
        hold(&file)?;
        let base = map(&file, bytes)?;
        let map = Map::over(base, path, file, geometry, flags);
        map.reserve(0..geometry.entry_group(0).end)?;
        map.reserve(geometry.directory()..geometry.first_ring())?;
        Ok(map)
    }

    /// The map of a file that `base` maps whole, and that is unmapped when this is dropped.
    pub fn over(base: *mut u8, path: PathBuf, file: File, geometry: Geometry, flags: Flags) -> Map {
        let groups = geometry.processes.div_ceil(ENTRY_GROUP);
        Map {
            path,
            _file: file,
            geometry,
            flags,
            created_ns: sys::now_ns(),
            namespace: sys::namespace(),
            base,
            entry_groups: (0..groups).map(|_| AtomicBool::new(false)).collect(),
            highest: AtomicUsize::new(0),
            live: Mutex::new(Vec::new()),
        }
    }

    pub fn header(&self) -> &Header {
        // SAFETY: `create` has mapped the file, which begins with a header, and only `drop` unmaps it.
        unsafe { &*self.base.cast::<Header>() }
    }

    pub fn live(&self) -> MutexGuard<'_, Vec<usize>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves part of the file.
    ///
    /// # Errors
    /// There is no memory, or the file ends earlier, because it was truncated.
    pub fn reserve(&self, part: Range<usize>) -> io::Result<()> {
        let part = sys::whole_pages(part);
        heaptoll_assertions::assert_internal!(
            part.end <= self.geometry.bytes(self.geometry.rings).next_multiple_of(PAGE),
            "a reserved part lies in the file"
        );
        // SAFETY: callers compute the part from `geometry`, for which `create` sized the mapping, as asserted above.
        match unsafe { heaptoll_process::populate::populate(self.base.wrapping_add(part.start), part.len()) }
        {
            Ok(()) => Ok(()),
            Err(libc::EFAULT) => Err(io::ErrorKind::StorageFull.into()),
            Err(error) => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Whether an entry of the process table has memory, which it must have before it is read; reserves it.
    pub fn has_entry(&self, index: usize) -> bool {
        let group = index / ENTRY_GROUP;
        let Some(known) = self.entry_groups.get(group).filter(|_| index < self.geometry.processes) else {
            return false;
        };
        if !known.load(Ordering::Relaxed) {
            known.store(self.reserve(self.geometry.entry_group(group)).is_ok(), Ordering::Relaxed);
        }
        known.load(Ordering::Relaxed)
    }

    /// An entry that has memory, as all that have arrived do.
    pub fn process(&self, index: usize) -> &Process {
        assert!(index < self.geometry.processes);
        // SAFETY: the index was checked above, so the entry lies in the mapping, which lives as long as `self`.
        unsafe { &*process_entry(self.base.cast(), index) }
    }

    /// How many threads a process has had so far, bounded, because sinks allocate an entry for each.
    pub fn threads(&self, process: usize) -> u32 {
        self.process(process).threads.load(Ordering::Relaxed).min(MOST_THREADS)
    }

    pub fn control(&self, ring: usize) -> &Control {
        assert!(ring < self.geometry.rings);
        // SAFETY: the ring was checked above, so its control words lie in the mapping; `create` reserved their memory.
        unsafe { &*control(self.base.cast(), self.geometry, ring) }
    }

    pub fn exec(&self, index: usize) -> &Exec {
        assert!(index < crate::layout::EXECS);
        // SAFETY: the index was checked above, so the entry lies in the mapping; `create` reserved its memory.
        unsafe { &*exec(self.base.cast(), self.geometry, index) }
    }

    pub fn words(&self, ring: usize) -> *const AtomicU64 {
        assert!(ring < self.geometry.rings);
        ring_words(self.base.cast(), self.geometry, ring)
    }

    /// Releases a ring. It keeps its memory: a process that wrongly writes to it (one that shares a dead process's
    /// memory) must not touch a page without memory, and the next owner is not charged for it again.
    pub fn recycle(&self, ring: usize) {
        let control = self.control(ring);
        let held = control.consumer.0.held.load(Ordering::Relaxed).min(self.geometry.ring_blocks());
        // `held` counts blocks without memory only if it was overwritten: such a ring is used no more.
        if self.reserve(self.geometry.blocks(ring, 0..held)).is_err() {
            return;
        }
        let words = self.words(ring);
        // The next owner relies on zeroes.
        for n in 0..self.geometry.block_words() * held as usize {
            // SAFETY: `held` is at most the ring's blocks, so the words lie in the mapping; `reserve` above gave them
            // memory.
            unsafe { (*words.add(n)).store(0, Ordering::Relaxed) };
        }
        control.consumer.0.reach.store(0, Ordering::Relaxed);
        control.consumer.0.taken.store(0, Ordering::Relaxed);
        control.consumer.0.waiting.store(0, Ordering::Relaxed);
        control.owner.0.busy.store(0, Ordering::Relaxed);
        control.owner.0.next.store(0, Ordering::Relaxed);
        control.owner.0.id.store(0, Ordering::Release);
        self.header().registry.0.ring_hint.fetch_min(ring as u32, Ordering::AcqRel);
        self.freed();
    }

    /// Releases all rings of a dead process, also those that the tool had not read from its list.
    pub fn recycle_all(&self, process: usize) {
        let registry = &self.header().registry.0;
        // Claims go upwards from the hint; the first rings are shared ones, which are claimed from the bottom.
        let hint = registry.ring_hint.load(Ordering::Acquire) as usize;
        let end = self
            .highest
            .load(Ordering::Relaxed)
            .max(hint)
            .max(self.geometry.shared_rings(self.geometry.rings));
        for ring in 0..(end + 64).min(self.geometry.rings) {
            if self.control(ring).owner.0.id.load(Ordering::Acquire) >> 32 == process as u64 + 1 {
                self.recycle(ring);
            }
        }
    }

    /// Wakes threads that wait for something to become free.
    pub fn freed(&self) {
        let registry = &self.header().registry.0;
        registry.freed.fetch_add(1, Ordering::SeqCst);
        if registry.waiting.load(Ordering::SeqCst) != 0 {
            crate::sys::futex_wake(&registry.freed);
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: `create` made this mapping; readers that point into it hold an `Arc` of this, so none is left.
        unsafe { libc::munmap(self.base.cast::<c_void>(), self.geometry.bytes(self.geometry.rings)) };
    }
}

/// Locks the first byte, as long as the file is open: by this lock a producer knows that the tool runs.
fn hold(file: &File) -> io::Result<()> {
    // SAFETY: zero is a valid `flock`; the kernel reads `lock`, a local variable.
    let done = unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = libc::F_WRLCK as i16;
        lock.l_whence = libc::SEEK_SET as i16;
        lock.l_len = 1;
        libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Maps all of a file.
fn map(file: &File, bytes: usize) -> std::io::Result<*mut u8> {
    // SAFETY: with a null address and without MAP_FIXED, the kernel maps memory that nothing uses.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        let map = libc::mmap(ptr::null_mut(), bytes, protection, flags, file.as_raw_fd(), 0);
        if map == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        Ok(map.cast())
    }
}
