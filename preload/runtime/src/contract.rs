//! The control contract of `include/heaptoll.h`, version 1, as Rust sees it. The layouts are fixed by that header;
//! the conformance suite reads them through it.

use core::ffi::{c_char, c_int, c_void};

/// `struct heaptoll_class`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RawClass {
    pub block_bytes: u64,
    pub live_blocks: u64,
    pub live_bytes: u64,
    pub free_blocks: u64,
    pub free_bytes: u64,
    pub quarantined_blocks: u64,
    pub quarantined_bytes: u64,
}

/// `struct heaptoll_census`.
#[repr(C)]
#[derive(Debug)]
pub struct RawCensus {
    pub size: u32,
    pub class_capacity: u32,
    pub class_count: u32,
    pub exact: u32,
    pub mapped_bytes: u64,
    pub mapped_high_bytes: u64,
    pub live_bytes: u64,
    pub free_bytes: u64,
    pub metadata_bytes: u64,
    pub quarantined_bytes: u64,
    pub unused_bytes: u64,
    pub requested_bytes: u64,
    pub classes: *mut RawClass,
}

impl RawCensus {
    /// Writes the next class if there is space for it, and counts it.
    ///
    /// # Safety
    /// `classes` is null or has space for `class_capacity` of them.
    pub unsafe fn push(&mut self, class: RawClass) {
        if self.class_count < self.class_capacity && !self.classes.is_null() {
            // SAFETY: `class_count` is below `class_capacity`, for which the array has space, as this function
            // requires.
            unsafe { self.classes.add(self.class_count as usize).write(class) };
        }
        self.class_count += 1;
    }
}

/// `struct heaptoll_event`.
#[repr(C)]
#[derive(Debug)]
pub struct RawEvent {
    pub size: u32,
    pub kind: u32,
    pub time_ns: u64,
    pub collection: u64,
    pub value: u64,
    pub mapped_bytes: u64,
}

/// `HEAPTOLL_COLLECTION_START`; the value is a [`Reason`].
pub const COLLECTION_START: u32 = 1;
/// `HEAPTOLL_COLLECTION_END`; the value is live bytes.
pub const COLLECTION_END: u32 = 2;
/// `HEAPTOLL_PHASE`; the value is a [`Phase`].
pub const PHASE: u32 = 3;
/// `HEAPTOLL_HEAP_GROWN`; the value is bytes mapped after it.
pub const HEAP_GROWN: u32 = 4;
/// `HEAPTOLL_HEAP_SHRUNK`; the value is bytes mapped after it.
pub const HEAP_SHRUNK: u32 = 5;

/// Why a collection began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Reason {
    /// Enough was allocated.
    Allocation = 1,
    /// The program or the tool requested it.
    Requested = 2,
    /// The system gave no more memory.
    Pressure = 3,
}

/// `enum heaptoll_phase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Phase {
    /// Mutators are being stopped.
    Stop = 1,
    /// Roots are found.
    Roots = 2,
    /// What is reachable is marked.
    Mark = 3,
    /// What is not is reclaimed.
    Sweep = 4,
    /// Mutators run again.
    Resume = 5,
}

/// `heaptoll_event_function`.
pub type EventFunction = unsafe extern "C" fn(event: *const RawEvent, context: *mut c_void);

/// `struct heaptoll_control`.
#[repr(C)]
#[derive(Debug)]
pub struct Control {
    pub version: u32,
    pub size: u32,
    pub name: *const c_char,
    pub manager_version: *const c_char,
    pub census: Option<unsafe extern "C" fn(*mut RawCensus) -> c_int>,
    pub collect: Option<unsafe extern "C" fn() -> c_int>,
    pub listen: Option<unsafe extern "C" fn(Option<EventFunction>, *mut c_void) -> c_int>,
    pub check: Option<unsafe extern "C" fn() -> c_int>,
}

// SAFETY: it is never written, and its pointers are to statics.
unsafe impl Sync for Control {}

const _: () = assert!(size_of::<RawClass>() == 56 && size_of::<RawCensus>() == 88);
const _: () = assert!(size_of::<RawEvent>() == 40 && size_of::<Control>() == 56);
