//! Baker's treadmill for unmodified programs ("The Treadmill: Real-Time Garbage Collection Without Motion Sickness",
//! 1992): conservative and not moving. What a copying collector does by moving objects between spaces, this one does by
//! moving them between segments of a doubly linked circle, a wheel for each size class.
//!
//! ```text
//!               bottom                          a cell
//!        ecru  ●──────○  free cells ◀─ malloc     0        8                        size
//!            ●          ○              takes the   ├────────┼────────────────────────┤
//!      top ─ ●          ○ ─ free       first:      │ links, │ the object             │
//!            ◐          ●              black       │ colour │                        │
//!       grey  ◐───┬────●  black                    └────────┴────────────────────────┘
//!                scan
//! ```
//!
//! A collection begins with everything ecru, without a pass over the heap: the meaning of the colour's bit is inverted.
//! An object that a word of a root or of a grey object may point to is linked between `top` and `scan`: it is grey. The
//! grey objects are the mark stack. The one next to `scan` is scanned, and `scan` moves past it: it is black. When
//! nothing is grey, what is still ecru is free, by moving a sentinel: nothing is swept, and no dead object is touched.
//!
//! - Baker's collector is incremental: a barrier shades what the program loads. An unmodified program has no barrier, so
//!   the program is stopped while its objects are marked. Neither did Baker's find pointers conservatively.
//! - A word may point to a cell that is free, whose colour shows nothing. So free cells are parked, by a bit next to the
//!   colour: when a collection begins those that the last one freed and that were not taken since.
//! - free does nothing, as in the other historic collectors. realloc gives a block back that it has moved, which takes
//!   constant time: the circle is doubly linked.
//! - An object is cleared when it is allocated, not when it dies.
//! - A large object has pages of its own, on a wheel for all of them. Objects without pointers have wheels of their own.
//! - The policy is that of Zorn's collector (`bw16`): the heap begins with 256 KiB, and a collection that reclaims less
//!   than a quarter makes it half as large again. Blocks without an object are given to other classes when a class needs
//!   one, which takes a pass over the heap.

mod blocks;
mod check;
mod collection;
mod heap;
mod pages;
mod supply;

use heaptoll_runtime::StatsReporter;
use heaptoll_wheel::{Links, SENTINEL_BYTES, Wheel};

use crate::support::Mutators;

use blocks::Cell;
use pages::Pages;

/// See the module.
pub struct Treadmill {
    pages: Pages,
    /// Wheels that may have grey cells, a bit each.
    grey: u64,
    /// The colour of what is grey and black.
    colour: bool,
    /// Bytes in objects; an object's are those of its cell.
    used: usize,
    /// Those after the last collection.
    live: usize,
    /// Collections that began.
    collections: u64,
    /// Whether blocks without an object were given back since the last collection.
    given_back: bool,
    mutators: Option<&'static dyn Mutators>,
    reporter: Option<&'static StatsReporter>,
}

impl Treadmill {
    /// A heap that knows of no program: it never collects.
    pub const fn new() -> Treadmill {
        Treadmill {
            pages: Pages::new(),
            grey: 0,
            colour: false,
            used: 0,
            live: 0,
            collections: 0,
            given_back: false,
            mutators: None,
            reporter: None,
        }
    }

    /// A heap that collects what this program cannot reach.
    pub const fn of(mutators: &'static dyn Mutators) -> Treadmill {
        let mut heap = Treadmill::new();
        heap.mutators = Some(mutators);
        heap
    }

    /// Links of the heap's cells, which begin a word before a multiple of 16.
    #[inline(always)]
    fn links(&self) -> Links {
        Links::new(self.pages.base())
    }

    /// A wheel. Its sentinels are there when the heap has any page.
    #[inline(always)]
    fn wheel(&self, number: usize) -> Wheel {
        Wheel::at(self.pages.base() + number * SENTINEL_BYTES)
    }

    /// Whether a cell has an object, when no collection runs.
    ///
    /// # Safety
    /// It is a cell of the heap.
    unsafe fn is_used(&self, cell: Cell) -> bool {
        let links = self.links();
        // SAFETY: the precondition of this function.
        unsafe { !links.is_parked(cell.address) && links.colour(cell.address) == self.colour }
    }
}

impl core::fmt::Debug for Treadmill {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Treadmill").field("used", &self.used).field("collections", &self.collections).finish()
    }
}

impl Default for Treadmill {
    fn default() -> Treadmill {
        Treadmill::new()
    }
}
