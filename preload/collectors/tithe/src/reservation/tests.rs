//! Growth of the heap and its tables, where each of them fails in turn.

extern crate std;

use std::vec::Vec;

use super::*;
use crate::span::UnitIndex;

fn regions(memory: &mut Memory) -> [&mut Region; 5] {
    [&mut memory.heap, &mut memory.spans, &mut memory.span_classes, &mut memory.firsts, &mut memory.blacklist]
}

/// Every unit has its rows, and its span class is free.
fn verify(reservation: &HeapReservation, memory: &Memory) {
    let units = reservation.units();
    assert!(memory.heap.mapped_bytes() >= units * UNIT);
    let rows = [(units, size_of::<Span>()), (units + AHEAD, 1), (units, 4), (units + AHEAD, 1)];
    for (table, (rows, bytes)) in memory.tables().iter().zip(rows) {
        assert!(units == 0 || table.end() - table.start() >= rows * bytes, "{table:?} for {units} units");
    }
    for unit in 0..units {
        assert_eq!(reservation.span_class(unit), FREE);
        let address = reservation.address(unit as UnitIndex);
        assert_eq!(
            [address, address + UNIT - 1].map(|address| reservation.unit_of(address)),
            [Some(unit); 2]
        );
        // SAFETY: mapped memory of the heap, which holds no block.
        unsafe { ((address + UNIT) as *mut usize).sub(1).write(unit) };
    }
    assert_eq!(reservation.unit_of(reservation.address(units as UnitIndex)), None);
    assert_eq!(reservation.unit_of(reservation.base().wrapping_sub(1)), None);
}

#[test]
fn a_reservation_without_units_has_no_address() {
    let reservation = HeapReservation::new();
    for address in [0, 1, 4096, usize::MAX, 16 << 40] {
        assert_eq!(reservation.unit_of(address), None);
    }
}

#[test]
fn whichever_table_is_refused_units_have_their_rows() {
    for refused in 0..5 {
        for every in 1..4 {
            let (reservation, mut memory) = (HeapReservation::new(), Memory::new());
            regions(&mut memory)[refused].fail_every(every);
            let mut grown = Vec::new();
            for wanted in [1, 64, 100, 3, 500, 64, 1, 2000] {
                let before = reservation.units();
                match reservation.grow(&mut memory, wanted) {
                    Some(more) => {
                        assert!(more >= wanted && reservation.units() == before + more as usize);
                        grown.push(more);
                    }
                    None => assert_eq!(reservation.units(), before, "a refusal changes nothing"),
                }
                verify(&reservation, &memory);
            }
            assert_eq!(grown.is_empty(), every == 1, "table {refused} refused every {every} times");
            regions(&mut memory)[refused].fail_every(0);
            let before = reservation.units();
            assert!(reservation.grow(&mut memory, 10).is_some());
            assert!(reservation.units() >= before + 64, "ample again");
            verify(&reservation, &memory);
        }
    }
}

#[test]
fn growth_never_moves_what_is_there() {
    let (reservation, mut memory) = (HeapReservation::new(), Memory::new());
    reservation.grow(&mut memory, 1).expect("memory");
    let places = (
        reservation.base(),
        reservation.span_classes(),
        reservation.firsts(),
        reservation.blacklist(),
        reservation.spans(),
    );
    for _ in 0..50 {
        reservation.grow(&mut memory, 100).expect("memory");
        assert_eq!(
            places,
            (
                reservation.base(),
                reservation.span_classes(),
                reservation.firsts(),
                reservation.blacklist(),
                reservation.spans()
            )
        );
    }
    verify(&reservation, &memory);
}

#[test]
fn what_no_table_can_count_is_refused() {
    let (reservation, mut memory) = (HeapReservation::new(), Memory::new());
    reservation.grow(&mut memory, 1).expect("memory");
    let units = reservation.units();
    assert_eq!(reservation.grow(&mut memory, u32::MAX), None);
    assert_eq!(
        reservation.grow(&mut memory, u32::MAX - 2 * units as u32),
        None,
        "2^46 bytes are more than the address space"
    );
    assert_eq!(reservation.units(), units);
    verify(&reservation, &memory);
}

#[test]
fn units_lead_to_what_they_belong_to() {
    let (reservation, mut memory) = (HeapReservation::new(), Memory::new());
    reservation.grow(&mut memory, 100).expect("memory");
    reservation.assign(10, 5, 33);
    reservation.assign(15, 1, 34);
    for unit in 0..reservation.units() {
        let expected = match unit {
            10..15 => (33, Some(10)),
            15 => (34, Some(15)),
            _ => (FREE, None),
        };
        assert_eq!(reservation.span_class(unit), expected.0);
        assert!(expected.1.is_none_or(|first| reservation.first(unit) == first));
    }
}

/// Growth by a sixteenth ended within huge pages, whose first parts were touched in small pages before the rest was
/// mapped: of a heap of 80 MiB less than half was in huge ones.
#[test]
fn a_heap_advised_for_huge_pages_ends_at_a_whole_one() {
    let (reservation, mut memory) = (HeapReservation::new(), Memory::new());
    let mut large = 0;
    for wanted in [1, 100, 700, 333, 1, 1, 5, 1000, 129, 2000, 7, 4000] {
        reservation.grow(&mut memory, wanted).expect("memory");
        if memory.advised > HUGE_FROM {
            assert_eq!(reservation.units() % HUGE_STEP, 0, "{} units", reservation.units());
            large += 1;
        }
    }
    assert!(large > 5);
}
