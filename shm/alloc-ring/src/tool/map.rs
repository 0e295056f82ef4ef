//! The file, open and mapped by the tool, for as long as anybody here uses it.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::flags::Flags;
use crate::layout::{Control, ENTRY_GROUP, Exec, Geometry, Header, PAGE, Process};
use crate::places::{control, exec, process_entry, ring_words};
use crate::sys;

#[derive(Debug)]
pub(crate) struct Map {
    pub path: PathBuf,
    /// Holds the lock.
    _file: File,
    pub geometry: Geometry,
    /// What producers were asked for; the header's copy may be anybody's by now.
    pub flags: Flags,
    /// As the header had them.
    pub created_ns: u64,
    pub namespace: u64,
    pub base: *mut u8,
    /// Groups of the process table that are known to have memory.
    pub entry_groups: Box<[AtomicBool]>,
    /// No ring from here on has been adopted.
    pub highest: AtomicUsize,
    /// Entries of processes that have been told of and have not ended.
    pub live: Mutex<Vec<usize>>,
}

// SAFETY: everything in the mapping is atomic, and the mapping stays until this is dropped.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// Prepares a new file: what is touched without being asked for has memory then.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: PathBuf, file: File, geometry: Geometry, flags: Flags) -> io::Result<Map> {
        let bytes = geometry.bytes(geometry.rings);
        file.set_len(bytes as u64)?;
        hold(&file)?;
        let base = map(&file, bytes)?;
        let groups = geometry.processes.div_ceil(ENTRY_GROUP);
        let map = Map {
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
        };
        map.reserve(0..geometry.entry_group(0).end)?;
        map.reserve(geometry.directory()..geometry.first_ring())?;
        Ok(map)
    }

    pub fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a header and stays as long as `self`.
        unsafe { &*self.base.cast::<Header>() }
    }

    pub fn live(&self) -> MutexGuard<'_, Vec<usize>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves part of the file.
    ///
    /// # Errors
    /// There is no memory, or the file ends earlier: somebody has cut it off.
    pub fn reserve(&self, part: Range<usize>) -> io::Result<()> {
        let part = sys::whole_pages(part);
        debug_assert!(part.end <= self.geometry.bytes(self.geometry.rings).next_multiple_of(PAGE));
        // SAFETY: the part lies in the mapping.
        match unsafe { heaptoll_populate::populate(self.base.wrapping_add(part.start), part.len()) } {
            Ok(()) => Ok(()),
            Err(libc::EFAULT) => Err(io::ErrorKind::StorageFull.into()),
            Err(error) => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Whether an entry of the process table has memory, as it must have before anybody looks at it.
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
        // SAFETY: an entry of the table, in the mapping.
        unsafe { &*process_entry(self.base.cast(), index) }
    }

    pub fn control(&self, ring: usize) -> &Control {
        assert!(ring < self.geometry.rings);
        // SAFETY: a ring of the directory, in the mapping.
        unsafe { &*control(self.base.cast(), self.geometry, ring) }
    }

    pub fn exec(&self, index: usize) -> &Exec {
        assert!(index < crate::layout::EXECS);
        // SAFETY: an entry of the table, in the mapping, which the tool reserved.
        unsafe { &*exec(self.base.cast(), self.geometry, index) }
    }

    pub fn words(&self, ring: usize) -> *const AtomicU64 {
        assert!(ring < self.geometry.rings);
        ring_words(self.base.cast(), self.geometry, ring)
    }

    /// Makes a ring nobody's. It keeps its memory: whoever wrongly writes to it (a process that shares a dead one's
    /// memory) must not touch a page that is not there, and the next owner need not pay for it.
    pub fn recycle(&self, ring: usize) {
        let control = self.control(ring);
        let held = control.consumer.0.held.load(Ordering::Relaxed).min(self.geometry.ring_blocks());
        // What is said to have memory and has none was not said by an owner: such a ring is used no more.
        if self.reserve(self.geometry.blocks(ring, 0..held)).is_err() {
            return;
        }
        let words = self.words(ring);
        // The next owner counts on zeroes.
        for n in 0..self.geometry.block_words() * held as usize {
            // SAFETY: these words of the ring lie in the mapping and have memory.
            unsafe { (*words.add(n)).store(0, Ordering::Relaxed) };
        }
        control.consumer.0.reach.store(0, Ordering::Relaxed);
        control.consumer.0.taken.store(0, Ordering::Relaxed);
        control.consumer.0.waiting.store(0, Ordering::Relaxed);
        control.owner.0.busy.store(0, Ordering::Relaxed);
        control.owner.0.next.store(0, Ordering::Relaxed);
        control.owner.0.who.store(0, Ordering::Release);
        self.header().registry.0.ring_hint.fetch_min(ring as u32, Ordering::AcqRel);
        self.freed();
    }

    /// Makes all rings of a process that is dead nobody's, those too that it had not told of.
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
            if self.control(ring).owner.0.who.load(Ordering::Acquire) >> 32 == process as u64 + 1 {
                self.recycle(ring);
            }
        }
    }

    /// Tells those who wait that something has become free.
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
        // SAFETY: our own mapping; those who point into it hold this alive.
        unsafe { libc::munmap(self.base.cast::<c_void>(), self.geometry.bytes(self.geometry.rings)) };
    }
}

/// Locks the first byte, for as long as the file is open: by this a producer knows that the tool lives.
fn hold(file: &File) -> io::Result<()> {
    // SAFETY: zero is a valid `flock`; the kernel only reads it.
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
    // SAFETY: a fresh mapping wherever the kernel likes; a child that the tool forks does not need it.
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
