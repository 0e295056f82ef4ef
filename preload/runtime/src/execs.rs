//! The exec family, as a preloaded object stands in for it. Its functions are called in children of fork and vfork and
//! in signal handlers, so nothing here allocates or takes a lock.
//!
//! A system call that the program makes itself passes by, and so do `system`, `popen` and `posix_spawn`, which exec in a
//! child of their own.

use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;

use crate::next::{Next, missing};

/// A list of strings that ends with null: of arguments, or an environment.
pub type Strings = *const *const c_char;
type Execve = unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int;
type Execv = unsafe extern "C" fn(*const c_char, Strings) -> c_int;
type Fexecve = unsafe extern "C" fn(c_int, Strings, Strings) -> c_int;
type Execveat = unsafe extern "C" fn(c_int, *const c_char, Strings, Strings, c_int) -> c_int;

/// What an object does around each call of the family.
pub trait AroundExec {
    /// Makes the call, which does not return unless it fails. The path is the program's argument, or null if the call
    /// has none.
    fn around(path: *const c_char, call: impl FnOnce() -> c_int) -> c_int;
}

static EXECVE: Next = Next::new(c"execve");
static EXECV: Next = Next::new(c"execv");
static EXECVP: Next = Next::new(c"execvp");
static EXECVPE: Next = Next::new(c"execvpe");
static FEXECVE: Next = Next::new(c"fexecve");
static EXECVEAT: Next = Next::new(c"execveat");

/// Looks up all of them, since a lookup allocates.
pub fn prepare() {
    for next in [&EXECVE, &EXECV, &EXECVP, &EXECVPE, &FEXECVE, &EXECVEAT] {
        let _ = next.get();
    }
}

/// Exports the family over an [`AroundExec`]. An object does so once, and calls [`prepare`] when it starts.
#[macro_export]
macro_rules! interpose_execs {
    ($around:path) => {
        const _: () = {
            use ::core::ffi::{c_char, c_int};
            use $crate::execs::{self, Strings};

            #[unsafe(no_mangle)]
            unsafe extern "C" fn execve(path: *const c_char, argv: Strings, envp: Strings) -> c_int {
                // SAFETY: the arguments are those of the caller of `execve`.
                unsafe { execs::execve::<$around>(path, argv, envp) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn execv(path: *const c_char, argv: Strings) -> c_int {
                // SAFETY: the arguments are those of the caller of `execv`.
                unsafe { execs::execv::<$around>(path, argv) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn execvp(file: *const c_char, argv: Strings) -> c_int {
                // SAFETY: the arguments are those of the caller of `execvp`.
                unsafe { execs::execvp::<$around>(file, argv) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn execvpe(file: *const c_char, argv: Strings, envp: Strings) -> c_int {
                // SAFETY: the arguments are those of the caller of `execvpe`.
                unsafe { execs::execvpe::<$around>(file, argv, envp) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn fexecve(file: c_int, argv: Strings, envp: Strings) -> c_int {
                // SAFETY: the arguments are those of the caller of `fexecve`.
                unsafe { execs::fexecve::<$around>(file, argv, envp) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn execveat(
                folder: c_int,
                path: *const c_char,
                argv: Strings,
                envp: Strings,
                flags: c_int,
            ) -> c_int {
                // SAFETY: the arguments are those of the caller of `execveat`.
                unsafe { execs::execveat::<$around>(folder, path, argv, envp, flags) }
            }

            $crate::define_variadic_exec!(execl, execs::execl_of::<$around>);
            $crate::define_variadic_exec!(execlp, execs::execlp_of::<$around>);
            $crate::define_variadic_exec!(execle, execs::execle_of::<$around>);
        };
    };
}

/// Defines a variadic function, which Rust cannot: pushes the register arguments onto the stack, one after another, and
/// passes on their address.
#[doc(hidden)]
#[macro_export]
macro_rules! define_variadic_exec {
    ($name:ident, $to:path) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            ::core::arch::naked_asm!(
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

/// # Safety
/// The arguments are valid for the C library's function.
pub unsafe fn execve<A: AroundExec>(path: *const c_char, argv: Strings, envp: Strings) -> c_int {
    let Some(next) = EXECVE.get() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    A::around(path, || unsafe { transmute::<*mut c_void, Execve>(next)(path, argv, envp) })
}

/// # Safety
/// The arguments are valid for the C library's function.
pub unsafe fn execv<A: AroundExec>(path: *const c_char, argv: Strings) -> c_int {
    let Some(next) = EXECV.get() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    A::around(path, || unsafe { transmute::<*mut c_void, Execv>(next)(path, argv) })
}

/// # Safety
/// The arguments are valid for the C library's function.
pub unsafe fn execvp<A: AroundExec>(file: *const c_char, argv: Strings) -> c_int {
    let Some(next) = EXECVP.get() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    A::around(file, || unsafe { transmute::<*mut c_void, Execv>(next)(file, argv) })
}

/// # Safety
/// The arguments are valid for the C library's function.
pub unsafe fn execvpe<A: AroundExec>(file: *const c_char, argv: Strings, envp: Strings) -> c_int {
    let Some(next) = EXECVPE.get() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    A::around(file, || unsafe { transmute::<*mut c_void, Execve>(next)(file, argv, envp) })
}

/// # Safety
/// The arguments are valid for the C library's function.
pub unsafe fn fexecve<A: AroundExec>(file: c_int, argv: Strings, envp: Strings) -> c_int {
    let Some(next) = FEXECVE.get() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    A::around(ptr::null(), || unsafe { transmute::<*mut c_void, Fexecve>(next)(file, argv, envp) })
}

/// # Safety
/// The arguments are valid for the C library's function.
pub unsafe fn execveat<A: AroundExec>(
    folder: c_int,
    path: *const c_char,
    argv: Strings,
    envp: Strings,
    flags: c_int,
) -> c_int {
    let Some(next) = EXECVEAT.get() else { return missing() };
    // SAFETY: `next` was looked up by the name of this function, so it has its type; the caller's arguments are valid
    // for it.
    A::around(path, || unsafe { transmute::<*mut c_void, Execveat>(next)(folder, path, argv, envp, flags) })
}

/// The arguments of a variadic function, as its caller passed them: the second to the sixth, then those on the stack.
#[derive(Clone, Copy)]
struct Arguments {
    registers: Strings,
    stack: Strings,
}

/// Up to this many arguments are copied to the stack; more go to memory from the system.
const FEW: usize = 32;
const MANY: usize = 512;

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
        // SAFETY: by this function's contract a null ends the arguments. The list has space for them and the null.
        unsafe {
            let mut count = 0;
            while !self.get(count).is_null() {
                count += 1;
            }
            match count {
                // The stack may be a handler's, of two pages.
                0..FEW => self.list_on_stack::<FEW>(count, call),
                FEW..MANY => self.list_on_stack::<MANY>(count, call),
                _ => self.list_in_mapping(count, call),
            }
        }
    }

    /// # Safety
    /// As [`Arguments::list`], and `count` is below `N`.
    #[inline(never)]
    unsafe fn list_on_stack<const N: usize>(
        self,
        count: usize,
        call: impl FnOnce(Strings, *const c_char) -> c_int,
    ) -> c_int {
        let mut list = [ptr::null(); N];
        // SAFETY: the list has more than `count` places.
        unsafe { self.copy(count, list.as_mut_ptr(), call) }
    }

    /// # Safety
    /// As [`Arguments::list`].
    #[inline(never)]
    unsafe fn list_in_mapping(
        self,
        count: usize,
        call: impl FnOnce(Strings, *const c_char) -> c_int,
    ) -> c_int {
        let bytes = (count + 1) * size_of::<*const c_char>();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, which no code uses after it is unmapped; errno's address is valid for the calling
        // thread.
        unsafe {
            let list = libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0);
            if list == libc::MAP_FAILED {
                *libc::__errno_location() = libc::ENOMEM;
                return -1;
            }
            let failed = self.copy(count, list.cast(), call);
            let errno = *libc::__errno_location();
            libc::munmap(list, bytes);
            *libc::__errno_location() = errno;
            failed
        }
    }

    /// # Safety
    /// As [`Arguments::list`], and `list` has space for `count + 1` pointers.
    unsafe fn copy(
        self,
        count: usize,
        list: *mut *const c_char,
        call: impl FnOnce(Strings, *const c_char) -> c_int,
    ) -> c_int {
        // SAFETY: this function's contract; only `execle_of`, whose caller has passed an argument after the null, uses
        // that.
        unsafe {
            for index in 0..=count {
                *list.add(index) = self.get(index);
            }
            call(list, self.get(count + 1))
        }
    }
}

/// # Safety
/// Only the stub `execl` calls this, with the addresses of its own arguments.
#[doc(hidden)]
pub unsafe extern "C" fn execl_of<A: AroundExec>(
    path: *const c_char,
    registers: Strings,
    stack: Strings,
) -> c_int {
    // SAFETY: this function's contract.
    unsafe { Arguments { registers, stack }.list(|list, _| execv::<A>(path, list)) }
}

/// # Safety
/// Only the stub `execlp` calls this, with the addresses of its own arguments.
#[doc(hidden)]
pub unsafe extern "C" fn execlp_of<A: AroundExec>(
    file: *const c_char,
    registers: Strings,
    stack: Strings,
) -> c_int {
    // SAFETY: this function's contract.
    unsafe { Arguments { registers, stack }.list(|list, _| execvp::<A>(file, list)) }
}

/// # Safety
/// Only the stub `execle` calls this, with the addresses of its own arguments; its environment follows the null.
#[doc(hidden)]
pub unsafe extern "C" fn execle_of<A: AroundExec>(
    path: *const c_char,
    registers: Strings,
    stack: Strings,
) -> c_int {
    // SAFETY: this function's contract.
    unsafe { Arguments { registers, stack }.list(|list, envp| execve::<A>(path, list, envp.cast())) }
}
