//! Which of glibc's tests a manager does not pass, and why. Each failure was measured, except `tst-malloc-thread-fail`
//! under `cartesian`, `bw16` and `bw26`, and some tests under layers; the reasons of `tst-dynarray-fail` are inferred
//! from the test and the algorithm. An entry that always holds and is no longer true makes the run fail.

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
        "the program has a malloc of its own, so no other is tested",
    ),
    (
        &["tst-compathooks-off", "tst-compathooks-on", "tst-mallocstate"],
        "old symbols of glibc's, which a program can no longer be linked with",
    ),
    (
        &["tst-malloc-usable", "tst-malloc-usable-tunables"],
        "they test glibc's checking malloc (libc_malloc_debug.so): the exact requested size",
    ),
    (
        &["tst-malloc-backtrace", "tst-safe-linking"],
        "they write over freed blocks and wait for glibc's own message; the effects of misuse are recorded separately",
    ),
    (
        &["tst-dynarray-at-fail"],
        "the message that it waits for is of a function that only glibc's own build has",
    ),
];

/// Deviations of the peer itself, which show under layers too.
const MIMALLOC: &[&str] = &["mimalloc3", "quarantine=1M,check=on/mimalloc3", "sweep,free=honour/mimalloc3"];

/// An exception found by scripts/glibc-tests.
const fn exception(
    managers: &'static [&'static str],
    cases: &'static [&'static str],
    always: bool,
    reason: &'static str,
) -> Deviation {
    Deviation { managers, cases, always, hangs: false, reason, source: "scripts/glibc-tests" }
}

/// The tests that each manager fails.
pub const EXCEPTIONS: &[Deviation] = &[
    exception(
        &["knuth", "bestfit", "cartesian", "kingsley", "haertel", "buddy", "pow2"],
        &["tst-free-errno"],
        true,
        "the test maps new pages over those before and after its block, which glibc has mapped for it alone; here they \
         hold the manager's headers, and the damage is detected",
    ),
    exception(
        &["tithe", "tithe-explicit", "tithe-collect"],
        &["tst-dynarray-fail"],
        true,
        "the test fills the heap by blocks of powers of two and expects another size to be refused; that size has a class \
         of its own, with a block left",
    ),
    exception(
        &["kingsley", "pow2", "bw16", "bw26", "treadmill"],
        &["tst-dynarray-fail"],
        true,
        "the test fills the heap, frees all and requests other sizes; blocks stay in the class for which they were made",
    ),
    exception(
        &["bump"],
        &["tst-dynarray-fail"],
        true,
        "its free does nothing: what the test has filled the heap with stays",
    ),
    exception(
        &["tithe-collect", "bump", "bw16", "bw26", "treadmill", "sweep/glibc"],
        &["tst-tcfree1", "tst-tcfree2"],
        true,
        "free does nothing, nor does a second one; the test waits for SIGABRT",
    ),
    exception(
        &["lea", "quickfit"],
        &["tst-tcfree1", "tst-tcfree2"],
        true,
        "a double free of a small block is detected later, or never (the table of misuse); the test waits for SIGABRT",
    ),
    exception(
        &["bw26"],
        &["tst-mallinfo2"],
        false,
        "a collection between the two samples reclaims what the test has dropped",
    ),
    exception(
        &["mimalloc3", "sweep,free=honour/mimalloc3"],
        &["tst-tcfree1", "tst-tcfree2"],
        false,
        "mimalloc does not detect a double free (the table of misuse)",
    ),
    exception(
        MIMALLOC,
        &[
            "tst-malloc-check",
            "tst-malloc",
            "tst-memalign",
            "tst-pvalloc",
            "tst-realloc",
            "tst-malloc-too-large",
            "tst-malloc-thread-fail",
            "tst-reallocarray",
            "tst-valloc",
        ],
        false,
        "mimalloc's errno: a failure for size leaves it alone, or sets EOVERFLOW (errno_huge in the list above)",
    ),
    exception(
        &[
            "tithe",
            "tithe-explicit",
            "tithe-collect",
            "kingsley",
            "haertel",
            "buddy",
            "lea",
            "quickfit",
            "pow2",
            "bump",
            "treadmill",
        ],
        &["tst-malloc-thread-fail"],
        false,
        "the test requires a failed posix_memalign to set errno as well, which POSIX does not require",
    ),
    Deviation {
        hangs: true,
        ..exception(
            &["knuth", "bestfit", "cartesian", "bw16", "bw26"],
            &["tst-malloc-thread-fail"],
            false,
            "the same; before it comes to that, 200 MB of blocks of 144 bytes are hard for an old algorithm: knuth and \
             bestfit had not done after 300 s of CPU, all in malloc; glibc takes 3 s",
        )
    },
    exception(
        &["bump", "sweep/glibc", "quarantine=1M,check=on/glibc"],
        &["tst-malloc-tcache-leak"],
        false,
        "what is freed stays in use: for ever (bump: 8 MB), until a collection (sweep: 440 KB), or as quarantine holds it \
         (1 MB); the test allows 100 KB",
    ),
    exception(MIMALLOC, &["tst-mallocalign1"], false, "mimalloc aligns small blocks to 8 bytes"),
    exception(
        MIMALLOC,
        &["tst-dynarray-fail"],
        false,
        "the test fills the heap, frees all and requests other sizes; pages of mimalloc stay with their size",
    ),
    exception(
        &["sweep/glibc"],
        &["tst-dynarray-fail"],
        false,
        "free does nothing: what the test has filled the heap with stays until a collection finds no word that points there",
    ),
    exception(
        &["tithe-collect", "bw16", "bw26", "treadmill"],
        &["tst-malloc-tcache-leak"],
        false,
        "free does nothing, so that blocks count as in use until the next collection",
    ),
    exception(
        MIMALLOC,
        &["tst-mallinfo2", "tst-malloc-stats-cancellation", "tst-malloc-tcache-leak"],
        false,
        "mimalloc exports no statistics of glibc's, and glibc reports its own heap",
    ),
];

/// The exception for a test under a manager.
pub fn known(manager: &str, test: &str) -> Option<&'static Deviation> {
    EXCEPTIONS.iter().find(|one| one.managers.contains(&manager) && one.cases.contains(&test))
}

/// The tests left out and the exceptions, as Markdown.
pub fn markdown() -> String {
    let left_out: String =
        LEFT_OUT.iter().map(|(tests, why)| format!("- {}: {why}\n", tests.join(", "))).collect();
    format!("{left_out}\n{}", deviation::table("tests", EXCEPTIONS))
}
