//! Managers that fail, and users who stop waiting.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use heaptoll_replay::job::{Pass, Touch};
use heaptoll_replay::program::Order;
use heaptoll_replay::start::{Ended, Starter};
use heaptoll_trace::{Event, EventKind};

use crate::fixture::{EVENT, glibc, job, manager, program, run, trace};

const HEAD: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
"#;

/// Why a manager of this source failed on a random trace.
fn failure(source: &str, touch: Touch) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let stack = manager(folder.path(), "failing", &format!("{HEAD}{source}"));
    let program = program(&trace(5, 3000, 1, 5000), Order::Exact);
    match run(&stack, &program, &job(&program, Pass::Throughput, touch)) {
        Ended::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_manager_that_crashes_is_reported_by_its_signal_and_its_last_output() {
    let why = failure(
        r#"void *malloc(size_t n) { if (n == 300) { write(2, "out of luck\n", 12); abort(); } return __libc_malloc(n); }"#,
        Touch::None,
    );
    assert_eq!(why, "killed by signal 6; it wrote: out of luck");
}

#[test]
fn a_manager_that_gives_nothing_is_reported_with_the_request() {
    let why = failure(
        "void *malloc(size_t n) { if (n > 4000) { errno = ENOMEM; return 0; } return __libc_malloc(n); }",
        Touch::None,
    );
    assert!(why.starts_with("malloc of 4") && why.contains("bytes failed (Cannot allocate memory"), "{why}");
}

#[test]
fn a_block_that_is_handed_out_twice_is_seen_by_its_contents() {
    // Not before the driver has begun: the C library's own blocks would be among them.
    let twice = "static void *last; static size_t size; static int calls;
        void *malloc(size_t n) { if (++calls < 200) return __libc_malloc(n);
            if (last && n <= size && n > 100) return last;
            void *p = __libc_malloc(n); if (n > 100) last = p, size = n; return p; }
        void free(void *p) { if (p != last) __libc_free(p); }
        void *realloc(void *p, size_t n) { if (p != last) return __libc_realloc(p, n);
            void *q = __libc_malloc(n); return memcpy(q, p, n < size ? n : size); }";
    let why = failure(twice, Touch::All);
    assert!(why.contains("a block in use changed its contents"), "{why}");
}

#[test]
fn calloc_must_give_zeroes() {
    let why = failure(
        "void *calloc(size_t n, size_t m) { void *p = __libc_calloc(n, m); if (n == 1 && m > 200) ((char *)p)[m - 1] = 1; \
         return p; }",
        Touch::All,
    );
    assert!(why.contains("gave a block that is not zero"), "{why}");
}

fn starter(interrupt: &AtomicBool, seconds: f64) -> Starter<'_> {
    let driver = PathBuf::from(env!("CARGO_BIN_EXE_heaptoll-replay"));
    Starter { driver, interrupt, timeout: Duration::from_secs_f64(seconds) }
}

const HANGS: &str =
    "void free(void *p) { static int frees; if (++frees == 500) for (;;) pause(); __libc_free(p); }";

#[test]
fn a_manager_that_hangs_is_killed_when_its_time_is_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let stack = manager(folder.path(), "hangs", &format!("{HEAD}{HANGS}"));
    let program = program(&trace(5, 3000, 2, 100), Order::PerThread);
    let interrupt = AtomicBool::new(false);
    let ended =
        starter(&interrupt, 0.5).run(&stack, &program, &job(&program, Pass::Throughput, Touch::None), 7);
    assert_eq!(ended.expect("a driver"), Ended::Failed("killed after 0.5 s (--timeout)".into()));
}

#[test]
fn an_interrupt_ends_the_driver_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let stack = manager(folder.path(), "hangs", &format!("{HEAD}{HANGS}"));
    let program = program(&trace(5, 3000, 2, 100), Order::Exact);
    let interrupt = AtomicBool::new(false);
    let begun = Instant::now();
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            interrupt.store(true, Ordering::Relaxed);
        });
        starter(&interrupt, 60.0).run(&stack, &program, &job(&program, Pass::Memory, Touch::None), 0)
    });
    assert_eq!(ended.expect("a driver"), Ended::Interrupted);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_request_that_no_machine_can_meet_is_no_crash() {
    for kind in [EventKind::Malloc, EventKind::Calloc, EventKind::Aligned] {
        let events = [Event { kind, align_log2: 6, size: 1 << 57, ..EVENT }];
        let program = program(&events, Order::Exact);
        let ended = run(&glibc(), &program, &job(&program, Pass::Memory, Touch::Write));
        assert!(matches!(&ended, Ended::Failed(why) if why.contains("144115188075855872")), "{ended:?}");
    }
}
