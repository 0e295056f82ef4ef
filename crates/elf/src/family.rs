//! The symbols of the malloc family and of C++ `operator new` and `operator delete` in every form: plain, array, sized,
//! aligned, nothrow (Itanium C++ ABI, "Mangling"; for 64-bit machines).

/// Members of the malloc family that a manager is expected to define.
pub const FAMILY: [&str; 11] = [
    "malloc",
    "free",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
];

/// What C23 adds, and glibc from 2.43 on: of a manager that lacks these, blocks would be given to glibc's heap.
pub const SIZED_FREES: [&str; 2] = ["free_sized", "free_aligned_sized"];

/// What mimalloc exports beside the family: their blocks come from its own `malloc`, where no layer finds the call.
pub const COPIES: [&str; 2] = ["strdup", "strndup"];

/// What glibc exports about its own heap alone.
pub const OWN_HEAP: [&str; 6] =
    ["malloc_trim", "mallopt", "mallinfo", "mallinfo2", "malloc_info", "malloc_stats"];

/// `operator new` without an alignment.
pub const NEW: [&str; 4] = ["_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t"];

/// `operator new` with an alignment.
pub const NEW_ALIGNED: [&str; 4] = [
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
];

/// `operator delete`.
pub const DELETE: [&str; 12] = [
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
];

/// All that a whole replacement of malloc exports: the family and every operator.
pub fn replacement() -> impl Iterator<Item = &'static str> {
    FAMILY.into_iter().chain(SIZED_FREES).chain(NEW).chain(NEW_ALIGNED).chain(DELETE)
}
