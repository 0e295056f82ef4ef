//! The writing side: maps the file and claims entries and chunks of it.
//!
//! It runs between a program's statements and inside a collector that may have stopped every other thread, so it
//! allocates nothing and waits for no other thread. A claim is an atomic addition; the reader ignores what is claimed
//! and not filled in.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use heaptoll_assertions::assert_internal;

use crate::layout::{
    CHUNK_BYTES, CHUNKS_AT, COLLECTIONS, COUNTER, CPU, Chunk, CollectionRecord, Contents, EXE_BYTES,
    HEADER_BYTES, Header, IN_USE, MAGIC, PROCESS_BYTES, PROCESSES, Process, REQUESTS, RequestRecord, VERSION,
    file_bytes,
};

/// The file, mapped permanently. The number of chunks, from which addresses are computed, is a copy that was compared
/// with the file's length when it was mapped: any process of the run may overwrite the file.
#[derive(Debug, Clone, Copy)]
pub struct Mapped {
    header: &'static Header,
    chunks: u32,
}

/// The free records of a chunk.
#[derive(Debug)]
pub struct FreeRecords<T> {
    /// The next record.
    pub next: *mut T,
    /// The end of the last.
    pub end: *mut T,
}

impl Mapped {
    /// Maps the file; `None` when it cannot be mapped or is not such a file.
    pub fn open(path: &CStr) -> Option<Mapped> {
        // SAFETY: open reads `path`, a C string; fstat writes to `status`, a local variable; with a null address mmap
        // maps memory that nothing uses; `file` is closed once.
        let (map, length) = unsafe {
            let how = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
            let file = libc::open(path.as_ptr(), how);
            if file < 0 {
                return None;
            }
            let mut status: libc::stat = core::mem::zeroed();
            let length = if libc::fstat(file, &mut status) == 0 { status.st_size as usize } else { 0 };
            let map = if length >= CHUNKS_AT {
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let how = libc::MAP_SHARED | libc::MAP_NORESERVE;
                libc::mmap(ptr::null_mut(), length, access, how, file, 0)
            } else {
                libc::MAP_FAILED
            };
            libc::close(file);
            (map, length)
        };
        if map == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the mapping is at least CHUNKS_AT bytes long, and a header consists of atomic integers.
        let header = unsafe { &*map.cast::<Header>() };
        let chunks = header.chunks.load(Relaxed);
        let good = header.magic.load(Acquire) == MAGIC && header.version.load(Relaxed) == VERSION;
        if good && file_bytes(chunks) == length as u64 {
            return Some(Mapped { header, chunks });
        }
        // SAFETY: mmap returned this mapping above, and `header` is used no more.
        unsafe { libc::munmap(map, length) };
        None
    }

    /// Claims an entry for this process and fills it in. Returns its number; `None` when there is none left.
    pub fn claim_process(&self, observed: u32, unobserved: u32) -> Option<u32> {
        let number = self.header.processes_claimed.fetch_add(1, AcqRel);
        if number as usize >= PROCESSES {
            self.header.lost_processes.fetch_add(1, Relaxed);
            return None;
        }
        let entry = self.process_address(number);
        // SAFETY: `number` is below PROCESSES, so the entry lies in the permanent mapping; it consists of atomics.
        // getpid and getppid take no pointers and cannot fail.
        unsafe {
            let entry = &*entry;
            write_exe(&entry.exe);
            let now = heaptoll_process::tsc::pair();
            entry.pid.store(libc::getpid() as u32, Relaxed);
            entry.parent_pid.store(libc::getppid() as u32, Relaxed);
            entry.flags.store(if heaptoll_process::tsc::is_counter() { COUNTER } else { 0 }, Relaxed);
            entry.observed.store(observed, Relaxed);
            entry.unobserved.store(unobserved, Relaxed);
            entry.claimed_ticks.store(now.ticks, Relaxed);
            entry.claimed_ns.store(now.ns, Relaxed);
            entry.state.store(IN_USE, Release);
        }
        Some(number)
    }

    /// Sets the counts of observed managers, which are known only after the process has an entry.
    pub fn set_observed(&self, process: u32, observed: u32, unobserved: u32) {
        // SAFETY: callers pass a number from `claim_process`, so its entry lies in the permanent mapping.
        let entry = unsafe { &*self.process_address(process) };
        entry.observed.store(observed, Relaxed);
        entry.unobserved.store(unobserved, Relaxed);
    }

    /// Abandons an entry, because another thread has claimed one for this process at the same time.
    pub fn abandon_process(&self, process: u32) {
        // SAFETY: callers pass a number from `claim_process`, so its entry lies in the permanent mapping.
        unsafe { &*self.process_address(process) }.state.store(0, Release);
    }

    fn process_address(&self, number: u32) -> *mut Process {
        assert_internal!((number as usize) < PROCESSES, "an entry lies in the table of processes");
        let base = ptr::from_ref(self.header).cast_mut().cast::<u8>();
        // SAFETY: callers pass a number below PROCESSES, so the entry lies in the table, which is mapped.
        unsafe { base.add(HEADER_BYTES + number as usize * PROCESS_BYTES).cast() }
    }

    /// Claims a chunk for requests of this process; `None` when the file is full.
    pub fn claim_requests(&self, process: u32) -> Option<FreeRecords<RequestRecord>> {
        self.claim(process, Contents::Requests, REQUESTS)
    }

    /// Claims a chunk for collections of this process; `None` when the file is full.
    pub fn claim_collections(&self, process: u32) -> Option<FreeRecords<CollectionRecord>> {
        self.claim(process, Contents::Collections, COLLECTIONS)
    }

    fn claim<T>(&self, process: u32, contents: Contents, records: usize) -> Option<FreeRecords<T>> {
        // In a full file every event gets here: the count must not overflow.
        if self.header.chunks_claimed.load(Relaxed) > self.chunks {
            return None;
        }
        let number = self.header.chunks_claimed.fetch_add(1, AcqRel);
        if number >= self.chunks {
            return None;
        }
        assert_internal!(number < self.chunks, "a claimed chunk lies in the file");
        assert_internal!(
            size_of::<Chunk>() + records * size_of::<T>() <= CHUNK_BYTES,
            "the records of a chunk lie in it"
        );
        let base = ptr::from_ref(self.header).cast_mut().cast::<u8>();
        // SAFETY: `number` is below `self.chunks`, which `open` compared with the mapping's length; `fetch_add` gives
        // the number once, so this thread alone owns the chunk; callers pass `records` that fit into it.
        unsafe {
            let chunk = base.add(CHUNKS_AT + number as usize * CHUNK_BYTES);
            if !prefault(chunk.cast()) {
                // The disk is full. The chunk remains zero.
                self.header.chunks_claimed.store(self.chunks + 1, Release);
                return None;
            }
            let now = heaptoll_process::tsc::pair();
            let head = &*chunk.cast::<Chunk>();
            head.process.store(process, Relaxed);
            head.claimed_ticks.store(now.ticks, Relaxed);
            head.claimed_ns.store(now.ns, Relaxed);
            head.contents.store(contents as u32, Release);
            let next = chunk.add(size_of::<Chunk>()).cast::<T>();
            Some(FreeRecords { next, end: next.add(records) })
        }
    }

    /// Whether the tool requests the processor time of requests.
    pub fn wants_cpu(&self) -> bool {
        self.header.made_flags.load(Relaxed) & CPU != 0
    }

    /// Counts a request that is not recorded.
    pub fn lost_request(&self) {
        self.header.lost_requests.fetch_add(1, Relaxed);
    }

    /// Counts a collection that is not recorded.
    pub fn lost_collection(&self) {
        self.header.lost_collections.fetch_add(1, Relaxed);
    }
}

/// Reserves memory for the chunk's pages now, rather than one by one while requests are timed. Returns whether there is
/// any: otherwise a store to the mapping of a file on a full disk would raise SIGBUS.
///
/// # Safety
/// `chunk` is the first byte of a chunk of the mapping, which is aligned to a page.
unsafe fn prefault(chunk: *mut c_void) -> bool {
    // SAFETY: by this function's contract the whole pages of a chunk are mapped for writing.
    unsafe { heaptoll_process::populate::populate(chunk.cast(), CHUNK_BYTES) }.is_ok()
}

/// Writes the path to the program, or its end.
fn write_exe(exe: &[AtomicU8; EXE_BYTES]) {
    // Stacks may be small.
    let mut path = [0u8; 1024];
    // SAFETY: readlink reads a C literal and writes at most `path.len()` bytes to `path`.
    let read =
        unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast::<c_char>(), path.len()) };
    let read = usize::try_from(read).unwrap_or(0);
    let kept = read.min(exe.len() - 1);
    for (to, byte) in exe.iter().zip(path[read - kept..read].iter().chain([&0])) {
        to.store(*byte, Relaxed);
    }
}
