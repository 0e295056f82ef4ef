//! Whether the recorded sequence is followed, and what follows it.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::oracle::Oracle;

/// What calls do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// `main` has not begun: calls are forwarded, and blocks noted.
    Early = 0,
    /// The sequence is followed.
    Follow = 1,
    /// A child of fork whose blocks are not the manager's.
    Abandoned = 2,
    /// Calls are forwarded: there is nothing to follow, or this is a child of fork.
    Forward = 3,
    /// Allocations are forwarded, and nothing is freed but what is from before `main`.
    Keep = 4,
}

static STATE: AtomicU8 = AtomicU8::new(State::Early as u8);

struct OracleCell(UnsafeCell<MaybeUninit<Oracle>>);

// SAFETY: `start` writes it before `main_begins` stores `Follow`; after that only the thread that started uses it, which
// `follow::allocate` tests.
unsafe impl Sync for OracleCell {}

static ORACLE: OracleCell = OracleCell(UnsafeCell::new(MaybeUninit::uninit()));

/// What calls do now.
#[inline(always)]
pub fn state() -> State {
    match STATE.load(Relaxed) {
        1 => State::Follow,
        2 => State::Abandoned,
        3 => State::Forward,
        4 => State::Keep,
        _ => State::Early,
    }
}

/// The oracle, once the state is [`State::Follow`].
#[inline(always)]
pub fn oracle() -> *mut Oracle {
    ORACLE.0.get().cast()
}

/// Changes what calls do.
pub fn set_state(state: State) {
    STATE.store(state as u8, Release);
}
