//! The word in front of an object: its neighbours on the wheel, its colour, and whether it is parked.
//!
//! ```text
//!   63      62       61                31 30                 0
//!   colour │ parked │ cell before        │ cell after         │   cells by number: their distance from the heap's begin
//! ```
//!
//! A flip frees cells without touching them, so a colour alone does not show that a cell is free. A collector that finds
//! pointers conservatively parks its free cells.

use crate::class::GRANULE;

const BITS: u32 = 31;
const NUMBER: u64 = (1 << BITS) - 1;
const COLOUR: u64 = 1 << 63;
const PARKED: u64 = 1 << 62;
const STATE: u64 = COLOUR | PARKED;

/// Bytes from a heap's begin on that links reach.
pub const REACH_BYTES: usize = GRANULE << BITS;

/// Reads and writes the words of all cells of a heap.
///
/// All functions: addresses are those of cells of the heap, linked in wheels, and of sentinels; nothing else uses their
/// words.
#[derive(Debug, Clone, Copy)]
pub struct Links {
    base: usize,
}

impl Links {
    /// Those of a heap at an address. No cell is 2^31 granules away from it.
    pub fn new(base: usize) -> Links {
        Links { base }
    }

    #[inline(always)]
    unsafe fn word(self, cell: usize) -> u64 {
        // SAFETY: the precondition of all functions.
        unsafe { (cell as *const u64).read() }
    }

    #[inline(always)]
    unsafe fn set(self, cell: usize, word: u64) {
        // SAFETY: the precondition of all functions.
        unsafe { (cell as *mut u64).write(word) };
    }

    #[inline(always)]
    fn number(self, cell: usize) -> u64 {
        ((cell - self.base) / GRANULE) as u64
    }

    #[inline(always)]
    fn cell(self, number: u64) -> usize {
        self.base + (number & NUMBER) as usize * GRANULE
    }

    /// The cell after this one.
    ///
    /// # Safety
    /// That of all functions: see [`Links`].
    #[inline(always)]
    pub unsafe fn after(self, cell: usize) -> usize {
        // SAFETY: the precondition of all functions.
        self.cell(unsafe { self.word(cell) })
    }

    /// The cell before this one.
    ///
    /// # Safety
    /// That of all functions: see [`Links`].
    #[inline(always)]
    pub unsafe fn before(self, cell: usize) -> usize {
        // SAFETY: the precondition of all functions.
        self.cell(unsafe { self.word(cell) } >> BITS)
    }

    #[inline(always)]
    unsafe fn set_after(self, cell: usize, after: usize) {
        // SAFETY: the precondition of all functions.
        unsafe { self.set(cell, self.word(cell) & !NUMBER | self.number(after)) };
    }

    #[inline(always)]
    unsafe fn set_before(self, cell: usize, before: usize) {
        // SAFETY: the precondition of all functions.
        unsafe { self.set(cell, self.word(cell) & !(NUMBER << BITS) | self.number(before) << BITS) };
    }

    /// Its colour, one of two.
    ///
    /// # Safety
    /// That of all functions: see [`Links`].
    #[inline(always)]
    pub unsafe fn colour(self, cell: usize) -> bool {
        // SAFETY: the precondition of all functions.
        unsafe { self.word(cell) & COLOUR != 0 }
    }

    /// Paints it.
    ///
    /// # Safety
    /// That of all functions: see [`Links`].
    #[inline(always)]
    pub unsafe fn paint(self, cell: usize, colour: bool) {
        let bit = if colour { COLOUR } else { 0 };
        // SAFETY: the precondition of all functions.
        unsafe { self.set(cell, self.word(cell) & !COLOUR | bit) };
    }

    /// Whether it is parked: known to be free.
    ///
    /// # Safety
    /// That of all functions: see [`Links`].
    #[inline(always)]
    pub unsafe fn is_parked(self, cell: usize) -> bool {
        // SAFETY: the precondition of all functions.
        unsafe { self.word(cell) & PARKED != 0 }
    }

    /// Parks a free cell.
    ///
    /// # Safety
    /// That of all functions: see [`Links`].
    #[inline(always)]
    pub unsafe fn park(self, cell: usize) {
        // SAFETY: the precondition of all functions.
        unsafe { self.set(cell, self.word(cell) | PARKED) };
    }

    /// A cell gets an object: it is painted, and parked no longer.
    ///
    /// # Safety
    /// That of all functions: see [`Links`].
    #[inline(always)]
    pub unsafe fn renew(self, cell: usize, colour: bool) {
        let bit = if colour { COLOUR } else { 0 };
        // SAFETY: the precondition of all functions.
        unsafe { self.set(cell, self.word(cell) & !(COLOUR | PARKED) | bit) };
    }

    /// Makes a wheel of one cell, which is in none.
    ///
    /// # Safety
    /// That of all functions: see [`Links`].
    pub unsafe fn alone(self, cell: usize) {
        let number = self.number(cell);
        // SAFETY: the precondition of all functions.
        unsafe { self.set(cell, number << BITS | number) };
    }

    /// Takes a cell out of its wheel.
    ///
    /// # Safety
    /// That of all functions: see [`Links`].
    #[inline(always)]
    pub unsafe fn unlink(self, cell: usize) {
        // SAFETY: the precondition of all functions.
        unsafe {
            let word = self.word(cell);
            let (before, after) = (self.cell(word >> BITS), self.cell(word));
            self.set_after(before, after);
            self.set_before(after, before);
        }
    }

    /// Puts a cell that is in no wheel in front of one that is.
    ///
    /// # Safety
    /// That of all functions: see [`Links`].
    #[inline(always)]
    pub unsafe fn link_before(self, cell: usize, after: usize) {
        // SAFETY: the precondition of all functions.
        unsafe {
            let before = self.before(after);
            let neighbours = self.number(before) << BITS | self.number(after);
            self.set(cell, self.word(cell) & STATE | neighbours);
            self.set_after(before, cell);
            self.set_before(after, cell);
        }
    }

    /// Exchanges two neighbours, the first and the one after it, of a wheel of four or more.
    ///
    /// # Safety
    /// That of all functions: see [`Links`].
    #[inline(always)]
    pub unsafe fn exchange(self, first: usize, second: usize) {
        // SAFETY: the precondition of all functions.
        unsafe {
            let (of_first, of_second) = (self.word(first), self.word(second));
            let (before, after) = (self.cell(of_first >> BITS), self.cell(of_second));
            let (first_number, second_number) = (self.number(first), self.number(second));
            self.set(second, of_second & STATE | of_first & NUMBER << BITS | first_number);
            self.set(first, of_first & STATE | second_number << BITS | of_second & NUMBER);
            self.set_after(before, second);
            self.set_before(after, first);
        }
    }
}
