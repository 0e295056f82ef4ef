//! What is held open from one collection to the next, in a program that closes it, replaces it, forks, or loses the right to
//! open it again: the next collection finds all words, and touches no file of the program.

mod common;

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicUsize;

use common::{Mapping, Occurrences, Secret, WORLD, alone, in_child, search};
use heaptoll_roots::StopError;

/// Numbers from here on are looked at.
const HIGH: i32 = 100;

static PLACE: AtomicUsize = AtomicUsize::new(0);

/// A word that a collection has found, so that descriptors are held.
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

fn is_root() -> bool {
    // SAFETY: the call takes no pointers.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        eprintln!("not tested: this takes root");
    }
    is_root
}

#[test]
fn three_descriptors_lie_high_and_stay() {
    tested(|| {
        let secret = collected();
        let numbers = held();
        is_found(secret) && held() == numbers && numbers.len() == 3 && numbers.iter().all(|&one| one >= HIGH)
    });
}

#[test]
fn what_the_program_closes_is_opened_again() {
    tested(|| {
        let secret = collected();
        // SAFETY: the call takes no pointers; nothing of the child's is open above.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
        held().is_empty() && is_found(secret) && held().len() == 3
    });
}

#[test]
fn a_file_that_the_program_puts_in_place_of_one_is_left_alone() {
    tested(|| {
        let secret = collected();
        let own = File::open("/proc/self/status").expect("a file");
        let numbers = held();
        for &number in &numbers {
            // SAFETY: the call takes no pointers.
            assert_eq!(unsafe { libc::dup2(own.as_raw_fd(), number) }, number);
        }
        let found = is_found(secret) && is_found(secret);
        let is_own = |number: &i32| {
            std::fs::read_link(format!("/proc/self/fd/{number}"))
                .is_ok_and(|target| target.to_string_lossy().ends_with("/status"))
        };
        // SAFETY: the call takes no pointers.
        let position = unsafe { libc::lseek(own.as_raw_fd(), 0, libc::SEEK_CUR) };
        found && numbers.iter().all(is_own) && position == 0 && held().len() == 3
    });
}

#[test]
fn a_forked_child_closes_its_copies() {
    tested(|| {
        let secret = collected();
        let numbers = held();
        let in_grandchild = in_child(|| i32::from(!(held().is_empty() && is_found(secret))));
        in_grandchild == 0 && held() == numbers && is_found(secret)
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
            status == 0 && held().len() == 3 && is_found(secret)
        })
    });
}

#[test]
fn what_a_child_with_the_same_descriptors_closes_is_opened_again() {
    extern "C" fn child(_: *mut libc::c_void) -> i32 {
        // SAFETY: the call takes no pointers.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
        0
    }
    tested(|| {
        let secret = collected();
        let stack = Mapping::anonymous(1 << 20);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
        // SAFETY: the child has a stack of its own, and its parent waits for its end.
        unsafe {
            let top = (stack.start + stack.bytes) as *mut libc::c_void;
            let tid = libc::clone(child, top, flags, std::ptr::null_mut());
            assert!(tid > 0 && libc::waitpid(tid, std::ptr::null_mut(), 0) == tid);
        }
        held().is_empty() && is_found(secret) && held().len() == 3
    });
}

#[test]
fn a_program_that_has_changed_its_user_or_its_root_is_collected() {
    if !is_root() {
        return;
    }
    tested(|| {
        let secret = collected();
        // SAFETY: the path is a string.
        unsafe {
            assert_eq!(libc::chroot(c"/sys".as_ptr()), 0);
            assert_eq!(libc::setuid(65534), 0);
        }
        File::open("/proc/self/maps").is_err() && is_found(secret) && is_found(secret)
    });
}

#[test]
fn threads_with_descriptors_of_their_own_leave_few_open() {
    tested(|| {
        let secret = collected();
        let (to_other, requests) = std::sync::mpsc::channel();
        let (reply, replies) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            // SAFETY: the call takes no pointers.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0);
            // SAFETY: the call takes no pointers; the table is this thread's own.
            unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
            for () in requests {
                reply.send((is_found(secret), held().len())).expect("the test receives");
            }
        });
        let mut all_found = true;
        let mut open = 0;
        for _ in 0..100 {
            to_other.send(()).expect("the thread receives");
            let (found, there) = replies.recv().expect("it replies");
            all_found &= found && is_found(secret);
            open = held().len().max(there);
        }
        drop(to_other);
        other.join().expect("it ends");
        all_found && open <= 3 * 16
    });
}
