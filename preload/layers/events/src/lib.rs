//! The events layer: writes down when a program's requests begin and end, and when its manager collects, on one clock.
//!
//! A program marks its requests with `heaptoll_event_begin` and `heaptoll_event_end` of `include/heaptoll_events.h`,
//! which call the two functions exported here when this object is preloaded. Collections are heard through the control
//! symbol of `include/heaptoll.h`. Both go into the file that `HEAPTOLL_EVENTS` names ([`heaptoll_events`]); without it
//! nothing happens.
//!
//! - The layer exports nothing of the malloc family: managers serve the program as without it.
//! - What takes longer than a reading of the clock happens before a request begins: finding room for its record above
//!   all.
//! - A request that is begun and not ended leaves nothing; one begun twice counts from the second time. One that was
//!   begun before a fork ends in the parent only.
//! - A signal handler that marks requests takes the place of the one that it interrupts.
//! - Times of collections are taken when they are told, by the clock of the requests.
#![no_std]

mod listen;
mod process;
mod start;
mod thread;

use core::sync::atomic::Ordering;

use heaptoll_clock::ticks;

use crate::process::current as process;
use crate::thread::Thread;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    let message = b"heaptoll: a defect in the events layer; please report it\n";
    // SAFETY: the message is readable for its length; abort has no conditions.
    unsafe {
        libc::write(2, message.as_ptr().cast(), message.len());
        libc::abort()
    }
}

/// The calling thread begins a request.
///
/// # Safety
/// It has no conditions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptoll_event_begin_v1() {
    // SAFETY: the thread's own, of which there is no other reference: a signal handler that comes in between leaves a
    // state that is as good.
    let thread = unsafe { &mut *thread::current() };
    let ready = thread.next != thread.end && thread.process == process().entry.load(Ordering::Relaxed);
    if !ready && !make_room(thread) {
        thread.started = 0;
        return;
    }
    thread.started = ticks();
}

/// The calling thread ends the request that it began last.
///
/// # Safety
/// It has no conditions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptoll_event_end_v1(kind: u32) {
    let now = ticks();
    // SAFETY: as in `heaptoll_event_begin_v1`.
    let thread = unsafe { &mut *thread::current() };
    let started = core::mem::take(&mut thread.started);
    // Not begun; or begun before a fork, and the chunk is the parent's.
    if started == 0 || thread.process != process().entry.load(Ordering::Relaxed) {
        return;
    }
    // Read once: a handler of a signal that comes from here on may have requests of its own, and writes where this one
    // is about to. Then one of the two is lost, and nothing else: [`Thread::advance`] keeps to what the handler did.
    // SAFETY: a place in the thread's own.
    let next = unsafe { (&raw const thread.next).read_volatile() };
    if next == thread.end {
        return;
    }
    // SAFETY: there is room; the chunk is this thread's, and its mapping stays.
    unsafe {
        let record = &*next;
        record.start.store(started, Ordering::Relaxed);
        record.kind.store(kind, Ordering::Relaxed);
        record.thread.store(thread.number, Ordering::Relaxed);
        record.end.store(now, Ordering::Release);
    }
    thread.advance(next);
}

/// Finds the thread a chunk. Whether there is one.
#[cold]
#[inline(never)]
fn make_room(thread: &mut Thread) -> bool {
    // SAFETY: errno's address is valid for the calling thread.
    let errno = unsafe { *libc::__errno_location() };
    let made = start::file().is_some_and(|file| {
        *thread = Thread::NONE;
        let Some(entry) = start::entry(file) else {
            file.lost_request();
            return false;
        };
        let room =
            process().spare().or_else(|| file.claim_requests(entry - 1).map(|room| (room.next, room.end)));
        let Some((next, end)) = room else {
            file.lost_request();
            return false;
        };
        start::at_thread_end();
        // SAFETY: no conditions.
        let number = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        *thread = Thread { started: 0, next, end, process: entry, number };
        true
    });
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    made
}
