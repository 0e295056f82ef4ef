//! The forked side: from fork to exec, with nothing allocated in between.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use heaptoll_launcher::Spec;
use heaptoll_launcher::affinity::only;
use heaptoll_launcher::slice;

/// A child that has been forked and waits to exec.
pub struct Waiting {
    /// Its process number.
    pub pid: i32,
    go: i32,
    failed: i32,
}

fn c_string(text: OsString) -> io::Result<CString> {
    CString::new(text.into_vec()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

fn pipe() -> io::Result<[i32; 2]> {
    let mut ends = [0; 2];
    // SAFETY: `ends` is an array of two ints, which is what pipe2 writes.
    match unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } {
        0 => Ok(ends),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The program's environment: the launcher's own with the order's settings over it.
fn environment(spec: &Spec) -> io::Result<Vec<CString>> {
    let overridden = |name: &OsString| spec.environment.iter().any(|(other, _)| other == name);
    std::env::vars_os()
        .filter(|(name, _)| !overridden(name))
        .chain(spec.environment.iter().cloned())
        .map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            c_string(name)
        })
        .collect()
}

/// Forks. The child stops just before exec until [`Waiting::release`].
///
/// # Errors
/// `fork` or `pipe` refused, or a NUL byte in an argument (EINVAL).
pub fn fork(spec: &Spec) -> io::Result<Waiting> {
    let arguments: Vec<CString> = spec.command.iter().cloned().map(c_string).collect::<io::Result<_>>()?;
    let environment = environment(spec)?;
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, envp) = (pointers(&arguments), pointers(&environment));
    let go = pipe()?;
    let failed = pipe()?;
    // SAFETY: getpid takes no arguments and cannot fail.
    let launcher = unsafe { libc::getpid() };
    let pinned = spec.cpu.map(only);
    // SAFETY: this process has one thread; the child calls only async-signal-safe functions before exec.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            if spec.fixed_addresses {
                fix_addresses();
            }
            exec(&argv, &envp, launcher, (pinned.as_ref(), spec.slice()), go, failed)
        }
        _ => {
            for end in [go[0], failed[1]] {
                // SAFETY: `end` is an end of a pipe that this function opened, and is not used again on this side.
                unsafe { libc::close(end) };
            }
            Ok(Waiting { pid, go: go[1], failed: failed[0] })
        }
    }
}

/// Has what this process executes begin at the same addresses each time. Where that is forbidden, addresses differ, and
/// what depends on them.
fn fix_addresses() {
    // SAFETY: personality takes no pointers and is async-signal-safe.
    unsafe {
        let now = libc::personality(0xffff_ffff);
        if now >= 0 {
            libc::personality((now | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
        }
    }
}

fn exec(
    argv: &[*const libc::c_char],
    envp: &[*const libc::c_char],
    launcher: i32,
    (pinned, slice): (Option<&libc::cpu_set_t>, Option<Duration>),
    go: [i32; 2],
    failed: [i32; 2],
) -> ! {
    // SAFETY: all are async-signal-safe; the pointers are to NUL-terminated strings and null-terminated arrays that
    // fork copied and that no code changes in the child.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // A launcher that died before that call sends no signal any more.
        if libc::getppid() != launcher {
            libc::_exit(127);
        }
        // Rust ignores SIGPIPE, some callers (Python) SIGXFSZ, and the launcher blocks signals; a program expects none of it.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        libc::close(go[1]);
        let mut byte = 0u8;
        let placed = pinned.is_none_or(|set| libc::sched_setaffinity(0, size_of_val(set), set) == 0);
        // heaptoll has tried it before; where it fails all the same, the program runs with the kernel's slices.
        let _ = slice.map(slice::set);
        if placed && libc::read(go[0], (&raw mut byte).cast(), 1) == 1 {
            libc::execvpe(argv[0], argv.as_ptr(), envp.as_ptr());
        }
        let errno = *libc::__errno_location();
        libc::write(failed[1], (&raw const errno).cast(), size_of::<i32>());
        libc::_exit(127)
    }
}

impl Waiting {
    /// Lets the child exec, and returns when it has.
    ///
    /// # Errors
    /// The errno of `execve`.
    pub fn release(self) -> Result<(), i32> {
        let byte = 1u8;
        let mut errno = 0i32;
        // SAFETY: both descriptors are open pipe ends that `fork` stored here; the buffers are live locals as long as
        // stated. The read ends with 0 bytes when exec closes the child's end.
        unsafe {
            libc::write(self.go, (&raw const byte).cast(), 1);
            libc::close(self.go);
            let got = loop {
                let got = libc::read(self.failed, (&raw mut errno).cast(), size_of::<i32>());
                if got >= 0 || *libc::__errno_location() != libc::EINTR {
                    break got;
                }
            };
            libc::close(self.failed);
            if got == size_of::<i32>() as isize { Err(errno) } else { Ok(()) }
        }
    }
}
