//! fork: in the child no thread is inside the manager, and no change of the tables is unfinished.
//!
//! The layer's handler is registered early, so that it runs when those of the program have taken their locks, as late
//! as a manager's own. It stops the world with no thread inside, as a collection does, and closes the gate until the
//! process is forked. The manager's handlers must run between, whenever they were registered: they take locks that a
//! thread inside may wait for, or may hold and wait at the gate. So the layer exports the function that registers
//! handlers, and keeps the manager's for itself.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};

use heaptoll_next::family;
use heaptoll_runtime::AtFork;

use crate::collection::{COLLECTION, WAITING, close_for_fork};
use crate::freed::FREED;
use crate::shared::{TABLES, WORLD, has_started};
use crate::{gate, mappings, pinned};

/// A manager's handlers: before, in the parent, in the child; 0 for none.
struct Handlers([AtomicUsize; 3]);

/// How many sets of them there may be; further ones are the C library's.
const SLOTS: usize = 8;
static HANDLERS: [Handlers; SLOTS] = [const { Handlers([const { AtomicUsize::new(0) }; 3]) }; SLOTS];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// In how many forks the forking thread is: a signal's handler may fork in the middle of one.
static DEPTH: AtomicUsize = AtomicUsize::new(0);
/// Where the thread was, and whether the gate is closed for the fork.
static FORMER: AtomicUsize = AtomicUsize::new(0);
static CLOSED: AtomicUsize = AtomicUsize::new(0);

const BEFORE: usize = 0;
const IN_PARENT: usize = 1;
const IN_CHILD: usize = 2;

fn call(handlers: &Handlers, which: usize) {
    let handler = handlers.0[which].load(Ordering::Acquire);
    if handler != 0 {
        // SAFETY: the manager registered it as such a function.
        unsafe { transmute::<usize, extern "C" fn()>(handler)() };
    }
}

fn handlers() -> &'static [Handlers] {
    &HANDLERS[..COUNT.load(Ordering::Acquire).min(SLOTS)]
}

/// Ends what the outermost [`AtFork::before`] has begun, but for the gate.
fn end(which: usize) {
    gate::inside(|| handlers().iter().for_each(|handlers| call(handlers, which)));
    let former = FORMER.load(Ordering::Relaxed);
    gate::end_fork((former != usize::MAX).then_some(former));
}

/// fork's handlers.
pub struct Forks;

impl AtFork for Forks {
    fn before() {
        COLLECTION.before_fork();
        if DEPTH.fetch_add(1, Ordering::Relaxed) != 0 {
            return;
        }
        let former = gate::begin_fork();
        FORMER.store(former.map_or(usize::MAX, |state| state), Ordering::Relaxed);
        let closed = former.is_some() && has_started() && close_for_fork();
        CLOSED.store(usize::from(closed), Ordering::Relaxed);
        gate::inside(|| handlers().iter().rev().for_each(|handlers| call(handlers, BEFORE)));
        WAITING.before_fork();
        pinned::before_fork();
        TABLES.before_fork();
        FREED.before_fork();
    }

    fn in_parent() {
        if DEPTH.fetch_sub(1, Ordering::Relaxed) == 1 {
            FREED.after_fork_in_parent();
            TABLES.after_fork_in_parent();
            pinned::after_fork();
            WAITING.after_fork();
            end(IN_PARENT);
            if CLOSED.swap(0, Ordering::Relaxed) != 0 {
                gate::open();
            }
        }
        COLLECTION.after_fork();
    }

    fn in_child() {
        WORLD.after_fork_in_child();
        mappings::after_fork_in_child();
        if DEPTH.fetch_sub(1, Ordering::Relaxed) == 1 {
            FREED.after_fork_in_child();
            TABLES.after_fork_in_child();
            pinned::after_fork_in_child();
            WAITING.after_fork_in_child();
            end(IN_CHILD);
            CLOSED.store(0, Ordering::Relaxed);
            gate::after_fork_in_child();
        }
        COLLECTION.after_fork_in_child();
    }
}

/// `__register_atfork`, which `pthread_atfork` is.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn __register_atfork(
    before: usize,
    in_parent: usize,
    in_child: usize,
    library: *mut c_void,
) -> c_int {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    mappings::find_manager();
    let all = [before, in_parent, in_child];
    if all.into_iter().any(mappings::is_of_manager) {
        let slot = COUNT.fetch_add(1, Ordering::AcqRel);
        if let Some(handlers) = HANDLERS.get(slot) {
            handlers.0.iter().zip(all).for_each(|(to, handler)| to.store(handler, Ordering::Release));
            return 0;
        }
    }
    let mut next = NEXT.load(Ordering::Relaxed);
    if next == 0 {
        let Some(found) = family::symbol(c"__register_atfork") else { return libc::ENOMEM };
        next = found as usize;
        NEXT.store(next, Ordering::Relaxed);
    }
    // SAFETY: the C library's function of that name and type; the arguments are the caller's own, unchanged.
    unsafe {
        transmute::<usize, unsafe extern "C" fn(usize, usize, usize, *mut c_void) -> c_int>(next)(
            before, in_parent, in_child, library,
        )
    }
}
