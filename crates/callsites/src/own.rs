//! Decides which frames are the program's own. Frames of the language's and the system's libraries are not, by the file
//! that their code is in, else by the symbol's namespace, else (a function that was inlined has no namespace in debug
//! information) by the source file. Everything else is the program's, its own `xmalloc` and the libraries that it chose
//! included: only the reader knows what those mean.

use crate::frame::{Frame, file_name};

/// Libraries by the beginning of their file names: C, C++, Rust, the dynamic linker, allocators, and what
/// heaptoll preloads.
pub(crate) const LIBRARIES: [&str; 16] = [
    "libc.so",
    "libc-2.",
    "libm.so",
    "libpthread",
    "libdl.",
    "librt.",
    "ld-linux",
    "ld-musl",
    "libstdc++.",
    "libc++.",
    "libc++abi.",
    "libgcc_s.",
    "libstd-",
    "libjemalloc",
    "libtcmalloc",
    "libheaptoll",
];
/// Outermost namespaces and crates of standard libraries.
const NAMESPACES: [&str; 9] =
    ["std", "__gnu_cxx", "__cxxabiv1", "alloc", "core", "hashbrown", "__rustc", "std_detect", "panic_unwind"];
/// Sources of standard libraries, by a part of their path.
const SOURCES: [&str; 7] = [
    "/include/c++/",
    "/c++/v1/",
    "libstdc++-v3/",
    "/rustlib/src/rust/",
    "/rust/deps/",
    "/library/alloc/src/",
    "/library/core/src/",
];
/// Functions that pass a request on to malloc, or are malloc, wherever they are linked in.
const FAMILY: [&str; 21] = [
    "malloc",
    "heaptoll_malloc_pointer_free",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "strdup",
    "strndup",
    "wcsdup",
    "asprintf",
    "vasprintf",
    "getline",
    "getdelim",
    "free",
    "cfree",
    "realpath",
    "open_memstream",
];
/// Functions that call `main` and threads.
const BEGINNINGS: [&str; 7] = [
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "(below main)",
    "clone",
    "clone3",
    "start_thread",
];
/// Marks of the recorder that are no functions.
const MARKS: [&str; 3] = ["[deeper frames]", "[unknown callers]", REPEATED];
/// The mark of a stack whose recursion the recorder folded.
const REPEATED: &str = "[repeated callers]";

/// Whether a frame is the program's own code. `short` is its function as returned by [`crate::short`].
pub fn is_own(frame: &Frame, short: &str) -> bool {
    let object = file_name(frame.object);
    if LIBRARIES.iter().any(|library| object.starts_with(library)) {
        return false;
    }
    if allocates(short) || begins(short) || MARKS.contains(&frame.function) || is_of_libc(short) {
        return false;
    }
    match namespace(short) {
        Some(namespace) => !NAMESPACES.contains(&namespace),
        None => !is_of_library_source(frame.line),
    }
}

/// Whether a frame is the mark that callers which occur again and again were left out.
pub fn is_folded(function: &str) -> bool {
    function == REPEATED
}

/// Whether a stack begins with a function: what calls `main`, or a thread's own.
pub(crate) fn begins(short: &str) -> bool {
    BEGINNINGS.contains(&short)
}

/// Whether a function only passes a request on to malloc.
pub(crate) fn allocates(short: &str) -> bool {
    let bare = short.trim_start_matches('_');
    let bare = bare.strip_prefix("GI_").unwrap_or(bare);
    let bare = bare.strip_prefix("libc_").unwrap_or(bare);
    FAMILY.contains(&bare.trim_start_matches('_'))
        || [
            "operator new",
            "operator delete",
            "std::allocator",
            "std::__new_allocator",
            "__gnu_cxx::new_allocator",
        ]
        .iter()
        .any(|name| short.starts_with(name))
        || ["rust_alloc", "rust_realloc", "rdl_", "rg_"].iter().any(|name| bare.starts_with(name))
}

/// glibc's internal names, for static programs, and debug information that gives them without a library.
fn is_of_libc(short: &str) -> bool {
    ["__GI_", "_IO_", "__libc_", "_dl_", "_nl_"].iter().any(|name| short.starts_with(name))
}

/// The outermost namespace or crate; of `<T as U>::f` that of the type, or of the trait when the type has none.
fn namespace(short: &str) -> Option<&str> {
    let path = short.trim_start_matches(['&', '*']);
    let Some(inner) = path.strip_prefix('<') else {
        return path.split_once("::").map(|(first, _)| first.trim_end_matches("<…>"));
    };
    let (kind, of) = inner.split_once(" as ").unwrap_or((inner, ""));
    let kind = kind.trim_start_matches(['&', '*', '[', '(', '<']);
    let kind = kind.strip_prefix("mut ").or(kind.strip_prefix("dyn ")).unwrap_or(kind);
    let kind_path = kind.split(['>', ' ', ']', ')', '<']).next().unwrap_or(kind);
    match kind_path.split_once("::") {
        Some((first, _)) => Some(first),
        // A type without a path is the language's or a parameter.
        None if !of.is_empty() || kind.contains(">::") => Some("core"),
        None => None,
    }
}

fn is_of_library_source(line: &str) -> bool {
    SOURCES.iter().any(|part| line.contains(part)) || line.contains("/rustc/") && line.contains("/library/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::short::short;

    fn own(function: &str, line: &str, object: &str) -> bool {
        is_own(&Frame { function, line, object, offset: 0 }, &short(function))
    }

    #[test]
    fn frames_of_standard_libraries_are_not_the_programs_own() {
        for function in [
            "operator new(unsigned long)",
            "void* std::foo<int>(int)",
            "std::__cxx11::basic_string<char>::_M_mutate(unsigned long)",
            "__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)",
            "alloc::raw_vec::finish_grow",
            "<alloc::vec::Vec<rs::Foo> as core::clone::Clone>::clone",
            "<T as alloc::string::ToString>::to_string",
            "<&mut I as core::iter::Iterator>::next",
            "<[T]>::to_vec",
            "<alloc::alloc::Global>::alloc_impl",
            "hashbrown::raw::RawTable<T,A>::reserve_rehash",
            "__rustc[0123456789ab]::__rust_alloc",
            "__rdl_alloc",
            "std::sys::backtrace::__rust_begin_short_backtrace",
            "__GI___strdup",
            "__libc_malloc",
            "_IO_file_doallocate",
        ] {
            assert!(!own(function, "", "/usr/bin/x"), "{function}");
        }
        for object in
            ["/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/libstdc++.so.6.0.30", "/lib64/ld-linux-x86-64.so.2"]
        {
            assert!(!own("", "", object) && !own("anything", "", object), "{object}");
        }
        assert!(!own("allocate", "/usr/include/c++/12/bits/new_allocator.h:137", "/x"));
        assert!(!own("alloc_impl", "/rustc/0123abc/library/alloc/src/alloc.rs:95", "/x"));
    }

    #[test]
    fn everything_else_is() {
        for function in [
            "main",
            "xmalloc",
            "rs::main",
            "rs::main::{{closure}}",
            "<rs::Store as core::ops::drop::Drop>::drop",
            "<rs::Store>::add",
            "standard::thing()",
            "core_dump(int)",
            "(anonymous namespace)::leak()",
            "Tree* keep<std::string>(std::string const&)",
            "PyObject_Malloc",
            "std_like(std::string)",
        ] {
            assert!(own(function, "/src/x.c:1", "/usr/bin/x"), "{function}");
        }
        assert!(own("", "", "/usr/bin/x"));
        assert!(own("g_malloc", "", "/usr/lib/libglib-2.0.so.0"));
    }
}
