//! Sleeping until a word changes, and waking, among the threads of one process. Changes no `errno`.

use core::sync::atomic::AtomicU32;

use crate::system_call;

/// Sleeps while the word is `expected`, at most `patience_us` microseconds (`None`: for ever). Wakes early at times.
pub fn wait(word: &AtomicU32, expected: u32, patience_us: Option<u64>) {
    let time = patience_us.map(|us| libc::timespec {
        tv_sec: (us / 1_000_000) as i64,
        tv_nsec: (us % 1_000_000 * 1000) as i64,
    });
    let time = time.as_ref().map_or(0, |time| core::ptr::from_ref(time) as usize);
    let operation = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the kernel reads `word` and `time`, which outlive the call.
    unsafe {
        system_call(libc::SYS_futex, [word.as_ptr() as usize, operation, expected as usize, time, 0, 0])
    };
}

/// Sleeps while the word is `expected`, which the kernel clears when a thread ends: it wakes sleepers of the kind that
/// processes share. Wakes early at times.
pub fn wait_for_kernel(word: &AtomicU32, expected: u32) {
    let operation = libc::FUTEX_WAIT as usize;
    // SAFETY: the kernel reads `word`, which outlives the call.
    unsafe { system_call(libc::SYS_futex, [word.as_ptr() as usize, operation, expected as usize, 0, 0, 0]) };
}

/// Wakes up to `count` threads that sleep in [`wait`].
pub fn wake(word: &AtomicU32, count: u32) {
    let operation = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the word is only looked up by address.
    unsafe { system_call(libc::SYS_futex, [word.as_ptr() as usize, operation, count as usize, 0, 0, 0]) };
}

/// As [`wake`], all of them.
pub fn wake_all(word: &AtomicU32) {
    wake(word, i32::MAX as u32);
}
