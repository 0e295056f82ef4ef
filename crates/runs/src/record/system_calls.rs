//! The system calls that the layers and the tracer make, which a filter (seccomp) of the program must allow.
//! docs/method/limits.md lists the same.

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

/// Of the tracer, Valgrind included.
pub const TRACER: &[&str] = &[
    "clock_gettime",
    "close",
    "dup3",
    "faccessat2",
    "fcntl",
    "ftruncate",
    "futex",
    "getpid",
    "getppid",
    "gettid",
    "memfd_create",
    "mincore",
    "mmap",
    "mprotect",
    "munmap",
    "open",
    "openat",
    "pipe",
    "prlimit64",
    "read",
    "readlink",
    "rt_sigprocmask",
    "rt_sigtimedwait",
    "sched_getaffinity",
    "sched_yield",
    "statx",
    "write",
];

/// A filter of system calls kills by it.
pub const SIGSYS: i32 = 31;

/// The warning about a program that SIGSYS ended under a `layer` or the `tracer`. Which call was forbidden is not known.
pub fn forbidden(ours: &str, calls: &[&[&str]]) -> String {
    format!(
        "signal {SIGSYS} is SIGSYS: a filter of system calls (seccomp) forbids a call of the program or of heaptoll's \
         {ours}. The filter must allow the {ours}'s calls: {}",
        calls.concat().join(", ")
    )
}
