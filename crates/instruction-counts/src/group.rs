//! The groups of routines: the columns of Detlefs, Dosser & Zorn, and the two that they leave out.

use heaptoll_reftrace::Routine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::class::Request;

/// What a routine is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// `malloc`, `calloc`, aligned ones, `operator new`, and `realloc` of no block: a block from nothing.
    Allocate,
    /// `free`, `operator delete`.
    Free,
    /// `realloc`, `reallocarray`.
    Resize,
    /// `malloc_usable_size`.
    #[serde(rename = "ask")]
    Query,
}

/// The group of a routine.
pub fn group(routine: Routine) -> Group {
    match routine {
        Routine::Free | Routine::Delete => Group::Free,
        Routine::Realloc | Routine::Reallocarray => Group::Resize,
        Routine::UsableSize => Group::Query,
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

/// The size that a call requests, from its arguments; `None` for routines that take a block and no size.
pub(crate) fn request(routine: Routine, arguments: [u64; 3]) -> Option<Request> {
    let [first, second, third] = arguments;
    let product = |a: u64, b: u64| a.checked_mul(b).map_or(Request::Unknown, Request::Bytes);
    match routine {
        Routine::Malloc | Routine::Valloc | Routine::New | Routine::NewAligned => Some(Request::Bytes(first)),
        Routine::Realloc | Routine::Memalign | Routine::AlignedAlloc => Some(Request::Bytes(second)),
        Routine::PosixMemalign => Some(Request::Bytes(third)),
        Routine::Calloc => Some(product(first, second)),
        Routine::Reallocarray => Some(product(second, third)),
        Routine::Free | Routine::Delete | Routine::UsableSize => None,
    }
}
