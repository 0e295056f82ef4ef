//! The format of the file: a header, a table of processes, chunks of records.
//!
//! All numbers are in the machine's byte order. A new file is zero after the header. Every member is atomic: other
//! processes write to the file, not all of them by the rules.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use heaptoll_assertions::layout;

/// The environment variable that names the file.
pub const VARIABLE: &CStr = c"HEAPTOLL_EVENTS";
/// The bytes "HTEVENTS".
pub const MAGIC: u64 = u64::from_le_bytes(*b"HTEVENTS");
pub const VERSION: u32 = 2;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of an entry of the table of processes.
pub const PROCESS_BYTES: usize = 256;
/// Entries of the table.
pub const PROCESSES: usize = 2048;
/// Bytes of a chunk.
pub const CHUNK_BYTES: usize = 64 << 10;
/// Bytes of a chunk before its records.
pub const CHUNK_HEADER_BYTES: usize = 64;
/// Offset of the first chunk.
pub const CHUNKS_AT: usize = HEADER_BYTES + PROCESSES * PROCESS_BYTES;

/// A process's entry is filled in.
pub const IN_USE: u32 = 1;
/// Bit of [`Process::flags`]: ticks are the processor's time-stamp counter; otherwise ns of `CLOCK_MONOTONIC`.
pub const COUNTER: u32 = 1;
/// Bit of [`Header::made_flags`]: the layer records the processor time of requests.
pub const CPU: u32 = 2;

/// The sort of a chunk's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Contents {
    Requests = 1,
    Collections = 2,
}

/// The first page.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    pub magic: AtomicU64,
    pub version: AtomicU32,
    /// Chunks in the file.
    pub chunks: AtomicU32,
    /// How many entries of the table were requested; may exceed [`PROCESSES`].
    pub processes_claimed: AtomicU32,
    /// How many chunks were requested; may exceed `chunks`.
    pub chunks_claimed: AtomicU32,
    /// When the file was made, by the clock of the process that made it.
    pub made_ticks: AtomicU64,
    pub made_ns: AtomicU64,
    /// [`COUNTER`]: the unit of `made_ticks`; [`CPU`].
    pub made_flags: AtomicU32,
    /// Processes that found no entry left.
    pub lost_processes: AtomicU32,
    /// Requests begun while the file was full.
    pub lost_requests: AtomicU64,
    /// Collections ended while the file was full.
    pub lost_collections: AtomicU64,
}

/// An entry of the table: one image of a program in one process.
#[derive(Debug)]
#[repr(C)]
pub struct Process {
    /// [`IN_USE`] once all else is filled in.
    pub state: AtomicU32,
    pub pid: AtomicU32,
    pub parent_pid: AtomicU32,
    pub flags: AtomicU32,
    /// Managers and layers that announce their collections to this layer.
    pub observed: AtomicU32,
    /// Those that announce them to another listener.
    pub unobserved: AtomicU32,
    pub claimed_ticks: AtomicU64,
    pub claimed_ns: AtomicU64,
    /// `/proc/self/exe`, NUL-terminated; the end of a longer path.
    pub exe: [AtomicU8; EXE_BYTES],
}

/// Bytes of the path to the program, with its NUL.
pub const EXE_BYTES: usize = PROCESS_BYTES - 40;

/// The beginning of a chunk. It belongs to one thread of one process at a time.
#[derive(Debug)]
#[repr(C)]
pub struct Chunk {
    /// [`Contents`] once all else is filled in.
    pub contents: AtomicU32,
    /// The entry of the process that writes here.
    pub process: AtomicU32,
    pub claimed_ticks: AtomicU64,
    pub claimed_ns: AtomicU64,
    reserved: [AtomicU64; 5],
}

/// A request. `end` is written last, and is 0 where there is no record yet.
#[derive(Debug)]
#[repr(C)]
pub struct RequestRecord {
    /// In ticks.
    pub start: AtomicU64,
    /// What sort of request: the program's own numbering.
    pub kind: AtomicU32,
    /// The kernel's number of the thread.
    pub thread: AtomicU32,
    /// In ticks.
    pub end: AtomicU64,
    /// Processor time of the thread from start to end in ns, plus one; 0: not recorded.
    pub cpu: AtomicU64,
}

/// A collection. `end` is written last, and is 0 where there is no record yet.
#[derive(Debug)]
#[repr(C)]
pub struct CollectionRecord {
    /// In ticks.
    pub start: AtomicU64,
    /// As the manager counts, from 1.
    pub number: AtomicU64,
    /// Bytes found live.
    pub live_bytes: AtomicU64,
    /// Which of the process's collectors, from 0.
    pub collector: AtomicU32,
    /// 1: allocation, 2: explicit request, 3: memory pressure.
    pub reason: AtomicU32,
    /// In ticks.
    pub end: AtomicU64,
}

/// Bytes of records in a chunk.
pub const RECORDS_BYTES: usize = CHUNK_BYTES - CHUNK_HEADER_BYTES;
/// Requests that fit into a chunk.
pub const REQUESTS: usize = RECORDS_BYTES / size_of::<RequestRecord>();
/// Collections that fit into a chunk.
pub const COLLECTIONS: usize = RECORDS_BYTES / size_of::<CollectionRecord>();

// The tool reads members by these offsets, and the layer writes them by name.
layout!(Header, 64, magic 0, version 8, chunks 12, processes_claimed 16, chunks_claimed 20, made_ticks 24, made_ns 32,
    made_flags 40, lost_processes 44, lost_requests 48, lost_collections 56);
layout!(Process, PROCESS_BYTES, state 0, pid 4, parent_pid 8, flags 12, observed 16, unobserved 20, claimed_ticks 24,
    claimed_ns 32, exe 40);
layout!(Chunk, CHUNK_HEADER_BYTES, contents 0, process 4, claimed_ticks 8, claimed_ns 16);
layout!(RequestRecord, 32, start 0, kind 8, thread 12, end 16, cpu 24);
layout!(CollectionRecord, 40, start 0, number 8, live_bytes 16, collector 24, reason 28, end 32);

const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);
const _: () = assert!(CHUNKS_AT.is_multiple_of(4096));

/// Bytes of a file of this many chunks.
pub const fn file_bytes(chunks: u32) -> u64 {
    CHUNKS_AT as u64 + chunks as u64 * CHUNK_BYTES as u64
}
