//! The system calls that the layers make, which a filter (seccomp) of the program must allow. docs/method/limits.md lists
//! the same.

/// Of a recording.
pub const RECORDER: &[&str] = &[
    "close",
    "faccessat",
    "fcntl",
    "fstat",
    "futex",
    "getpid",
    "getppid",
    "gettid",
    "kill",
    "madvise",
    "mmap",
    "mremap",
    "munmap",
    "newfstatat",
    "openat",
    "prctl",
    "prlimit64",
    "readlinkat",
    "sched_yield",
    "tgkill",
    "unlinkat",
];

/// Those that call stacks (`--sites`, `--ledger`) need besides.
pub const SITES: &[&str] = &["pread64", "readlink", "rt_sigprocmask"];

/// Of a sampled run.
pub const SAMPLER: &[&str] = &[
    "close",
    "ftruncate",
    "getpid",
    "getrandom",
    "gettid",
    "madvise",
    "mmap",
    "munmap",
    "open",
    "openat",
    "prctl",
    "pread64",
    "prlimit64",
    "readlink",
    "rt_sigprocmask",
    "stat",
    "tgkill",
];

/// The warning about a program that SIGSYS ended. Which call was forbidden is not known.
pub fn forbidden(layer_calls: &[&[&str]]) -> String {
    format!(
        "signal 31 is SIGSYS: a filter of system calls (seccomp) forbids a call of the program or of heaptoll's \
         layer. The filter must allow the layer's calls: {}",
        layer_calls.concat().join(", ")
    )
}
