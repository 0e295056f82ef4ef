//! No file of `/proc` stays open between collections: a directory is a way out of `chroot`, and an open file keeps `/proc`
//! mounted.

mod common;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;

use common::{Mapping, Occurrences, Secret, WORLD, alone, in_child, search};
use heaptoll_roots::StopError;

static PLACE: AtomicUsize = AtomicUsize::new(0);

/// A word that a collection has found.
fn collected() -> Secret {
    let secret = Secret::new();
    secret.write(PLACE.as_ptr());
    assert!(is_found(secret), "by the first collection");
    secret
}

fn is_found(secret: Secret) -> bool {
    search(secret) == Occurrences { statics: 1, ..Occurrences::default() }
}

/// The numbers that are held.
fn held() -> BTreeSet<i32> {
    let is_of_proc = |number: &i32| {
        std::fs::read_link(format!("/proc/thread-self/fd/{number}")).is_ok_and(|target| {
            let names = ["/task", "/maps", "/pagemap"];
            target.starts_with("/proc") && names.iter().any(|name| target.to_string_lossy().ends_with(name))
        })
    };
    (3..1024).filter(is_of_proc).collect()
}

/// Runs a test in a child of fork, whose one thread is its main thread.
fn tested(test: impl FnOnce() -> bool) {
    let _alone = alone(None, 5000);
    assert_eq!(in_child(|| i32::from(!test())), 0);
}

#[test]
fn nothing_of_proc_stays_open() {
    tested(|| {
        let secret = collected();
        is_found(secret) && held().is_empty()
    });
}

#[test]
fn children_without_a_handler_of_fork_are_refused_and_leave_all_as_it_is() {
    extern "C" fn child(_: *mut libc::c_void) -> i32 {
        i32::from(WORLD.stop().err() != Some(StopError::NotOurProcess))
    }
    tested(|| {
        let secret = collected();
        let stack = Mapping::anonymous(1 << 20);
        let top = (stack.start + stack.bytes) as *mut libc::c_void;
        let memory_is_shared = libc::CLONE_VM | libc::CLONE_VFORK;
        // As fork makes them, vfork, and a child with the same descriptors.
        [0, memory_is_shared, memory_is_shared | libc::CLONE_FILES].into_iter().all(|flags| {
            let mut status = 0;
            // SAFETY: the child has a stack of its own, and its parent waits for its end.
            unsafe {
                let tid = libc::clone(child, top, flags | libc::SIGCHLD, std::ptr::null_mut());
                assert!(tid > 0 && libc::waitpid(tid, &mut status, 0) == tid);
            }
            status == 0 && is_found(secret)
        })
    });
}
