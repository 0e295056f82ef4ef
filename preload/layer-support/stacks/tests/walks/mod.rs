//! Walks compared with those of libgcc, which throws exceptions by the same tables: in nested calls, in callbacks from
//! the C library, in threads, and wherever a timer's signal happens to interrupt.

use std::collections::HashSet;
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use heaptoll_stacks::{CallStacks, DEEPER, LOST, MOST_FRAMES, REPEATED};

static STACKS: CallStacks = CallStacks::new();

/// Definitions by number: written to in signal handlers, so nothing that allocates.
const SITES: usize = 1 << 14;
const WORDS: usize = MOST_FRAMES + 1;
static DEFINED: [[AtomicUsize; WORDS]; SITES] = [const { [const { AtomicUsize::new(0) }; WORDS] }; SITES];

unsafe extern "C" {
    fn _Unwind_Backtrace(each: extern "C" fn(*mut c_void, *mut c_void) -> c_int, to: *mut c_void) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut c_void, before: *mut c_int) -> usize;
}

#[derive(Debug, Clone, Copy)]
struct Frames {
    words: [usize; 256],
    count: usize,
}

extern "C" fn each(context: *mut c_void, to: *mut c_void) -> c_int {
    let mut before = 0;
    // SAFETY: libgcc passes its live context, and `to` is the `Frames` that `truth` passed.
    let (address, frames) = unsafe { (_Unwind_GetIPInfo(context, &mut before), &mut *to.cast::<Frames>()) };
    if frames.count < frames.words.len() && address != 0 {
        frames.words[frames.count] = address + before as usize;
        frames.count += 1;
    }
    0
}

/// libgcc's walk, from its caller's caller on.
#[inline(never)]
fn truth() -> Frames {
    let mut frames = Frames { words: [0; 256], count: 0 };
    // SAFETY: `each` has the type that libgcc calls, and `frames` outlives the call.
    unsafe { _Unwind_Backtrace(each, (&raw mut frames).cast()) };
    frames
}

/// The number of the calling stack, having compared it: from the function that calls the caller on.
#[inline(never)]
fn compared() -> u32 {
    let site = STACKS.site(|site, words| {
        if site != 0 {
            // The first word last: a thread that sees it sees them all.
            for (place, &word) in DEFINED[site as usize].iter().zip(words).rev() {
                place.store(word, Ordering::Release);
            }
        }
    });
    let truth = truth();
    assert!(site != 0);
    // A thread that has just got the number may not have stored its definition yet.
    while DEFINED[site as usize][0].load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
    let ours = |n: usize| DEFINED[site as usize][n].load(Ordering::Relaxed);
    let theirs = expected(ours(0), &truth);
    for (n, &theirs) in theirs.words[..theirs.count].iter().enumerate() {
        assert_eq!(ours(n), theirs, "word {n} of site {site}");
    }
    if theirs.count < WORDS {
        assert_eq!(ours(theirs.count), 0, "words beyond the last of site {site}");
    }
    site
}

/// The definition that libgcc's frames lead to: `first` is the address in the function that called `truth`, which its
/// two calls return to at different places; a return address is kept twice.
fn expected(first: usize, truth: &Frames) -> Frames {
    let mut kept = Frames { words: [0; 256], count: 0 };
    // libgcc's: `truth`, the function that called it, its caller, ...
    let callers = &truth.words[2..truth.count];
    let all = [first].into_iter().chain(callers.iter().copied());
    for frame in all.take(MOST_FRAMES) {
        if kept.words[..kept.count].iter().filter(|&&other| other == frame).count() < 2 {
            kept.words[kept.count] = frame;
            kept.count += 1;
        }
    }
    let marks =
        [(REPEATED, kept.count < MOST_FRAMES.min(callers.len() + 1)), (DEEPER, callers.len() >= MOST_FRAMES)];
    for (mark, _) in marks.into_iter().filter(|(_, is)| *is) {
        kept.words[kept.count] = mark;
        kept.count += 1;
    }
    kept
}

fn prepared() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if super::MAPPINGS_ONLY {
            heaptoll_stacks::search_mappings_only();
        }
        assert!(STACKS.prepare(0));
    });
}

#[inline(never)]
fn nested(depth: usize, bytes: usize) -> u32 {
    let local_array = [0u8; 3000];
    if depth == 0 {
        return compared();
    }
    // Two calls that no compiler merges into one.
    let site = if bytes.is_multiple_of(2) {
        black_box(1u8);
        black_box(nested(depth - 1, bytes / 2))
    } else {
        black_box(2u16);
        black_box(nested(depth - 1, bytes / 2)) + black_box(0)
    };
    black_box(&local_array[bytes % 3000]);
    site
}

#[test]
fn nested_calls() {
    prepared();
    let mut sites = HashSet::new();
    // A number that the compiler does not know: unrolled, the loop would have three sites a way.
    for _ in 0..black_box(3) {
        for way in 0..4 {
            sites.insert(nested(2, way));
        }
    }
    assert_eq!(sites.len(), 4, "one site a way");
    let deep: HashSet<u32> = (0..1 << 10).map(|way| nested(10, way)).collect();
    assert!(deep.len() <= 14, "ways that repeat the same calls are one site: {}", deep.len());
    for depth in [60, 64, 500] {
        assert!(nested(depth, 0) != 0);
    }
}

extern "C" fn compare(a: *const c_void, b: *const c_void) -> c_int {
    compared();
    // SAFETY: qsort passes pointers to elements of its array of i32.
    unsafe { *a.cast::<i32>() - *b.cast::<i32>() }
}

#[test]
fn callbacks_from_the_c_library() {
    prepared();
    for _ in 0..10 {
        let mut numbers = [5, 3, 8, 1, 9, 2];
        // SAFETY: the array has this many elements of 4 bytes, and `compare` reads i32.
        unsafe { libc::qsort(numbers.as_mut_ptr().cast(), numbers.len(), 4, Some(compare)) };
        assert_eq!(numbers, [1, 2, 3, 5, 8, 9]);
    }
}

#[test]
fn threads_have_the_same_numbers() {
    prepared();
    let numbers: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..2000).map(|n| nested(6, n % 64)).collect())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(numbers.iter().all(|sites| *sites == numbers[0]));
}

#[test]
fn small_stacks() {
    prepared();
    let small = std::thread::Builder::new().stack_size(64 << 10);
    assert!(small.spawn(|| nested(3, 1)).unwrap().join().unwrap() != 0);
}

#[test]
fn panics_pass_through() {
    prepared();
    for _ in 0..100 {
        let caught = std::panic::catch_unwind(|| {
            compared();
            std::panic::resume_unwind(Box::new(nested(3, 2)));
        });
        assert!(*caught.unwrap_err().downcast::<u32>().unwrap() != 0);
    }
}

static COMPLETE: AtomicUsize = AtomicUsize::new(0);
static INCOMPLETE: AtomicUsize = AtomicUsize::new(0);

extern "C" fn handler(_: c_int) {
    // SAFETY: __errno_location returns a pointer that is valid for this thread.
    let errno = unsafe { *libc::__errno_location() };
    let complete = compared_or_lost();
    if complete { &COMPLETE } else { &INCOMPLETE }.fetch_add(1, Ordering::Relaxed);
    // SAFETY: __errno_location returns a pointer that is valid for this thread.
    assert_eq!(unsafe { *libc::__errno_location() }, errno);
}

/// In a handler: hand-written assembly can be interrupted where its tables express more than rules keep. There the walk
/// ends, and up to there it is right.
#[inline(never)]
fn compared_or_lost() -> bool {
    let mut words = [0; WORDS];
    let site = STACKS.site(|site, definition| {
        if site != 0 {
            words[..definition.len()].copy_from_slice(definition);
        }
    });
    assert!(site != 0);
    let truth = truth();
    if words[0] == 0 {
        return true;
    }
    let theirs = expected(words[0], &truth);
    for (at, (&ours, &theirs)) in words.iter().zip(&theirs.words[..theirs.count]).enumerate() {
        match ours {
            LOST => return false,
            DEEPER => return true,
            REPEATED => return words[at + 1] != LOST,
            ours => assert_eq!(ours, theirs),
        }
    }
    true
}

#[test]
fn wherever_a_signal_interrupts() {
    prepared();
    let stack: &'static mut [u8] = Box::leak(vec![0; 256 << 10].into_boxed_slice());
    let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
    for flags in [0, libc::SA_ONSTACK] {
        // SAFETY: the alternate stack was leaked above and nothing else uses it; `handler` has the type of a handler
        // without SA_SIGINFO and does only what handlers may do; all zeroes are valid for the three zeroed values.
        let timer = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = flags | libc::SA_RESTART;
            libc::sigaction(libc::SIGPROF, &action, std::ptr::null_mut());
            assert_eq!(libc::sigaltstack(&stack, std::ptr::null_mut()), 0);
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGPROF;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = std::mem::zeroed();
            assert_eq!(libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut timer), 0);
            let every = libc::timespec { tv_sec: 0, tv_nsec: 53_000 };
            let every = libc::itimerspec { it_interval: every, it_value: every };
            assert_eq!(libc::timer_settime(timer, 0, &every, std::ptr::null_mut()), 0);
            timer
        };
        let before = COMPLETE.load(Ordering::Relaxed);
        let mut rounds = 0;
        while COMPLETE.load(Ordering::Relaxed) < before + 500 {
            // The walk itself is interrupted, and libgcc, and the C library.
            for n in 0..50 {
                nested(5, n);
            }
            callbacks_from_the_c_library();
            black_box(format!("{rounds} {:?}", COMPLETE));
            rounds += 1;
            assert!(rounds < 1_000_000);
        }
        // SAFETY: `timer` was created above, and is deleted once.
        unsafe { libc::timer_delete(timer) };
    }
    let complete = COMPLETE.load(Ordering::Relaxed);
    let all = complete + INCOMPLETE.load(Ordering::Relaxed);
    assert!(complete * 20 > all * 19, "{complete} stacks of {all} in full");
}

#[test]
fn a_child_of_fork_starts_its_numbers_again() {
    prepared();
    let site_of_parent = nested(2, 3);
    // SAFETY: the child makes only calls that a child of a program with threads may make, and ends.
    match unsafe { libc::fork() } {
        0 => {
            let mut defined = 0;
            let site = STACKS.site(|site, _| defined = site);
            // SAFETY: ends the child without running any handler of the parent.
            unsafe { libc::_exit(i32::from(site != 1 || defined != 1)) }
        }
        child => {
            let mut status = -1;
            // SAFETY: waits for the child just started; `status` is a live local.
            unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!(status, 0);
        }
    }
    let _ = site_of_parent;
}
