//! What only the kernel holds, where no call that hands it over is seen: as in a program that links the collector.

mod common;

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use common::{Flag, Secret, WORLD, alone, in_child, search, seek};
use heaptoll_roots::{Origin, RootKinds, RootsError};

/// A new descriptor, checked and owned.
fn owned(descriptor: i32) -> OwnedFd {
    assert!(descriptor >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the descriptor was made for the caller alone.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// A set of epoll with an entry whose data is the secret, and what the entry is of.
fn set_with(secret: Secret) -> [OwnedFd; 2] {
    // SAFETY: the calls take no pointers.
    let [set, file] =
        unsafe { [libc::epoll_create1(libc::EPOLL_CLOEXEC), libc::eventfd(0, libc::EFD_CLOEXEC)] };
    let (set, file) = (owned(set), owned(file));
    let mut event = [0_usize; 2];
    // The kernel's structure is packed: the word comes four bytes after its start.
    let packed = event.as_mut_ptr().cast::<u8>();
    // SAFETY: the structure lies in the array.
    unsafe {
        let mut word = 0;
        secret.write(&mut word);
        packed.add(4).cast::<usize>().write_unaligned(word);
        secret.erase(&mut word);
        packed.cast::<u32>().write(libc::EPOLLIN as u32);
        let added = libc::epoll_ctl(set.as_raw_fd(), libc::EPOLL_CTL_ADD, file.as_raw_fd(), packed.cast());
        assert_eq!(added, 0);
    }
    event.fill(0);
    std::hint::black_box(&mut event);
    [set, file]
}

#[test]
fn the_data_of_an_entry_of_epoll_is_found_as_long_as_the_set_is_open() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let [set, file] = set_with(secret);
    assert_eq!(search(secret).kernel, 1);
    let copy = set.try_clone().expect("a copy");
    assert_eq!(search(secret).kernel, 2);
    drop(set);
    assert_eq!(search(secret).kernel, 1);
    assert_eq!(in_child(|| i32::from(search(secret).kernel != 1)), 0, "in a child of fork");
    drop((copy, file));
    assert_eq!(search(secret).kernel, 0);
}

#[test]
fn roots_of_kinds_that_are_not_requested_are_not_shown() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let _open = set_with(secret);
    let none = RootKinds { statics: false, mappings: false, kernel: false };
    let stopped = WORLD.stop().expect("stops");
    let mut others = 0;
    let shown = stopped.roots(none, &[], &mut |root| {
        others += u32::from(!matches!(root.origin, Origin::Registers | Origin::Stack));
    });
    assert_eq!((shown, others), (Ok(()), 0));
    let of_statics = RootKinds { statics: true, ..none };
    let shown =
        stopped.roots(of_statics, &[], &mut |root| others += u32::from(root.origin == Origin::Statics));
    assert!(shown == Ok(()) && others > 0);
    assert_eq!(seek(&stopped, &[], secret).kernel, 1);
}

#[test]
fn the_base_of_gs_is_found_in_any_thread() {
    const SET_GS: usize = 0x1001;
    static PLACE: u8 = 0;
    let set = |base: usize| {
        // SAFETY: nothing uses the segment.
        assert_eq!(unsafe { libc::syscall(libc::SYS_arch_prctl, SET_GS, base) }, 0);
    };
    let _alone = alone(None, 5000);
    // An address that a base may have.
    let secret = Secret::of(!(0x5a5a_5a00_0000 | (&raw const PLACE as usize & 0xff_fff8)));
    let [ready, end] = [const { Flag::new() }; 2];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            set(!secret.hidden());
            ready.raise();
            end.wait();
            set(0);
        });
        ready.wait();
        assert!(search(secret).registers >= 1);
        end.raise();
    });
    set(!secret.hidden());
    let here = search(secret).registers;
    set(0);
    assert!(here >= 1);
}

#[test]
fn a_ring_of_requests_is_reported_as_a_place_that_is_not_read() {
    let _alone = alone(None, 5000);
    let mut parameters = [0_u32; 30];
    // SAFETY: the kernel fills the structure, which is as long as the kernel's.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) };
    if ring < 0 {
        eprintln!("not tested: no io_uring");
        return;
    }
    let ring = owned(ring as i32);
    let (read_write, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    let mapping = common::Mapping::new(4096, read_write, shared, ring.as_raw_fd());
    let stopped = WORLD.stop().expect("stops");
    assert_eq!(stopped.roots(RootKinds::ALL, &[], &mut |_| {}), Ok(()));
    assert!(stopped.unread().names().any(|name| name == "io_uring"));
    drop((stopped, mapping));
}

#[test]
fn roots_that_lack_a_descriptor_are_refused_as_such_and_read_when_there_is_one() {
    let _alone = alone(None, 5000);
    let status = in_child(|| {
        let stopped = WORLD.stop().expect("stops");
        let limit = |descriptors| {
            let limit = libc::rlimit { rlim_cur: descriptors, rlim_max: 1024 };
            // SAFETY: the limit is valid.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
        };
        limit(0);
        let refused = stopped.roots(RootKinds::ALL, &[], &mut |_| {});
        limit(1024);
        let read = stopped.roots(RootKinds::ALL, &[], &mut |_| {});
        i32::from((refused, read) != (Err(RootsError::NoDescriptor), Ok(())))
    });
    assert_eq!(status, 0);
}
