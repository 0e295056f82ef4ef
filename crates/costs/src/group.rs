//! What a routine is for: the columns that Detlefs, Dosser & Zorn have, and the two that they leave out.

use heaptoll_reference::Routine;

use crate::class::Asked;
use crate::figures::Group;

/// The group of a routine.
pub fn group(routine: Routine) -> Group {
    match routine {
        Routine::Free | Routine::Delete => Group::Free,
        Routine::Realloc | Routine::Reallocarray => Group::Resize,
        Routine::UsableSize => Group::Ask,
        Routine::Malloc
        | Routine::Calloc
        | Routine::Memalign
        | Routine::PosixMemalign
        | Routine::AlignedAlloc
        | Routine::Valloc
        | Routine::New
        | Routine::NewAligned => Group::Allocate,
    }
}

/// The size that a call asks for, by its arguments; of routines that are given a block, nothing.
pub(crate) fn asked(routine: Routine, arguments: [u64; 3]) -> Option<Asked> {
    let [first, second, third] = arguments;
    let product = |a: u64, b: u64| a.checked_mul(b).map_or(Asked::Unknown, Asked::Bytes);
    match routine {
        Routine::Malloc | Routine::Valloc | Routine::New | Routine::NewAligned => Some(Asked::Bytes(first)),
        Routine::Realloc | Routine::Memalign | Routine::AlignedAlloc => Some(Asked::Bytes(second)),
        Routine::PosixMemalign => Some(Asked::Bytes(third)),
        Routine::Calloc => Some(product(first, second)),
        Routine::Reallocarray => Some(product(second, third)),
        Routine::Free | Routine::Delete | Routine::UsableSize => None,
    }
}
