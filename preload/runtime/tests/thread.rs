//! Thread-local words and the hook at a thread's end.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use heaptoll_runtime::{ThreadEnd, thread_word};

static FIRST: [u64; 4] = [41, 42, 43, 44];

thread_word! {
    /// Begins as nothing.
    PLAIN: "heaptoll_test_plain"
}

thread_word! {
    /// Begins as the address of a static.
    pub(crate) STARTED: "heaptoll_test_started" = FIRST
}

thread_word! {
    /// Next to the others, which must not change it.
    OTHER: "heaptoll_test_other" = FIRST
}

#[test]
fn a_word_begins_in_every_thread_as_declared_and_is_the_threads_own() {
    let address = FIRST.as_ptr() as usize;
    thread::scope(|scope| {
        for number in 1..9usize {
            scope.spawn(move || {
                assert_eq!([PLAIN::get(), STARTED::get(), OTHER::get()], [0, address, address]);
                for turn in 0..1000 {
                    PLAIN::set(number * turn);
                    STARTED::set(number + turn);
                    if turn % 100 == 0 {
                        thread::yield_now();
                    }
                    assert_eq!(
                        [PLAIN::get(), STARTED::get(), OTHER::get()],
                        [number * turn, number + turn, address]
                    );
                }
            });
        }
    });
}

static ENDED: ThreadEnd = ThreadEnd::new(ended);
static CALLS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Word 1: once. Word 2: arms again each time.
unsafe extern "C" fn ended(word: *mut c_void) {
    CALLS[word as usize - 1].fetch_add(1, Ordering::Relaxed);
    if word as usize == 2 {
        assert!(ENDED.arm(word));
    }
}

#[test]
fn the_hook_comes_once_at_the_end_of_each_armed_thread_and_again_while_it_is_armed_again() {
    assert!(!ENDED.arm(ptr::without_provenance_mut(1)), "there is no key yet");
    assert_eq!(ENDED.prepare(), Ok(()));
    let word = |number: usize| ptr::without_provenance_mut::<c_void>(number);
    let armed = |number: usize| thread::spawn(move || assert!(ENDED.arm(word(number)))).join();
    for number in [1, 1, 2] {
        armed(number).expect("the thread ends");
    }
    let calls = [0, 1].map(|at: usize| CALLS[at].load(Ordering::Relaxed));
    assert_eq!(calls, [2, ThreadEnd::ROUNDS]);
}

thread_word! {
    /// Several words.
    SEVERAL: "heaptoll_test_several"[3]
}

#[test]
fn several_words_begin_as_nothing_and_are_the_threads_own() {
    let count = 3;
    thread::scope(|scope| {
        for number in 1..9usize {
            scope.spawn(move || {
                // SAFETY: there are three words, and `place` is the address of the first.
                unsafe {
                    assert_eq!([SEVERAL::get(0), SEVERAL::get(1), SEVERAL::get(2)], [0; 3]);
                    for index in 0..count {
                        SEVERAL::set(index, 10 * number + index);
                    }
                    thread::yield_now();
                    let place = SEVERAL::place();
                    assert!((place as usize).is_multiple_of(64));
                    assert_eq!(
                        core::slice::from_raw_parts(place, count),
                        [10 * number, 10 * number + 1, 10 * number + 2]
                    );
                }
            });
        }
    });
}
