//! Hearing of collections.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

use heaptoll_clock::ticks;
use heaptoll_controls::{COLLECTION_END, COLLECTION_START, Event};

use crate::process::{Collecting, context, current as process};
use crate::start;

static HEARD: AtomicU32 = AtomicU32::new(0);
static UNHEARD: AtomicU32 = AtomicU32::new(0);

/// How many objects tell us, and how many somebody else.
pub fn heard() -> (u32, u32) {
    (HEARD.load(Ordering::Relaxed), UNHEARD.load(Ordering::Relaxed))
}

/// Listens to every object there is; how many that are, and how many have another listener.
pub fn to_all() -> (u32, u32) {
    let mut collector = 0;
    heaptoll_controls::each(|control| {
        // SAFETY: the function allocates nothing, locks nothing and waits for nobody, and its context is a number.
        let answer: c_int = unsafe { control.listen(listener, context(collector)) };
        collector += 1;
        match answer {
            0 => HEARD.fetch_add(1, Ordering::Relaxed),
            libc::EBUSY => UNHEARD.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
    });
    heard()
}

/// Called under the collector's lock, perhaps with all other threads stopped.
unsafe extern "C" fn listener(event: *const Event, collector: *mut c_void) {
    let now = ticks();
    // SAFETY: the manager gives a valid event, whose size says which members it has.
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
fn write(state: &Collecting, started: u64, ended: u64, event: &Event, collector: u32) {
    let Some(file) = start::file() else { return };
    // SAFETY: errno's address is valid for the calling thread.
    let errno = unsafe { *libc::__errno_location() };
    let next = state.next.load(Ordering::Relaxed);
    let place = if next == state.end.load(Ordering::Relaxed) {
        start::entry(file).and_then(|entry| file.claim_collections(entry - 1)).map(|room| {
            state.end.store(room.end, Ordering::Relaxed);
            room.next
        })
    } else {
        Some(next)
    };
    match place {
        // SAFETY: there is room; the chunk is this collector's, whose lock is held, and its mapping stays.
        Some(place) => unsafe {
            let record = &*place;
            record.start.store(started, Ordering::Relaxed);
            record.number.store(event.collection, Ordering::Relaxed);
            record.live_bytes.store(event.value, Ordering::Relaxed);
            record.collector.store(collector, Ordering::Relaxed);
            record.reason.store(state.reason.load(Ordering::Relaxed), Ordering::Relaxed);
            record.end.store(ended, Ordering::Release);
            state.next.store(place.add(1), Ordering::Relaxed);
        },
        None => file.lost_collection(),
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
