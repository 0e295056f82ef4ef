//! The files of a sampled run, in a folder of the tool's that `HEAPTOLL_SAMPLE` names: `control`, which the tool makes, and
//! `PID.N` of each process image, which its layer makes. All of them lie in memory and are mapped.
//!
//! A record of the process's file is complete when its count is not 0, which is stored last. What a killed process leaves
//! is whole, therefore.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::sums::Sums;

/// The variable that names the folder.
pub const VARIABLE: &CStr = c"HEAPTOLL_SAMPLE";
/// The name of the control page in it.
pub const CONTROL: &str = "control";
/// What both kinds of file begin with.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HTSAMPLE");
/// The version of what follows.
pub const VERSION: u32 = 2;
/// Bytes of a page, to which parts are aligned.
pub const PAGE: usize = 4096;
/// Bytes of a path at most.
pub const PATH: usize = 1024;

/// The page by which the tool controls all layers of a run; a file of its own.
#[repr(C)]
#[derive(Debug)]
pub struct Control {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// Whether allocations are sampled now. The only word that the tool changes later.
    pub awake: AtomicU32,
    /// Mean distance of sample points, bytes.
    pub mean_bytes: u64,
    /// What the threads' random sequences begin with, where `is_seeded`.
    pub seed: u64,
    /// Whether runs are to repeat themselves.
    pub is_seeded: u32,
    /// Process images that could not make their file; counted by the layers.
    pub without_file: AtomicU32,
}

/// Offset of [`Control::awake`] in its file.
pub const AWAKE_AT: u64 = 12;

const _: () = {
    assert!(core::mem::offset_of!(Control, version) == 8);
    assert!(core::mem::offset_of!(Control, awake) == AWAKE_AT as usize);
    assert!(core::mem::offset_of!(Control, mean_bytes) == 16);
    assert!(core::mem::offset_of!(Control, seed) == 24);
    assert!(core::mem::offset_of!(Control, is_seeded) == 32);
    assert!(core::mem::offset_of!(Control, without_file) == 36);
    assert!(size_of::<Control>() <= PAGE);
};

/// The beginning of a process's file.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    /// [`MAGIC`], stored last.
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// Process number.
    pub pid: AtomicU32,
    /// When the image began, Unix ns.
    pub started_unix_ns: AtomicU64,
    /// The largest number of a site, plus one.
    pub sites: AtomicU32,
    /// Records of objects.
    pub objects: AtomicU32,
    /// Samples whose call stack found no record: they are those of site 0.
    pub without_site: AtomicU64,
    /// Samples whose free cannot be noticed: they do not count as live.
    pub not_followed: AtomicU64,
    /// Bytes of `exe`.
    pub exe_bytes: AtomicU32,
    /// The executable's path, by the name that was run where the file has several.
    pub exe: [u8; PATH],
    /// Bytes of `manager`.
    pub manager_bytes: AtomicU32,
    /// The path of the object that the layer's `malloc` is bound to.
    pub manager: [u8; PATH],
}

const _: () = {
    assert!(core::mem::offset_of!(Header, version) == 8);
    assert!(core::mem::offset_of!(Header, pid) == 12);
    assert!(core::mem::offset_of!(Header, started_unix_ns) == 16);
    assert!(core::mem::offset_of!(Header, sites) == 24);
    assert!(core::mem::offset_of!(Header, objects) == 28);
    assert!(core::mem::offset_of!(Header, without_site) == 32);
    assert!(core::mem::offset_of!(Header, not_followed) == 40);
    assert!(core::mem::offset_of!(Header, exe_bytes) == 48);
    assert!(core::mem::offset_of!(Header, exe) == 52);
    assert!(core::mem::offset_of!(Header, manager_bytes) == 52 + PATH);
    assert!(core::mem::offset_of!(Header, manager) == 56 + PATH);
    assert!(size_of::<Header>() <= PAGE);
};

/// Objects at most: as many as the layer's call stacks record.
pub const MOST_OBJECTS: usize = 2048;
/// Words of an object: three addresses, the length of its path, and the path, seven bytes a word.
pub const OBJECT_WORDS: usize = 4 + PATH.div_ceil(7);

/// Where code lies in memory: the definition of site 0 by the layer's call stacks.
#[repr(C)]
#[derive(Debug)]
pub struct ObjectRecord {
    /// Words in use, stored last.
    pub count: AtomicU32,
    /// When it was recorded, Unix s.
    pub recorded_unix_s: AtomicU64,
    /// As `heaptoll_stacks` defines them.
    pub words: [AtomicU64; OBJECT_WORDS],
}

/// Call stacks at most; samples of further ones are those of site 0.
pub const MOST_SITES: usize = 1 << 16;
/// Words of a call stack: as many frames as the layer walks, and what follows them.
pub const SITE_WORDS: usize = 69;

/// A call stack and its samples.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct SiteRecord {
    /// All that were sampled.
    pub allocated: Sums,
    /// Those of them that were freed since.
    pub freed: Sums,
    /// Words in use, stored last.
    pub count: AtomicU32,
    /// Records of objects that there were before it: later ones may lie where others had been unloaded.
    pub objects: AtomicU32,
    /// Return addresses, innermost first, and what follows them.
    pub words: [AtomicU64; SITE_WORDS],
}

/// Sites whose memory is reserved at a time: a whole number of pages.
pub const GROUP: usize = 32;
/// Where the records of objects begin.
pub const OBJECTS_AT: usize = PAGE;
/// Where those of sites begin.
pub const SITES_AT: usize = OBJECTS_AT + MOST_OBJECTS * size_of::<ObjectRecord>();
/// Bytes of a process's file, which is sparse.
pub const FILE_BYTES: usize = SITES_AT + MOST_SITES * size_of::<SiteRecord>();

const _: () = {
    assert!(core::mem::offset_of!(SiteRecord, freed) == Sums::BYTES);
    assert!(core::mem::offset_of!(SiteRecord, count) == 2 * Sums::BYTES);
    assert!(core::mem::offset_of!(SiteRecord, objects) == 2 * Sums::BYTES + 4);
    assert!(core::mem::offset_of!(SiteRecord, words) == 2 * Sums::BYTES + 8);
    assert!(size_of::<SiteRecord>() == 640);
    assert!(core::mem::offset_of!(ObjectRecord, recorded_unix_s) == 8);
    assert!(core::mem::offset_of!(ObjectRecord, words) == 16);
    assert!(SITES_AT.is_multiple_of(PAGE));
    assert!((GROUP * size_of::<SiteRecord>()).is_multiple_of(PAGE));
    assert!(MOST_SITES.is_multiple_of(GROUP));
};
