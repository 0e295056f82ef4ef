//! The smoke run: a program, started again with a new object preloaded, allocates in every possible way and reports what
//! does not hold. It also proves that each call is served by that object and no other.
//!
//! The program is the caller's own: it has a hidden subcommand [`WORD`], which calls [`run`].

mod operators;
mod pattern;

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use libc::{c_int, c_void, size_t};

use heaptoll_elf::family;

use pattern::{fill, holds};

/// How long a smoke run may take before it counts as hung.
const LIMIT: Duration = Duration::from_secs(60);
/// The hidden subcommand.
pub const WORD: &str = "__smoke";
/// Its flag for managers whose `calloc` does not check for overflow.
const NO_OVERFLOW: &str = "--no-overflow";
/// Its flag for managers that leave operators of C++ to the C++ library.
const LIBRARY_OPERATORS: &str = "--library-operators";

/// What is expected of a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// `calloc` detects that its product overflows.
    pub overflow: bool,
    /// It has every form of `operator new` and `operator delete` itself. Where it does not, the C++ library's may serve,
    /// which call the malloc family.
    pub operators: bool,
}

unsafe extern "C" {
    fn valloc(size: size_t) -> *mut c_void;
    fn pvalloc(size: size_t) -> *mut c_void;
}

/// Starts `program __smoke OBJECT` with `object` preloaded and waits for its verdict. `environment` is set in addition.
///
/// # Errors
/// What does not hold, or that it was killed or hung.
pub fn prove<'a>(
    program: &Path,
    object: &Path,
    expected: Expected,
    environment: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), String> {
    let mut child = Command::new(program)
        .arg(WORD)
        .arg(object)
        .args((!expected.overflow).then_some(NO_OVERFLOW))
        .args((!expected.operators).then_some(LIBRARY_OPERATORS))
        .env("LD_PRELOAD", object)
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot start {}: {e}", program.display()))?;
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if started.elapsed() > LIMIT => {
                // The verdict is given either way; a child that cannot be killed is reaped by init.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("still running after {} s", LIMIT.as_secs()));
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(e) => return Err(format!("cannot wait for it: {e}")),
        }
    };
    if status.success() {
        return Ok(());
    }
    let output = child.wait_with_output().map(|out| String::from_utf8_lossy(&out.stderr).into_owned());
    Err(format!("{status}: {}", output.unwrap_or_default().trim()))
}

/// The run itself.
///
/// # Errors
/// What does not hold.
pub fn run(object: &Path, expected: Expected) -> Result<(), String> {
    bound(object, family::FAMILY)?;
    let operators = family::NEW.into_iter().chain(family::NEW_ALIGNED).chain(family::DELETE);
    if expected.operators {
        bound(object, operators)?;
    } else {
        load_cxx_library();
    }
    sizes()?;
    alignments()?;
    if expected.overflow {
        overflows()?;
    }
    threads()?;
    // A machine without the C++ library has no program that calls an operator which the manager lacks.
    if expected.operators || lookup("_ZnwmSt11align_val_tRKSt9nothrow_t").is_some() {
        operators::try_all(lookup)?;
    }
    fork()
}

/// Brings the C++ library's operators, which a program in C++ has, after those of the manager.
fn load_cxx_library() {
    // SAFETY: the name is a C string; the library's constructors are those that every program in C++ runs.
    unsafe { libc::dlopen(c"libstdc++.so.6".as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
}

/// Each function must come from `object`.
fn bound<'a>(object: &Path, names: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    let wanted = std::fs::canonicalize(object).map_err(|e| format!("cannot find the object: {e}"))?;
    for name in names {
        let address = lookup(name).ok_or_else(|| format!("{name} is nowhere"))?;
        // SAFETY: an all-zero Dl_info is a valid value of this plain C struct.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is writable; dladdr accepts any address and returns 0 for one that is in no object.
        if unsafe { libc::dladdr(address, &mut info) } == 0 || info.dli_fname.is_null() {
            return Err(format!("{name} is in no loaded object"));
        }
        // SAFETY: dladdr succeeded, so dli_fname is a C string that lives as long as the object is loaded.
        let file = unsafe { CStr::from_ptr(info.dli_fname) };
        let found = std::fs::canonicalize(OsStr::from_bytes(file.to_bytes())).unwrap_or_default();
        if found != wanted {
            return Err(format!("{name} comes from {}", found.display()));
        }
    }
    Ok(())
}

fn lookup(name: &str) -> Option<*mut c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: RTLD_DEFAULT is a valid handle and `name` a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

fn sizes() -> Result<(), String> {
    let small = (0..600).chain((600..70_000).step_by(977));
    for size in small.chain([1 << 18, 1 << 20, 5 << 20, 40 << 20]) {
        // SAFETY: each block is used within its requested size and freed once; sizes only grow or shrink by realloc,
        // whose result replaces the old pointer.
        unsafe {
            let block = libc::malloc(size);
            if block.is_null() {
                return Err(format!("malloc({size}) returned null"));
            }
            if libc::malloc_usable_size(block) < size {
                return Err(format!("malloc_usable_size after malloc({size}) is less than was requested"));
            }
            fill(block, size, size);
            let larger = libc::realloc(block, size * 2 + 1);
            if larger.is_null() || !holds(larger, size, size) {
                return Err(format!("realloc from {size} bytes to {} lost data", size * 2 + 1));
            }
            let smaller = libc::reallocarray(larger, 1, size / 2 + 1);
            if smaller.is_null() || !holds(smaller, size.min(size / 2 + 1), size) {
                return Err(format!(
                    "reallocarray from {} bytes to {} lost data",
                    size * 2 + 1,
                    size / 2 + 1
                ));
            }
            libc::free(smaller);
            let zeroed = libc::calloc(size + 1, 1).cast::<u8>();
            if zeroed.is_null() || (0..=size).step_by(61).any(|at| zeroed.add(at).read_volatile() != 0) {
                return Err(format!("calloc of {} bytes is not zero", size + 1));
            }
            libc::free(zeroed.cast());
        }
    }
    Ok(())
}

fn alignments() -> Result<(), String> {
    for alignment in [16, 64, 256, 4096, 32_768] {
        for size in [1, 100, 5000, 300_000] {
            let rounded = size_t::next_multiple_of(size, alignment);
            let mut block = std::ptr::null_mut();
            // SAFETY: alignments are powers of two and multiples of a pointer; `block` receives the result.
            let blocks = unsafe {
                let failed = libc::posix_memalign(&mut block, alignment, size);
                if failed != 0 {
                    return Err(format!("posix_memalign({alignment}, {size}) returned {failed}"));
                }
                [block, libc::aligned_alloc(alignment, rounded), libc::memalign(alignment, size)]
            };
            for (name, block) in ["posix_memalign", "aligned_alloc", "memalign"].into_iter().zip(blocks) {
                check_aligned(name, block, alignment, size)?;
            }
        }
    }
    for size in [1, 4096, 10_000] {
        // SAFETY: both take any size; the results are checked and freed by `check_aligned`.
        let blocks = unsafe { [valloc(size), pvalloc(size)] };
        check_aligned("valloc", blocks[0], 4096, size)?;
        check_aligned("pvalloc", blocks[1], 4096, size.next_multiple_of(4096))?;
    }
    Ok(())
}

fn check_aligned(name: &str, block: *mut c_void, alignment: usize, size: usize) -> Result<(), String> {
    if block.is_null() || !block.addr().is_multiple_of(alignment) {
        return Err(format!("{name} gave {block:p} for alignment {alignment}, size {size}"));
    }
    // SAFETY: the block is not null, has `size` bytes by contract, and is freed once, here.
    unsafe {
        if libc::malloc_usable_size(block) < size {
            return Err(format!("{name}({alignment}, {size}) has too few usable bytes"));
        }
        fill(block, size, alignment);
        libc::free(block);
    }
    Ok(())
}

fn overflows() -> Result<(), String> {
    let half = std::hint::black_box(usize::MAX / 2 + 2);
    // SAFETY: the request cannot be met by any heap; a null result is what is checked for. Hidden from the optimiser,
    // which knows calloc and drops a block that is only compared with null.
    let block = std::hint::black_box(unsafe { libc::calloc(half, 2) });
    if !block.is_null() {
        return Err("calloc did not detect that its product overflows".to_string());
    }
    Ok(())
}

/// Four threads allocate; each frees what its neighbour allocated.
fn threads() -> Result<(), String> {
    const THREADS: usize = 4;
    const BLOCKS: usize = 4000;
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..THREADS).map(|_| mpsc::channel::<(usize, usize)>()).unzip();
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for (index, receiver) in receivers.into_iter().enumerate() {
            let sender = senders[(index + 1) % THREADS].clone();
            let exchange = move || {
                for i in 0..BLOCKS {
                    let size = 1 + (i * 7919 + index * 104_729) % 3000;
                    // SAFETY: the block has `size` bytes; ownership goes to the neighbour with its address.
                    let block = unsafe { libc::malloc(size) };
                    if block.is_null() {
                        return Err(format!("malloc({size}) in a thread returned null"));
                    }
                    // SAFETY: `block` is not null and has `size` bytes.
                    unsafe { fill(block, size, size) };
                    if sender.send((block.expose_provenance(), size)).is_err() {
                        return Err("a neighbour thread is gone".to_string());
                    }
                }
                for (address, size) in receiver.iter().take(BLOCKS) {
                    let block = std::ptr::with_exposed_provenance_mut::<c_void>(address);
                    // SAFETY: the neighbour gave this block away; it is checked and freed once, here.
                    unsafe {
                        if !holds(block, size, size) {
                            return Err(format!("a block of {size} bytes changed between threads"));
                        }
                        libc::free(block);
                    }
                }
                Ok(())
            };
            let started = std::thread::Builder::new().spawn_scoped(scope, exchange);
            workers.push(started.map_err(|error| format!("cannot start a thread: {error}"))?);
        }
        drop(senders);
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| "a thread panicked".to_string())?)
    })
}

/// A child of fork must be able to allocate.
fn fork() -> Result<(), String> {
    // SAFETY: the threads above have ended, so the child is a copy of a single-threaded process.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(format!("cannot fork: {}", std::io::Error::last_os_error()));
    }
    if pid == 0 {
        // SAFETY: blocks are used within their size and freed once; `_exit` runs no handlers of the parent.
        unsafe {
            for size in 1..2000 {
                let block = libc::malloc(size);
                if block.is_null() {
                    libc::_exit(1);
                }
                fill(block, size, size);
                libc::free(block);
            }
            libc::_exit(0);
        }
    }
    let mut status: c_int = 0;
    // SAFETY: `pid` is our child and `status` writable.
    let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
    if waited == pid && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 {
        Ok(())
    } else {
        Err(format!("a forked child could not allocate (wait status {status:#x})"))
    }
}
