//! The counting layer: shows that a program's allocation calls reach it, and where they go from here.
//!
//! Preloaded in front of a manager it exports the whole malloc family and every `operator new` and `operator delete`,
//! forwards each call to the next object's malloc family, and counts it on the statistics page named by
//! `HEAPTOLL_STATS`, where the count survives `_exit` and SIGKILL. If `HEAPTOLL_PREFLIGHT_REPORT` names a file, the
//! layer appends a [`binding`] report to it when the process starts and when it exits. If `HEAPTOLL_PREFLIGHT_FAMILY` is
//! set, it calls each function of the next family once ([`family`]).
#![no_std]

mod binding;
mod family;
mod text;

use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use heaptoll_next::arena;
use heaptoll_next::tally;
use heaptoll_next::watched::{Call, Watch};
use heaptoll_stats_page::{Writer, WriterKind};

use crate::binding::Stage;

/// The slot in which calls are counted.
static WRITER: Writer = Writer::new(WriterKind::Layer, "count");

/// Whether what the program did before the layer started is counted.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Counts calls.
struct Count;

impl Watch for Count {
    type Before = ();

    #[inline(always)]
    fn after_allocation(block: *mut c_void, _: usize, size: usize, call: Call) -> *mut c_void {
        // Early blocks are counted at the start: before it, no function of the C library may be called.
        if block.is_null() || !arena::owns(block) {
            tally::count_allocation(WRITER.slot(), size, !block.is_null(), call.operator());
        }
        block
    }

    #[inline(always)]
    fn before_free(block: *mut c_void, operator: bool) -> bool {
        if !arena::owns(block) || STARTED.load(Relaxed) && arena::is_programs(block) {
            tally::count_free(WRITER.slot(), operator);
        }
        true
    }

    #[inline(always)]
    fn before_resize(_: *mut c_void) {}

    #[inline(always)]
    fn after_resize(_: *mut c_void, _: (), size: usize, new: *mut c_void) {
        if !arena::owns(new) {
            tally::count_resize(WRITER.slot(), size, !new.is_null());
        }
    }
}

heaptoll_next::export_family!(Count);
heaptoll_next::export_operators!(Count);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    heaptoll_next::family::fatal(c"heaptoll: a defect in the counting layer; please report it\n")
}

extern "C" fn at_start() {
    // A failing dlsym allocates its message. Those calls are ours, not the program's, and are not counted: a program
    // that allocates nothing must have a count of 0.
    let slot = WRITER.slot();
    let counters = [&slot.malloc_calls, &slot.realloc_calls, &slot.free_calls, &slot.requested_bytes];
    let before = counters.map(|c| c.load(Relaxed));
    // Resolved here, while there is one thread, rather than at some thread's first call.
    let _ = heaptoll_next::next();
    family::try_all();
    binding::prepare();
    for (counter, before) in counters.into_iter().zip(before) {
        counter.store(before, Relaxed);
    }
    for early in arena::of_program() {
        tally::count_allocation(slot, early.requested, true, false);
        if early.is_freed {
            tally::count_free(slot, false);
        }
    }
    STARTED.store(true, Relaxed);
    binding::report(Stage::Start);
}

extern "C" fn at_exit() {
    binding::report(Stage::Exit);
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

/// `_exit`, after a last report.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    binding::report(Stage::Exit);
    loop {
        // SAFETY: exit_group takes no pointers and does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// The same under its C name.
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}
