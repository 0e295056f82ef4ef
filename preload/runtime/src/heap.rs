//! The contract of a heap: what an algorithm must offer, and what can be found wrong with it.

use core::ffi::c_int;
use core::ptr::NonNull;

use crate::{Message, Region, Search, StatsReporter};

/// [`Heap::region`] and [`Heap::region_mut`] of a heap that keeps its region in this field.
#[macro_export]
macro_rules! region_of_heap {
    ($($field:ident).+) => {
        fn region(&self) -> &$crate::Region {
            &self.$($field).+
        }

        fn region_mut(&mut self) -> &mut $crate::Region {
            &mut self.$($field).+
        }
    };
}

/// A heap of one algorithm. One thread at a time uses it; [`crate::Shell`] ensures that.
///
/// Every block is aligned to [`crate::ALIGNMENT`]. Sizes are what the program requested, in bytes, at most
/// `isize::MAX`, 0 included: a block of size 0 is a block like another.
pub trait Heap: Send + 'static {
    /// The manager's name on the command line and in rows.
    const NAME: &'static str;

    /// Whether free does anything. Where it does nothing, blocks given back stay what they were, live ones.
    const FREES: bool = true;

    /// Whether every byte of a fresh block is zero.
    const CLEARS: bool = false;

    /// The memory it has from the system.
    fn region(&self) -> &Region;

    /// The same, for the shell's hooks and the tests' faults.
    fn region_mut(&mut self) -> &mut Region;

    /// A block of at least `bytes`; `None` when the system gives no more, with the heap as it was.
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>>;

    /// As [`Heap::allocate`], for contents that are no pointers: a collector need not read them.
    #[inline(always)]
    fn allocate_pointer_free(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        self.allocate(bytes)
    }

    /// As [`Heap::allocate`], with an address that is a multiple of `alignment`, a power of two above
    /// [`crate::ALIGNMENT`]. `bytes + alignment` does not exceed `isize::MAX`.
    fn allocate_aligned(&mut self, alignment: usize, bytes: usize) -> Option<NonNull<u8>>;

    /// Frees a block.
    ///
    /// # Errors
    /// What the algorithm's own metadata shows to be wrong; the heap is as it was.
    ///
    /// # Safety
    /// `block` came from this heap and was not freed since; what the heap notices of the contrary is an error, the rest
    /// is undefined.
    unsafe fn free(&mut self, block: NonNull<u8>) -> Result<(), Misuse>;

    /// Frees a block whose contents realloc has moved: differs from [`Heap::free`] where that does nothing.
    ///
    /// # Errors
    /// As [`Heap::free`].
    ///
    /// # Safety
    /// As [`Heap::free`].
    #[inline(always)]
    unsafe fn discard(&mut self, block: NonNull<u8>) -> Result<(), Misuse> {
        // SAFETY: `block` is a live block of this heap, as this function requires.
        unsafe { self.free(block) }
    }

    /// Makes a block at least `bytes` large where it is, and gives back what it no longer needs if the algorithm
    /// does so. False when it cannot: nothing has changed then.
    ///
    /// # Errors
    /// As [`Heap::free`].
    ///
    /// # Safety
    /// As [`Heap::free`].
    unsafe fn resize(&mut self, block: NonNull<u8>, bytes: usize) -> Result<bool, Misuse>;

    /// Bytes that the program may use of a block, at least what it requested.
    ///
    /// # Safety
    /// `block` is a live block of this heap.
    unsafe fn usable(&self, block: NonNull<u8>) -> usize;

    /// Shows the region's pieces in order of address. They tile it: each begins where the one before ends, the first
    /// at the region's start, the last ends at its end. The heap must be sound (see [`Heap::check`]).
    fn walk(&self, visit: &mut dyn FnMut(Piece));

    /// Verifies every invariant of the structure, its free lists and trees included.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    fn check(&self) -> Result<(), Damage>;

    /// How far it searched; `None` for algorithms that never search.
    fn search(&self) -> Option<Search> {
        None
    }

    /// At process start: from now on growth is reported, and collections if the heap makes any.
    fn start(&mut self, reporter: &'static StatsReporter) {
        self.region_mut().report_to(reporter);
    }

    /// Reclaims what the program cannot reach: 0, or a positive `errno` value. ENOTSUP where free is what reclaims.
    fn collect(&mut self) -> c_int {
        libc::ENOTSUP
    }

    /// In the child of a fork, which has one thread.
    fn after_fork_in_child(&mut self) {}
}

/// What a piece of the region is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PieceKind {
    /// A block the program holds.
    Live,
    /// A block ready to be handed out.
    Free,
    /// The manager's own.
    Metadata,
    /// Never carved into blocks yet, or not fit to become one.
    Unused,
}

/// A piece of the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// Address of its first byte, headers included.
    pub address: usize,
    /// Its length in bytes, headers and tags included.
    pub bytes: usize,
    /// Of a live block: the address the program was given. Otherwise 0.
    pub block: usize,
    /// Of `bytes`, those that are the manager's: headers, tags, the gap before an aligned block.
    pub overhead: usize,
}

impl Piece {
    /// A live block of `bytes` at `address`, known to the program as `block`.
    pub const fn live(address: usize, bytes: usize, block: usize, overhead: usize) -> Piece {
        Piece { kind: PieceKind::Live, address, bytes, block, overhead }
    }

    /// A free block.
    pub const fn free(address: usize, bytes: usize, overhead: usize) -> Piece {
        Piece { kind: PieceKind::Free, address, bytes, block: 0, overhead }
    }

    /// The manager's own memory.
    pub const fn metadata(address: usize, bytes: usize) -> Piece {
        Piece { kind: PieceKind::Metadata, address, bytes, block: 0, overhead: bytes }
    }

    /// Memory not carved yet.
    pub const fn unused(address: usize, bytes: usize) -> Piece {
        Piece { kind: PieceKind::Unused, address, bytes, block: 0, overhead: 0 }
    }
}

/// A program's mistake that a manager noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misuse {
    /// The block is free already.
    DoubleFree,
    /// The address is not one this manager gave out.
    Foreign,
    /// The block's header or tags were overwritten, or the address lies inside a block.
    Damaged,
}

impl Misuse {
    /// What happened, as text for the message.
    pub const fn text(self) -> &'static str {
        match self {
            Misuse::DoubleFree => "this block is free already (a double free)",
            Misuse::Foreign => "this address is not one that was allocated here",
            Misuse::Damaged => {
                "the words around this block are not as they were left: a write beyond a block, an address inside \
                 one, or a second free of one that has been joined to others"
            }
        }
    }
}

/// An invariant that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Where.
    pub address: usize,
    /// Which invariant, as text.
    pub invariant: &'static str,
}

impl Damage {
    /// `Err` with this damage unless `holds`: checks read as a list of invariants.
    pub fn unless(holds: bool, address: usize, invariant: &'static str) -> Result<(), Damage> {
        if holds { Ok(()) } else { Err(Damage { address, invariant }) }
    }

    /// What does not hold in the heap of the manager `name`, as a line for the user.
    pub const fn message(&self, name: &str) -> Message {
        let line = Message::new().text(name).text(": the heap is damaged at ").address(self.address);
        line.text(": this does not hold: ").text(self.invariant)
    }
}
