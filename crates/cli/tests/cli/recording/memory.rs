//! Recordings where there is little memory for the rings: /dev/shm is small, as in a container, or full.

use std::process::Command;

use heaptoll_trace::EventKind;

use super::{Trace, children};
use crate::fixture::{CommandOutput, Fixture};

/// Each of these threads allocates and frees; all of them live until the last is ready.
const THREADS: &str = "#include <pthread.h>\nstatic pthread_barrier_t all; \
    static void *work(void *_) { for (int i = 0; i < 6000; i++) free(malloc(i & 255)); pthread_barrier_wait(&all); return 0; } \
    int main(int c, char **v) { int n = atoi(v[1]); pthread_t t[1000]; pthread_barrier_init(&all, 0, n); \
    for (int i = 0; i < n; i++) if (pthread_create(&t[i], 0, work, 0)) return 9; \
    for (int i = 0; i < n; i++) pthread_join(t[i], 0); puts(\"ok\"); return 0; }";

/// Whether file systems can be mounted here.
fn mounts() -> bool {
    let tried = Command::new("unshare")
        .args(["--mount", "sh", "-c", "mount -t tmpfs -o size=64k heaptoll-test /mnt"])
        .output();
    let mounts = tried.is_ok_and(|output| output.status.success());
    assert!(mounts || std::env::var_os("CI").is_none(), "CI must permit mounts");
    if !mounts {
        eprintln!("left out: mounting is not permitted here");
    }
    mounts
}

/// Records a program into the fixture's `t` with a /dev/shm of `size`, and, unless `others`, no other folder for the rings.
fn record_in(fixture: &Fixture, size: &str, others: bool, command: &[&str]) -> CommandOutput {
    let forbid = if others { ":" } else { "mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp" };
    let script = format!(
        "mount --bind \"$FIXTURE\" /mnt && mount -t tmpfs -o size={size} heaptoll-test /dev/shm && {forbid} || exit 99; \
         \"$0\" record -f -o /mnt/t -- \"$@\""
    );
    let mut unshare = Command::new("unshare");
    fixture.prepare(&mut unshare);
    unshare.args(["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_heaptoll")]).args(command);
    unshare.env("FIXTURE", fixture.path(".")).env("TMPDIR", "/dev/shm").env_remove("XDG_RUNTIME_DIR");
    unshare.output().expect("unshare runs").into()
}

fn calls(fixture: &Fixture) -> u64 {
    Trace::read(fixture.path("t")).whole().of(&[EventKind::Free])
}

#[test]
fn threads_are_recorded_whole_where_dev_shm_is_small() {
    if !mounts() {
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program("threads", THREADS);
    for (size, threads) in [("64k", "1"), ("4m", "100"), ("64m", "300")] {
        let output = record_in(&fixture, size, true, &[&program, threads]).exits(0);
        assert_eq!(output.out, "ok\n", "{size}, {threads} threads");
        let expected = threads.parse::<u64>().expect("a number") * 6_000;
        assert!(calls(&fixture) >= expected, "{size}, {threads} threads: {}", output.err);
    }
}

#[test]
fn threads_are_recorded_whole_where_there_is_little_memory_in_any_folder() {
    if !mounts() {
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program("threads", THREADS);
    // Beyond the memory for rings of their own they share one.
    for (size, threads) in [("4m", "1"), ("4m", "60"), ("16m", "120")] {
        let output = record_in(&fixture, size, false, &[&program, threads]).exits(0);
        assert_eq!(output.out, "ok\n", "{size}, {threads} threads");
        let expected = threads.parse::<u64>().expect("a number") * 6_000;
        assert!(calls(&fixture) >= expected, "{size}, {threads} threads: {}", output.err);
    }
}

#[test]
#[ignore = "slow: a matrix of sizes and threads"]
fn no_size_of_dev_shm_harms_any_number_of_threads() {
    if !mounts() {
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program("threads", THREADS);
    for size in ["2m", "4m", "16m", "64m"] {
        for threads in ["1", "100", "300"] {
            let output = record_in(&fixture, size, false, &[&program, threads]).exits(0);
            assert_eq!(output.out, "ok\n", "{size}, {threads} threads");
        }
    }
}

#[test]
fn where_no_folder_has_memory_nothing_runs() {
    if !mounts() {
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program("threads", THREADS);
    let output =
        record_in(&fixture, "64k", false, &[&program, "1"]).exits(2).complains(&["/dev/shm", "set TMPDIR"]);
    assert_eq!(output.out, "", "it did not run");
}

/// The program fills /dev/shm itself, before its threads begin: they find no memory that was counted on.
#[test]
fn threads_that_find_the_file_system_full_go_on_and_the_trace_records_it() {
    if !mounts() {
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program(
        "fills",
        "#include <pthread.h>\nstatic void *work(void *_) { for (int i = 0; i < 100000; i++) free(malloc(i & 255)); return 0; } \
         int main(void) { free(malloc(1)); int f = open(\"/dev/shm/mine\", O_CREAT | O_WRONLY, 0600); static char page[65536]; \
         while (write(f, page, sizeof page) > 0); pthread_t t[8]; \
         for (int i = 0; i < 8; i++) pthread_create(&t[i], 0, work, 0); for (int i = 0; i < 8; i++) pthread_join(t[i], 0); \
         work(0); puts(\"ok\"); return 0; }",
    );
    let output = record_in(&fixture, "16m", false, &[&program]).exits(1);
    let output = output.complains(&["/mnt/t is incomplete", "8 threads were not recorded", "memory"]);
    assert_eq!(output.out, "ok\n");
    let trace = Trace::read(fixture.path("t"));
    assert!(trace.gaps.iter().any(|gap| gap.why.contains("not recorded")), "{:?}", trace.gaps);
    assert!(trace.of(&[EventKind::Free]) >= 100_000, "the first thread is recorded to its end");
}

#[test]
fn forks_beyond_the_memory_run_and_are_counted() {
    if !mounts() {
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program(
        "forks",
        "int main(int c, char **v) { int ends[2]; char byte = 0; if (pipe(ends)) return 1; \
         free(malloc(1)); for (int i = 0; i < 60; i++) if (!fork()) { \
         for (int j = 0; j < 1000; j++) free(malloc(j & 255)); if (write(ends[1], &byte, 1) != 1) _exit(1); \
         while (access(v[1], F_OK)) usleep(1000); _exit(0); } \
         for (int i = 0; i < 60; i++) if (read(ends[0], &byte, 1) != 1) return 1; \
         close(open(v[1], O_CREAT | O_WRONLY, 0644)); int fine = 0, status; \
         while (wait(&status) > 0) fine += status == 0; printf(\"%d\\n\", fine); return 0; }",
    );
    let output = record_in(&fixture, "4m", false, &[&program, "/mnt/go"]);
    assert_eq!(output.out, "60\n", "all ran to their end: {}", output.err);
    let gaps = children(&fixture).iter().filter(|child| !Trace::read(child).gaps.is_empty()).count();
    assert!((10..50).contains(&gaps), "{gaps}: {}", output.err);
    output.exits(1).complains(&["was not recorded", "more traces are incomplete"]);
}
