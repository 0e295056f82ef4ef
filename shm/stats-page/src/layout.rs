//! The bytes of the page: fixed offsets, the same as in `include/heaptoll.h`.

use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64};

use heaptoll_assertions::layout;

/// The environment variable that names the page's file.
pub const VARIABLE: &str = "HEAPTOLL_STATS";
/// The bytes `HEAPTOLL`, read as a little-endian word.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HEAPTOLL");
/// Version of the layout.
pub const VERSION: u32 = 1;
/// Bytes before the first slot.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 512;
/// `state` of a slot that is filled in.
pub const IN_USE: u32 = 2;

/// What writes a slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum WriterKind {
    /// A memory manager.
    #[default]
    Manager = 1,
    /// A layer in front of one.
    Layer = 2,
}

/// First page of the file.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// [`HEADER_BYTES`].
    pub header_bytes: AtomicU32,
    /// [`SLOT_BYTES`].
    pub slot_bytes: AtomicU32,
    /// Slots in the file.
    pub slots: AtomicU32,
    /// Slots requested so far; may exceed `slots`.
    pub claimed: AtomicU32,
    /// Zero.
    pub reserved_u32: u32,
    /// Zero.
    pub reserved: [u8; 4064],
}

/// The counters of one writer for one process image. Units and meaning are those of the C header. Every member is
/// atomic: other processes write to the page, not all of them by the rules.
#[repr(C)]
pub struct Slot {
    /// [`IN_USE`] once filled in.
    pub state: AtomicU32,
    /// [`WriterKind`].
    pub kind: AtomicU32,
    /// Process id.
    pub pid: AtomicI32,
    /// Its parent's.
    pub parent_pid: AtomicI32,
    /// `CLOCK_MONOTONIC` at the claim, ns.
    pub claimed_ns: AtomicU64,
    /// Zero.
    pub reserved_0: AtomicU64,
    /// Name of the manager or layer, NUL-terminated.
    pub writer: [AtomicU8; 32],
    /// `/proc/self/exe`, NUL-terminated; the end of it when longer.
    pub exe: [AtomicU8; 192],
    /// Bytes held from the system now.
    pub mapped_bytes: AtomicU64,
    /// Its high-water mark.
    pub mapped_high_bytes: AtomicU64,
    /// Bytes in live blocks now.
    pub live_bytes: AtomicU64,
    /// Its high-water mark.
    pub live_high_bytes: AtomicU64,
    /// Calls for a new block.
    pub malloc_calls: AtomicU64,
    /// Calls that resize a block.
    pub realloc_calls: AtomicU64,
    /// Calls that free a block.
    pub free_calls: AtomicU64,
    /// Of `malloc_calls`, those by `operator new`.
    pub new_calls: AtomicU64,
    /// Of `free_calls`, those by `operator delete`.
    pub delete_calls: AtomicU64,
    /// Calls that returned null.
    pub failed_calls: AtomicU64,
    /// Sum of the requested sizes, bytes.
    pub requested_bytes: AtomicU64,
    /// Collections finished.
    pub collections: AtomicU64,
    /// Time for which the world was stopped, ns.
    pub pause_total_ns: AtomicU64,
    /// Longest such pause, ns.
    pub pause_max_ns: AtomicU64,
    /// Bytes reclaimed by collections.
    pub collected_bytes: AtomicU64,
    /// Searches through a free structure, written at process end.
    pub searches: AtomicU64,
    /// Blocks examined in them.
    pub search_steps: AtomicU64,
    /// Blocks examined in the longest.
    pub search_longest: AtomicU64,
    /// Bytes of pages that hold a live block, now.
    pub used_bytes: AtomicU64,
    /// Its high-water mark.
    pub used_high_bytes: AtomicU64,
    /// Bytes in quarantined blocks, now.
    pub held_bytes: AtomicU64,
    /// Its high-water mark.
    pub held_high_bytes: AtomicU64,
    /// Times that a thread released its quarantined blocks.
    pub held_releases: AtomicU64,
    /// Blocks that were found changed when they left a quarantine.
    pub written_after_free: AtomicU64,
    /// Of `failed_calls`, those refused because the heap has a limit.
    pub refused_calls: AtomicU64,
    /// Processor time of collections, on all threads that took part, ns.
    pub collector_cpu_ns: AtomicU64,
    /// Bits of [`crate::UnreadPlaces`].
    pub unread_places: AtomicU64,
    /// Bits of [`crate::AbandonCause`].
    pub abandon_causes: AtomicU64,
    /// Zero.
    pub reserved_1: [AtomicU64; 4],
}

const fn zero() -> AtomicU64 {
    AtomicU64::new(0)
}

impl Slot {
    /// A slot outside of any page, for a process that has no page.
    pub const fn detached() -> Slot {
        Slot {
            state: AtomicU32::new(0),
            kind: AtomicU32::new(0),
            pid: AtomicI32::new(0),
            parent_pid: AtomicI32::new(0),
            claimed_ns: zero(),
            reserved_0: zero(),
            writer: [const { AtomicU8::new(0) }; 32],
            exe: [const { AtomicU8::new(0) }; 192],
            mapped_bytes: zero(),
            mapped_high_bytes: zero(),
            live_bytes: zero(),
            live_high_bytes: zero(),
            malloc_calls: zero(),
            realloc_calls: zero(),
            free_calls: zero(),
            new_calls: zero(),
            delete_calls: zero(),
            failed_calls: zero(),
            requested_bytes: zero(),
            collections: zero(),
            pause_total_ns: zero(),
            pause_max_ns: zero(),
            collected_bytes: zero(),
            searches: zero(),
            search_steps: zero(),
            search_longest: zero(),
            used_bytes: zero(),
            used_high_bytes: zero(),
            held_bytes: zero(),
            held_high_bytes: zero(),
            held_releases: zero(),
            written_after_free: zero(),
            refused_calls: zero(),
            collector_cpu_ns: zero(),
            unread_places: zero(),
            abandon_causes: zero(),
            reserved_1: [const { zero() }; 4],
        }
    }
}

// The tool reads members by these offsets, C by those of its header, and writers by name.
layout!(Header, HEADER_BYTES, magic 0, version 8, header_bytes 12, slot_bytes 16, slots 20, claimed 24, reserved_u32 28,
    reserved 32);
layout!(Slot, SLOT_BYTES, state 0, kind 4, pid 8, parent_pid 12, claimed_ns 16, reserved_0 24, writer 32, exe 64,
    mapped_bytes 256, mapped_high_bytes 264, live_bytes 272, live_high_bytes 280, malloc_calls 288, realloc_calls 296,
    free_calls 304, new_calls 312, delete_calls 320, failed_calls 328, requested_bytes 336, collections 344,
    pause_total_ns 352, pause_max_ns 360, collected_bytes 368, searches 376, search_steps 384, search_longest 392,
    used_bytes 400, used_high_bytes 408, held_bytes 416, held_high_bytes 424, held_releases 432, written_after_free 440,
    refused_calls 448, collector_cpu_ns 456, unread_places 464, abandon_causes 472,
    reserved_1 480);
