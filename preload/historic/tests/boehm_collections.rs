//! Both versions as collectors: the trials of all collectors, and what these two have apart.

use heaptoll_historic::boehm::bw16::{Bw16, V16};
use heaptoll_historic::boehm::bw26::{Bw26, V26};
use heaptoll_historic::boehm::{Boehm, CHUNK, Version};
use heaptoll_runtime::Heap;

use crate::kit::collector::program::{GivenRoots, allocate, collect, list, live, write};

crate::kit::collector::collector_trials!(bw16, Bw16);
crate::kit::collector::collector_trials!(bw26, Bw26);

/// Tests of both versions.
macro_rules! both {
    ($($name:ident),* $(,)?) => {
        mod v16 {
            $(#[test] fn $name() { super::$name::<super::V16>(); })*
        }
        mod v26 {
            $(#[test] fn $name() { super::$name::<super::V26>(); })*
        }
    };
}

both!(
    a_mark_stack_that_overflows_loses_nothing,
    check_finds_what_a_write_beyond_a_block_does,
    a_pointer_to_what_is_no_object_is_none,
);

fn a_mark_stack_that_overflows_loses_nothing<V: Version>() {
    for limit in [1, 2, 3, 50] {
        let given = GivenRoots::new();
        let mut heap = Boehm::<V>::of(given);
        // One object points to all, each of which begins a list: much more than the stack holds at once.
        let wide = allocate(&mut heap, 200 * 8);
        let mut count = 1;
        for at in 0..200 {
            given.set(&[wide]);
            let first = list(&mut heap, at % 7, 16, at % 2);
            write(wide + 8 * at, first);
            count += at % 7;
        }
        heap.limit_stack(limit);
        collect(&mut heap);
        assert_eq!(live(&heap).len(), count, "a stack of {limit}");
    }
}

fn check_finds_what_a_write_beyond_a_block_does<V: Version>() {
    // Links to nowhere, to the inside of an object, and to the object itself.
    for odd in [0x1234_5678, 8, 0] {
        let mut heap = Boehm::<V>::of(GivenRoots::new());
        let (first, second) = (allocate(&mut heap, 60), allocate(&mut heap, 60));
        assert_eq!(heap.check(), Ok(()));
        // Objects are handed out from a chunk's end on: what follows is free.
        let free = second - (first - second);
        write(free, if odd > 8 { odd } else { free + odd });
        assert!(heap.check().is_err(), "a link to {odd:#x}");
    }
}

fn a_pointer_to_what_is_no_object_is_none<V: Version>() {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    let block = allocate(&mut heap, 600);
    let chunk = block & !(CHUNK - 1);
    let (start, end) = (heap.region().start(), heap.region().end());
    // Headers, what is left at a chunk's end, free chunks, and the world around.
    let front = if V::HEADER_INSIDE { chunk + 8 } else { 0 };
    given.set(&[front, chunk + CHUNK - 1, end - 1, end, end + CHUNK, start - 1, 0, usize::MAX]);
    collect(&mut heap);
    assert_eq!(live(&heap), [].into());
}
