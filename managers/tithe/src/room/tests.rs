//! Growth of the heap and its tables, with each of them refused in turn.

extern crate std;

use std::vec::Vec;

use super::*;
use crate::span::UnitIndex;

fn regions(memory: &mut Memory) -> [&mut Region; 5] {
    [&mut memory.heap, &mut memory.spans, &mut memory.kinds, &mut memory.firsts, &mut memory.black]
}

/// Every unit there is has its rows, and they say that it is free.
fn verify(room: &Room, memory: &Memory) {
    let units = room.units();
    assert!(memory.heap.mapped_bytes() >= units * UNIT);
    let rows = [(units, size_of::<Span>()), (units + AHEAD, 1), (units, 4), (units + AHEAD, 1)];
    for (table, (rows, bytes)) in memory.tables().iter().zip(rows) {
        assert!(units == 0 || table.len() >= rows * bytes, "{table:?} for {units} units");
    }
    for unit in 0..units {
        assert_eq!(room.kind(unit), FREE);
        let address = room.address(unit as UnitIndex);
        assert_eq!([address, address + UNIT - 1].map(|address| room.unit_of(address)), [Some(unit); 2]);
        // SAFETY: memory of the heap, which nobody has.
        unsafe { ((address + UNIT) as *mut usize).sub(1).write(unit) };
    }
    assert_eq!(room.unit_of(room.address(units as UnitIndex)), None);
    assert_eq!(room.unit_of(room.base().wrapping_sub(1)), None);
}

#[test]
fn a_room_without_units_has_no_address() {
    let room = Room::new();
    for address in [0, 1, 4096, usize::MAX, 16 << 40] {
        assert_eq!(room.unit_of(address), None);
    }
}

#[test]
fn whichever_table_is_refused_units_have_their_rows() {
    for refused in 0..5 {
        for every in 1..4 {
            let (room, mut memory) = (Room::new(), Memory::new());
            regions(&mut memory)[refused].fail_every(every);
            let mut grown = Vec::new();
            for wanted in [1, 64, 100, 3, 500, 64, 1, 2000] {
                let before = room.units();
                match room.grow(&mut memory, wanted) {
                    Some(more) => {
                        assert!(more >= wanted && room.units() == before + more as usize);
                        grown.push(more);
                    }
                    None => assert_eq!(room.units(), before, "a refusal changes nothing"),
                }
                verify(&room, &memory);
            }
            assert_eq!(grown.is_empty(), every == 1, "table {refused} refused every {every} times");
            regions(&mut memory)[refused].fail_every(0);
            let before = room.units();
            assert!(room.grow(&mut memory, 10).is_some());
            assert!(room.units() >= before + 64, "ample again");
            verify(&room, &memory);
        }
    }
}

#[test]
fn growth_never_moves_what_is_there() {
    let (room, mut memory) = (Room::new(), Memory::new());
    room.grow(&mut memory, 1).expect("memory");
    let places = (room.base(), room.kinds(), room.firsts(), room.black(), room.spans());
    for _ in 0..50 {
        room.grow(&mut memory, 100).expect("memory");
        assert_eq!(places, (room.base(), room.kinds(), room.firsts(), room.black(), room.spans()));
    }
    verify(&room, &memory);
}

#[test]
fn what_no_table_can_count_is_refused() {
    let (room, mut memory) = (Room::new(), Memory::new());
    room.grow(&mut memory, 1).expect("memory");
    let units = room.units();
    assert_eq!(room.grow(&mut memory, u32::MAX), None);
    assert_eq!(
        room.grow(&mut memory, u32::MAX - 2 * units as u32),
        None,
        "2^46 bytes are more than there are"
    );
    assert_eq!(room.units(), units);
    verify(&room, &memory);
}

#[test]
fn units_lead_to_what_they_belong_to() {
    let (room, mut memory) = (Room::new(), Memory::new());
    room.grow(&mut memory, 100).expect("memory");
    room.assign(10, 5, 33);
    room.assign(15, 1, 34);
    for unit in 0..room.units() {
        let expected = match unit {
            10..15 => (33, Some(10)),
            15 => (34, Some(15)),
            _ => (FREE, None),
        };
        assert_eq!(room.kind(unit), expected.0);
        assert!(expected.1.is_none_or(|first| room.first(unit) == first));
    }
}

/// Growth by a sixteenth ended within huge pages, whose beginnings were touched in small pages before the rest came: of
/// a heap of 80 MiB less than half was in huge ones.
#[test]
fn a_heap_that_welcomes_huge_pages_ends_at_a_whole_one() {
    let (room, mut memory) = (Room::new(), Memory::new());
    let mut large = 0;
    for wanted in [1, 100, 700, 333, 1, 1, 5, 1000, 129, 2000, 7, 4000] {
        room.grow(&mut memory, wanted).expect("memory");
        if memory.advised > HUGE_FROM {
            assert_eq!(room.units() % HUGE_STEP, 0, "{} units", room.units());
            large += 1;
        }
    }
    assert!(large > 5);
}
