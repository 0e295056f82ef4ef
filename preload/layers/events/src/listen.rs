//! Registers listeners with the managers and records the collections that they announce.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;

use heaptoll_next::controls::{COLLECTION_END, COLLECTION_START, Event};
use heaptoll_process::tsc::ticks;

use crate::attachment;
use crate::observed;
use crate::process::{CollectorState, context, current as process};

/// Registers a listener with every object; returns how many accepted it, and how many have another listener.
pub fn to_all() -> (u32, u32) {
    let mut collector = 0;
    heaptoll_next::controls::each(|control| {
        // SAFETY: as the control contract requires, `listener` allocates nothing, takes no lock and waits for no
        // thread; its context is a number.
        let answer: c_int = unsafe { control.listen(listener, context(collector)) };
        collector += 1;
        match answer {
            0 => observed::count(true),
            libc::EBUSY => observed::count(false),
            _ => {}
        }
    });
    observed::counts()
}

/// Called under the collector's lock, perhaps with all other threads stopped.
unsafe extern "C" fn listener(event: *const Event, collector: *mut c_void) {
    let now = ticks();
    // SAFETY: the manager passes a valid event, whose `size` states which members it has; it is checked first.
    let event = unsafe {
        if (*event).size < size_of::<Event>() as u32 {
            return;
        }
        &*event
    };
    let Some(state) = process().collecting.get(collector.addr()) else { return };
    match event.kind {
        COLLECTION_START => {
            state.started.store(now, Ordering::Relaxed);
            state.reason.store(event.value as u32, Ordering::Relaxed);
        }
        COLLECTION_END => {
            let started = state.started.swap(0, Ordering::Relaxed);
            if started != 0 {
                write(state, started, now, event, collector.addr() as u32);
            }
        }
        _ => {}
    }
}

/// Appends a record.
fn write(state: &CollectorState, started: u64, ended: u64, event: &Event, collector: u32) {
    let Some(file) = attachment::file() else { return };
    // SAFETY: `__errno_location` returns the address of the calling thread's errno.
    let errno = unsafe { *libc::__errno_location() };
    let next = state.next.load(Ordering::Relaxed);
    let free = if next == state.end.load(Ordering::Relaxed) {
        attachment::entry(file).and_then(|entry| file.claim_collections(entry - 1)).map(|chunk| {
            state.end.store(chunk.end, Ordering::Relaxed);
            chunk.next
        })
    } else {
        Some(next)
    };
    match free {
        // SAFETY: `record` is before the end of a chunk that was claimed for this collector, whose lock the caller
        // holds; the mapping stays.
        Some(free) => unsafe {
            let record = &*free;
            record.start.store(started, Ordering::Relaxed);
            record.number.store(event.collection, Ordering::Relaxed);
            record.live_bytes.store(event.value, Ordering::Relaxed);
            record.collector.store(collector, Ordering::Relaxed);
            record.reason.store(state.reason.load(Ordering::Relaxed), Ordering::Relaxed);
            record.end.store(ended, Ordering::Release);
            state.next.store(free.add(1), Ordering::Relaxed);
        },
        None => file.lost_collection(),
    }
    // SAFETY: `__errno_location` returns the address of the calling thread's errno.
    unsafe { *libc::__errno_location() = errno };
}
