//! Routines of the malloc family that the tracer recognises, with their numbers in its words.

use crate::numbered::numbered;

numbered! {
    /// A routine, by its number in `tracer/words.h`.
    pub enum Routine {
        /// `malloc`.
        Malloc = 1 => "malloc",
        /// `free`, `cfree`.
        Free = 2 => "free",
        /// `calloc`.
        Calloc = 3 => "calloc",
        /// `realloc`.
        Realloc = 4 => "realloc",
        /// `reallocarray`.
        Reallocarray = 5 => "reallocarray",
        /// `memalign`.
        Memalign = 6 => "memalign",
        /// `posix_memalign`.
        PosixMemalign = 7 => "posix_memalign",
        /// `aligned_alloc`.
        AlignedAlloc = 8 => "aligned_alloc",
        /// `valloc`, `pvalloc`.
        Valloc = 9 => "valloc",
        /// `malloc_usable_size`.
        UsableSize = 10 => "malloc_usable_size",
        /// Every `operator new` and `operator new[]` without an alignment.
        New = 11 => "operator new",
        /// Those with an alignment.
        NewAligned = 12 => "operator new (aligned)",
        /// Every `operator delete` and `operator delete[]`.
        Delete = 13 => "operator delete",
    }
}

impl Routine {
    /// Whether it only frees.
    pub fn frees(self) -> bool {
        matches!(self, Routine::Free | Routine::Delete)
    }

    /// Whether it only gives a property of a block.
    pub fn queries(self) -> bool {
        self == Routine::UsableSize
    }

    /// Whether it has a count of sizes before the size.
    pub fn multiplies(self) -> bool {
        matches!(self, Routine::Calloc | Routine::Reallocarray)
    }

    /// The bytes that a call requests, by its arguments; `None` of one that makes no block.
    pub fn requested(self, arguments: [u64; 3]) -> Option<u64> {
        Some(match self {
            Routine::Free | Routine::Delete | Routine::UsableSize => return None,
            Routine::Malloc | Routine::Valloc | Routine::New | Routine::NewAligned => arguments[0],
            Routine::Calloc => arguments[0].saturating_mul(arguments[1]),
            Routine::Realloc | Routine::Memalign | Routine::AlignedAlloc => arguments[1],
            Routine::Reallocarray => arguments[1].saturating_mul(arguments[2]),
            Routine::PosixMemalign => arguments[2],
        })
    }

    /// Whether it moves or resizes an existing block.
    pub fn resizes(self) -> bool {
        matches!(self, Routine::Realloc | Routine::Reallocarray)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_requests_what_its_arguments_state() {
        let of = |routine: Routine| routine.requested([3, 5, 7]);
        assert_eq!(of(Routine::Malloc), Some(3));
        assert_eq!(of(Routine::Calloc), Some(15));
        assert_eq!(of(Routine::Realloc), Some(5));
        assert_eq!(of(Routine::Reallocarray), Some(35));
        assert_eq!(of(Routine::Memalign), Some(5));
        assert_eq!(of(Routine::PosixMemalign), Some(7));
        assert_eq!(of(Routine::NewAligned), Some(3));
        assert_eq!(Routine::Calloc.requested([u64::MAX, 2, 0]), Some(u64::MAX));
        for routine in Routine::ALL {
            assert_eq!(of(routine).is_none(), routine.frees() || routine.queries(), "{routine:?}");
        }
    }

    #[test]
    fn numbers_and_routines_are_one_to_one() {
        for routine in Routine::ALL {
            assert_eq!(Routine::from_number(routine as u64), Some(routine));
        }
        assert_eq!((Routine::from_number(0), Routine::from_number(14)), (None, None));
    }
}
