//! The writing side: the mapped file, and claiming entries and chunks of it.
//!
//! It runs between a program's statements and inside a collector that may have stopped every other thread, so it
//! allocates nothing and waits for nobody. Claims are an atomic addition; what is claimed and not filled in is ignored
//! by the reader.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::layout::{
    CHUNK_BYTES, CHUNKS_AT, COLLECTIONS, COUNTER, Chunk, CollectionRecord, Contents, EXE_BYTES, HEADER_BYTES,
    Header, IN_USE, MAGIC, PROCESS_BYTES, PROCESSES, Process, REQUESTS, RequestRecord, VERSION, file_bytes,
};

/// The file, mapped for good. What an address follows from, the number of chunks, is a copy that was compared with the
/// file's length when it was mapped: any process of the run may change what stands in the file.
#[derive(Debug, Clone, Copy)]
pub struct Mapped {
    header: &'static Header,
    chunks: u32,
}

/// Room for records of one kind.
#[derive(Debug)]
pub struct Room<T> {
    /// Where the next record goes.
    pub next: *mut T,
    /// Behind the last.
    pub end: *mut T,
}

impl Mapped {
    /// Maps the file; `None` when it cannot be mapped or is not such a file.
    pub fn open(path: &CStr) -> Option<Mapped> {
        // SAFETY: the path is a C string; `status` is a valid place for fstat's result.
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
        // SAFETY: the mapping holds a header, which is all atomic integers.
        let header = unsafe { &*map.cast::<Header>() };
        let chunks = header.chunks.load(Relaxed);
        let good = header.magic.load(Acquire) == MAGIC && header.version.load(Relaxed) == VERSION;
        if good && file_bytes(chunks) == length as u64 {
            return Some(Mapped { header, chunks });
        }
        // SAFETY: our own mapping, which nobody else has seen.
        unsafe { libc::munmap(map, length) };
        None
    }

    /// Claims an entry for this process and fills it in. Gives its number; `None` when there is none left.
    pub fn claim_process(&self, heard: u32, unheard: u32) -> Option<u32> {
        let number = self.header.processes_claimed.fetch_add(1, AcqRel);
        if number as usize >= PROCESSES {
            self.header.lost_processes.fetch_add(1, Relaxed);
            return None;
        }
        let entry = self.process_address(number);
        // SAFETY: the table has an entry of that number, and is mapped for good; it is all atomics. By the rules the number
        // is ours alone. The two calls have no conditions.
        unsafe {
            let entry = &*entry;
            write_exe(&entry.exe);
            let now = heaptoll_clock::pair();
            entry.pid.store(libc::getpid() as u32, Relaxed);
            entry.parent_pid.store(libc::getppid() as u32, Relaxed);
            entry.flags.store(if heaptoll_clock::is_counter() { COUNTER } else { 0 }, Relaxed);
            entry.heard.store(heard, Relaxed);
            entry.unheard.store(unheard, Relaxed);
            entry.claimed_ticks.store(now.ticks, Relaxed);
            entry.claimed_ns.store(now.ns, Relaxed);
            entry.state.store(IN_USE, Release);
        }
        Some(number)
    }

    /// What the process hears is known only after it has an entry.
    pub fn hears(&self, process: u32, heard: u32, unheard: u32) {
        // SAFETY: a number that [`Mapped::claim_process`] gave, so its entry is in the mapping and filled in.
        let entry = unsafe { &*self.process_address(process) };
        entry.heard.store(heard, Relaxed);
        entry.unheard.store(unheard, Relaxed);
    }

    /// Another thread has claimed an entry for this process at the same time: this one is not used.
    pub fn abandon_process(&self, process: u32) {
        // SAFETY: as in `hears`.
        unsafe { &*self.process_address(process) }.state.store(0, Release);
    }

    fn process_address(&self, number: u32) -> *mut Process {
        let base = ptr::from_ref(self.header).cast_mut().cast::<u8>();
        // SAFETY: the table has that entry, and the mapping the table.
        unsafe { base.add(HEADER_BYTES + number as usize * PROCESS_BYTES).cast() }
    }

    /// A chunk for requests of this process; `None` when the file is full.
    pub fn claim_requests(&self, process: u32) -> Option<Room<RequestRecord>> {
        self.claim(process, Contents::Requests, REQUESTS)
    }

    /// A chunk for collections of this process; `None` when the file is full.
    pub fn claim_collections(&self, process: u32) -> Option<Room<CollectionRecord>> {
        self.claim(process, Contents::Collections, COLLECTIONS)
    }

    fn claim<T>(&self, process: u32, contents: Contents, records: usize) -> Option<Room<T>> {
        // A full file is asked for each event: the count must not come round.
        if self.header.chunks_claimed.load(Relaxed) > self.chunks {
            return None;
        }
        let number = self.header.chunks_claimed.fetch_add(1, AcqRel);
        if number >= self.chunks {
            return None;
        }
        let base = ptr::from_ref(self.header).cast_mut().cast::<u8>();
        // SAFETY: the file has that many chunks, and all of it is mapped. The chunk is ours alone.
        unsafe {
            let chunk = base.add(CHUNKS_AT + number as usize * CHUNK_BYTES);
            if !prefault(chunk.cast()) {
                // The disk is full. The chunk stays as it is: zero.
                self.header.chunks_claimed.store(self.chunks + 1, Release);
                return None;
            }
            let now = heaptoll_clock::pair();
            let head = &*chunk.cast::<Chunk>();
            head.process.store(process, Relaxed);
            head.claimed_ticks.store(now.ticks, Relaxed);
            head.claimed_ns.store(now.ns, Relaxed);
            head.contents.store(contents as u32, Release);
            let next = chunk.add(size_of::<Chunk>()).cast::<T>();
            Some(Room { next, end: next.add(records) })
        }
    }

    /// A request is not written down.
    pub fn lost_request(&self) {
        self.header.lost_requests.fetch_add(1, Relaxed);
    }

    /// A collection is not written down.
    pub fn lost_collection(&self) {
        self.header.lost_collections.fetch_add(1, Relaxed);
    }
}

/// Gives the chunk's pages memory now, rather than one by one while requests are timed; and whether there is any, which a
/// store to the mapping of a file on a full disk would answer by SIGBUS.
///
/// # Safety
/// Whole pages of the mapping.
unsafe fn prefault(chunk: *mut c_void) -> bool {
    // SAFETY: the caller's promise.
    unsafe { heaptoll_populate::populate(chunk.cast(), CHUNK_BYTES) }.is_ok()
}

/// The path to the program, or its end.
fn write_exe(exe: &[AtomicU8; EXE_BYTES]) {
    // Stacks may be small.
    let mut path = [0u8; 1024];
    // SAFETY: a C string, and room for that many bytes.
    let read =
        unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast::<c_char>(), path.len()) };
    let read = usize::try_from(read).unwrap_or(0);
    let kept = read.min(exe.len() - 1);
    for (place, byte) in exe.iter().zip(path[read - kept..read].iter().chain([&0])) {
        place.store(*byte, Relaxed);
    }
}
