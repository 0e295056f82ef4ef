//! Which of glibc's tests a manager does not pass, and why: each entry is measured, and one that is no longer true makes
//! the run fail.

use crate::deviation::{self, Deviation};

/// Tests that are not run, and why.
pub const LEFT_OUT: &[(&[&str], &str)] = &[
    (
        &[
            "tst-interpose-aux",
            "tst-interpose-aux-nothread",
            "tst-interpose-aux-thread",
            "tst-interpose-nothread",
            "tst-interpose-skeleton",
            "tst-interpose-static-nothread",
            "tst-interpose-static-thread",
            "tst-interpose-thread",
        ],
        "the program has a malloc of its own, so no other is asked",
    ),
    (
        &["tst-compathooks-off", "tst-compathooks-on", "tst-mallocstate"],
        "old symbols of glibc's, which a program can no longer be linked with",
    ),
    (
        &["tst-malloc-usable", "tst-malloc-usable-tunables"],
        "they ask glibc's checking malloc (libc_malloc_debug.so): the exact size that was asked for",
    ),
    (&["tst-dynarray-at-fail"], "the message that it waits for is of a function that only glibc's own build has"),
];

/// What each manager does not pass.
pub const EXCEPTIONS: &[Deviation] = &[];

/// The exception for a test under a manager.
pub fn known(manager: &str, test: &str) -> Option<&'static Deviation> {
    EXCEPTIONS.iter().find(|one| one.managers.contains(&manager) && one.cases.contains(&test))
}

/// The list as a Markdown table.
pub fn markdown() -> String {
    deviation::table("tests", EXCEPTIONS)
}
