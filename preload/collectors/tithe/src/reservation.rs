//! The reserved addresses of the heap and of its tables: regions that grow together, so that everything about an
//! address is found by arithmetic.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::Region;

use crate::age::Age;
use crate::class::{FREE, SpanClass, UNIT, UNIT_SHIFT};
use crate::freed::{Freed, FreedTable};
use crate::span::{Span, UnitIndex};

/// Fewest units that are mapped at once: 1 MiB, or a huge page where these are used.
const STEP: usize = 64;
const HUGE_STEP: usize = HUGE_PAGE / UNIT;
/// A huge page, bytes.
const HUGE_PAGE: usize = 2 << 20;
/// Heaps below this size use no huge pages: they would gain little, and the unused part of one would be noticeable.
pub const HUGE_FROM: usize = 16 << 20;
/// Units beyond the heap's end that the tables of span classes and of the blacklist cover: words that equal addresses
/// there are recorded before the heap grows.
pub const AHEAD: usize = 4096;

/// The addresses of the heap and its tables. Written under the lock of the units, read without it: the base is stored
/// before the first unit exists, and table rows exist before `units` counts them.
#[derive(Debug)]
pub struct HeapReservation {
    base: AtomicUsize,
    units: AtomicUsize,
    span_classes: AtomicUsize,
    firsts: AtomicUsize,
    blacklist: AtomicUsize,
    spans: AtomicUsize,
    /// 0 where blocks have no ages.
    ages: AtomicUsize,
    flags: AtomicUsize,
    /// Mode `guard`: which blocks are freed.
    pub freed_table: FreedTable,
    /// A collection is in increments: set from its first to its last.
    marking: AtomicBool,
}

/// The mapped memory of the heap and its tables, protected by the units' lock.
#[derive(Debug)]
pub struct Memory {
    pub heap: Region,
    spans: Region,
    span_classes: Region,
    firsts: Region,
    blacklist: Region,
    /// Ages of blocks and flags of units: empty where blocks have no ages.
    ages: Region,
    flags: Region,
    has_ages: bool,
    /// Freed blocks: empty except in mode `guard`.
    freed: Region,
    has_freed: bool,
    /// Requests to grow, of which every `fail_every`-th fails: a seeded fault, 0 for none.
    requests: u64,
    pub fail_every: u64,
    /// Up to this distance from the heap's start the system has been advised of the size of pages.
    advised: usize,
    /// Huge pages would bring memory that nothing touches, or all count as written with the first write.
    small_pages: bool,
}

impl Memory {
    pub const fn new() -> Memory {
        Memory {
            heap: Region::new(),
            spans: Region::new(),
            span_classes: Region::new(),
            firsts: Region::new(),
            blacklist: Region::new(),
            ages: Region::new(),
            flags: Region::new(),
            has_ages: false,
            freed: Region::new(),
            has_freed: false,
            requests: 0,
            fail_every: 0,
            advised: HUGE_FROM,
            small_pages: false,
        }
    }

    /// The tables.
    pub fn tables(&self) -> [&Region; 7] {
        [&self.spans, &self.span_classes, &self.firsts, &self.blacklist, &self.ages, &self.flags, &self.freed]
    }

    /// Bytes of the tables.
    pub fn metadata_bytes(&self) -> usize {
        self.tables().map(Region::mapped_bytes).iter().sum()
    }

    /// Whether heap and tables are mapped for this number of units, whose rows of freed blocks have `freed_bytes`.
    fn has_rows_for(&self, units: usize, freed_bytes: usize) -> bool {
        let length = |region: &Region| region.end() - region.start();
        length(&self.heap) >= units << UNIT_SHIFT
            && length(&self.spans) >= units * size_of::<Span>()
            && length(&self.firsts) >= units * size_of::<UnitIndex>()
            && length(&self.span_classes) >= units + AHEAD
            && length(&self.blacklist) >= units + AHEAD
            && (!self.has_ages
                || length(&self.ages) >= units * size_of::<Age>() && length(&self.flags) >= units + AHEAD)
            && (!self.has_freed || length(&self.freed) >= freed_bytes)
    }

    /// A heap beyond its first growth is dense: where the system leaves huge pages to the program's choice, a fault
    /// brings two megabytes at once. The part that is not a whole huge page yet is not advised.
    fn advise_page_size(&mut self) {
        let end = (self.heap.end() - self.heap.start()) / HUGE_PAGE * HUGE_PAGE;
        if end > self.advised && self.heap.start().is_multiple_of(HUGE_PAGE) {
            let start = (self.heap.start() + self.advised) as *mut core::ffi::c_void;
            let advice = if self.small_pages { libc::MADV_NOHUGEPAGE } else { libc::MADV_HUGEPAGE };
            // SAFETY: mapped memory of the heap; errno's address is valid for the calling thread. A failure has no
            // effect.
            unsafe {
                let errno = *libc::__errno_location();
                libc::madvise(start, end - self.advised, advice);
                *libc::__errno_location() = errno;
            }
            self.advised = end;
        }
    }

    /// Has the heap use small pages from now on, or huge ones where the system leaves that to the program's choice.
    pub fn use_small_pages(&mut self, small: bool) {
        if self.small_pages != small {
            self.small_pages = small;
            self.advised = HUGE_FROM;
            self.advise_page_size();
        }
    }

    /// Bytes of address space mapped from the system.
    pub fn mapped_bytes(&self) -> usize {
        self.heap.mapped_bytes() + self.metadata_bytes()
    }
}

impl HeapReservation {
    pub const fn new() -> HeapReservation {
        let [base, units, span_classes, firsts, blacklist, spans, ages, flags] =
            [const { AtomicUsize::new(0) }; 8];
        HeapReservation {
            base,
            units,
            span_classes,
            firsts,
            blacklist,
            spans,
            ages,
            flags,
            freed_table: FreedTable::new(),
            marking: AtomicBool::new(false),
        }
    }

    /// Whether a collection is in increments, so that a mark states that a word which was read may point to
    /// the place, taken or not.
    #[inline(always)]
    pub fn is_marking(&self) -> bool {
        self.marking.load(Ordering::Relaxed)
    }

    /// Called while the world is stopped.
    pub fn set_marking(&self, marking: bool) {
        self.marking.store(marking, Ordering::Relaxed);
    }

    /// Address of the first unit; 0 before there is one.
    #[inline(always)]
    pub fn base(&self) -> usize {
        self.base.load(Ordering::Relaxed)
    }

    /// Number of units.
    #[inline(always)]
    pub fn units(&self) -> usize {
        self.units.load(Ordering::Relaxed)
    }

    /// The table of span classes, one byte a unit, [`AHEAD`] rows more than units.
    #[inline(always)]
    pub fn span_classes(&self) -> *mut SpanClass {
        self.span_classes.load(Ordering::Relaxed) as *mut SpanClass
    }

    /// The blacklist: for each unit, and [`AHEAD`] more, the collection that found a word equal to an address in it
    /// while it was free; as `blacklist_mark` encodes it, 0 for never.
    #[inline(always)]
    pub fn blacklist(&self) -> *mut u8 {
        self.blacklist.load(Ordering::Relaxed) as *mut u8
    }

    /// The table of descriptors.
    #[inline(always)]
    pub fn spans(&self) -> *mut Span {
        self.spans.load(Ordering::Relaxed) as *mut Span
    }

    /// The table that maps a unit to the first unit of its span or block, and the last unit of a free run to its first.
    #[inline(always)]
    pub fn firsts(&self) -> *mut UnitIndex {
        self.firsts.load(Ordering::Relaxed) as *mut UnitIndex
    }

    /// The table of ages, a row a unit; null where blocks have no ages.
    #[inline(always)]
    pub fn ages(&self) -> *mut Age {
        self.ages.load(Ordering::Relaxed) as *mut Age
    }

    /// The table of the units' flags, a byte a unit, [`AHEAD`] rows more than units; null as [`HeapReservation::ages`].
    #[inline(always)]
    pub fn flags(&self) -> *mut u8 {
        self.flags.load(Ordering::Relaxed) as *mut u8
    }

    /// Gives blocks ages from now on. False when the system gives no memory for the tables.
    pub fn enable_ages(&self, memory: &mut Memory) -> bool {
        memory.has_ages = true;
        let units = self.units();
        // The regions have an address only when they have grown.
        if extend_ages(memory, units.max(1)).is_none() {
            memory.has_ages = false;
            return false;
        }
        self.flags.store(memory.flags.start(), Ordering::Relaxed);
        self.ages.store(memory.ages.start(), Ordering::Release);
        assert_internal!(
            units == 0 || memory.has_rows_for(units, self.freed_table.bytes(units)),
            "every unit has its rows before it is counted"
        );
        true
    }

    /// Which blocks are freed is known from now on. False when the system gives no memory for the table.
    pub fn enable_freed(&self, memory: &mut Memory) -> bool {
        memory.has_freed = true;
        // The region has an address only when it has grown.
        if self.extend_freed(memory, self.units().max(1)).is_none() {
            memory.has_freed = false;
            return false;
        }
        self.freed_table.rows.store(memory.freed.start(), Ordering::Release);
        true
    }

    fn extend_freed(&self, memory: &mut Memory, units: usize) -> Option<()> {
        if memory.has_freed { up_to(&mut memory.freed, self.freed_table.bytes(units)) } else { Some(()) }
    }

    /// The freed blocks of the span or large block that begins with a unit below [`HeapReservation::units`]; in mode `guard`.
    #[inline(always)]
    pub fn freed(&self, first: UnitIndex) -> Option<&Freed> {
        let row = self.freed_table.row(first as usize);
        assert_internal!(
            row.is_null() || (first as usize) < self.units(),
            "a unit with freed blocks is one of the heap"
        );
        // SAFETY: where there is the table it has a row for every unit, and the caller passes one below `units`; rows are of
        // atomics, and are never unmapped.
        unsafe { row.as_ref() }
    }

    /// As [`HeapReservation::freed`]: the blocks that the collection before kept, where it is to be known.
    pub fn older(&self, first: UnitIndex) -> Option<&Freed> {
        let row = self.freed(first).filter(|_| self.freed_table.has_older())?;
        // SAFETY: where units have a second row it follows the first.
        Some(unsafe { &*core::ptr::from_ref(row).add(1) })
    }

    /// The span class of a unit below [`HeapReservation::units`].
    #[inline(always)]
    pub fn span_class(&self, unit: usize) -> SpanClass {
        assert_internal!(unit < self.units(), "a unit whose span class is read is one of the heap");
        // SAFETY: the table has a row for every unit, and the caller passes one below `units`.
        unsafe { self.span_classes().add(unit).read() }
    }

    /// The first unit of the span or block that contains a unit below [`HeapReservation::units`].
    #[inline(always)]
    pub fn first(&self, unit: usize) -> UnitIndex {
        assert_internal!(unit < self.units(), "a unit whose first is read is one of the heap");
        // SAFETY: the table has a row for every unit, and the caller passes one below `units`.
        unsafe { self.firsts().add(unit).read() }
    }

    /// Maps `unit` to `first`. The caller holds the units' lock, or has taken the unit.
    pub fn set_first(&self, unit: UnitIndex, first: UnitIndex) {
        assert_internal!((unit as usize) < self.units(), "a unit that gets a first is one of the heap");
        assert_internal!(first <= unit, "no unit lies before the first of its span");
        // SAFETY: the table has a row for every unit, and the caller holds the lock or has taken this one.
        unsafe { self.firsts().add(unit as usize).write(first) };
    }

    /// Sets the span class of `count` units from `first` on, and maps them to the first. The caller holds the units'
    /// lock, or has taken them.
    pub fn assign(&self, first: UnitIndex, count: u32, span_class: SpanClass) {
        for unit in first..first + count {
            self.set_first(unit, first);
        }
        self.set_span_class(first, count, span_class);
    }

    /// Sets the span class of `count` units from `first` on. As [`HeapReservation::assign`].
    pub fn set_span_class(&self, first: UnitIndex, count: u32, span_class: SpanClass) {
        assert_internal!(
            first as usize + count as usize <= self.units(),
            "units that get a span class are units of the heap"
        );
        // SAFETY: the table has a row for every unit, and the caller holds the lock or has taken these.
        unsafe { self.span_classes().add(first as usize).write_bytes(span_class, count as usize) };
    }

    /// The descriptor of a unit below [`HeapReservation::units`]. Which lock protects it depends on what the unit
    /// holds: that of its span class, that of the units, or all of them.
    #[inline(always)]
    pub fn span(&self, unit: UnitIndex) -> *mut Span {
        assert_internal!((unit as usize) < self.units(), "a unit with a descriptor is one of the heap");
        // SAFETY: the table has a row for every unit, and the caller passes one below `units`.
        unsafe { self.spans().add(unit as usize) }
    }

    /// Visits all spans and large blocks: the first unit and the descriptor of each. The caller holds their locks, or has the
    /// world stopped.
    pub fn each_span(&self, mut visit: impl FnMut(UnitIndex, *mut Span)) {
        let mut unit = 0;
        while unit < self.units() {
            if self.span_class(unit) == FREE {
                unit += 1;
                continue;
            }
            let first = self.first(unit);
            let span = self.span(first);
            // SAFETY: the first unit of a span or large block, which the caller keeps as it is.
            let units = unsafe { (*span).units as usize };
            assert_internal!(first as usize == unit && units > 0, "spans and large blocks follow each other");
            visit(first, span);
            unit += units;
        }
        assert_internal!(unit == self.units(), "spans and large blocks end in the heap");
    }

    /// Address of a unit.
    #[inline(always)]
    pub fn address(&self, unit: UnitIndex) -> usize {
        self.base() + ((unit as usize) << UNIT_SHIFT)
    }

    /// The unit an address lies in, if it lies in the heap.
    #[inline(always)]
    pub fn unit_of(&self, address: usize) -> Option<usize> {
        let unit = address.wrapping_sub(self.base()) >> UNIT_SHIFT;
        (unit < self.units()).then_some(unit)
    }

    /// Maps at least `wanted` more units; returns how many. `None` when the system gives no more.
    pub fn grow(&self, memory: &mut Memory, wanted: u32) -> Option<u32> {
        memory.requests += 1;
        if memory.fail_every != 0 && memory.requests.is_multiple_of(memory.fail_every) {
            return None;
        }
        let units = self.units();
        // End at whole huge pages: a part of one that is touched stays in small pages when the rest is mapped.
        let step = if units * UNIT < HUGE_FROM { STEP } else { HUGE_STEP };
        let end = units + (wanted as usize).max(step).max(units / 16);
        let ample = if end * UNIT < HUGE_FROM { end } else { end.next_multiple_of(HUGE_STEP) } - units;
        let grown = [ample, wanted as usize].into_iter().find(|&more| {
            extend(memory, units, more).and_then(|()| self.extend_freed(memory, units + more)).is_some()
        })?;
        if units == 0 {
            let stores = [
                (&self.span_classes, &memory.span_classes),
                (&self.firsts, &memory.firsts),
                (&self.blacklist, &memory.blacklist),
                (&self.spans, &memory.spans),
                (&self.base, &memory.heap),
            ];
            for (place, region) in stores {
                place.store(region.start(), Ordering::Relaxed);
            }
        }
        assert_internal!(grown >= wanted as usize, "the heap grows by what is wanted at least");
        assert_internal!(self.base() == memory.heap.start(), "the heap never moves");
        assert_internal!(
            self.spans() as usize == memory.spans.start() && self.firsts() as usize == memory.firsts.start(),
            "the tables never move"
        );
        assert_internal!(self.base().is_multiple_of(heaptoll_runtime::PAGE), "the heap begins at a page");
        assert_internal!(
            memory.has_rows_for(units + grown, self.freed_table.bytes(units + grown)),
            "every unit has its rows before it is counted"
        );
        self.units.store(units + grown, Ordering::Release);
        memory.advise_page_size();
        u32::try_from(grown).ok()
    }
}

/// The heap first, then the tables: a request beyond a limit fails before the tables, a fiftieth of it, take what the
/// limit leaves. What a failed growth has mapped already is used by the next.
fn extend(memory: &mut Memory, units: usize, more: usize) -> Option<()> {
    let after = units.checked_add(more).filter(|&after| after < UnitIndex::MAX as usize)?;
    up_to(&mut memory.heap, after << UNIT_SHIFT)?;
    up_to(&mut memory.spans, after * size_of::<Span>())?;
    up_to(&mut memory.span_classes, after + AHEAD)?;
    up_to(&mut memory.blacklist, after + AHEAD)?;
    if memory.has_ages {
        extend_ages(memory, after)?;
    }
    up_to(&mut memory.firsts, after * size_of::<UnitIndex>())
}

fn extend_ages(memory: &mut Memory, units: usize) -> Option<()> {
    up_to(&mut memory.ages, units * size_of::<Age>())?;
    up_to(&mut memory.flags, units + AHEAD)
}

/// Grows the region to `bytes` in all, rounded up to words.
fn up_to(region: &mut Region, bytes: usize) -> Option<()> {
    let bytes = bytes.next_multiple_of(size_of::<usize>());
    let has = region.end() - region.start();
    assert_internal!(has.is_multiple_of(size_of::<usize>()), "regions grow by whole words");
    if bytes > has {
        let _: NonNull<u8> = region.grow(bytes - has)?;
    }
    Some(())
}

const _: () = assert!(UNIT == 1 << UNIT_SHIFT && FREE == 0, "fresh tables describe free units");

#[cfg(test)]
mod tests;
