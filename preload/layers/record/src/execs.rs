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
use core::sync::atomic::{AtomicPtr, Ordering};

use heaptoll_alloc_ring::ExecNote;
use heaptoll_next::family::symbol;

use crate::RINGS;

type Strings = *const *const c_char;
type Execve = unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int;
type Execv = unsafe extern "C" fn(*const c_char, Strings) -> c_int;
type Fexecve = unsafe extern "C" fn(c_int, Strings, Strings) -> c_int;
type Execveat = unsafe extern "C" fn(c_int, *const c_char, Strings, Strings, c_int) -> c_int;
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

/// The next object's function of a name, looked up once.
struct Next(&'static CStr, AtomicPtr<c_void>);

static EXECVE: Next = Next::new(c"execve");
static EXECV: Next = Next::new(c"execv");
static EXECVP: Next = Next::new(c"execvp");
static EXECVPE: Next = Next::new(c"execvpe");
static FEXECVE: Next = Next::new(c"fexecve");
static EXECVEAT: Next = Next::new(c"execveat");
static POSIX_SPAWN: Next = Next::new(c"posix_spawn");
static POSIX_SPAWNP: Next = Next::new(c"posix_spawnp");
static SYSTEM: Next = Next::new(c"system");
static POPEN: Next = Next::new(c"popen");

/// Looks up all of them, since a lookup allocates and a child of vfork must not.
pub fn prepare() {
    let all = [
        &EXECVE,
        &EXECV,
        &EXECVP,
        &EXECVPE,
        &FEXECVE,
        &EXECVEAT,
        &POSIX_SPAWN,
        &POSIX_SPAWNP,
        &SYSTEM,
        &POPEN,
    ];
    for next in all {
        next.find();
    }
}

impl Next {
    const fn new(name: &'static CStr) -> Next {
        Next(name, AtomicPtr::new(ptr::null_mut()))
    }

    fn find(&self) -> Option<*mut c_void> {
        let known = self.1.load(Ordering::Relaxed);
        if !known.is_null() {
            return Some(known);
        }
        let found = symbol(self.0)?;
        self.1.store(found, Ordering::Relaxed);
        Some(found)
    }
}

/// Fails with ENOSYS: the C library has no such function.
fn missing() -> c_int {
    // SAFETY: `__errno_location` returns the address of the calling thread's errno.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
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

/// Makes a call that does not return unless it fails.
fn replacing(path: Option<&CStr>, call: impl FnOnce() -> c_int) -> c_int {
    let noted = RINGS.exec_begins(path);
    let failed = call();
    RINGS.withdraw(noted);
    failed
}

/// # Safety
/// The arguments are valid for `execve`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, argv: Strings, envp: Strings) -> c_int {
    let Some(next) = EXECVE.find() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    unsafe { replacing(named(path), || transmute::<*mut c_void, Execve>(next)(path, argv, envp)) }
}

/// # Safety
/// The arguments are valid for `execv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, argv: Strings) -> c_int {
    let Some(next) = EXECV.find() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    unsafe { replacing(named(path), || transmute::<*mut c_void, Execv>(next)(path, argv)) }
}

/// # Safety
/// The arguments are valid for `execvp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, argv: Strings) -> c_int {
    let Some(next) = EXECVP.find() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    unsafe { replacing(named(file), || transmute::<*mut c_void, Execv>(next)(file, argv)) }
}

/// # Safety
/// The arguments are valid for `execvpe`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, argv: Strings, envp: Strings) -> c_int {
    let Some(next) = EXECVPE.find() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    unsafe { replacing(named(file), || transmute::<*mut c_void, Execve>(next)(file, argv, envp)) }
}

/// # Safety
/// The arguments are valid for `fexecve`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(file: c_int, argv: Strings, envp: Strings) -> c_int {
    let Some(next) = FEXECVE.find() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    unsafe { replacing(None, || transmute::<*mut c_void, Fexecve>(next)(file, argv, envp)) }
}

/// # Safety
/// The arguments are valid for `execveat`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execveat(
    folder: c_int,
    path: *const c_char,
    argv: Strings,
    envp: Strings,
    flags: c_int,
) -> c_int {
    let Some(next) = EXECVEAT.find() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    unsafe {
        replacing(named(path), || transmute::<*mut c_void, Execveat>(next)(folder, path, argv, envp, flags))
    }
}

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
    let Some(next) = next.find() else { return libc::ENOSYS };
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
    let Some(next) = SYSTEM.find() else { return missing() };
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
    let Some(next) = POPEN.find() else {
        missing();
        return ptr::null_mut();
    };
    shell();
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    unsafe { transmute::<*mut c_void, Popen>(next)(command, mode) }
}

/// The arguments of a variadic function, as its caller passed them: the second to the sixth, then those on the stack.
#[derive(Clone, Copy)]
struct Arguments {
    registers: Strings,
    stack: Strings,
}

/// Up to this many arguments are copied to the stack; more go to memory from the system.
const FEW: usize = 512;

impl Arguments {
    /// # Safety
    /// The caller passed more than `index` arguments.
    unsafe fn get(self, index: usize) -> *const c_char {
        // SAFETY: by this function's contract the argument exists: five are in saved registers, the others follow on
        // the stack.
        unsafe { if index < 5 { *self.registers.add(index) } else { *self.stack.add(index - 5) } }
    }

    /// Calls `call` with the list of arguments up to the null, and the argument after that.
    ///
    /// # Safety
    /// These are the arguments of a call of the `execl` family.
    unsafe fn list(self, call: impl FnOnce(Strings, *const c_char) -> c_int) -> c_int {
        // SAFETY: by this function's contract a null ends the arguments; only `execle_of`, whose caller has passed an
        // argument after the null, uses that. `list` has space for `count + 1` pointers.
        unsafe {
            let mut count = 0;
            while !self.get(count).is_null() {
                count += 1;
            }
            let mut few = [ptr::null(); FEW];
            let bytes = (count + 1) * size_of::<*const c_char>();
            let list = if count < FEW {
                few.as_mut_ptr()
            } else {
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0).cast::<*const c_char>()
            };
            if list.cast() == libc::MAP_FAILED {
                *libc::__errno_location() = libc::ENOMEM;
                return -1;
            }
            for index in 0..=count {
                *list.add(index) = self.get(index);
            }
            let failed = call(list, self.get(count + 1));
            if count >= FEW {
                let errno = *libc::__errno_location();
                libc::munmap(list.cast(), bytes);
                *libc::__errno_location() = errno;
            }
            failed
        }
    }
}

unsafe extern "C" fn execl_of(path: *const c_char, registers: Strings, stack: Strings) -> c_int {
    // SAFETY: only the stub `execl` calls this, with the addresses of its own arguments.
    unsafe { Arguments { registers, stack }.list(|list, _| execv(path, list)) }
}

unsafe extern "C" fn execlp_of(file: *const c_char, registers: Strings, stack: Strings) -> c_int {
    // SAFETY: only the stub `execlp` calls this, with the addresses of its own arguments.
    unsafe { Arguments { registers, stack }.list(|list, _| execvp(file, list)) }
}

unsafe extern "C" fn execle_of(path: *const c_char, registers: Strings, stack: Strings) -> c_int {
    // SAFETY: only the stub `execle` calls this, with the addresses of its own arguments; its environment follows the
    // null.
    unsafe { Arguments { registers, stack }.list(|list, envp| execve(path, list, envp.cast())) }
}

/// Defines a variadic function, which Rust cannot: pushes the register arguments onto the stack, one after another, and
/// passes on their address.
macro_rules! define_variadic {
    ($name:ident, $to:ident) => {
        /// # Safety
        /// The arguments are valid for the C library's function of the name.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                // After the five registers and the return address.
                "lea rdx, [rsp + 48]",
                "call {to}",
                "add rsp, 40",
                "ret",
                to = sym $to,
            )
        }
    };
}

define_variadic!(execl, execl_of);
define_variadic!(execlp, execlp_of);
define_variadic!(execle, execle_of);
