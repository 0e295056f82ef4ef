//! The control contract of `include/heaptoll.h`, version 1, as Rust sees it. The layouts are fixed by that header;
//! the conformance suite reads them through it.

use core::ffi::{c_char, c_int, c_void};

use heaptoll_assertions::assert_internal;

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
        assert_internal!(
            class.live_blocks > 0 || class.live_bytes == 0,
            "bytes of a class are those of its blocks"
        );
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

// The layouts of include/heaptoll.h, member by member.
const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<RawClass>() == 56 && align_of::<RawClass>() == 8);
    assert!(offset_of!(RawClass, block_bytes) == 0 && offset_of!(RawClass, live_blocks) == 8);
    assert!(offset_of!(RawClass, live_bytes) == 16 && offset_of!(RawClass, free_blocks) == 24);
    assert!(offset_of!(RawClass, free_bytes) == 32 && offset_of!(RawClass, quarantined_blocks) == 40);
    assert!(offset_of!(RawClass, quarantined_bytes) == 48);
    assert!(size_of::<RawCensus>() == 88 && align_of::<RawCensus>() == 8);
    assert!(offset_of!(RawCensus, size) == 0 && offset_of!(RawCensus, class_capacity) == 4);
    assert!(offset_of!(RawCensus, class_count) == 8 && offset_of!(RawCensus, exact) == 12);
    assert!(offset_of!(RawCensus, mapped_bytes) == 16 && offset_of!(RawCensus, mapped_high_bytes) == 24);
    assert!(offset_of!(RawCensus, live_bytes) == 32 && offset_of!(RawCensus, free_bytes) == 40);
    assert!(offset_of!(RawCensus, metadata_bytes) == 48 && offset_of!(RawCensus, quarantined_bytes) == 56);
    assert!(offset_of!(RawCensus, unused_bytes) == 64 && offset_of!(RawCensus, requested_bytes) == 72);
    assert!(offset_of!(RawCensus, classes) == 80);
    assert!(size_of::<RawEvent>() == 40 && align_of::<RawEvent>() == 8);
    assert!(offset_of!(RawEvent, size) == 0 && offset_of!(RawEvent, kind) == 4);
    assert!(offset_of!(RawEvent, time_ns) == 8 && offset_of!(RawEvent, collection) == 16);
    assert!(offset_of!(RawEvent, value) == 24 && offset_of!(RawEvent, mapped_bytes) == 32);
    assert!(size_of::<Control>() == 56 && align_of::<Control>() == 8);
    assert!(offset_of!(Control, version) == 0 && offset_of!(Control, size) == 4);
    assert!(offset_of!(Control, name) == 8 && offset_of!(Control, manager_version) == 16);
    assert!(offset_of!(Control, census) == 24 && offset_of!(Control, collect) == 32);
    assert!(offset_of!(Control, listen) == 40 && offset_of!(Control, check) == 48);
};

// The numbers of include/heaptoll.h.
const _: () = {
    assert!(
        COLLECTION_START == 1 && COLLECTION_END == 2 && PHASE == 3 && HEAP_GROWN == 4 && HEAP_SHRUNK == 5
    );
    assert!(Phase::Stop as u64 == 1 && Phase::Roots as u64 == 2 && Phase::Mark as u64 == 3);
    assert!(Phase::Sweep as u64 == 4 && Phase::Resume as u64 == 5);
    assert!(Reason::Allocation as u64 == 1 && Reason::Requested as u64 == 2 && Reason::Pressure as u64 == 3);
};
