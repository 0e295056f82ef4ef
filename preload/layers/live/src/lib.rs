//! The live layer: counts how many bytes a program has requested and not freed, and the high-water mark.
//!
//! A manager counts what it hands out, rounded up to its own sizes. The program's own demand, the "maximum bytes" of
//! Detlefs, Dosser and Zorn's Table II and the denominator of their Table X, is the same under every manager, and no
//! manager has it: `free` does not get the size. So this layer keeps the requested size of every live block in a table
//! of its own and publishes on the statistics page of `HEAPTOLL_STATS`, in addition to counts of calls, `live_bytes`
//! and `live_high_bytes` in *requested* bytes.
//!
//! - A `realloc` is one step from the old size to the new: both blocks of one that moves are never live at once.
//! - A child of fork begins with the blocks that it inherited, and its high-water mark begins there; it is on the page
//!   from its first call on. A child of vfork counts as its parent. A child made by a bare `clone` or by `_Fork`,
//!   without the C library's fork handlers, may find the ledger locked.
//! - Every call takes one lock, so this layer measures demand, not time.
#![no_std]

mod ledger;

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

use heaptoll_next::tally;
use heaptoll_next::watched::{Call, Watch};
use heaptoll_runtime::{AtFork, Lock, at_fork, prepare_barriers};
use heaptoll_stats_page::{Writer, WriterKind};

use crate::ledger::Ledger;

/// The slot for the sums.
static WRITER: Writer = Writer::new(WriterKind::Layer, "live");
static LEDGER: Lock<Ledger> = Lock::new(Ledger::new());
/// Set while the layer itself causes allocations, which are not the program's.
static OURS: AtomicBool = AtomicBool::new(false);

struct Live;

impl Watch for Live {
    type Before = Option<usize>;

    #[inline(always)]
    fn after_allocation(block: *mut c_void, size: usize, call: Call) -> *mut c_void {
        if OURS.load(Ordering::Relaxed) {
            return block;
        }
        let slot = WRITER.slot();
        tally::count_allocation(slot, size, !block.is_null(), call.operator());
        if !block.is_null() {
            let mut ledger = LEDGER.lock();
            ledger.add(block as usize, size);
            ledger.publish(slot);
        }
        block
    }

    #[inline(always)]
    fn before_free(block: *mut c_void, operator: bool) -> bool {
        if OURS.load(Ordering::Relaxed) {
            return true;
        }
        let slot = WRITER.slot();
        tally::count_free(slot, operator);
        let mut ledger = LEDGER.lock();
        ledger.remove(block as usize);
        ledger.publish(slot);
        true
    }

    #[inline(always)]
    fn before_resize(block: *mut c_void) -> Option<usize> {
        LEDGER.lock().lift(block as usize)
    }

    #[inline(always)]
    fn after_resize(block: *mut c_void, before: Option<usize>, size: usize, new: *mut c_void) {
        if OURS.load(Ordering::Relaxed) {
            return;
        }
        let slot = WRITER.slot();
        tally::count_resize(slot, size, !new.is_null());
        let mut ledger = LEDGER.lock();
        match before {
            Some(old) if new.is_null() && size != 0 => ledger.put_back(block as usize, old),
            Some(old) => ledger.settle(old),
            None => {}
        }
        if !new.is_null() {
            ledger.add(new as usize, size);
        }
        ledger.publish(slot);
    }
}

heaptoll_next::export_family!(Live);
heaptoll_next::export_operators!(Live);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    heaptoll_next::family::fatal(c"heaptoll: a defect in the live layer; please report it\n")
}

struct Forks;

impl AtFork for Forks {
    fn before() {
        LEDGER.before_fork();
    }

    fn in_parent() {
        LEDGER.after_fork();
    }

    fn in_child() {
        LEDGER.after_fork_in_child();
        // If the fork interrupted a call, that call owns the ledger.
        if let Some(mut ledger) = LEDGER.try_lock() {
            ledger.reset_high_water_mark();
        }
    }
}

extern "C" fn at_start() {
    OURS.store(true, Ordering::Relaxed);
    // A failing dlsym allocates its message: resolved here, while there is one thread.
    let _ = heaptoll_next::next();
    prepare_barriers();
    let registered = at_fork::<Forks>();
    OURS.store(false, Ordering::Relaxed);
    if registered != 0 {
        heaptoll_next::family::fatal(c"heaptoll: the live layer cannot register its fork handlers\n");
    }
    // A program that allocates nothing must be on the page, too.
    let _ = WRITER.slot();
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;
