//! The control contract of `include/heaptoll.h`, for the tool and for measurements: census, collect, listen, check.

use core::ffi::{c_int, c_void};

use heaptoll_runtime::{Control, EventFunction, Message, RawCensus, Reason};

use crate::LAYER;
use crate::collection::{COLLECTION, collect as run, while_stopped};
use crate::freed::FREED;
use crate::shared::{REPORTER, TABLES};

/// A page, bytes.
const PAGE: u64 = 4096;

/// The census of another manager's heap, as far as the layer knows it: its blocks, and the pages they lie in.
unsafe extern "C" fn census(census: *mut RawCensus) -> c_int {
    // SAFETY: the caller passes null or a census, as the header requires.
    match unsafe { census.as_mut() } {
        Some(census) if census.size as usize >= size_of::<RawCensus>() => {
            // A page with blocks of both tables counts twice.
            let used = (TABLES.used_pages() + FREED.used_pages()) as u64 * PAGE;
            let (live, freed) = (TABLES.bytes() as u64, FREED.bytes() as u64);
            let live = live.min(used);
            let freed = freed.min(used - live);
            census.class_count = 0;
            census.exact = 0;
            census.mapped_bytes = used;
            census.mapped_high_bytes =
                used.max((TABLES.used_pages_high() + FREED.used_pages_high()) as u64 * PAGE);
            census.live_bytes = live;
            census.free_bytes = 0;
            census.metadata_bytes = 0;
            census.quarantined_bytes = freed;
            census.unused_bytes = used - live - freed;
            census.requested_bytes = u64::MAX;
            0
        }
        _ => libc::EINVAL,
    }
}

unsafe extern "C" fn collect() -> c_int {
    if run(Reason::Requested) { 0 } else { libc::EAGAIN }
}

unsafe extern "C" fn listen(function: Option<EventFunction>, context: *mut c_void) -> c_int {
    let _collection = COLLECTION.lock();
    REPORTER.listen(function, context)
}

unsafe extern "C" fn check() -> c_int {
    let _collection = COLLECTION.lock();
    match while_stopped(|| TABLES.check().and_then(|()| FREED.check())) {
        Some(Ok(())) => 0,
        None => libc::EAGAIN,
        Some(Err(damage)) => {
            let line = Message::new()
                .text(LAYER.name)
                .text(": the tables of blocks are damaged at ")
                .address(damage.address);
            line.text(": ").text(damage.what).write();
            libc::EINVAL
        }
    }
}

static CONTROL: Control = Control {
    version: 1,
    size: size_of::<Control>() as u32,
    name: if LAYER.guards { c"guard" } else { c"sweep" }.as_ptr(),
    manager_version: concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast(),
    census: Some(census),
    collect: Some(collect),
    listen: Some(listen),
    check: Some(check),
};

#[unsafe(no_mangle)]
extern "C" fn heaptoll_control_v1() -> *const Control {
    &CONTROL
}

/// 1 if a block that is handed out begins there, 0 if not: what the tool's proofs measure floating garbage by.
#[unsafe(no_mangle)]
extern "C" fn heaptoll_sweep_is_live(block: *const c_void) -> c_int {
    c_int::from(TABLES.bytes_of(block as usize).or_else(|| FREED.bytes_of(block as usize)).is_some())
}
