//! Reserved blocks: a stop neither takes them nor moves the cursor, wherever in an allocation it finds the thread.

use core::arch::asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicPtr;
use std::collections::BTreeSet;
use std::vec::Vec;

use heaptoll_runtime::{COLLECTION_START, RawEvent};

use super::*;

#[test]
fn a_reservation_stays_its_threads_from_the_cursor_on() {
    for mode in [Mode::Hybrid, Mode::Collect] {
        for span_class in [1, 3, 20, CLASSES + 20] {
            let fixture = HeapFixture::new(mode, 2);
            let take =
                |cache| fixture.heap.allocate_small(fixture.cache(cache), span_class as SpanClass) as usize;
            let before = take(0);
            fixture.collect();
            fixture.check();
            let mut own = BTreeSet::from([take(0)]);
            let left = fixture.cache(0).length(span_class);
            assert!(left > 0);
            let others: BTreeSet<usize> = (0..2 * CLASS[span_class].blocks).map(|_| take(1)).collect();
            assert!(others.contains(&before), "what was handed out is free again");
            own.extend((0..left).map(|_| take(0)));
            assert_eq!(own.len(), left as usize + 1);
            assert!(own.is_disjoint(&others) && own.iter().all(|&block| fixture.is_taken(block)));
            fixture.audit();
        }
    }
}

/// The heap and the cache of the thread that a signal interrupts, and the block that its handler has allocated.
static INTERRUPTED: (AtomicPtr<Heap>, AtomicPtr<Cache>) =
    (AtomicPtr::new(ptr::null_mut()), AtomicPtr::new(ptr::null_mut()));
static OF_HANDLER: AtomicUsize = AtomicUsize::new(0);

extern "C" fn allocate_in_handler(_: c_int) {
    let (heap, cache) = &INTERRUPTED;
    // SAFETY: the test keeps both, and its thread is outside of the heap's locks where signals are not blocked.
    let block =
        unsafe { (*heap.load(Ordering::Relaxed)).allocate(&mut *cache.load(Ordering::Relaxed), 40, false) };
    OF_HANDLER.store(block as usize, Ordering::Relaxed);
}

/// A collection starts, which blocks signals: one comes.
///
/// # Safety
/// The event is readable.
unsafe extern "C" fn on_event(event: *const RawEvent, _: *mut c_void) {
    // SAFETY: this function's contract; raising a signal that has a handler has no other effect.
    unsafe {
        if (*event).kind == COLLECTION_START {
            libc::raise(libc::SIGUSR1);
        }
    }
}

#[test]
fn a_handler_that_runs_at_the_end_of_a_collection_may_reserve_the_blocks_that_it_interrupts() {
    // SAFETY: a handler of this signature; no other test uses SIGUSR1.
    unsafe { libc::signal(libc::SIGUSR1, allocate_in_handler as *const () as usize) };
    for mode in [Mode::Hybrid, Mode::Collect] {
        let fixture = HeapFixture::new(mode, 1);
        INTERRUPTED.0.store((&raw const *fixture.heap).cast_mut(), Ordering::Relaxed);
        INTERRUPTED.1.store(fixture.caches[0], Ordering::Relaxed);
        assert_eq!(fixture.heap.reporter.listen(Some(on_event), ptr::null_mut()), 0);
        fixture.heap.budget.store(0, Ordering::Relaxed);
        let block = fixture.allocate(40);
        let other = OF_HANDLER.swap(0, Ordering::Relaxed);
        assert!(other != 0 && other != block, "the handler ran, and has a block of its own");
        assert!(fixture.is_taken(other) && fixture.is_taken(block));
        fixture.audit();
    }
}

/// Instructions so far of the call that is stepped through, and the one after which the thread is stopped.
static STEPS: AtomicUsize = AtomicUsize::new(0);
static STOP_AT: AtomicUsize = AtomicUsize::new(0);
/// The heap that is collected then, and where the part of the stack ends that it reads.
static STOPPED: AtomicPtr<Heap> = AtomicPtr::new(ptr::null_mut());
static STACK_END: AtomicUsize = AtomicUsize::new(0);

/// After each instruction: at one of them a collection, which reads registers and stack, and the last step.
extern "C" fn on_step(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    if STEPS.fetch_add(1, Ordering::Relaxed) != STOP_AT.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: the test keeps the heap; the kernel passes the context.
    let (heap, registers) = unsafe {
        (&*STOPPED.load(Ordering::Relaxed), &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs)
    };
    registers[libc::REG_EFL as usize] &= !0x100;
    let top = registers[libc::REG_RSP as usize] as usize - 128;
    let registers = registers.as_ptr_range();
    let roots =
        [(registers.start as usize, registers.end as usize), (top, STACK_END.load(Ordering::Relaxed))];
    roots.iter().for_each(|&(start, end)| assert_eq!(heap.add_roots(start, end), 0));
    assert_eq!(heap.collect(Reason::Called), Ok(()));
    roots.iter().for_each(|&(start, end)| assert_eq!(heap.remove_roots(start, end), 0));
}

/// An allocation from a cache, with SIGTRAP after each instruction.
#[inline(never)]
fn take_stepped(cache: &mut Cache, span_class: usize) -> usize {
    // SAFETY: SIGTRAP has a handler; the flag is cleared below.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    let block = cache.take(span_class);
    // SAFETY: clears the flag.
    unsafe { asm!("pushfq", "and qword ptr [rsp], -257", "popfq") };
    block as usize
}

/// One of two blocks lives, so that each allocation moves the cursor on to another one.
#[test]
fn a_thread_may_be_stopped_after_each_instruction_of_an_allocation() {
    // SAFETY: an action with a handler of this signature; no other test uses SIGTRAP.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_step as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGTRAP, &raw const action, ptr::null_mut()), 0);
    }
    for mode in [Mode::Hybrid, Mode::Collect] {
        let fixture = HeapFixture::new(mode, 1);
        let span_class = class_of(48);
        let addresses = |(first, word, mask): (u32, usize, u64)| {
            let start = fixture.heap.reservation.address(first) + word * 64 * 48;
            (0..64).filter(move |bit| mask >> bit & 1 != 0).map(move |bit| start + bit * 48)
        };
        let blocks: Vec<usize> = (0..2048).map(|_| fixture.allocate(40)).collect();
        let roots: Vec<usize> = blocks.into_iter().step_by(2).collect();
        fixture.add_roots(&roots);
        fixture.collect();
        STOPPED.store((&raw const *fixture.heap).cast_mut(), Ordering::Relaxed);
        STACK_END.store((&raw const fixture) as usize, Ordering::Relaxed);
        for at in 0.. {
            while fixture.cache(0).length(span_class) < 2 {
                fixture.allocate(40);
            }
            let reserved: Vec<usize> = fixture.cache(0).all_reserved().flat_map(addresses).collect();
            STOP_AT.store(at, Ordering::Relaxed);
            STEPS.store(0, Ordering::Relaxed);
            let block = take_stepped(fixture.cache(0), span_class);
            assert_eq!(block, reserved[0], "the cursor is where it was, after {at} instructions");
            assert!(
                reserved.iter().all(|&block| fixture.is_taken(block)),
                "a stop after {at} instructions took a block"
            );
            let cleared = if mode == Mode::Collect { 48 } else { 16 };
            assert!(bytes_at(block, cleared).iter().all(|&byte| byte == 0), "{at}");
            if STEPS.load(Ordering::Relaxed) <= at {
                assert!(at > 20, "all of the call was stepped through");
                break;
            }
        }
        fixture.audit();
    }
}
