//! The bytes of the shared file: a header, the process table, the ring directory, the table of execs, the rings.
//!
//! Fields with different writers lie on different cache lines: a line that two cores write goes back and forth
//! between them at every event.

use heaptoll_assertions::{assert_internal, layout};
use heaptoll_process::address_space::leaves_enough;

use crate::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64};
use crate::bounds::LEAST_BLOCK_LOG2;
use crate::flags::Flags;

/// The environment variable that names the file.
pub const VARIABLE: &str = "HEAPTOLL_RECORD";
/// The bytes `HTRING01`, read as a little-endian word.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HTRING01");
/// Version of the layout.
pub const VERSION: u32 = 7;
/// Bytes of in-process facts in a process entry.
pub const FACTS_BYTES: usize = 1024;
/// Bytes kept of an executable's path.
pub const EXE_BYTES: usize = 512;
/// Bytes kept of the path of the object that serves `malloc`.
pub const MANAGER_BYTES: usize = 220;
/// Bytes of a page, to which the parts of the file are aligned.
pub const PAGE: usize = 4096;
/// Maximum number of rings in a file.
pub const MOST_RINGS: usize = 1 << 13;
/// Blocks for which a ring has memory when it is claimed; afterwards it doubles.
pub const FIRST_BLOCKS: u32 = 2;
/// Process entries whose memory is reserved together; the tool reserves that of the first group.
pub const ENTRY_GROUP: usize = 64;
/// Process entries that a process with a limited address space maps.
pub const LIMITED_ENTRIES: usize = 8 * ENTRY_GROUP;
/// Entries of the table of execs.
pub const EXECS: usize = 128;
/// Bytes kept of the file that an exec names.
pub const EXEC_PATH_BYTES: usize = 96;

/// The gate's bits. A gate is never 0, so that 0 can stand for "no gate".
pub mod gate {
    /// Set in every gate.
    pub const VALID: u32 = 1;
    /// Producers wait while this is set.
    pub const PAUSE: u32 = 1 << 2;
    /// Every event carries a sequence number.
    pub const SEQUENCED: u32 = 1 << 3;
    /// The tool reads no more events of this process.
    pub const DISMISSED: u32 = 1 << 4;
    /// In-process facts are requested.
    pub const FACTS: u32 = 1 << 5;
    /// The process has ended but for its memory, and waits until the tool has read that.
    pub const ENDING: u32 = 1 << 6;
    /// The process has recorded the last event before [`StopPoint`](super::StopPoint), and waits as above.
    pub const STOPPED: u32 = 1 << 7;
    /// One tick.
    pub const TICK: u32 = 1 << 8;
}

/// First page of the file.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// [`Flags`].
    pub flags: AtomicU32,
    /// Process number of the tool, in its own namespace.
    pub tool_pid: AtomicI32,
    /// Entries of the process table.
    pub processes: AtomicU32,
    /// Rings.
    pub rings: AtomicU32,
    /// Binary logarithm of the words of a ring.
    pub ring_log2: AtomicU32,
    /// Binary logarithm of the words of a block.
    pub block_log2: AtomicU32,
    /// 1 once the tool has closed the file.
    pub closed: AtomicU32,
    /// `CLOCK_MONOTONIC` when the file was made, ns: times in the rings count from here.
    pub created_ns: AtomicU64,
    /// Inode of the tool's namespace of process numbers; 0 unknown.
    pub namespace: AtomicU64,
    /// Blocks of memory that all rings together may have.
    pub budget: AtomicU32,
    /// Counts the tool's ticks of all gates: shows a producer in another namespace that the tool runs.
    pub beat: CacheLine<AtomicU32>,
    /// 1 while the tool sleeps until it is woken: a futex.
    pub doorbell: CacheLine<AtomicU32>,
    /// The fields that registration writes.
    pub registry: CacheLine<Registry>,
    /// Where one image waits for the tool.
    pub stop: CacheLine<Stop>,
    /// Zero.
    pub reserved_1: [u8; PAGE - 5 * 64],
}

/// A [`StopPoint`] in the file; no events: none.
#[repr(C)]
pub struct Stop {
    /// See [`StopPoint::events`].
    pub events: AtomicU64,
    /// See [`StopPoint::image`].
    pub image: AtomicU32,
}

/// A process image waits, once it has recorded so many events, until the tool has read its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopPoint {
    /// The image, by its number among all that register.
    pub image: u32,
    /// Its events, counted as they are numbered: a resize is two.
    pub events: u64,
}

/// Alone on its cache line.
#[repr(C, align(64))]
pub struct CacheLine<T>(pub T);

/// The fields that processes and threads write when they register.
#[repr(C)]
pub struct Registry {
    /// Process entries that have registered and that the tool has not read: the newest, plus one; 0 none.
    pub newest: AtomicU32,
    /// No process entry below this one is free.
    pub process_hint: AtomicU32,
    /// No ring below this one is free.
    pub ring_hint: AtomicU32,
    /// Process images registered so far.
    pub images: AtomicU32,
    /// Counts rings and entries that have become free: a futex.
    pub freed: AtomicU32,
    /// Processes and threads that wait for it.
    pub waiting: AtomicU32,
    /// Processes that found no entry: they are not recorded.
    pub processes_left_out: AtomicU32,
    /// Threads that found no ring, not even a shared one: they are not recorded.
    pub threads_left_out: AtomicU32,
    /// Events that could not be recorded: from signal handlers that interrupted the recording of another event.
    pub events_left_out: AtomicU32,
    /// Blocks of memory that all rings together have. A count, on which no access depends.
    pub blocks: AtomicU32,
    /// Execs that found no entry in their table.
    pub execs_left_out: AtomicU32,
    /// Processes whose limit of address space leaves too little: they are not recorded.
    pub limited: AtomicU32,
    /// Processes that are recorded without the call stacks that are wanted, for the same reason.
    pub without_stacks: AtomicU32,
}

/// [`Process::state`]: the low byte; the process number is above it.
pub mod state {
    /// Unowned.
    pub const FREE: u64 = 0;
    /// In use; filled in once it is in [`Registry::newest`](super::Registry::newest).
    pub const CLAIMED: u64 = 1;
}

/// One process image.
#[repr(C, align(64))]
pub struct Process {
    /// [`state`] and, from bit 8, the process number as the process sees it.
    pub state: AtomicU64,
    /// Its parent's number.
    pub parent_pid: AtomicI32,
    /// Number of the image: counts registrations.
    pub image: AtomicU32,
    /// `CLOCK_MONOTONIC` at registration, ns.
    pub started_ns: AtomicU64,
    /// Inode of the namespace of its process number; 0 unknown.
    pub namespace: AtomicU64,
    /// Next in the list of new processes, plus one.
    pub next: AtomicU32,
    /// Length of `exe`.
    pub exe_bytes: AtomicU32,
    /// [`StopPoint::events`] of this image; 0: it does not stop. Written at registration.
    pub stop_after: AtomicU64,
    /// 1: it was forked from an image that had registered. Written at registration.
    pub forked: AtomicU32,
    /// See [`gate`]. A futex.
    pub gate: CacheLine<AtomicU32>,
    /// The next sequence number.
    pub sequence: CacheLine<AtomicU64>,
    /// Rings of this process that the tool has not read: the newest, plus one; 0 none.
    pub newest: CacheLine<AtomicU32>,
    /// Threads registered so far.
    pub threads: AtomicU32,
    /// Counts requests for facts.
    pub facts_requested: AtomicU32,
    /// The last request that was answered.
    pub facts_answered: AtomicU32,
    /// 1 while a thread answers.
    pub facts_lock: AtomicU32,
    /// Bytes of the answer.
    pub facts_bytes: AtomicU32,
    /// The options of the request: the layer's hook finds them in the first byte.
    pub facts_options: AtomicU32,
    /// 1 once the process has read that it is dismissed, or has detached; 2 once the tool has seen that another image
    /// replaced it.
    pub detached: AtomicU32,
    /// Threads of the process that found no ring: they are not recorded.
    pub threads_left_out: AtomicU32,
    /// `/proc/self/exe`; the end of it when longer.
    pub exe: [AtomicU8; EXE_BYTES],
    /// Length of `manager`.
    pub manager_bytes: AtomicU32,
    /// The object that the layer's `malloc` is bound to; the end of its path when longer.
    pub manager: [AtomicU8; MANAGER_BYTES],
    /// Facts.
    pub facts: Facts,
}

/// What a process reports about itself, in the layer's format.
#[repr(C, align(1024))]
pub struct Facts(pub [AtomicU8; FACTS_BYTES]);

/// One ring's control words.
#[repr(C)]
pub struct Control {
    /// The ring's owner, and the fields that the owner writes.
    pub owner: CacheLine<Owner>,
    /// The fields that the consumer writes.
    pub consumer: CacheLine<Consumer>,
}

/// See [`Control::owner`].
#[repr(C)]
pub struct Owner {
    /// 0: free. Otherwise bits 0-31 the kernel's number of the thread (0: unknown, or shared by threads), bits 32-63
    /// the process entry plus one.
    pub id: AtomicU64,
    /// The thread's index in its process; [`SHARED`] for a ring that threads share.
    pub thread: AtomicU32,
    /// Next in the process's list of new rings, plus one.
    pub next: AtomicU32,
    /// 1 from before a sequence number is taken until its words are written.
    pub busy: AtomicU32,
}

/// [`Owner::thread`] of a ring that threads share under a lock: notes in it state which thread wrote what follows.
pub const SHARED: u32 = u32::MAX;

/// See [`Control::consumer`].
#[repr(C)]
pub struct Consumer {
    /// Blocks drained since the ring was claimed, modulo 2^32: a futex.
    pub taken: AtomicU32,
    /// 1 when the producer waits for `taken` to move.
    pub waiting: AtomicU32,
    /// Blocks for which the owner has reserved memory, a power of two, and [`FIXED`]. The owner writes it, seldom.
    pub reach: AtomicU32,
    /// Blocks that are counted in [`Registry::blocks`]: a free ring keeps its memory. The owner writes it, seldom.
    pub held: AtomicU32,
}

/// Of [`Consumer::reach`]: the ring grows no further, so its owner continues at its first block.
pub const FIXED: u32 = 1 << 31;

/// A call that replaces a process image, or starts a process: the resulting image should register. The table follows
/// the directory.
#[repr(C, align(128))]
pub struct Exec {
    /// 0: free. Otherwise [`exec_state`] and, from bit 8, a process number as the process sees it: that of the process
    /// about to become another image; until then, that of the process that fills in the note.
    pub state: AtomicU64,
    /// Inode of the namespace of that number; 0 unknown.
    pub namespace: AtomicU64,
    /// `CLOCK_MONOTONIC` before the call, ns.
    pub since_ns: AtomicU64,
    /// Length of `path`.
    pub path_bytes: AtomicU32,
    /// The file; the end of its path when longer.
    pub path: [AtomicU8; EXEC_PATH_BYTES],
    /// The kernel's number of the calling thread.
    pub tid: AtomicU32,
}

/// The low byte of [`Exec::state`].
pub mod exec_state {
    /// Unowned.
    pub const FREE: u64 = 0;
    /// Being filled in, or of a call in progress that starts a process.
    pub const CLAIMED: u64 = 1;
    /// The process is about to become, or has become, an image that should register.
    pub const BEGUN: u64 = 2;
    /// The image cannot register: it was started without the variables that load the layer.
    pub const WITHOUT: u64 = 3;
}

/// Where each part lies in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Entries of the process table.
    pub processes: usize,
    /// Rings.
    pub rings: usize,
    /// Binary logarithm of the words of a ring.
    pub ring_log2: u32,
    /// Binary logarithm of the words of a block.
    pub block_log2: u32,
}

const fn to_page(bytes: usize) -> usize {
    (bytes + PAGE - 1) & !(PAGE - 1)
}

impl Geometry {
    /// Bytes before the ring directory.
    pub const fn directory(&self) -> usize {
        to_page(size_of::<Header>() + self.processes * size_of::<Process>())
    }

    /// Bytes before the table of execs.
    pub const fn execs(&self) -> usize {
        to_page(self.directory() + self.rings * size_of::<Control>())
    }

    /// Bytes before the first ring.
    pub const fn first_ring(&self) -> usize {
        to_page(self.execs() + EXECS * size_of::<Exec>())
    }

    /// Bytes of a block.
    pub const fn block_bytes(&self) -> usize {
        8 << self.block_log2
    }

    /// The byte range of a group of entries of the process table.
    pub fn entry_group(&self, group: usize) -> core::ops::Range<usize> {
        assert_internal!(group * ENTRY_GROUP < self.processes, "a group of entries lies in the table");
        let from = (group * ENTRY_GROUP).min(self.processes);
        let to = (from + ENTRY_GROUP).min(self.processes);
        size_of::<Header>() + from * size_of::<Process>()..size_of::<Header>() + to * size_of::<Process>()
    }

    /// The byte range of blocks of a ring.
    pub fn blocks(&self, ring: usize, blocks: core::ops::Range<u32>) -> core::ops::Range<usize> {
        assert_internal!(
            ring < self.rings && blocks.start <= blocks.end && blocks.end <= self.ring_blocks(),
            "blocks lie in a ring of the file"
        );
        let first = self.first_ring() + ring * self.ring_bytes();
        first + blocks.start as usize * self.block_bytes()..first + blocks.end as usize * self.block_bytes()
    }

    /// Blocks that a ring begins with.
    pub const fn first_blocks(&self) -> u32 {
        if self.ring_blocks() < FIRST_BLOCKS { self.ring_blocks() } else { FIRST_BLOCKS }
    }

    /// The byte range of the process table that a process with a limited address space does without.
    pub const fn further_entries(&self) -> core::ops::Range<usize> {
        let entries = if self.processes < LIMITED_ENTRIES { self.processes } else { LIMITED_ENTRIES };
        to_page(size_of::<Header>() + entries * size_of::<Process>())..self.directory()
    }

    /// Whether a process may keep `rings` rings under a `limit` of its address space, bytes: most of that is the program's.
    pub const fn fits(&self, rings: usize, limit: usize) -> bool {
        let further = self.further_entries();
        leaves_enough(self.bytes(rings) - (further.end - further.start), limit)
    }

    /// Whether it may map them: the whole is mapped at first.
    pub const fn may_map(&self, rings: usize, limit: usize) -> bool {
        self.fits(rings, limit) && self.bytes(rings) <= limit / 2
    }

    /// Decodes [`Consumer::reach`], if it is valid: the blocks, and whether their number is final.
    pub const fn reach(&self, word: u32) -> Option<(u32, bool)> {
        let blocks = word & !FIXED;
        if blocks.is_power_of_two() && blocks >= self.first_blocks() && blocks <= self.ring_blocks() {
            Some((blocks, word & FIXED != 0))
        } else {
            None
        }
    }

    /// Bytes of a ring.
    pub const fn ring_bytes(&self) -> usize {
        8 << self.ring_log2
    }

    /// Words of a ring.
    pub const fn ring_words(&self) -> usize {
        1 << self.ring_log2
    }

    /// Words of a block.
    pub const fn block_words(&self) -> usize {
        1 << self.block_log2
    }

    /// Blocks of a ring.
    pub const fn ring_blocks(&self) -> u32 {
        1 << (self.ring_log2 - self.block_log2)
    }

    /// Bytes of a file, or of the mapping of its first `rings` rings.
    pub const fn bytes(&self, rings: usize) -> usize {
        self.first_ring() + rings * self.ring_bytes()
    }

    /// Number of rings, of `mapped` ones, that are reserved for threads to share: the first ones.
    pub const fn shared_rings(&self, mapped: usize) -> usize {
        let eighth = mapped / 8;
        if eighth == 0 { 1 } else { eighth }
    }
}

impl Header {
    /// The geometry that the header states; `None` when it is invalid.
    pub fn geometry(&self) -> Option<Geometry> {
        use crate::atomic::Ordering::Relaxed;
        let geometry = Geometry {
            processes: self.processes.load(Relaxed) as usize,
            rings: self.rings.load(Relaxed) as usize,
            ring_log2: self.ring_log2.load(Relaxed),
            block_log2: self.block_log2.load(Relaxed),
        };
        geometry.sensible().then_some(geometry)
    }

    /// What the tool wants recorded.
    pub fn flags(&self) -> Flags {
        Flags::from_bits(self.flags.load(crate::atomic::Ordering::Relaxed))
    }
}

impl Geometry {
    /// Whether it keeps the bounds on which the code relies: a block holds two groups of any length, a ring two blocks.
    pub const fn sensible(&self) -> bool {
        self.block_log2 >= LEAST_BLOCK_LOG2
            && self.block_log2 < self.ring_log2
            && self.ring_log2 <= 24
            && self.rings >= 1
            && self.rings <= MOST_RINGS
            && self.processes >= 1
            && self.processes <= 1 << 20
    }
}

// Both sides and every process of a run have one layout, also those that another build of the same version loads.
layout!(Header, PAGE, magic 0, version 8, flags 12, tool_pid 16, processes 20, rings 24, ring_log2 28, block_log2 32,
    closed 36, created_ns 40, namespace 48, budget 56, beat 64, doorbell 128, registry 192, stop 256, reserved_1 320);
layout!(Registry, 52, newest 0, process_hint 4, ring_hint 8, images 12, freed 16, waiting 20, processes_left_out 24,
    threads_left_out 28, events_left_out 32, blocks 36, execs_left_out 40, limited 44, without_stacks 48);
layout!(Process, 2048, state 0, parent_pid 8, image 12, started_ns 16, namespace 24, next 32, exe_bytes 36,
    stop_after 40, forked 48, gate 64, sequence 128, newest 192, threads 256, facts_requested 260, facts_answered 264,
    facts_lock 268, facts_bytes 272, facts_options 276, detached 280, threads_left_out 284, exe 288, manager_bytes 800,
    manager 804, facts 1024);
layout!(Control, 128, owner 0, consumer 64);
layout!(Owner, 24, id 0, thread 8, next 12, busy 16);
layout!(Consumer, 16, taken 0, waiting 4, reach 8, held 12);
layout!(Exec, 128, state 0, namespace 8, since_ns 16, path_bytes 24, path 28, tid 124);

const _: () = {
    use gate::{DISMISSED, ENDING, FACTS, PAUSE, SEQUENCED, STOPPED, TICK, VALID};
    // Each bit of the gate means one thing, and ticks change none of them.
    let bits = VALID | PAUSE | SEQUENCED | DISMISSED | FACTS | ENDING | STOPPED;
    assert!(bits.count_ones() == 7 && bits.leading_zeros() > TICK.leading_zeros());
    // A ring of the most words in the smallest blocks has fewer blocks than the mark has as a number.
    assert!(1 << (24 - LEAST_BLOCK_LOG2) < FIXED);
    assert!(FACTS_BYTES == size_of::<Facts>());
};
