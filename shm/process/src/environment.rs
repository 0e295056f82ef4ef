//! A process's environment, by which the tool and its user talk to what is preloaded.
//!
//! `malloc` is called before the C library has set `environ`: by functions in `.preinit_array`, and by constructors of
//! libraries without a C library among their dependencies. `getenv` finds nothing then. But the kernel has put the
//! environment on the stack before the first instruction, and the loader keeps its address. It is also what a program
//! was started with, whatever it has changed since.

use core::ffi::{CStr, c_char};

type Entry = *const c_char;

unsafe extern "C" {
    static mut environ: *const Entry;
    /// The loader's: where the stack pointer was at the first instruction.
    static __libc_stack_end: *const usize;
}

/// The value of a variable: as the program has it now, or else as it was started. `None` where it is not set, and where
/// the program has more rights than the user that started it, whose variables are ignored then.
///
/// No other thread changes the environment meanwhile: for layers and managers, that is at the process's start.
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    if is_secure() {
        return None;
    }
    // SAFETY: no thread changes the C library's variable, as this function requires.
    let now = Entries { next: unsafe { environ } };
    now.chain(first()).find_map(|entry| value(entry, name.to_bytes()))
}

/// The entries `NAME=value`: as the program has them now, or as it was started where the C library has not yet set them.
/// None where the program has more rights than the user that started it.
///
/// No other thread changes the environment meanwhile.
pub fn entries() -> impl Iterator<Item = &'static [u8]> {
    // SAFETY: no thread changes the C library's variable, as this function requires.
    let now = unsafe { environ };
    let entries = match () {
        () if is_secure() => Entries { next: core::ptr::null() },
        () if now.is_null() => first(),
        () => Entries { next: now },
    };
    entries.map(CStr::to_bytes)
}

/// Whether the program has more rights than the user that started it (set-user-ID).
fn is_secure() -> bool {
    // SAFETY: getauxval takes no pointers and returns 0 for an unknown entry.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The environment as the kernel has put it on the stack: after the number of the arguments, these, and a null.
fn first() -> Entries {
    // SAFETY: the loader writes the variable before any other code runs; it is null or the address of that number, in
    // memory that is never unmapped.
    let next = unsafe {
        match __libc_stack_end.as_ref() {
            Some(&arguments) => __libc_stack_end.add(arguments + 2).cast::<Entry>(),
            None => core::ptr::null(),
        }
    };
    Entries { next }
}

/// The value of an entry of this name.
fn value(entry: &'static CStr, name: &[u8]) -> Option<&'static CStr> {
    let value = entry.to_bytes_with_nul().strip_prefix(name)?.strip_prefix(b"=")?;
    CStr::from_bytes_with_nul(value).ok()
}

/// The entries of an environment.
struct Entries {
    next: *const Entry,
}

impl Iterator for Entries {
    type Item = &'static CStr;

    fn next(&mut self) -> Option<&'static CStr> {
        if self.next.is_null() {
            return None;
        }
        // SAFETY: `next` points into an array of C strings that ends with a null, which has not been reached; no thread
        // changes it while it is read, as the functions of this crate require.
        unsafe {
            let entry = *self.next;
            if entry.is_null() {
                return None;
            }
            self.next = self.next.add(1);
            Some(CStr::from_ptr(entry))
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::ffi::CString;
    use std::process::Command;
    use std::string::String;
    use std::vec::Vec;
    use std::{env, print};

    use super::*;

    #[test]
    fn entries_are_walked_to_the_null() {
        let strings = ["A=1", "B", "A=2", "AB=3"].map(|entry| CString::new(entry).expect("no zero"));
        let mut array: Vec<Entry> = strings.iter().map(|string| string.as_ptr()).collect();
        array.push(core::ptr::null());
        let entries = || Entries { next: array.as_ptr() };
        assert_eq!(entries().count(), 4);
        assert_eq!(entries().find_map(|entry| value(entry, b"A")), Some(c"1"));
        assert_eq!(entries().find_map(|entry| value(entry, b"AB")), Some(c"3"));
        assert_eq!(entries().find_map(|entry| value(entry, b"B")), None);
        assert_eq!(Entries { next: core::ptr::null() }.count(), 0);
    }

    #[test]
    fn a_variable_is_found_with_and_without_environ() {
        // A child with a variable of its own: all tests share this process's environment.
        let program = env::current_exe().expect("this program");
        let words =
            ["--exact", "environment::tests::as_a_child", "--ignored", "--nocapture", "--test-threads=1"];
        let output =
            Command::new(program).args(words).env("HEAPTOLL_OF_A_TEST", "a=b").output().expect("a child");
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(out.contains("now a=b, cleared a=b, gone a=b 1"), "{out}");
    }

    #[test]
    #[ignore = "run by a_variable_is_found_with_and_without_environ"]
    fn as_a_child() {
        let found =
            || variable(c"HEAPTOLL_OF_A_TEST").and_then(|value| value.to_str().ok()).unwrap_or("none");
        print!("now {}, ", found());
        static NOTHING: [usize; 1] = [0];
        // SAFETY: one thread of this process reads the environment, and it does so by this crate.
        unsafe { environ = NOTHING.as_ptr().cast() };
        print!("cleared {}, ", found());
        // SAFETY: one thread of this process reads the environment, and it does so by this crate.
        unsafe { environ = core::ptr::null() };
        let all = entries().filter(|entry| entry.starts_with(b"HEAPTOLL_OF_A_TEST="));
        print!("gone {} {}", found(), all.count());
    }
}
