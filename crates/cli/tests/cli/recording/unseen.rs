//! Programs that are started where the layer is not loaded: the recording reports them, however short they live.

use super::{Trace, record};
use crate::fixture::{CommandOutput, Fixture};

const LEAF: &str = "int main(void) { for (int i = 0; i < 1000; i++) free(malloc(i)); return 0; }";

/// A trace that lacks a program is not whole, each time.
fn lacks(fixture: &Fixture, command: &[&str], name: &str) {
    for _ in 0..3 {
        assert_unrecorded(name, record(fixture, &["-f"], command).complains(&[name]));
    }
}

#[test]
fn a_script_that_drops_the_layer_before_its_exec_is_named() {
    let fixture = Fixture::new();
    let leaf = fixture.program("leaf", LEAF);
    let script = fixture.path("drop.sh");
    std::fs::write(&script, format!("#!/bin/sh\nunset LD_PRELOAD\nexec {leaf}\n")).expect("writes");
    lacks(&fixture, &["sh", &fixture.at("drop.sh")], "leaf");
    lacks(&fixture, &["env", "-i", &leaf], "leaf");
    lacks(&fixture, &["sh", "-c", "(unset LD_PRELOAD; \"$0\"); \"$0\"", &leaf], "leaf");
}

/// By the note of its start, or by a poll of the processes, whichever comes first.
fn assert_unrecorded(what: &str, output: CommandOutput) {
    let named = output.err.contains("not recorded") || output.err.contains("is in no trace");
    assert!(named, "{what}: {}", output.err);
    output.exits(1);
}

#[test]
fn every_call_that_starts_a_program_is_noted() {
    let fixture = Fixture::new();
    let leaf = fixture.program("leaf", LEAF);
    let program = fixture.program(
        "starts",
        "#include <spawn.h>\n#include <string.h>\n#include <fcntl.h>\n\
         int main(int c, char **v) { char *a[] = {v[2], \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", NULL}, *e[] = {\"A=1\", NULL}; \
         free(malloc(1)); clearenv(); setenv(\"PATH\", \"/bin\", 1); \
         if (!strcmp(v[1], \"execve\")) execve(v[2], a, e); if (!strcmp(v[1], \"execv\")) execv(v[2], a); \
         if (!strcmp(v[1], \"execvp\")) execvp(v[2], a); if (!strcmp(v[1], \"execvpe\")) execvpe(v[2], a, e); \
         if (!strcmp(v[1], \"execl\")) execl(v[2], v[2], \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", NULL); \
         if (!strcmp(v[1], \"execlp\")) execlp(v[2], v[2], \"2\", NULL); \
         if (!strcmp(v[1], \"execle\")) execle(v[2], v[2], \"2\", \"3\", \"4\", \"5\", \"6\", NULL, e); \
         if (!strcmp(v[1], \"fexecve\")) fexecve(open(v[2], O_RDONLY | O_CLOEXEC), a, e); \
         if (!strcmp(v[1], \"vfork\")) { if (!vfork()) { execv(v[2], a); _exit(9); } wait(0); return 0; } \
         if (!strcmp(v[1], \"spawn\")) { int p; if (posix_spawn(&p, v[2], 0, 0, a, e)) return 9; waitpid(p, 0, 0); return 0; } \
         if (!strcmp(v[1], \"spawnp\")) { int p; if (posix_spawnp(&p, v[2], 0, 0, a, e)) return 9; waitpid(p, 0, 0); return 0; } \
         if (!strcmp(v[1], \"system\")) return system(v[2]); \
         if (!strcmp(v[1], \"popen\")) { FILE *f = popen(v[2], \"r\"); return f ? pclose(f) : 9; } return 9; }",
    );
    let calls = [
        "execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "vfork", "spawn",
        "spawnp",
    ];
    for call in calls {
        assert_unrecorded(call, record(&fixture, &["-f"], &[&program, call, &leaf]));
    }
    for call in ["system", "popen"] {
        assert_unrecorded(call, record(&fixture, &["-f"], &[&program, call, &leaf]));
    }
}

#[test]
fn a_call_with_a_bad_address_fails_as_it_does_without_the_layer() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "bad",
        "#include <errno.h>\n#include <spawn.h>\nint main(void) { char *a[] = {\"x\", 0}; int p; free(malloc(1)); \
         int first = execve((char *)1, a, a) == -1 && errno == EFAULT; \
         int second = posix_spawn(&p, (char *)1, 0, 0, a, a) == EFAULT; return first && second ? 0 : 9; }",
    );
    record(&fixture, &["-f"], &[&program]).exits(0);
}

#[test]
fn a_static_program_that_lives_shortly_is_named() {
    let fixture = Fixture::new();
    let leaf = fixture.static_program("still", LEAF);
    for _ in 0..3 {
        record(&fixture, &["-f"], &["sh", "-c", "\"$0\"; true", &leaf])
            .exits(1)
            .complains(&["still", "statically linked"]);
    }
}

#[test]
fn programs_that_are_recorded_and_calls_that_fail_are_no_gap() {
    let fixture = Fixture::new();
    let leaf = fixture.program("leaf", LEAF);
    let program = fixture.program(
        "tries",
        "#include <spawn.h>\n#include <errno.h>\nextern char **environ;\n\
         int main(int c, char **v) { char *a[] = {v[1], \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", NULL}; int p; \
         free(malloc(1)); if (execl(\"/no/such\", \"a\", \"b\", NULL) != -1 || errno != ENOENT) return 8; \
         if (execv(\"/\", a) != -1 || errno != EACCES) return 7; \
         if (posix_spawn(&p, \"/no/such\", 0, 0, a, environ) != ENOENT) return 6; \
         if (posix_spawn(&p, v[1], 0, 0, a, environ)) return 5; waitpid(p, 0, 0); \
         if (system(v[1])) return 4; if (!vfork()) { execl(v[1], v[1], NULL); _exit(9); } wait(0); \
         for (int i = 0; i < 60; i++) { if (!fork()) { execl(v[1], v[1], NULL); _exit(9); } if (i % 8 == 7) while (wait(0) > 0); } \
         while (wait(0) > 0); execl(v[1], v[1], \"2\", NULL); return 9; }",
    );
    let output = record(&fixture, &["-f"], &[&program, &leaf]).exits(0);
    assert!(!output.err.contains("not recorded"), "{}", output.err);
    let children = super::children(&fixture);
    assert_eq!(children.len(), 65, "spawned, the shell and what it became, by vfork, 60, and the last exec");
    assert!(children.iter().all(|path| Trace::read(path).whole().made() > 0));
}

/// Arguments of a call of the `execl` family arrive as they were given.
#[test]
fn a_list_of_any_length_arrives() {
    let fixture = Fixture::new();
    let words: Vec<String> = (0..600).map(|n| format!("\"{n}\"")).collect();
    let source = format!(
        "#include <string.h>\nint main(int c, char **v) {{ if (c > 1) {{ for (int i = 1; i < c; i++) if (atoi(v[i]) != i - 1) return 7; \
         return c == 601 || c == 101 || c == 3 ? 0 : 8; }} free(malloc(1)); \
         if (!fork()) {{ execl(v[0], v[0], {}, NULL); _exit(9); }} int s; wait(&s); if (s) return 6; \
         if (!fork()) {{ execlp(v[0], v[0], {}, NULL); _exit(9); }} wait(&s); if (s) return 5; \
         execle(v[0], v[0], \"0\", \"1\", NULL, environ); return 9; }}",
        words.join(", "),
        words[..100].join(", ")
    );
    let program = fixture.program("list", &format!("extern char **environ;\n{source}"));
    record(&fixture, &[], &[&program]).exits(0);
}

/// Before, `run` named the cause of the same program's death, and `record` showed nothing.
#[test]
fn blocks_that_are_freed_past_the_layer_are_counted_with_the_most_likely_cause() {
    let fixture = Fixture::new();
    let past = fixture.program(
        "past",
        "void __libc_free(void *); int main(int c, char **v) { \
         for (int i = 0; i < 1000; i++) (c > 1 ? free : __libc_free)(malloc(24)); return 0; }",
    );
    record(&fixture, &["-f"], &[&past])
        .exits(0)
        .complains(&["missed the frees of 999 blocks:", "RTLD_DEEPBIND"]);
    let all_seen = record(&fixture, &["-f"], &[&past, "x"]).exits(0);
    assert!(!all_seen.err.contains("unseen"), "{}", all_seen.err);
}

/// Before, these were "killed by signal 25" and "24", with nothing about a limit; of a child of fork there was nothing. Its
/// events do not fit a ring, so it is watched when it dies, and its parent reaps nothing before it has recorded as many.
#[test]
fn a_program_that_dies_at_a_limit_is_reported_with_the_limit() {
    let fixture = Fixture::new();
    let dies = fixture.program(
        "dies",
        "#include <sys/resource.h>\n#include <sys/wait.h>\n\
         static void many(void) { for (int i = 0; i < 200000; i++) free(malloc(9)); }\n\
         int main(int c, char **v) { struct rlimit one = {1, 9}; free(malloc(9)); siginfo_t of; \
         if (c > 3 && fork()) { waitid(P_ALL, 0, &of, WEXITED | WNOWAIT); many(); return 0; } \
         if (c > 3) many(); \
         if (v[1][0] == 'f') { setrlimit(RLIMIT_FSIZE, &one); \
             int f = open(v[2], O_CREAT | O_WRONLY, 0600); return (int)write(f, \"12\", 2) + (int)write(f, \"3\", 1); } \
         raise(v[1][0] == 'c' ? SIGXCPU : SIGSYS); return 0; }",
    );
    for (how, words) in [("f", "SIGXFSZ: a file grew"), ("c", "SIGXCPU: it used"), ("s", "(seccomp)")] {
        let output = record(&fixture, &["-f"], &[&dies, how, &fixture.at("file")]);
        output.complains(&["killed by signal ", words]);
        let in_child = record(&fixture, &["-f"], &[&dies, how, &fixture.at("file"), "child"]).exits(0);
        in_child.complains(&["killed by signal ", words]);
    }
}
