//! The events layer: records when a program's requests begin and end, and when its manager collects, on one clock.
//!
//! A program marks its requests with `heaptoll_event_begin` and `heaptoll_event_end` of `include/heaptoll_events.h`,
//! which call the two functions exported here when this object is preloaded. Managers announce collections through the
//! control symbol of `include/heaptoll.h`. Both go into the file that `HEAPTOLL_EVENTS` names ([`heaptoll_events`]);
//! without it nothing happens.
//!
//! - The layer exports nothing of the malloc family: managers serve the program as without it.
//! - What takes longer than a reading of the clock happens before a request begins, in particular claiming a chunk.
//! - A request that begins and does not end leaves no record; one begun twice counts from the second time. One that
//!   begins before a fork ends in the parent only.
//! - A request in a signal handler replaces the one that the handler interrupts.
//! - Collections are timed when they are announced, by the clock of the requests.
#![no_std]

mod attachment;
mod cpu;
mod listen;
mod observed;
mod process;
mod start;
mod thread;

use core::sync::atomic::Ordering;

use heaptoll_process::tsc::ticks;

use crate::process::current as process;
use crate::thread::Thread;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    let message = b"heaptoll: a defect in the events layer; please report it\n";
    // SAFETY: write reads `message` within its length; abort takes no pointers and does not return.
    unsafe {
        libc::write(2, message.as_ptr().cast(), message.len());
        libc::abort()
    }
}

/// Begins a request of the calling thread.
///
/// # Safety
/// Any thread may call it at any time; it takes no pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptoll_event_begin_v1() {
    // SAFETY: `current` points to the calling thread's storage, which no other thread refers to; a signal handler that
    // changes it leaves it in a consistent state.
    let thread = unsafe { &mut *thread::current() };
    let ready = thread.next != thread.end && thread.process == process().entry.load(Ordering::Relaxed);
    if !ready && !ensure_chunk(thread) {
        thread.started = 0;
        return;
    }
    // Read outside of the time of the request, which this system call would lengthen.
    thread.cpu_started = cpu::time().unwrap_or(0);
    thread.started = ticks();
}

/// Ends the request that the calling thread began last.
///
/// # Safety
/// Any thread may call it at any time; it takes no pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptoll_event_end_v1(kind: u32) {
    let now = ticks();
    // SAFETY: `current` points to the calling thread's storage, which no other thread refers to; a signal handler that
    // changes it leaves it in a consistent state.
    let thread = unsafe { &mut *thread::current() };
    let started = core::mem::take(&mut thread.started);
    // No request has begun; or it began before a fork, and the chunk is the parent's.
    if started == 0 || thread.process != process().entry.load(Ordering::Relaxed) {
        return;
    }
    let cpu = cpu::time().map_or(0, |ended| ended.saturating_sub(thread.cpu_started) + 1);
    // Read once: a signal handler that runs from here on may have requests of its own, and writes to the record that
    // this one is about to write. Then one of the two is lost, and no other: [`Thread::advance`] keeps the handler's
    // progress.
    // SAFETY: `next` is a field of the calling thread's storage.
    let next = unsafe { (&raw const thread.next).read_volatile() };
    if next == thread.end {
        return;
    }
    // SAFETY: `next` is before `end`, so a record of the chunk that `ensure_chunk` has claimed for this thread, in a
    // mapping that stays.
    unsafe {
        let record = &*next;
        record.start.store(started, Ordering::Relaxed);
        record.kind.store(kind, Ordering::Relaxed);
        record.thread.store(thread.number, Ordering::Relaxed);
        record.cpu.store(cpu, Ordering::Relaxed);
        record.end.store(now, Ordering::Release);
    }
    thread.advance(next);
}

/// Gets a chunk for the thread; returns whether there is one.
#[cold]
#[inline(never)]
fn ensure_chunk(thread: &mut Thread) -> bool {
    // SAFETY: `__errno_location` returns the address of the calling thread's errno.
    let errno = unsafe { *libc::__errno_location() };
    let made = attachment::file().is_some_and(|file| {
        *thread = Thread::NONE;
        let Some(entry) = attachment::entry(file) else {
            file.lost_request();
            return false;
        };
        let chunk =
            process().spare().or_else(|| file.claim_requests(entry - 1).map(|chunk| (chunk.next, chunk.end)));
        let Some((next, end)) = chunk else {
            file.lost_request();
            return false;
        };
        attachment::at_thread_end();
        // SAFETY: gettid takes no pointers and cannot fail.
        let number = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        *thread = Thread { started: 0, cpu_started: 0, next, end, process: entry, number };
        true
    });
    // SAFETY: `__errno_location` returns the address of the calling thread's errno.
    unsafe { *libc::__errno_location() = errno };
    made
}
