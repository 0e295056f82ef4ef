//! The side of a run that becomes the program: what happens between fork and exec.

use std::ffi::{CString, c_char};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use heaptoll_launcher::affinity::only;

use crate::filter;
use crate::plan::Plan;

/// What lets the child go on.
pub const GO: u8 = b'g';
/// The same, with the filter that stops it at calls that reach beyond its memory.
pub const GO_WATCHED: u8 = b'w';
/// The child's reply when the kernel rejects the filter; it goes on without.
pub const UNWATCHED: u8 = b'u';

/// Everything the child needs between fork and exec, where it may not allocate.
pub struct Child {
    program: CString,
    arguments: Pointers,
    environment: Pointers,
    directory: Option<CString>,
    stdin: RawFd,
    stdout: RawFd,
    stderr: RawFd,
    go: RawFd,
    failure: RawFd,
    filter: Vec<libc::sock_filter>,
    pinned: Option<libc::cpu_set_t>,
}

/// A null-terminated array of C strings, with the strings.
struct Pointers {
    _strings: Vec<CString>,
    array: Vec<*const c_char>,
}

impl Pointers {
    fn new(strings: Vec<CString>) -> Pointers {
        let array = strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect();
        Pointers { _strings: strings, array }
    }
}

impl Child {
    /// Prepares everything; fails when a string holds a NUL byte.
    pub fn prepare(
        plan: &Plan<'_>,
        stdin: RawFd,
        stdout: &OwnedFd,
        stderr: &OwnedFd,
        go: &OwnedFd,
        failure: &OwnedFd,
    ) -> Result<Child, std::ffi::NulError> {
        let arguments =
            plan.arguments.iter().map(|a| CString::new(a.as_bytes())).collect::<Result<Vec<_>, _>>()?;
        let environment = plan
            .environment
            .iter()
            .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Child {
            program: CString::new(plan.program.as_os_str().as_bytes())?,
            arguments: Pointers::new(arguments),
            environment: Pointers::new(environment),
            directory: plan.directory.as_ref().map(|d| CString::new(d.as_os_str().as_bytes())).transpose()?,
            stdin,
            stdout: stdout.as_raw_fd(),
            stderr: stderr.as_raw_fd(),
            go: go.as_raw_fd(),
            failure: failure.as_raw_fd(),
            filter: if plan.watch.is_some() { filter::instructions() } else { Vec::new() },
            pinned: plan.watch.map(|watch| only(watch.cpu)),
        })
    }

    /// Waits for the tracer and executes the program; only async-signal-safe calls.
    pub fn become_program(&self) -> ! {
        // SAFETY: all pointers are C strings or null-terminated arrays of them that live in `self`; all descriptors
        // are open; the signal set is initialised before its use.
        unsafe {
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
            // Rust programs ignore it, and an ignored signal stays ignored over exec.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            let mut byte = 0u8;
            let mut good = libc::read(self.go, ptr::from_mut(&mut byte).cast(), 1) == 1;
            if let Some(directory) = &self.directory {
                good = good && libc::chdir(directory.as_ptr()) == 0;
            }
            good = good
                && libc::dup2(self.stdin, 0) == 0
                && libc::dup2(self.stdout, 1) == 1
                && libc::dup2(self.stderr, 2) == 2;
            if let Some(set) = &self.pinned {
                libc::sched_setaffinity(0, size_of_val(set), set);
            }
            if byte == GO_WATCHED && !filter::install(&self.filter) {
                libc::write(self.failure, [UNWATCHED].as_ptr().cast(), 1);
            }
            if good {
                libc::execve(
                    self.program.as_ptr(),
                    self.arguments.array.as_ptr(),
                    self.environment.array.as_ptr(),
                );
            }
            let code = (*libc::__errno_location()).to_ne_bytes();
            libc::write(self.failure, code.as_ptr().cast(), code.len());
            libc::_exit(127)
        }
    }
}
