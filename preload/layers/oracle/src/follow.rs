//! The program's calls: by the recorded sequence where it is followed, and else as without this layer.

use core::ffi::{c_int, c_void};
use core::fmt::Write;
use core::ptr;

use heaptoll_next::stderr_line::StderrLine;
use heaptoll_next::{arena, forward, inside};
use heaptoll_oracle_file::LARGEST;

use crate::early;
use crate::state::{State, oracle, state};
use crate::stop::stop;

/// What a call does. One from within the manager is no part of the sequence, as one from before `main`.
#[inline(always)]
fn state_of_call() -> State {
    match state() {
        State::Follow if inside::is_inside() => State::Early,
        state => state,
    }
}

/// Allocates a block: by the sequence, or as the program does without this layer.
#[inline(always)]
pub fn allocate(size: usize, align: usize, caller: usize, make: impl FnOnce() -> *mut c_void) -> *mut c_void {
    match state_of_call() {
        State::Follow if size as u64 <= LARGEST => {
            // SAFETY: the state is `Follow`; other threads are refused before they change anything.
            inside::call(|| unsafe { (*oracle()).allocate(size, align, caller.wrapping_sub(1), make) })
        }
        State::Early => early::made(make()),
        _ => make(),
    }
}

/// Frees a block: when the oracle frees it, or now.
///
/// # Safety
/// As for C's `free`.
#[inline(always)]
pub unsafe fn free(block: *mut c_void) {
    if block.is_null() || arena::owns(block) {
        return;
    }
    match state_of_call() {
        // SAFETY: the state is `Follow`.
        State::Follow if unsafe { (*oracle()).frees_directly } || early::freed(block) => {
            // SAFETY: by this function's contract the block is live, and one that is freed now is the manager's wherever
            // it was allocated.
            inside::call(|| unsafe { forward::free(block) });
        }
        // SAFETY: the state is `Follow`; by this function's contract the block is live.
        State::Follow => inside::call(|| unsafe { (*oracle()).free(block) }),
        State::Keep if !early::freed(block) => {}
        State::Abandoned => {}
        state => {
            if state == State::Early {
                early::freed(block);
            }
            // SAFETY: by this function's contract the block is live, and it is the manager's.
            unsafe { forward::free(block) }
        }
    }
}

/// Resizes a block: an allocation, a copy and a free, where the sequence is followed.
///
/// # Safety
/// As for C's `realloc`.
pub unsafe fn reallocate(block: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    if block.is_null() {
        return allocate(size, 16, caller, move || forward::malloc(size));
    }
    let state = state_of_call();
    if state == State::Follow && size as u64 > LARGEST {
        // SAFETY: errno's address is valid for the calling thread.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
        return ptr::null_mut();
    }
    if state == State::Early {
        early::freed(block);
        // SAFETY: the contract of `forward::realloc` is that of this function; blocks are the manager's.
        return early::made(unsafe { forward::realloc(block, size) });
    }
    if state == State::Forward {
        // SAFETY: the contract of `forward::realloc` is that of this function; blocks are the manager's.
        return unsafe { forward::realloc(block, size) };
    }
    // SAFETY: by this function's contract the block is live; the copy stays within both blocks, whose sizes are the
    // recorded ones: the sequence is the recorded one so far. In an abandoned child the old block is one of `pages`, and
    // where all are kept the manager's.
    unsafe {
        if size == 0 {
            free(block);
            return ptr::null_mut();
        }
        let (moved, old) = match state {
            State::Abandoned => (forward::malloc(size), abandoned_size(block)),
            State::Keep => (forward::malloc(size), forward::usable_size(block) as u64),
            _ => inside::call(|| {
                let make = move || forward::malloc(size);
                (*oracle()).compare_and_allocate(size, 16, caller.wrapping_sub(1), true, make)
            }),
        };
        if moved.is_null() {
            return moved;
        }
        ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), size.min(old as usize));
        free(block);
        moved
    }
}

/// Bytes of a block in a child of a run that checks: of one of its parent's, or of the manager's.
unsafe fn abandoned_size(block: *mut c_void) -> u64 {
    // SAFETY: the state is `Abandoned`, so the oracle was made; a block with an owner is one of its pages'.
    unsafe {
        match &(*oracle()).pages {
            Some(pages) if pages.owner(block as usize).is_some() => pages.size(block) as u64,
            _ => forward::usable_size(block) as u64,
        }
    }
}

/// Bytes that may be used.
///
/// # Safety
/// `block` is null or live.
pub unsafe fn usable_size(block: *mut c_void) -> usize {
    let state = state();
    if !block.is_null() && (state == State::Follow || state == State::Abandoned) {
        // SAFETY: the state shows that the oracle was made; a block with an owner is one of its pages'.
        unsafe {
            if let Some(pages) = &(*oracle()).pages
                && pages.owner(block as usize).is_some()
            {
                return pages.size(block);
            }
        }
    }
    // SAFETY: the contract of `forward::usable_size` is that of this function.
    inside::call(|| unsafe { forward::usable_size(block) })
}

/// Reports an access to a freed object, with its allocation, in place of a bare SIGSEGV.
pub fn report_touches() {
    // SAFETY: all zeroes are a valid sigaction; the handler has the type that SA_SIGINFO requires.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = touched as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut());
    }
}

unsafe extern "C" fn touched(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes the information of a SIGSEGV; the handler is installed after the oracle is made.
    unsafe {
        let address = (*info).si_addr() as usize;
        let oracle = &*oracle();
        if let Some(owner) = oracle.pages.as_ref().and_then(|pages| pages.owner(address)) {
            let mut line = StderrLine::new();
            let _ = write!(
                line,
                "the oracle stops: the object of allocation {owner} was touched after it was freed, between allocations {} and {}",
                oracle.sequence.count().saturating_sub(1),
                oracle.sequence.count()
            );
            stop(line);
        }
        // The program's own: it happens again, with the default action.
        libc::signal(signal, libc::SIG_DFL);
    }
}
