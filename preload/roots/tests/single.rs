//! A process of one thread, and one whose main thread ends before the others: what the test harness, which has more,
//! cannot show.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Occurrences, Secret, WORLD, Workers, in_child, search};

/// A stop of the only thread needs no signal, and finds the main stack.
fn one_thread() {
    assert_eq!(WORLD.stop().expect("it stops").threads(), 1);
    let secret = Secret::new();
    let mut word = 0;
    secret.write(&mut word);
    assert_eq!(search(secret), Occurrences { stack: 1, ..Occurrences::default() });
    secret.erase(&mut word);
    assert!(!search(secret).any());
}

/// In a child with one thread.
fn forked() {
    let secret = Secret::new();
    let mut word = 0;
    secret.write(&mut word);
    assert_eq!(
        in_child(|| i32::from(search(secret) != Occurrences { stack: 1, ..Occurrences::default() })),
        0
    );
    secret.erase(&mut word);
}

/// Words of a main thread that waits are found by another.
fn main_waits() {
    let secret = Secret::new();
    let mut word = 0;
    secret.write(&mut word);
    let found = std::thread::spawn(move || search(secret)).join().expect("the thread");
    assert_eq!(found, Occurrences { stack: 1, ..Occurrences::default() });
    secret.erase(&mut word);
}

static PLACE: AtomicUsize = AtomicUsize::new(0);

extern "C" fn without_main(_: *mut libc::c_void) -> *mut libc::c_void {
    let main = std::process::id();
    let is_zombie = || {
        std::fs::read_to_string(format!("/proc/self/task/{main}/stat"))
            .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
    };
    while !is_zombie() {
        std::thread::yield_now();
    }
    let workers = Workers::new(2, |_| std::thread::sleep(Duration::from_millis(1)));
    for round in 0..10 {
        let stopped = WORLD.stop().expect("all that live stop");
        let threads = stopped.threads();
        drop(stopped);
        assert_eq!(threads, 3, "in round {round}");
    }
    let secret = Secret::new();
    secret.write(PLACE.as_ptr());
    assert_eq!(search(secret), Occurrences { statics: 1, ..Occurrences::default() });
    workers.finish();
    println!("a process whose main thread has ended ... ok");
    std::process::exit(0)
}

fn main() {
    WORLD.start(None, 5000);
    one_thread();
    println!("one thread ... ok");
    forked();
    println!("a forked child ... ok");
    main_waits();
    println!("a main thread that waits ... ok");
    PLACE.store(0, Ordering::Relaxed);
    // SAFETY: nothing on this thread's stack is used by the other, and nothing on it has a destructor.
    unsafe {
        let mut thread = 0;
        let made = libc::pthread_create(&mut thread, std::ptr::null(), without_main, std::ptr::null_mut());
        assert_eq!(made, 0);
        libc::syscall(libc::SYS_exit, 0);
    }
}
