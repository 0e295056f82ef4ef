//! Programs of many processes: forks, execs, and what the layer does not reach.

use heaptoll_trace::EventKind;

use super::{Trace, children, record};
use crate::fixture::Fixture;

fn forks_are_as_many_traces(forks: u32) {
    let fixture = Fixture::new();
    let program = fixture.program(
        "forks",
        &format!(
            "int main(void) {{ void *p = malloc(100); for (int i = 0; i < {forks}; i++) {{ int child = fork(); \
             if (!child) {{ free(p); for (int j = 0; j < i % 50 + 1; j++) malloc(j); _exit(0); }} \
             if (i % 20 == 19) while (wait(0) > 0); }} while (wait(0) > 0); free(p); return 0; }}"
        ),
    );
    record(&fixture, &[], &[&program]).exits(0);
    let parent = Trace::read(fixture.path("t")).whole();
    assert_eq!(
        (parent.of(&[EventKind::Malloc]), parent.freed(), parent.of(&[EventKind::Foreign])),
        (1, 1, 0)
    );
    let all = children(&fixture);
    assert_eq!(all.len(), forks as usize);
    let mut made = 0;
    for child in all {
        let trace = Trace::read(child).whole();
        // What it inherited is not its own.
        assert_eq!((trace.freed(), trace.of(&[EventKind::Foreign])), (0, 1));
        assert_eq!(trace.header.parent_pid, parent.header.pid);
        made += trace.made();
    }
    assert_eq!(made, (0..u64::from(forks)).map(|i| i % 50 + 1).sum::<u64>());
}

#[test]
fn two_hundred_forks_are_two_hundred_traces() {
    forks_are_as_many_traces(200);
}

#[test]
#[ignore = "slow: two CPU seconds; two hundred are in the fast tests"]
fn a_thousand_forks_are_a_thousand_traces() {
    forks_are_as_many_traces(1000);
}

#[test]
fn many_processes_at_once_keep_their_traces_apart() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "crowd",
        "int main(int c, char **v) { for (int i = 1; i <= 150; i++) if (!fork()) { while (access(v[1], F_OK)) usleep(500); \
         for (int j = 0; j < 100 * i; j++) free(malloc(i)); _exit(0); } \
         usleep(100000); close(open(v[1], O_CREAT | O_WRONLY, 0644)); while (wait(0) > 0); free(malloc(1)); return 0; }",
    );
    record(&fixture, &[], &[&program, &fixture.at("go")]).exits(0);
    let mut seen: Vec<u64> = Vec::new();
    for child in children(&fixture) {
        let trace = Trace::read(child).whole();
        assert_eq!(trace.made(), trace.freed());
        assert_eq!(trace.requested * 100, trace.made() * trace.made(), "each requests its own size");
        seen.push(trace.made());
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=150).map(|i| 100 * i).collect::<Vec<u64>>());
}

#[test]
fn an_exec_ends_one_trace_and_begins_another() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "becomes",
        "int main(int c, char **v) { int left = atoi(v[1]); for (int i = 0; i < 10 * left + 5; i++) malloc(i); \
         if (!left) return 3; char next[9]; sprintf(next, \"%d\", left - 1); execl(v[0], v[0], next, NULL); return 9; }",
    );
    record(&fixture, &[], &[&program, "2"]).exits(3);
    let pid = Trace::read(fixture.path("t")).header.pid;
    let names = [
        fixture.path("t"),
        fixture.path(&format!("t.children/{pid}.heaptoll")),
        fixture.path(&format!("t.children/{pid}.2.heaptoll")),
    ];
    let seen: Vec<_> = names
        .iter()
        .map(|name| Trace::read(name).whole())
        .map(|trace| (trace.header.pid == pid, trace.of(&[EventKind::Malloc]), trace.how().to_string()))
        .collect();
    let replaced = "replaced itself by exec";
    let wanted =
        [(true, 25, replaced.into()), (true, 15, replaced.into()), (true, 5, "exited with status 3".into())];
    assert_eq!(seen, wanted);
}

/// Before, they were process 0, and each but the last one "replaced itself by exec".
#[test]
fn processes_of_another_namespace_that_have_ended_are_unnumbered() {
    let fixture = Fixture::new();
    // They have ended, and were waited for, before the recorder looks at them: it is stopped meanwhile.
    let program = fixture.program(
        "briefly",
        "int main(void) { if (syscall(272, 0x20000000)) return 77; free(malloc(1)); kill(getppid(), SIGSTOP); \
         int child = fork(); if (!child) { for (int i = 0; i < 3; i++) { int one = fork(); \
         if (!one) { free(malloc(2)); _exit(0); } waitpid(one, 0, 0); } _exit(0); } \
         waitpid(child, 0, 0); kill(getppid(), SIGCONT); return 0; }",
    );
    let output = record(&fixture, &[], &[&program]);
    if output.code == Some(77) {
        eprintln!("namespaces are not permitted here");
        return;
    }
    output.exits(0);
    let traces: Vec<Trace> = children(&fixture).iter().map(|path| Trace::read(path).whole()).collect();
    assert_eq!(traces.len(), 3, "the first of the namespace allocates nothing");
    for (path, trace) in children(&fixture).iter().zip(&traces) {
        assert_eq!((trace.made(), trace.freed(), trace.header.pid), (1, 1, 0));
        assert_eq!(trace.how(), "ended");
        assert!(path.display().to_string().contains("unknown"), "{}", path.display());
    }
}

#[test]
fn a_shell_and_what_it_starts_have_traces_of_their_own() {
    let fixture = Fixture::new();
    // Its words can be seen while it is there: half a second, for a recorder that is kept waiting.
    let program = fixture.program(
        "leaf",
        "int main(int c, char **v) { for (int i = 0; i < 40; i++) malloc(i); usleep(500000); return 0; }",
    );
    record(&fixture, &[], &["sh", "-c", "\"$0\" a; \"$0\" b | cat; exit 2", &program]).exits(2);
    let all: Vec<Trace> = children(&fixture).iter().map(|path| Trace::read(path).whole()).collect();
    let leaves: Vec<_> = all.iter().filter(|trace| trace.header.exe == program).collect();
    assert_eq!(leaves.len(), 2);
    let mut words: Vec<_> = leaves.iter().filter_map(|trace| trace.header.command.get(1).cloned()).collect();
    words.sort();
    assert_eq!(words, ["a", "b"]);
    assert!(leaves.iter().all(|trace| trace.of(&[EventKind::Malloc]) == 40));
    assert!(Trace::read(fixture.path("t")).whole().header.exe.ends_with("sh"));
}

#[test]
fn children_can_be_left_alone() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "parent",
        "int main(int c, char **v) { free(malloc(1)); if (!fork()) { for (int i = 0; i < 300000; i++) free(malloc(i & 255)); \
         _exit(0); } wait(0); if (!fork()) { execlp(\"ls\", \"ls\", \"/\", NULL); } wait(0); free(malloc(2)); \
         execlp(\"sh\", \"sh\", \"-c\", \"exit 8\", NULL); }",
    );
    record(&fixture, &["--children", "ignore"], &[&program]).exits(8);
    assert!(children(&fixture).is_empty());
    let trace = Trace::read(fixture.path("t")).whole();
    assert_eq!((trace.made(), trace.freed()), (2, 2));
}

#[test]
fn a_static_child_is_named_in_a_warning() {
    let fixture = Fixture::new();
    // It is found by polling, at growing intervals.
    let still = fixture.static_program(
        "still",
        "int main(void) { for (int i = 0; i < 100; i++) free(malloc(i)); usleep(2000000); return 0; }",
    );
    let program = fixture.program(
        "starts",
        "int main(int c, char **v) { free(malloc(1)); if (!fork()) { execl(v[1], v[1], NULL); _exit(9); } wait(0); return 0; }",
    );
    record(&fixture, &[], &[&program, &still]).exits(1).complains(&[&still, "is statically linked"]);
    // And the program itself, when it becomes one.
    let becomes = fixture.program(
        "becomes",
        "int main(int c, char **v) { free(malloc(1)); execl(v[1], v[1], NULL); return 9; }",
    );
    record(&fixture, &["-f"], &[&becomes, &still]).exits(1).complains(&[&still, "is statically linked"]);
    let trace = Trace::read(fixture.path("t")).whole();
    assert!(
        trace.how().starts_with("replaced itself by exec of ") && trace.how().contains(&still),
        "{}",
        trace.how()
    );
}

#[test]
fn a_program_that_changes_its_root_and_its_user_is_recorded_to_the_end() {
    if !crate::fixture::is_root() {
        return;
    }
    let fixture = Fixture::new();
    let program = fixture.program(
        "drops",
        "#include <pthread.h>\nstatic void *more(void *_) { for (int i = 0; i < 1000; i++) free(malloc(i)); return 0; } \
         int main(int c, char **v) { free(malloc(1)); pthread_t t; pthread_create(&t, 0, more, 0); pthread_join(t, 0); \
         if (chroot(v[1]) || chdir(\"/\") || setgid(65534) || setuid(65534)) return 9; \
         pthread_create(&t, 0, more, 0); pthread_join(t, 0); for (int i = 0; i < 300000; i++) free(malloc(i & 63)); return 0; }",
    );
    std::fs::create_dir(fixture.path("root")).expect("makes");
    record(&fixture, &[], &[&program, &fixture.at("root")]).exits(0);
    let trace = Trace::read(fixture.path("t")).whole();
    assert!(trace.made() >= 302_001, "{:?}", trace.kinds);
    assert_eq!(trace.threads, 3);
}
