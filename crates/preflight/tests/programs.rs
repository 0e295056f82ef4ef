//! Programs that can and that cannot be measured, each with the verdict it must get.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::support::*;
use heaptoll_preflight::{Refusal, inspect_program, preflight};

#[test]
fn a_plain_program_is_proved_and_every_call_counted() {
    let fixture = Fixture::new();
    let busy = fixture.c("busy", BUSY, &[]);
    let bump = fixture.so("libbump.so", BUMP, &[]);
    let proof = check(&[text(&busy), "5000"], &[&bump]).expect("a proof");
    assert!(proof.ptrace && proof.finished);
    assert_eq!(proof.outcome, "exit status 0");
    assert_eq!(proof.preload, std::slice::from_ref(&bump));
    assert_eq!(proof.processes.len(), 1, "{proof:#?}");
    assert_eq!(proof.processes[0].malloc_bound_to.as_deref(), Some(bump.as_path()));
    assert!((5000..5010).contains(&proof.malloc_calls), "{}", proof.malloc_calls);
    assert!((5000..5010).contains(&proof.free_calls), "{}", proof.free_calls);
    assert_eq!(proof.warnings, Vec::<String>::new());
    assert!(proof.sentence.contains("libbump.so in 1 program image, 500"), "{}", proof.sentence);
    let json = serde_json::to_string(&proof).expect("JSON");
    assert_eq!(serde_json::from_str::<heaptoll_preflight::Proof>(&json).expect("the same"), proof);
}

#[test]
fn glibc_is_proved_when_nothing_is_preloaded() {
    let fixture = Fixture::new();
    let busy = fixture.c("busy", BUSY, &[]);
    let proof = check(&[text(&busy)], &[]).expect("a proof");
    assert!(proof.preload.is_empty());
    let bound = proof.processes[0].malloc_bound_to.clone().expect("bound");
    assert_eq!(bound.file_name().and_then(|n| n.to_str()), Some("libc.so.6"));
}

/// Debian's python3 is such a program: a global lookup of malloc finds a stub in it, which is no malloc of its own.
#[test]
fn a_program_with_a_stub_for_mallocs_address_is_no_owner_of_malloc() {
    let fixture = Fixture::new();
    let source = r#"#include <stdlib.h>
        void *(*const table[])(size_t) = { malloc };
        int main(int count, char **words) {
            for (int i = 0; i < 20000; i++) free(table[count - 1 & 0](100));
            return 0;
        }"#;
    let program = fixture.c("stub", source, &["-no-pie", "-fno-pie", "-O1"]);
    let proof = check(&[text(&program)], &[]).expect("a proof");
    assert!(proof.malloc_calls >= 20_000, "{proof:#?}");
    let bound = proof.processes[0].malloc_bound_to.clone().expect("bound");
    assert_eq!(bound.file_name().and_then(|n| n.to_str()), Some("libc.so.6"));
}

#[test]
fn a_missing_program_is_named() {
    assert!(matches!(check(&["/no/such/program"], &[]), Err(Refusal::ProgramMissing { .. })));
    let refusal = check(&["no-such-program-anywhere"], &[]).expect_err("refused");
    assert!(refusal.to_string().contains("in PATH"), "{refusal}");
    assert_eq!(check(&[], &[]), Err(Refusal::NoCommand));
    assert_eq!(check(&[""], &[]), Err(Refusal::NoCommand));
}

#[test]
fn files_that_cannot_run_are_refused() {
    let fixture = Fixture::new();
    let plain = fixture.script("plain", "echo hello\n");
    assert!(matches!(check(&[text(&plain)], &[]), Err(Refusal::ProgramNotUnderstood { .. })));
    mode(&plain, 0o644);
    assert!(matches!(check(&[text(&plain)], &[]), Err(Refusal::ProgramNotExecutable { .. })));
    assert!(matches!(check(&[text(fixture.0.path())], &[]), Err(Refusal::ProgramNotExecutable { .. })));
    let orphan = fixture.script("orphan", "#!/no/such/interpreter -x\n");
    assert!(matches!(check(&[text(&orphan)], &[]), Err(Refusal::InterpreterMissing { .. })));
    let empty = fixture.script("empty", "#!\n");
    assert!(matches!(check(&[text(&empty)], &[]), Err(Refusal::ProgramNotUnderstood { .. })));
    let cycle = fixture.path("cycle");
    let cycle = fixture.script("cycle", &format!("#!{}\n", cycle.display()));
    assert!(matches!(check(&[text(&cycle)], &[]), Err(Refusal::ProgramNotUnderstood { .. })));
}

#[test]
fn a_static_program_is_refused() {
    let fixture = Fixture::new();
    for (name, flags) in [("static", &["-static"][..]), ("static-pie", &["-static-pie"])] {
        let program = fixture.c(name, BUSY, flags);
        assert_eq!(
            check(&[text(&program)], &[]),
            Err(Refusal::StaticProgram { program: program.clone() }),
            "{name}"
        );
    }
}

/// Before, it was sent to `instructions`, which sent it to a build with symbols that Go does not have.
#[test]
fn a_go_program_gets_the_way_to_gos_own_heap_profile() {
    let fixture = Fixture::new();
    let section = "__attribute__((section(\".go.buildinfo\"))) char made[] = \"Go buildinf:\";";
    let program = fixture.c("go", &format!("{BUSY}\n{section}"), &["-static"]);
    let refusal = check(&[text(&program)], &[]).expect_err("it is refused");
    assert_eq!(refusal, Refusal::GoProgram { program });
    assert!(refusal.to_string().contains("heaptoll trace export heap.pb.gz --to html"), "{refusal}");
}

#[test]
fn a_32_bit_program_is_refused() {
    let fixture = Fixture::new();
    let busy = fixture.c("busy", BUSY, &[]);
    let mut bytes = std::fs::read(&busy).expect("read");
    bytes[4] = 1;
    bytes[18] = 3;
    let other = fixture.path("other");
    std::fs::write(&other, bytes).expect("written");
    mode(&other, 0o755);
    assert!(matches!(check(&[text(&other)], &[]), Err(Refusal::WrongArchitecture { .. })));
}

#[test]
fn a_privileged_program_is_refused_and_harmless_bits_are_not() {
    let fixture = Fixture::new();
    let busy = fixture.c("busy", BUSY, &[]);
    mode(&busy, 0o4755);
    assert!(check(&[text(&busy)], &[]).is_ok(), "set-user-ID to the caller changes nothing");
    // SAFETY: geteuid takes no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not root: no file can be given to another user, that half is not tested");
        return;
    }
    std::os::unix::fs::chown(&busy, Some(65534), None).expect("given away");
    mode(&busy, 0o4755);
    let refusal = check(&[text(&busy)], &[]).expect_err("refused");
    assert!(
        matches!(&refusal, Refusal::PrivilegedProgram { how, .. } if how == "set-user-ID to user 65534"),
        "{refusal}"
    );
    std::os::unix::fs::chown(&busy, Some(0), Some(65534)).expect("given back");
    mode(&busy, 0o2755);
    assert!(matches!(check(&[text(&busy)], &[]), Err(Refusal::PrivilegedProgram { .. })));
}

#[test]
fn scripts_and_env_are_followed() {
    let fixture = Fixture::new();
    let busy = fixture.c("busy", BUSY, &[]);
    let script = fixture.script("script", &format!("#!/bin/sh\n{} 3000\n", busy.display()));
    let proof = check(&[text(&script)], &[]).expect("a proof");
    assert!(proof.malloc_calls >= 3000);
    assert_eq!(proof.processes.len(), 2, "{proof:#?}");
    let environment = [("PATH".into(), std::env::var_os("PATH").unwrap_or_default())];
    let wrapped = fixture.script("wrapped", "#!/usr/bin/env sh\n:\n");
    let facts = inspect_program(&[wrapped.into()], &environment, None).expect("facts");
    assert_eq!(facts.interpreters.len(), 2);
    assert_eq!(facts.binary.file_name().and_then(|n| n.to_str()), Some("sh"));
}

#[test]
fn every_exec_of_a_chain_is_seen() {
    let fixture = Fixture::new();
    let busy = fixture.c("busy", BUSY, &[]);
    let bump = fixture.so("libbump.so", BUMP, &[]);
    let busy = text(&busy);
    // Waited for: processes that outlive the program get half a second, which on a busy machine they may need to begin.
    let command = format!("{busy} 100; env {busy} 200; {busy} 300 & wait; exec {busy} 4000");
    let proof = check(&["sh", "-c", &command], &[&bump]).expect("a proof");
    let name = |p: &PathBuf| p.file_name().and_then(|n| n.to_str()).unwrap_or("").to_owned();
    let mut names: Vec<String> = proof.processes.iter().map(|p| name(&p.exe)).collect();
    names.sort();
    assert_eq!(names.iter().filter(|n| *n == "busy").count(), 4, "{names:?}");
    assert_eq!(names.iter().filter(|n| *n == "env").count(), 1, "{names:?}");
    let mut calls: Vec<u64> =
        proof.processes.iter().filter(|p| name(&p.exe) == "busy").map(|p| p.malloc_calls).collect();
    calls.sort_unstable();
    for (seen, made) in calls.iter().zip([100, 200, 300, 4000]) {
        assert!((made..made + 10).contains(seen), "{calls:?}");
    }
    assert!(proof.processes.iter().all(|p| p.unreached.is_none()));
}

#[test]
fn children_out_of_reach_are_named() {
    let fixture = Fixture::new();
    let busy = fixture.c("busy", BUSY, &[]);
    let fixed = fixture.c("fixed", BUSY, &["-static"]);
    let (busy, fixed) = (text(&busy), text(&fixed));
    let proof =
        check(&["sh", "-c", &format!("{fixed} 10; env -i {busy} 10; {busy} 300000")], &[]).expect("a proof");
    let warnings = proof.warnings.join("\n");
    assert!(warnings.contains("fixed is statically linked"), "{warnings}");
    assert!(
        warnings.contains("busy was started with an environment from which LD_PRELOAD was removed"),
        "{warnings}"
    );
    assert_eq!(proof.processes.iter().filter(|p| p.unreached.is_some()).count(), 2);
}

#[test]
fn a_run_whose_work_is_out_of_reach_is_refused() {
    let fixture = Fixture::new();
    let fixed = fixture.c("fixed", BUSY, &["-static"]);
    let refusal = check(&["sh", "-c", &format!("{} 3000000; :", text(&fixed))], &[]).expect_err("refused");
    assert!(matches!(&refusal, Refusal::MostlyUnreached { percent: 60.., .. }), "{refusal}");
}

#[test]
fn a_program_that_goes_on_as_another_user_reports_all_the_same() {
    // SAFETY: geteuid takes no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 || !Path::new("/usr/bin/setpriv").exists() {
        eprintln!("not root, or no setpriv: not tested");
        return;
    }
    let fixture = Fixture::new();
    mode(fixture.0.path(), 0o755);
    let busy = fixture.c("busy", BUSY, &[]);
    let bump = fixture.so("libbump.so", BUMP, &[]);
    let layer = fixture.path(COUNT_LAYER);
    std::fs::copy(layers().join(COUNT_LAYER), &layer).expect("copied");
    let command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", text(&busy), "4000"];
    let mut request = request(&command, &[&bump]);
    request.count_layer = layer;
    let proof = preflight(&request).expect("a proof");
    assert!((4000..4010).contains(&proof.processes[1].malloc_calls), "{proof:#?}");
    assert!(proof.warnings.is_empty(), "{:?}", proof.warnings);
}

#[test]
fn a_set_user_id_child_is_named() {
    // SAFETY: geteuid takes no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not root: not tested");
        return;
    }
    let fixture = Fixture::new();
    mode(fixture.0.path(), 0o755);
    let busy = fixture.c("busy", BUSY, &[]);
    let other = fixture.c("other", BUSY, &[]);
    std::os::unix::fs::chown(&other, Some(65534), None).expect("given away");
    mode(&other, 0o4755);
    let command = format!("{} 10; {} 300000", text(&other), text(&busy));
    let proof = check(&["sh", "-c", &command], &[]).expect("a proof");
    let warnings = proof.warnings.join("\n");
    assert!(warnings.contains("other runs with privileges"), "{warnings}");
}

const OWN_MALLOC: &str = r#"
#include <stddef.h>
#include <stdio.h>
static char heap[64 << 20] __attribute__((aligned(16)));
static size_t top;
HOW void *malloc(size_t n) { void *p = heap + top; top += (n + 15) & ~15; if (top > (60 << 20)) top = 0; return p; }
HOW void free(void *p) {}
HOW void *calloc(size_t a, size_t b) { return malloc(a * b); }
HOW void *realloc(void *p, size_t n) { return malloc(n); }
int main() { for (int i = 0; i < 50000000; i++) { char *p = malloc(40); p[0] = 1; free(p); } return 0; }
"#;

#[test]
fn a_program_that_exports_its_own_malloc_is_refused() {
    let fixture = Fixture::new();
    let own = fixture.c("own", OWN_MALLOC, &["-DHOW=", "-rdynamic"]);
    let bump = fixture.so("libbump.so", BUMP, &[]);
    for preload in [&[][..], &[bump.as_path()]] {
        let refusal = check(&[text(&own)], preload).expect_err("refused");
        assert!(matches!(refusal, Refusal::OwnAllocator { .. }), "{refusal}");
    }
    // Found by the run where the command is another program.
    let refusal = check(&["sh", "-c", &format!("exec {}", text(&own))], &[&bump]).expect_err("refused");
    assert!(matches!(refusal, Refusal::OwnAllocator { .. }), "{refusal}");
}

#[test]
fn a_program_with_a_hidden_allocator_is_refused_when_nothing_arrives() {
    let fixture = Fixture::new();
    let own = fixture.c("own", OWN_MALLOC, &["-DHOW=static __attribute__((noinline))"]);
    let refusal = check(&[text(&own)], &[]).expect_err("refused");
    assert!(matches!(&refusal, Refusal::NoCalls { hint, .. } if hint.contains("malloc")), "{refusal}");
}

#[test]
fn few_calls_in_much_time_are_pointed_out() {
    let fixture = Fixture::new();
    let source = OWN_MALLOC.replace("int main() {", "int main() { puts(\"x\");");
    // Under another name and stripped: only the calls reveal it.
    let own = fixture.c("own", &source, &["-DHOW=static __attribute__((noinline))", "-s"]);
    let proof = check(&[text(&own)], &[]).expect("a proof");
    let warnings = proof.warnings.join("\n");
    assert!(warnings.contains("the program made only"), "{warnings}");
}

#[test]
fn a_deep_bound_plug_in_is_pointed_out() {
    let fixture = Fixture::new();
    let plug = fixture.so(
        "libplug.so",
        "#include <stdlib.h>\nvoid work() { for (int i = 0; i < 100; i++) free(malloc(10)); }\n",
        &[],
    );
    let host = fixture.c(
        "host",
        r#"#define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdlib.h>
        int main(int c, char **v) { void *h = dlopen(v[1], RTLD_NOW | RTLD_DEEPBIND); ((void (*)())dlsym(h, "work"))();
        for (int i = 0; i < 1000; i++) free(malloc(i)); return 0; }"#,
        &["-ldl"],
    );
    let bump = fixture.so("libbump.so", BUMP, &[]);
    let proof = check(&[text(&host), text(&plug)], &[&bump]).expect("a proof");
    let warnings = proof.warnings.join("\n");
    assert!(
        warnings.contains("libplug.so is bound to the") && warnings.contains("RTLD_DEEPBIND"),
        "{warnings}"
    );
    assert!((1000..1100).contains(&proof.malloc_calls), "{}", proof.malloc_calls);
}

#[test]
fn counts_survive_every_way_to_die() {
    let fixture = Fixture::new();
    let source = r#"#define _GNU_SOURCE
        #include <stdlib.h>
        #include <unistd.h>
        #include <signal.h>
        #include <sys/syscall.h>
        int main(int c, char **v) {
            for (int i = 0; i < 7000; i++) free(malloc(i));
            switch (v[1][0]) { case '_': _exit(3); case 'k': raise(SIGKILL); case 'a': abort();
                case 's': *(volatile int *)0 = 1; case 'g': syscall(SYS_exit_group, 4); case 'q': quick_exit(5); }
            return 0; }"#;
    let dying = fixture.c("dying", source, &[]);
    let endings = [
        ("_exit", "exit status 3"),
        ("kill", "killed by signal 9"),
        ("abort", "killed by signal 6"),
        ("segv", "killed by signal 11"),
        ("group", "exit status 4"),
        ("quick", "exit status 5"),
        ("return", "exit status 0"),
    ];
    for (how, outcome) in endings {
        let proof = check(&[text(&dying), how], &[]).expect("a proof");
        assert!((7000..7010).contains(&proof.malloc_calls), "{how}: {}", proof.malloc_calls);
        assert_eq!(proof.outcome, outcome);
        assert_eq!(proof.warnings.len(), usize::from(how != "return"), "{how}: {:?}", proof.warnings);
    }
}

/// Before, "201 MiB" under every manager was the wrapper's, and nothing stated that.
#[test]
fn a_peak_of_an_image_that_was_replaced_by_exec_is_not_taken_for_that_of_the_program() {
    let fixture = Fixture::new();
    let source = r#"#include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        int main(int c, char **v) {
            size_t bytes = (size_t)atol(v[1]) << 20;
            volatile char *held = malloc(bytes + 1);
            for (size_t at = 0; at < bytes; at += 4096) held[at] = 1;
            for (int i = 0; i < 1000; i++) free(malloc(24));
            if (c > 2) execv(v[2], v + 2);
            return 0; }"#;
    let program = fixture.c("wraps", source, &["-O0"]);
    let warnings = |of: &[&str]| {
        let command = [&[text(&program)], of].concat();
        check(&command, &[]).expect("a proof").warnings.join("\n")
    };
    let replaced = warnings(&["300", text(&program), "1"]);
    assert!(replaced.contains("counts both together (wraps)"), "{replaced}");
    for own in [&["1"][..], &["300"]] {
        assert_eq!(warnings(own), "", "{own:?}");
    }
}

/// Before, a program that ran out of stack was "killed by signal 11", as one that follows a null pointer.
#[test]
fn a_program_whose_stack_is_full_is_distinguished_from_one_that_follows_a_null_pointer() {
    let fixture = Fixture::new();
    let source = r#"#include <stdlib.h>
        #include <pthread.h>
        static int deep(int n) { volatile char frame[2000]; frame[n % 2000] = 1; return deep(n + 1) + frame[7]; }
        static void *thread(void *p) { return (void *)(long)deep(0); }
        static int large(void) { volatile char frame[16 << 20]; frame[100] = 1; return frame[7]; }
        int main(int c, char **v) {
            free(malloc(9)); pthread_t t;
            switch (v[1][0]) { case 'd': return deep(0); case 'l': return large();
                case 't': pthread_create(&t, 0, thread, 0); pthread_join(t, 0); break;
                case 'n': *(volatile int *)8 = 1; default: *(volatile int *)malloc(1 << 20) = *(volatile int *)(1L << 46); }
            return 0; }"#;
    let program = fixture.c("full", source, &["-O0", "-pthread"]);
    for (how, is_full) in
        [("deep", true), ("large", true), ("thread", true), ("null", false), ("wild", false)]
    {
        let warnings = check(&[text(&program), how], &[]).expect("a proof").warnings.join("\n");
        assert!(warnings.contains("killed by signal 11"), "{how}: {warnings}");
        assert_eq!(warnings.contains("its stack was full"), is_full, "{how}: {warnings}");
    }
}

#[test]
fn forks_vforks_and_threads_are_counted() {
    let fixture = Fixture::new();
    let source = r#"#define _GNU_SOURCE
        #include <stdlib.h>
        #include <unistd.h>
        #include <pthread.h>
        #include <sys/wait.h>
        static void *work(void *n) { for (long i = 0; i < (long)n; i++) free(malloc(i % 99)); return 0; }
        int main() {
            pthread_t t[4];
            for (int i = 0; i < 4; i++) pthread_create(t + i, 0, work, (void *)20000);
            for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
            for (int i = 0; i < 5; i++) if (!fork()) { work((void *)1000); if (!fork()) { work((void *)100); _exit(0); } wait(0); exit(0); }
            if (!vfork()) _exit(0);
            while (wait(0) > 0) ;
            return 0; }"#;
    let many = fixture.c("many", source, &["-pthread"]);
    let proof = check(&[text(&many)], &[]).expect("a proof");
    assert_eq!(proof.processes.len(), 1, "forks belong to their image: {proof:#?}");
    assert!((85_500..85_600).contains(&proof.malloc_calls), "{}", proof.malloc_calls);
}

#[test]
fn a_long_program_is_judged_by_its_beginning_and_leaves_no_process() {
    let fixture = Fixture::new();
    let source = r#"
        #include <stdlib.h>
        #include <signal.h>
        #include <unistd.h>
        int main(int c, char **v) { signal(SIGTERM, SIG_IGN); if (fork() == 0) for (;;) pause();
            for (;;) { free(malloc(100)); usleep(100); } }"#;
    let long = fixture.c("long", source, &[]);
    let mut request = request(&[text(&long)], &[]);
    request.limit = Duration::from_millis(300);
    let proof = preflight(&request).expect("a proof");
    // Without a limit it never ends.
    assert!(!proof.finished && proof.seconds < 15.0, "{}", proof.seconds);
    assert!(proof.sentence.contains("in the first"), "{}", proof.sentence);
    let alive = std::fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .any(|entry| std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == Path::new(&long)));
    assert!(!alive, "every process of the run is gone");
}

#[test]
fn a_program_that_a_busy_machine_loads_late_is_waited_for() {
    let mut request = request(&["sleep", "30"], &[]);
    // No loader is that fast.
    request.limit = Duration::from_micros(1);
    let proof = preflight(&request).expect("a proof");
    assert!(!proof.finished && proof.seconds < 10.0, "{}", proof.seconds);
}

#[test]
fn floods_stops_and_closed_outputs_do_no_harm() {
    let fixture = Fixture::new();
    let start = Instant::now();
    let proof = check(&["sh", "-c", "head -c 30000000 /dev/zero; head -c 3000000 /dev/zero >&2"], &[])
        .expect("a proof");
    assert_eq!(proof.outcome, "exit status 0");
    let busy = fixture.c("busy", BUSY, &[]);
    // Again and again: on a busy machine the first may come before the stop.
    let goes_on = "(while sleep 0.2; do kill -CONT $$ || exit; done) &";
    let command = format!("exec >&- 2>&-; {} 500; {goes_on} kill -STOP $$; exit 7", text(&busy));
    let proof = check(&["sh", "-c", &command], &[]).expect("a proof");
    assert_eq!(proof.outcome, "exit status 7");
    // Less than the time limits of the two.
    assert!(start.elapsed() < Duration::from_secs(40));
}

#[test]
fn cancelling_ends_at_once() {
    let request = request(&["sleep", "30"], &[]);
    let cancel = request.cancel.clone();
    let start = Instant::now();
    let thread = std::thread::spawn(move || preflight(&request));
    std::thread::sleep(Duration::from_millis(300));
    cancel.store(true, Ordering::Relaxed);
    assert_eq!(thread.join().expect("no panic"), Err(Refusal::Cancelled));
    // Before its time limit.
    assert!(start.elapsed() < Duration::from_secs(15));
}

#[test]
fn standard_input_and_directory_are_those_requested() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("input"), "seven\n").expect("written");
    let mut request = request(&["sh", "-c", "read x; [ $x = seven ] && [ -f input ] && exit 5"], &[]);
    request.stdin = Some(fixture.path("input"));
    request.directory = Some(fixture.0.path().to_path_buf());
    assert_eq!(preflight(&request).expect("a proof").outcome, "exit status 5");
    request.stdin = Some(fixture.path("no-input"));
    assert!(matches!(preflight(&request), Err(Refusal::CannotStart { .. })));
}

#[test]
fn a_missing_layer_is_named() {
    let mut request = request(&["true"], &[]);
    request.count_layer = "/no/such/layer.so".into();
    let refusal = preflight(&request).expect_err("refused");
    assert!(matches!(refusal, Refusal::LayerMissing { .. }), "{refusal}");
}

/// Makes every ptrace of this thread, and of threads it starts, fail with EPERM.
fn forbid_ptrace() {
    let instruction = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_ptrace as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a valid filter program; both settings bind this thread alone.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program), 0);
    }
}

#[test]
fn without_ptrace_the_proof_states_so() {
    let fixture = Fixture::new();
    let busy = fixture.c("busy", BUSY, &[]);
    let bump = fixture.so("libbump.so", BUMP, &[]);
    let request = request(&["sh", "-c", &format!("{0} 3000; exec {0} 70", text(&busy))], &[&bump]);
    let thread = std::thread::spawn(move || {
        forbid_ptrace();
        preflight(&request)
    });
    let proof = thread.join().expect("no panic").expect("a proof");
    assert!(!proof.ptrace);
    assert!(proof.warnings.iter().any(|w| w.contains("ptrace is not permitted")), "{:?}", proof.warnings);
    assert_eq!(proof.processes.len(), 3, "{proof:#?}");
    for (process, made) in proof.processes[1..].iter().zip([3000, 70]) {
        assert!((made..made + 10).contains(&process.malloc_calls), "{proof:#?}");
    }
    assert_eq!(proof.processes[0].pid, proof.processes[2].pid);
    assert!(proof.processes.iter().all(|p| p.unreached.is_none() && p.cpu_s.is_none()));
}

#[test]
fn a_program_that_allocates_nothing_is_refused() {
    let fixture = Fixture::new();
    let idle = fixture.c("idle", "int main() { return 0; }", &[]);
    let refusal = check(&[text(&idle)], &[]).expect_err("refused");
    assert!(matches!(refusal, Refusal::NoCalls { .. }), "{refusal}");
    let seen = refusal.to_string();
    let place = |words: &str| seen.find(words).unwrap_or_else(|| panic!("{words} is in {seen}"));
    assert!(
        place("layer was loaded") < place("exit status 0")
            && place("exit status 0") < place("it may not allocate")
    );
    // Where the end is the reason, nothing is guessed.
    let dies = fixture.c("dies", "int main() { __builtin_trap(); }", &[]);
    let refusal = check(&[text(&dies)], &[]).expect_err("refused").to_string();
    assert!(refusal.contains("killed by signal 4") && !refusal.contains("may not allocate"), "{refusal}");
}

/// Before, such rows showed "killed by signal 6" alone.
#[test]
fn a_program_that_dies_in_glibcs_free_of_a_block_of_the_managers_is_explained() {
    let fixture = Fixture::new();
    for (call, wrote) in [
        ("__libc_free(malloc(100) + 1)", "free(): invalid pointer"),
        ("__libc_realloc(malloc(100) + 1, 500)", "realloc(): invalid pointer"),
    ] {
        let source = format!(
            "#include <stdlib.h>\n#include <stdio.h>\nvoid __libc_free(void *); void *__libc_realloc(void *, size_t); \
             int main() {{ for (int i = 0; i < 1000; i++) free(malloc(i)); {call}; }}"
        );
        let mixes = fixture.c("mixes", &source, &["-fno-builtin"]);
        let bump = fixture.so("libbump.so", BUMP, &[]);
        let warnings = check(&[text(&mixes)], &[&bump]).expect("a proof").warnings.join("\n");
        for words in ["killed by signal 6", wrote, "RTLD_DEEPBIND"] {
            assert!(warnings.contains(words), "{words} in {warnings}");
        }
        let warnings = check(&[text(&mixes)], &[]).expect("a proof").warnings.join("\n");
        assert!(warnings.contains("killed by signal 6") && !warnings.contains("RTLD_DEEPBIND"), "{warnings}");
    }
}

/// Before, managers were compared without a word where `malloc_trim` or `mallopt` did nothing under them.
#[test]
fn what_glibc_answers_for_its_own_heap_alone_is_named() {
    let fixture = Fixture::new();
    let source = "#include <malloc.h>\n#include <stdlib.h>\nint main() { for (int i = 0; i < 1000; i++) free(malloc(i)); \
                  mallopt(M_MMAP_MAX, 9); return malloc_trim(0) < 0; }";
    let trims = fixture.c("trims", source, &[]);
    let warnings = |manager: &[&Path]| check(&[text(&trims)], manager).expect("a proof").warnings.join("\n");
    let bump = fixture.so("libbump.so", BUMP, &[]);
    let found = warnings(&[&bump]);
    assert!(
        found.contains("refers to mallopt, malloc_trim,")
            || found.contains("refers to malloc_trim, mallopt,"),
        "{found}"
    );
    let serves = fixture.so(
        "libserves.so",
        &format!(
            "{BUMP}\nint malloc_trim(size_t n) {{ return 0; }} int mallopt(int a, int b) {{ return 1; }}"
        ),
        &[],
    );
    assert_eq!((warnings(&[&serves]), warnings(&[])), (String::new(), String::new()));
}
