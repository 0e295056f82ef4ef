//! Programs whose filter of system calls (seccomp) kills.

use heaptoll_runs::record::system_calls::{RECORDER, SAMPLER, SITES, TRACER};

use crate::fixture::Fixture;

/// C: forbids all system calls but these and its own, then allocates in two threads and a fork.
const FILTERED: &str = r"
    #include <linux/filter.h>
    #include <linux/seccomp.h>
    #include <pthread.h>
    #include <stddef.h>
    #include <sys/prctl.h>
    #include <sys/syscall.h>
    static void *churn(void *_) { for (int i = 0; i < 20000; i++) free(malloc(32 + i % 999)); return 0; }
    int main(void) {
        long allowed[] = {SYS_brk, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_clone, SYS_clone3, SYS_rseq,
            SYS_set_robust_list, SYS_wait4, SYS_exit, SYS_exit_group, SYS_futex, SYS_rt_sigprocmask, SYS_rt_sigaction,
            SYS_getrandom, ALLOWED};
        struct sock_filter filter[400];
        int n = 0;
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        for (int i = 0; i < sizeof allowed / sizeof *allowed; i++) {
            filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
            filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        }
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
        struct sock_fprog program = {n, filter};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program, 0, 0)) return 3;
        pthread_t other;
        churn(0);
        if (pthread_create(&other, 0, churn, 0) || pthread_join(other, 0)) return 4;
        pid_t child = fork();
        if (!child) { churn(0); _exit(0); }
        int status;
        return waitpid(child, &status, 0) != child || status ? 5 : 0;
    }
";

/// Compiles it with these calls allowed.
fn filtered(fixture: &Fixture, name: &str, allowed: &[&[&str]]) -> String {
    let calls: Vec<String> = allowed.concat().iter().map(|call| format!("SYS_{call}")).collect();
    fixture.program(name, &FILTERED.replace("ALLOWED", &calls.join(", ")))
}

/// What is recorded, and the system calls that the layer needs for it.
const LAYERS: [(&[&str], &[&[&str]]); 4] = [
    (&[], &[RECORDER]),
    (&["--sites"], &[RECORDER, SITES]),
    (&["--ledger"], &[RECORDER, SITES]),
    (&["--sample", "4K"], &[SAMPLER]),
];

#[test]
fn a_filter_that_allows_what_the_list_of_a_layer_has_leaves_the_program_alone() {
    let fixture = Fixture::new();
    let output = fixture.at("output");
    for (options, allowed) in LAYERS {
        let program = filtered(&fixture, "program", allowed);
        fixture.heaptoll(&[&["record", "-f", "-o", &output], options, &["--", &program]].concat()).exits(0);
    }
}

#[test]
fn sigsys_is_explained_by_all_that_the_layer_calls() {
    let fixture = Fixture::new();
    let output = fixture.at("output");
    let program = filtered(&fixture, "program", &[]);
    for (options, needed) in LAYERS {
        let words = ["seccomp", &needed.concat().join(", ")];
        let command = [&["record", "-f", "-o", &output], options, &["--", &program]].concat();
        fixture.heaptoll(&command).exits(159).complains(&words);
    }
}

/// Before, "killed by signal 31" was all that a command said whose tracer a filter killed.
#[test]
fn a_filter_must_allow_the_calls_of_the_tracer_and_sigsys_is_explained_by_them() {
    let fixture = Fixture::new();
    let allowing = filtered(&fixture, "allowing", &[TRACER]);
    fixture.heaptoll(&["leaks", "--", &allowing]).exits(0);
    let forbidding = filtered(&fixture, "forbidding", &[&["getpid"]]);
    fixture.heaptoll(&["leaks", "--", &forbidding]).complains(&["seccomp", &TRACER.join(", ")]);
}

#[test]
fn the_page_of_limits_lists_the_system_calls_of_each_layer() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/method/limits.md");
    let page = std::fs::read_to_string(page).expect("reads");
    for calls in [RECORDER, SITES, SAMPLER, TRACER] {
        assert!(page.contains(&format!("| `{}` |", calls.join("`, `"))), "{calls:?}");
    }
}
