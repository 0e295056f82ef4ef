//! Calls that replace the process's image or start a process, noted before they are made: heaptoll knows by these notes
//! of images that the layer is not loaded into. Otherwise they only forward. They allocate nothing and take no lock, as
//! children of fork and vfork and signal handlers call them.
//!
//! Not seen: a system call that the program makes itself. `system` and `popen` start a shell past these functions, which
//! is noted only where the program's environment has lost the layer; the shell then notes what it starts.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use heaptoll_next::family::symbol;
use heaptoll_ring::ExecNote;

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

/// The next object's function of a name, found once.
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

/// Finds all of them, for a search allocates and a child of vfork must not.
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

/// A C library that has no such function.
fn missing() -> c_int {
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

/// The name that a call was made with; `None` where there is no string, which the kernel answers with EFAULT and reading
/// would with SIGSEGV.
///
/// # Safety
/// A C string that outlives the use, where the memory can be read.
unsafe fn named<'a>(path: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the kernel reads the string as far as it can, and errno's address is valid for the calling thread.
    let unreadable = unsafe {
        let errno = *libc::__errno_location();
        let looked = libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, path, libc::F_OK);
        let why = *libc::__errno_location();
        *libc::__errno_location() = errno;
        looked < 0 && matches!(why, libc::EFAULT | libc::ENAMETOOLONG)
    };
    // SAFETY: the kernel has just read it to its end.
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
/// That of `execve`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, argv: Strings, envp: Strings) -> c_int {
    let Some(next) = EXECVE.find() else { return missing() };
    // SAFETY: the function of that name; the arguments are the caller's.
    unsafe { replacing(named(path), || transmute::<*mut c_void, Execve>(next)(path, argv, envp)) }
}

/// # Safety
/// That of `execv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, argv: Strings) -> c_int {
    let Some(next) = EXECV.find() else { return missing() };
    // SAFETY: as in `execve`.
    unsafe { replacing(named(path), || transmute::<*mut c_void, Execv>(next)(path, argv)) }
}

/// # Safety
/// That of `execvp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, argv: Strings) -> c_int {
    let Some(next) = EXECVP.find() else { return missing() };
    // SAFETY: as in `execve`.
    unsafe { replacing(named(file), || transmute::<*mut c_void, Execv>(next)(file, argv)) }
}

/// # Safety
/// That of `execvpe`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, argv: Strings, envp: Strings) -> c_int {
    let Some(next) = EXECVPE.find() else { return missing() };
    // SAFETY: as in `execve`.
    unsafe { replacing(named(file), || transmute::<*mut c_void, Execve>(next)(file, argv, envp)) }
}

/// # Safety
/// That of `fexecve`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(file: c_int, argv: Strings, envp: Strings) -> c_int {
    let Some(next) = FEXECVE.find() else { return missing() };
    // SAFETY: as in `execve`.
    unsafe { replacing(None, || transmute::<*mut c_void, Fexecve>(next)(file, argv, envp)) }
}

/// # Safety
/// That of `execveat`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execveat(
    folder: c_int,
    path: *const c_char,
    argv: Strings,
    envp: Strings,
    flags: c_int,
) -> c_int {
    let Some(next) = EXECVEAT.find() else { return missing() };
    // SAFETY: as in `execve`.
    unsafe {
        replacing(named(path), || transmute::<*mut c_void, Execveat>(next)(folder, path, argv, envp, flags))
    }
}

/// Starts a process; notes its number.
///
/// # Safety
/// That of `posix_spawn`.
unsafe fn spawn(
    next: &Next,
    pid: *mut libc::pid_t,
    path: *const c_char,
    (actions, attributes): (*const c_void, *const c_void),
    (argv, envp): (Strings, Strings),
) -> c_int {
    let Some(next) = next.find() else { return libc::ENOSYS };
    let mut started: libc::pid_t = 0;
    // SAFETY: the function of that name; the arguments are the caller's, and a place for the number.
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
/// That of `posix_spawn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut libc::pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    argv: Strings,
    envp: Strings,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { spawn(&POSIX_SPAWN, pid, path, (actions, attributes), (argv, envp)) }
}

/// # Safety
/// That of `posix_spawnp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut libc::pid_t,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    argv: Strings,
    envp: Strings,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { spawn(&POSIX_SPAWNP, pid, file, (actions, attributes), (argv, envp)) }
}

/// Notes that a shell is started where it would not load the layer.
fn shell() {
    // SAFETY: the C library's; a list of C strings that ends with null, or null.
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
/// That of `system`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    let Some(next) = SYSTEM.find() else { return missing() };
    // With null it only says whether there is a shell.
    if !command.is_null() {
        shell();
    }
    // SAFETY: as in `execve`.
    unsafe { transmute::<*mut c_void, System>(next)(command) }
}

/// # Safety
/// That of `popen`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen(command: *const c_char, mode: *const c_char) -> *mut c_void {
    let Some(next) = POPEN.find() else {
        missing();
        return ptr::null_mut();
    };
    shell();
    // SAFETY: as in `execve`.
    unsafe { transmute::<*mut c_void, Popen>(next)(command, mode) }
}

/// Arguments of a function of any number, as its caller left them: the second to the sixth, then those on the stack.
#[derive(Clone, Copy)]
struct Arguments {
    registers: Strings,
    stack: Strings,
}

/// Arguments that are copied to the stack; more go to memory from the system.
const FEW: usize = 512;

impl Arguments {
    /// # Safety
    /// The caller gave so many, or a null before.
    unsafe fn get(self, index: usize) -> *const c_char {
        // SAFETY: five are in registers, the others behind each other on the stack.
        unsafe { if index < 5 { *self.registers.add(index) } else { *self.stack.add(index - 5) } }
    }

    /// Calls with the list of arguments that a null ends, and what follows that.
    ///
    /// # Safety
    /// The arguments of a call of the `execl` family.
    unsafe fn list(self, call: impl FnOnce(Strings, *const c_char) -> c_int) -> c_int {
        // SAFETY: a null ends the arguments; what follows it is only used by whoever has given it.
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
    // SAFETY: the stub's caller called `execl`.
    unsafe { Arguments { registers, stack }.list(|list, _| execv(path, list)) }
}

unsafe extern "C" fn execlp_of(file: *const c_char, registers: Strings, stack: Strings) -> c_int {
    // SAFETY: the stub's caller called `execlp`.
    unsafe { Arguments { registers, stack }.list(|list, _| execvp(file, list)) }
}

unsafe extern "C" fn execle_of(path: *const c_char, registers: Strings, stack: Strings) -> c_int {
    // SAFETY: the stub's caller called `execle`, whose environment follows the null.
    unsafe { Arguments { registers, stack }.list(|list, envp| execve(path, list, envp.cast())) }
}

/// A function of any number of arguments, which Rust cannot define: puts those in registers on the stack, behind each
/// other, and passes on where they are.
macro_rules! of_any_number {
    ($name:ident, $to:ident) => {
        /// # Safety
        /// That of the C library's function.
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
                // Behind the five registers and the return address.
                "lea rdx, [rsp + 48]",
                "call {to}",
                "add rsp, 40",
                "ret",
                to = sym $to,
            )
        }
    };
}

of_any_number!(execl, execl_of);
of_any_number!(execlp, execlp_of);
of_any_number!(execle, execle_of);
