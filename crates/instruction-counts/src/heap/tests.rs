//! The heap against a model that keeps every page of every snapshot.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const PAGE: u64 = 4096;
const READ_WRITE: u8 = 3;

#[test]
fn what_a_routine_maps_is_the_heaps() {
    let mut heap = Heap::default();
    heap.map(PAGE, 4 * PAGE, READ_WRITE, Origin::Mmap, true);
    heap.map(16 * PAGE, 8 * PAGE, READ_WRITE, Origin::Mmap, false);
    assert_eq!(heap.high_water(), 4 * PAGE);
}

#[test]
fn an_object_makes_its_mapping_the_heaps_from_its_creation_on() {
    let mut heap = Heap::default();
    heap.map(16 * PAGE, 8 * PAGE, READ_WRITE, Origin::Mmap, false);
    heap.map(PAGE, 4 * PAGE, READ_WRITE, Origin::Brk, true);
    heap.unmap(PAGE, 4 * PAGE);
    assert_eq!(heap.high_water(), 4 * PAGE);
    heap.placed(17 * PAGE, 24);
    assert_eq!(heap.high_water(), 12 * PAGE, "both were mapped before the second was decided");
}

#[test]
fn a_reservation_counts_when_it_can_be_used() {
    let mut heap = Heap::default();
    heap.map(0x1000_0000, 1 << 30, 0, Origin::Mmap, true);
    assert_eq!(heap.high_water(), 0);
    heap.protect(0x1000_0000, 2 * PAGE, READ_WRITE);
    heap.protect(0x1000_0000 + PAGE, PAGE, 0);
    heap.protect(0x1000_0000 + 9 * PAGE, PAGE, 1);
    assert_eq!(heap.high_water(), 2 * PAGE);
}

#[test]
fn a_stack_is_no_heap_though_an_object_lies_in_it() {
    let mut heap = Heap::default();
    heap.map(PAGE, 4 * PAGE, READ_WRITE, Origin::Stack, false);
    heap.placed(2 * PAGE, 16);
    assert_eq!(heap.high_water(), 0);
}

#[test]
fn a_move_never_counts_twice() {
    let mut heap = Heap::default();
    heap.map(PAGE, 10 * PAGE, READ_WRITE, Origin::Mmap, true);
    heap.map(64 * PAGE, 10 * PAGE, READ_WRITE, Origin::Mremap, true);
    heap.map(74 * PAGE, 5 * PAGE, READ_WRITE, Origin::Mremap, true);
    heap.unmap(PAGE, 10 * PAGE);
    assert_eq!(heap.high_water(), 15 * PAGE);
}

#[test]
fn growth_in_place_counts_before_the_next_call() {
    let mut heap = Heap::default();
    heap.map(PAGE, 10 * PAGE, READ_WRITE, Origin::Mmap, true);
    heap.map(11 * PAGE, 2 * PAGE, READ_WRITE, Origin::Mremap, true);
    assert_eq!(heap.high_water(), 12 * PAGE);
    heap.settle();
    heap.unmap(PAGE, 10 * PAGE);
    assert_eq!(heap.high_water(), 12 * PAGE);
}

#[test]
fn an_object_that_cannot_be_so_large_takes_no_other_mappings_along() {
    let mut heap = Heap::default();
    heap.map(PAGE, 4 * PAGE, READ_WRITE, Origin::Mmap, false);
    heap.map(5 * PAGE, PAGE, READ_WRITE, Origin::Mmap, false);
    heap.map(64 * PAGE, 4 * PAGE, READ_WRITE, Origin::Mmap, false);
    heap.placed(2 * PAGE, 1 << 62);
    assert_eq!(heap.high_water(), 5 * PAGE);
}

#[test]
fn pages_with_objects_are_not_the_reservation() {
    let mut heap = Heap::default();
    heap.map(16 * PAGE, 1 << 38, READ_WRITE, Origin::Mmap, true);
    heap.placed(16 * PAGE, 5 * PAGE);
    heap.placed(40 * PAGE + 16, 100);
    heap.placed(40 * PAGE + 160, 100);
    assert_eq!((heap.high_water(), heap.pages.most_bytes), (1 << 38, 6 * PAGE));
    heap.protect(16 * PAGE, 2 * PAGE, 0);
    heap.unmap(18 * PAGE, 2 * PAGE);
    heap.placed(41 * PAGE, 4 * PAGE);
    assert_eq!(heap.pages.most_bytes, 6 * PAGE, "four of the first were gone");
    heap.placed(45 * PAGE, 1);
    assert_eq!(heap.pages.most_bytes, 7 * PAGE);
}

#[test]
fn an_object_that_cannot_be_so_large_counts_pages_that_are_there() {
    let mut heap = Heap::default();
    heap.map(PAGE, 4 * PAGE, READ_WRITE, Origin::Mmap, false);
    heap.placed(2 * PAGE, 1 << 62);
    heap.placed(64 * PAGE, 16);
    assert_eq!(heap.pages.most_bytes, 3 * PAGE);
}

#[test]
fn the_log_stays_short() {
    let mut heap = Heap::default();
    heap.map(PAGE, PAGE, READ_WRITE, Origin::Mmap, false);
    for round in 0..100_000 {
        heap.map(16 * PAGE, PAGE * (1 + round % 7), READ_WRITE, Origin::Mmap, false);
        heap.map(64 * PAGE, PAGE, READ_WRITE, Origin::Mmap, true);
        heap.unmap(64 * PAGE, PAGE);
    }
    assert!(heap.log.len() <= 2 * LOG, "{} changes", heap.log.len());
    assert_eq!(heap.high_water(), PAGE);
    heap.placed(PAGE, 1);
    assert_eq!(heap.high_water(), 2 * PAGE);
}

/// A step of the model, in pages.
#[derive(Debug, Clone)]
enum Step {
    Map { at: u64, pages: u64, protection: u8, origin: Origin, by_manager: bool },
    Unmap { at: u64, pages: u64 },
    Protect { at: u64, pages: u64, protection: u8 },
    Place { at: u64, pages: u64 },
    Tidy,
}

/// One page of the model: number of its mapping, protection.
type Pages = BTreeMap<u64, (usize, u8)>;

fn most(steps: &[Step]) -> u64 {
    let (mut now, mut snapshots) = (Pages::new(), Vec::new());
    let (mut heap, mut stacks, mut mappings) = (BTreeSet::new(), BTreeSet::new(), 0);
    for step in steps {
        match *step {
            Step::Map { at, pages, protection, origin, by_manager } => {
                mappings += 1;
                now.extend((at..at + pages).map(|page| (page, (mappings, protection))));
                if origin == Origin::Stack {
                    stacks.insert(mappings);
                } else if by_manager {
                    heap.insert(mappings);
                }
            }
            Step::Unmap { at, pages } => now.retain(|page, _| !(at..at + pages).contains(page)),
            Step::Protect { at, pages, protection } => {
                now.range_mut(at..at + pages).for_each(|(_, page)| page.1 = protection);
            }
            Step::Place { at, pages } => {
                heap.extend((at..at + pages).map_while(|page| now.get(&page)).map(|page| page.0));
            }
            Step::Tidy => {}
        }
        snapshots.push(now.clone());
    }
    let counts = |page: &&(usize, u8)| page.1 & 3 != 0 && heap.contains(&page.0) && !stacks.contains(&page.0);
    snapshots.iter().map(|snapshot| snapshot.values().filter(counts).count() as u64).max().unwrap_or(0) * PAGE
}

fn step() -> impl Strategy<Value = Step> {
    let place = (0u64..40, 1u64..12);
    let protection = prop_oneof![Just(0u8), Just(1), Just(3), Just(5)];
    let origin = prop_oneof![Just(Origin::Mmap), Just(Origin::Brk), Just(Origin::Stack), Just(Origin::Start)];
    prop_oneof![
        4 => (place.clone(), protection.clone(), origin, any::<bool>()).prop_map(
            |((at, pages), protection, origin, by_manager)| Step::Map { at, pages, protection, origin, by_manager }
        ),
        2 => place.clone().prop_map(|(at, pages)| Step::Unmap { at, pages }),
        3 => (place.clone(), protection).prop_map(|((at, pages), protection)| Step::Protect { at, pages, protection }),
        2 => (0u64..40, 1u64..4).prop_map(|(at, pages)| Step::Place { at, pages }),
        1 => Just(Step::Tidy),
    ]
}

proptest! {
    #[test]
    fn the_heap_equals_the_model(steps in proptest::collection::vec(step(), 1..60)) {
        let mut heap = Heap::default();
        for step in &steps {
            match *step {
                Step::Map { at, pages, protection, origin, by_manager } => {
                    heap.map(at * PAGE, pages * PAGE, protection, origin, by_manager);
                }
                Step::Unmap { at, pages } => heap.unmap(at * PAGE, pages * PAGE),
                Step::Protect { at, pages, protection } => heap.protect(at * PAGE, pages * PAGE, protection),
                Step::Place { at, pages } => heap.placed(at * PAGE, pages * PAGE),
                Step::Tidy => heap.tidy(),
            }
        }
        prop_assert_eq!(heap.high_water(), most(&steps));
    }
}
