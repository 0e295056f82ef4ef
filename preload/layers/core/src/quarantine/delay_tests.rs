//! A quarantine in front of a manager that only records what it is given: blocks are numbers, whose sizes they are.

use std::boxed::Box;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread_local;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

thread_local! {
    /// What this thread gave to the manager.
    static GIVEN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A block's number: its size below, its identity above.
const SIZE: usize = 0xffff;

unsafe extern "C" fn usable_size(block: *mut c_void) -> usize {
    block as usize & SIZE
}

unsafe extern "C" fn free(block: *mut c_void) {
    GIVEN.with_borrow_mut(|given| given.push(block as usize));
}

fn given() -> Vec<usize> {
    GIVEN.take()
}

fn new_quarantine(size: u64, random: bool, single_threaded: bool) -> &'static Quarantine {
    static SINGLE_THREADED: AtomicU8 = AtomicU8::new(1);
    let quarantine = Box::leak(Box::new(Quarantine::new()));
    let settings = Settings { size, random, seed: 3, ..Settings::NONE };
    let single_threaded = if single_threaded { SINGLE_THREADED.as_ptr() } else { ptr::null_mut() };
    quarantine.prepare(&settings, usable_size, free, None, single_threaded);
    quarantine
}

fn hold(quarantine: &Quarantine, thread: &Thread, block: usize) {
    // SAFETY: a block here is only a number, also for the functions that are called.
    unsafe { quarantine.hold(thread, block as *mut c_void) }
}

proptest! {
    /// One thread, against the definition: all are given back, in their order, when the volume passes the bound.
    #[test]
    fn it_holds_the_bound_within_one_block(
        bound in 1u64..200_000,
        sizes in prop::collection::vec(1usize..5000, 1..3000),
        single_threaded: bool,
    ) {
        let quarantine = new_quarantine(bound, false, single_threaded);
        let thread = quarantine.enter().expect("memory");
        let (mut held, mut volume, mut high) = (Vec::new(), 0, 0);
        for (number, size) in sizes.into_iter().enumerate() {
            let block = number << 16 | size;
            hold(quarantine, thread, block);
            held.push(block);
            volume += size as u64;
            if volume > bound {
                high = high.max(volume);
                prop_assert_eq!(given(), core::mem::take(&mut held));
                volume = 0;
            }
            prop_assert_eq!(quarantine.volume().held(), volume);
            prop_assert_eq!((thread.blocks(), thread.held()), (held.len(), volume));
        }
        prop_assert_eq!(given(), Vec::<usize>::new());
        prop_assert_eq!(quarantine.volume().high(), high);
        // SAFETY: the record is not used any more.
        unsafe { quarantine.leave(thread) };
        prop_assert_eq!(given(), held);
        prop_assert_eq!(quarantine.volume().held(), 0);
    }

    /// Two threads' records in any order of frees: each gives back at its own next free what it held when the other one
    /// passed the bound.
    #[test]
    fn each_thread_gives_back_its_own(
        bound in 1u64..100_000,
        frees in prop::collection::vec((any::<bool>(), 1usize..5000), 1..2000),
    ) {
        let quarantine = new_quarantine(bound, false, false);
        let threads = [quarantine.enter().expect("memory"), quarantine.enter().expect("memory")];
        let mut held: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
        let (mut late, mut volume) = ([false; 2], 0);
        for (number, (second, size)) in frees.into_iter().enumerate() {
            let (own, block) = (usize::from(second), number << 16 | size);
            let mut expected = Vec::new();
            if core::mem::take(&mut late[own]) {
                expected.append(&mut held[own]);
            }
            held[own].push(block);
            volume += size as u64;
            if volume > bound {
                expected.append(&mut held[own]);
                late[1 - own] = true;
                volume = 0;
            }
            hold(quarantine, threads[own], block);
            prop_assert_eq!(given(), expected);
            let all: usize = held.iter().flatten().map(|block| block & SIZE).sum();
            prop_assert_eq!(quarantine.volume().held(), all as u64);
        }
        // SAFETY: the records are not used any more.
        threads.iter().for_each(|thread| unsafe { quarantine.leave(thread) });
        prop_assert_eq!(given(), held.concat());
        prop_assert_eq!(quarantine.volume().held(), 0);
    }

    /// At random: never above the bound, and each block is given back once.
    #[test]
    fn random_ones_go_until_the_volume_is_within_the_bound(
        bound in 1u64..100_000,
        sizes in prop::collection::vec(1usize..5000, 1..2000),
    ) {
        let quarantine = new_quarantine(bound, true, false);
        let thread = quarantine.enter().expect("memory");
        let mut held = BTreeSet::new();
        for (number, size) in sizes.into_iter().enumerate() {
            held.insert(number << 16 | size);
            hold(quarantine, thread, number << 16 | size);
            for block in given() {
                prop_assert!(held.remove(&block));
            }
            let volume: usize = held.iter().map(|block| block & SIZE).sum();
            prop_assert!(volume as u64 <= bound);
            prop_assert_eq!(quarantine.volume().held(), volume as u64);
        }
        // SAFETY: the record is not used any more.
        unsafe { quarantine.leave(thread) };
        prop_assert_eq!(BTreeSet::from_iter(given()), held);
    }

    /// A child of fork has one thread, which takes over what all held, whatever the way that blocks take.
    #[test]
    fn a_child_takes_over_what_others_held_and_stays_within_its_buffer(
        random: bool,
        counts in prop::collection::vec(0usize..2000, 1..5),
        after in 1usize..3000,
    ) {
        let quarantine = new_quarantine(1 << 30, random, false);
        let mut all = Vec::new();
        let mut threads = Vec::new();
        for count in counts {
            let thread = quarantine.enter().expect("memory");
            for _ in 0..count {
                let block = all.len() << 16 | 16;
                hold(quarantine, thread, block);
                all.push(block);
            }
            threads.push(thread);
        }
        let own = threads[0];
        quarantine.after_fork(own);
        prop_assert_eq!(own.blocks(), all.len());
        prop_assert_eq!(quarantine.volume().held(), all.len() as u64 * 16);
        for _ in 0..after {
            let block = all.len() << 16 | 16;
            hold(quarantine, own, block);
            all.push(block);
            prop_assert!(own.within_buffer());
        }
        prop_assert_eq!(given(), Vec::<usize>::new());
        // SAFETY: the record is not used any more.
        unsafe { quarantine.leave(own) };
        prop_assert_eq!(BTreeSet::from_iter(given()), BTreeSet::from_iter(all));
    }
}

#[test]
fn threads_at_once_give_every_block_back_once() {
    for (bound, random) in [(1, false), (10_000, false), (10_000, true), (10_000_000, false)] {
        let quarantine = new_quarantine(bound, random, false);
        let all = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for number in 0..4usize {
                let all = &all;
                scope.spawn(move || {
                    for round in 0..10 {
                        let thread = quarantine.enter().expect("memory");
                        for at in 0..5000 {
                            hold(
                                quarantine,
                                thread,
                                (((number * 10 + round) * 5000) + at) << 16 | (at % 500 + 1),
                            );
                        }
                        // SAFETY: the record is not used any more.
                        unsafe { quarantine.leave(thread) };
                    }
                    all.lock().expect("no thread panics").append(&mut given());
                });
            }
        });
        let all = all.into_inner().expect("no thread panics");
        assert_eq!(all.len(), 4 * 10 * 5000);
        assert_eq!(BTreeSet::from_iter(all).len(), 4 * 10 * 5000);
        assert_eq!(quarantine.volume().held(), 0, "of {bound}");
        assert!(quarantine.threads().each().count() <= 4, "places are used again");
    }
}

#[test]
fn what_the_manager_frees_while_a_thread_gives_back_goes_straight_on() {
    thread_local! {
        static INNER: RefCell<Option<(&'static Quarantine, &'static Thread)>> = const { RefCell::new(None) };
    }
    unsafe extern "C" fn frees_more(block: *mut c_void) {
        // SAFETY: a number, as everywhere here.
        unsafe { free(block) };
        if block as usize >> 16 < 100
            && let Some((quarantine, thread)) = INNER.with_borrow(|inner| *inner)
        {
            hold(quarantine, thread, block as usize + (1000 << 16));
        }
    }
    let quarantine: &'static Quarantine = Box::leak(Box::new(Quarantine::new()));
    let settings = Settings { size: 1000, ..Settings::NONE };
    quarantine.prepare(&settings, usable_size, frees_more, None, ptr::null_mut());
    let thread = quarantine.enter().expect("memory");
    INNER.set(Some((quarantine, thread)));
    (0..11).for_each(|number| hold(quarantine, thread, number << 16 | 100));
    // SAFETY: the record is not used any more.
    unsafe { quarantine.leave(thread) };
    let given = given();
    assert_eq!(given.len(), 22, "{given:?}");
    assert_eq!(BTreeSet::from_iter(given).len(), 22);
}

/// A buffer would otherwise grow for ever: nothing passes the bound.
#[test]
fn blocks_of_no_bytes_pass_the_bound_too() {
    for random in [false, true] {
        let quarantine = new_quarantine(1000, random, false);
        let thread = quarantine.enter().expect("memory");
        for number in 1..=5000usize {
            hold(quarantine, thread, number << 16);
            assert!(thread.blocks() <= 1000, "{} held", thread.blocks());
        }
        // SAFETY: the record is not used any more.
        unsafe { quarantine.leave(thread) };
        assert_eq!((given().len(), quarantine.volume().held()), (5000, 0));
    }
}
