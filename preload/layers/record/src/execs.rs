//! Calls that replace the process's image or start a process, noted before they are made: from these notes heaptoll
//! learns of images into which the layer is not loaded. Otherwise they only forward. They allocate nothing and take no
//! lock, because children of fork and vfork and signal handlers call them.
//!
//! Not noted: a system call that the program makes itself. `system` and `popen` start a shell without these functions,
//! which is noted only if the program's environment has lost the layer; otherwise the shell's layer notes what it
//! starts.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;

use heaptoll_alloc_ring::ExecNote;
use heaptoll_runtime::execs::{self, AroundExec, Strings};
use heaptoll_runtime::{Next, missing};

use crate::RINGS;

type Spawn = unsafe extern "C" fn(
    *mut libc::pid_t,
    *const c_char,
    *const c_void,
    *const c_void,
    Strings,
    Strings,
) -> c_int;
type System = unsafe extern "C" fn(*const c_char) -> c_int;
type Popen = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut c_void;

unsafe extern "C" {
    static environ: Strings;
}

static POSIX_SPAWN: Next = Next::new(c"posix_spawn");
static POSIX_SPAWNP: Next = Next::new(c"posix_spawnp");
static SYSTEM: Next = Next::new(c"system");
static POPEN: Next = Next::new(c"popen");

/// Looks up all of them, since a lookup allocates and a child of vfork must not.
pub fn prepare() {
    execs::prepare();
    for next in [&POSIX_SPAWN, &POSIX_SPAWNP, &SYSTEM, &POPEN] {
        let _ = next.get();
    }
}

/// The path argument of a call; `None` if the memory cannot be read, for which the kernel returns EFAULT and a read
/// would raise SIGSEGV.
///
/// # Safety
/// `path`, if its memory can be read, is a C string that outlives the use of the result.
unsafe fn named<'a>(path: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the kernel reads the string as far as it can and returns an error otherwise; `__errno_location` returns
    // the address of the calling thread's errno.
    let unreadable = unsafe {
        let errno = *libc::__errno_location();
        let accessed = libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, path, libc::F_OK);
        let error = *libc::__errno_location();
        *libc::__errno_location() = errno;
        accessed < 0 && matches!(error, libc::EFAULT | libc::ENAMETOOLONG)
    };
    // SAFETY: faccessat has just read the string to its end.
    (!unreadable).then(|| unsafe { CStr::from_ptr(path) })
}

/// Notes each call of the exec family.
struct Noted;

impl AroundExec for Noted {
    fn around(path: *const c_char, call: impl FnOnce() -> c_int) -> c_int {
        // SAFETY: the path is the argument of a call that is in progress, or null, which cannot be read.
        let noted = RINGS.exec_begins(unsafe { named(path) });
        let failed = call();
        RINGS.withdraw(noted);
        failed
    }
}

heaptoll_runtime::interpose_execs!(Noted);

/// Starts a process and notes its number.
///
/// # Safety
/// The arguments are valid for `posix_spawn`.
unsafe fn spawn(
    next: &Next,
    pid: *mut libc::pid_t,
    path: *const c_char,
    (actions, attributes): (*const c_void, *const c_void),
    (argv, envp): (Strings, Strings),
) -> c_int {
    let Some(next) = next.get() else { return libc::ENOSYS };
    let mut started: libc::pid_t = 0;
    // SAFETY: `next` was looked up by the name of the calling function, so it has this type; the caller's arguments are
    // valid for it, and `started` is a local variable.
    unsafe {
        let noted: ExecNote = RINGS.start_begins(named(path));
        let error =
            transmute::<*mut c_void, Spawn>(next)(&raw mut started, path, actions, attributes, argv, envp);
        if error != 0 {
            RINGS.withdraw(noted);
            return error;
        }
        RINGS.started(noted, started);
        if !pid.is_null() {
            *pid = started;
        }
    }
    0
}

/// # Safety
/// The arguments are valid for `posix_spawn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut libc::pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    argv: Strings,
    envp: Strings,
) -> c_int {
    // SAFETY: the contract of `spawn` is that of this function.
    unsafe { spawn(&POSIX_SPAWN, pid, path, (actions, attributes), (argv, envp)) }
}

/// # Safety
/// The arguments are valid for `posix_spawnp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut libc::pid_t,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    argv: Strings,
    envp: Strings,
) -> c_int {
    // SAFETY: `posix_spawnp` has the type of `posix_spawn`, and the caller's arguments are valid for it.
    unsafe { spawn(&POSIX_SPAWNP, pid, file, (actions, attributes), (argv, envp)) }
}

/// Notes that a shell is started, if it would not load the layer.
fn shell() {
    // SAFETY: the C library's `environ` is null or a null-terminated list of C strings, which the program does not
    // change during its call.
    let lacks = |name: &[u8]| unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            if CStr::from_ptr(*entry).to_bytes().starts_with(name) {
                return false;
            }
            entry = entry.add(1);
        }
        true
    };
    if lacks(b"LD_PRELOAD=") || lacks(b"HEAPTOLL_RECORD=") {
        RINGS.starts_without_layer(c"/bin/sh");
    }
}

/// # Safety
/// The argument is valid for `system`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    let Some(next) = SYSTEM.get() else { return missing() };
    // With null it only returns whether there is a shell.
    if !command.is_null() {
        shell();
    }
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    unsafe { transmute::<*mut c_void, System>(next)(command) }
}

/// # Safety
/// The arguments are valid for `popen`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen(command: *const c_char, mode: *const c_char) -> *mut c_void {
    let Some(next) = POPEN.get() else {
        missing();
        return ptr::null_mut();
    };
    shell();
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    unsafe { transmute::<*mut c_void, Popen>(next)(command, mode) }
}
