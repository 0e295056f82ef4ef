//! Which memory the manager has from the system: `mmap` and its kin as the layer exports them.
//!
//! A manager's data about its blocks contains their addresses, and so does a block that it keeps for later use. Read
//! for roots, these would keep blocks alive for ever. Whatever the manager maps is therefore recorded here and left
//! out; a call is the manager's when it comes from its object, or from a thread that is inside. Memory that is released
//! is taken out again, by whichever code releases it.

use core::arch::naked_asm;
use core::ffi::{CStr, c_int, c_void};
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use heaptoll_layer_core::sweep::elf;
use heaptoll_layer_core::sweep::ranges::Ranges;
use heaptoll_next::family;
use heaptoll_runtime::PAGE;
use heaptoll_runtime::system_call;

use crate::gate;
use crate::innermost::Innermost;

/// Memory by the code that requested it.
pub struct Mapped {
    /// The manager's.
    pub managers: Ranges,
    /// What the program has by moving the break.
    pub program_break: Ranges,
    /// Mapped by code not known yet: before the first call of `malloc` the manager is unknown. Range and caller.
    early: [(usize, usize, usize); EARLY],
    early_count: usize,
    /// The program's part of the break is not known any more: a fork came in the middle of a change.
    pub break_lost: bool,
}

const EARLY: usize = 64;

/// Only held by threads inside: no thread is stopped with it.
pub static MAPPED: Innermost<Mapped> = Innermost::new(Mapped::new());

/// The manager's object: its first address and its length. Length 0: not known yet; [`NO_OBJECT`]: no call comes from
/// there.
static OBJECT: AtomicUsize = AtomicUsize::new(0);
static OBJECT_BYTES: AtomicUsize = AtomicUsize::new(0);
const NO_OBJECT: usize = 1;

/// The code that requests memory.
#[derive(Clone, Copy)]
struct Requester {
    caller: usize,
    inside: bool,
}

impl Requester {
    fn is_manager(self) -> bool {
        self.inside || is_of_manager(self.caller)
    }
}

/// Whether an address lies in the manager's object, as far as that is known.
pub fn is_of_manager(address: usize) -> bool {
    let bytes = OBJECT_BYTES.load(Ordering::Acquire);
    bytes > NO_OBJECT && address.wrapping_sub(OBJECT.load(Ordering::Relaxed)) < bytes
}

fn pages(start: usize, bytes: usize) -> Range<usize> {
    start & !(PAGE - 1)..start.saturating_add(bytes).checked_next_multiple_of(PAGE).unwrap_or(usize::MAX)
}

impl Mapped {
    const fn new() -> Mapped {
        Mapped {
            managers: Ranges::new(),
            program_break: Ranges::new(),
            early: [(0, 0, 0); EARLY],
            early_count: 0,
            break_lost: false,
        }
    }

    /// Nothing is known any more: what is the manager's is read for roots but for its blocks.
    fn forget_all(&mut self) {
        *self = Mapped { break_lost: true, ..Mapped::new() };
    }

    /// Records that `range` is newly mapped.
    fn note(&mut self, range: Range<usize>, requester: Requester) {
        if requester.is_manager() {
            // Without space it is read for roots, which keeps more than need be.
            let _ = self.managers.add(range);
            return;
        }
        self.forget(range.clone());
        if OBJECT_BYTES.load(Ordering::Acquire) == 0
            && let Some(place) = self.early.get_mut(self.early_count)
        {
            *place = (range.start, range.end, requester.caller);
            self.early_count += 1;
        }
    }

    /// Records that `range` is no longer mapped.
    fn forget(&mut self, range: Range<usize>) {
        for early in &mut self.early[..self.early_count] {
            if early.0 < range.end && range.start < early.1 {
                *early = (0, 0, 0);
            }
        }
        if self.managers.overlaps(&range) {
            // Without space for a second half that is out, too: read for roots.
            let _ = self.managers.remove(range);
        }
    }
}

/// Finds out which object is the manager's, once: the one that the next `malloc` after the layer comes from. The C
/// library's own is not recorded, since other code than malloc lives there; returns whether it is that. Allocates
/// nothing.
pub fn find_manager() -> bool {
    let home = |name| family::symbol(name).and_then(|function| family::object_of(function as usize));
    let manager = home(c"malloc");
    let glibc = manager.is_some() && manager == home(c"gnu_get_libc_version");
    if OBJECT_BYTES.load(Ordering::Acquire) == 0 {
        // SAFETY: the base of a loaded object, as dladdr gives it.
        set_manager(manager.filter(|_| !glibc).and_then(|base| unsafe { elf::extent(base) }));
    }
    glibc
}

/// Records which object is the manager's; `None`: its calls cannot be recognised by their origin.
fn set_manager(object: Option<Range<usize>>) {
    with_mapped(|mapped, _| {
        let (start, bytes) = object.map_or((0, NO_OBJECT), |range| (range.start, range.len()));
        OBJECT.store(start, Ordering::Relaxed);
        OBJECT_BYTES.store(bytes, Ordering::Release);
        for at in 0..mapped.early_count {
            let (start, end, caller) = mapped.early[at];
            let requester = Requester { caller, inside: false };
            if end > 0 && requester.is_manager() {
                mapped.note(start..end, requester);
            }
        }
        mapped.early_count = 0;
    });
}

/// The system's result in C's terms.
fn answered(result: isize) -> *mut c_void {
    if result < 0 {
        // SAFETY: errno's address is valid for the calling thread.
        unsafe { *libc::__errno_location() = -result as c_int };
        return libc::MAP_FAILED;
    }
    result as *mut c_void
}

/// Does something with the mappings; `work` receives whether the thread was inside before.
fn with_mapped<R>(work: impl FnOnce(&mut Mapped, bool) -> R) -> Option<R> {
    let inside = gate::is_inside();
    gate::inside(|| MAPPED.with(|mapped| work(mapped, inside)))
}

/// In a child of fork.
pub fn after_fork_in_child() {
    MAPPED.after_fork_in_child(Mapped::forget_all);
}

/// `mmap`, from `caller`. What it replaces is forgotten and what it maps is recorded in one step.
///
/// # Safety
/// As the system call.
unsafe extern "C" fn map(
    place: usize,
    bytes: usize,
    access: usize,
    flags: usize,
    file: usize,
    offset: usize,
    caller: usize,
) -> *mut c_void {
    // SAFETY: the arguments are those of the caller of `mmap`, unchanged.
    let call = || unsafe { system_call(libc::SYS_mmap, [place, bytes, access, flags, file, offset]) };
    let result = with_mapped(|mapped, inside| {
        let result = call();
        if result >= 0 {
            mapped.note(pages(result as usize, bytes), Requester { caller, inside });
        }
        result
    });
    answered(result.unwrap_or_else(call))
}

/// `mremap`, from `caller`.
///
/// # Safety
/// As the system call.
unsafe extern "C" fn remap(
    old: usize,
    old_bytes: usize,
    bytes: usize,
    flags: usize,
    place: usize,
    caller: usize,
) -> *mut c_void {
    // SAFETY: the arguments are those of the caller of `mremap`, unchanged.
    let call = || unsafe { system_call(libc::SYS_mremap, [old, old_bytes, bytes, flags, place, 0]) };
    let result = with_mapped(|mapped, inside| {
        let result = call();
        if result >= 0 {
            if flags & libc::MREMAP_DONTUNMAP as usize == 0 {
                mapped.forget(pages(old, old_bytes));
            }
            mapped.note(pages(result as usize, bytes), Requester { caller, inside });
        }
        result
    });
    answered(result.unwrap_or_else(call))
}

/// Exports a function that passes its caller's address on as one argument more, on the stack or, where one is free, in
/// a register.
macro_rules! with_caller {
    (seventh $($name:ident)* => $to:path) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "push qword ptr [rsp]",
                ".cfi_def_cfa_offset 16",
                "call {to}",
                "add rsp, 8",
                ".cfi_def_cfa_offset 8",
                "ret",
                ".cfi_endproc",
                to = sym $to,
            );
        }
    )* };
    (sixth $name:ident => $to:path) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!("mov r9, qword ptr [rsp]", "jmp {to}", to = sym $to);
        }
    };
    (second $($name:ident => $to:path),*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!("mov rsi, qword ptr [rsp]", "jmp {to}", to = sym $to);
        }
    )* };
}

with_caller! { seventh mmap mmap64 => map }
with_caller! { sixth mremap => remap }
with_caller! { second sbrk => move_break, brk => set_break }

/// # Safety
/// As POSIX's.
#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(start: *mut c_void, bytes: usize) -> c_int {
    // SAFETY: the arguments are those of the caller of `munmap`, unchanged.
    let call = || unsafe { system_call(libc::SYS_munmap, [start as usize, bytes, 0, 0, 0, 0]) };
    let result = with_mapped(|mapped, _| {
        let result = call();
        if result >= 0 {
            mapped.forget(pages(start as usize, bytes));
        }
        result
    });
    if answered(result.unwrap_or_else(call)) == libc::MAP_FAILED { -1 } else { 0 }
}

/// The break is at `now` after it was at `before`.
fn note_break(before: usize, now: usize, caller: usize) {
    with_mapped(|mapped, inside| {
        let manager = Requester { caller, inside }.is_manager();
        if now < before {
            let _ = mapped.managers.remove(now..before);
            let _ = mapped.program_break.remove(now..before);
        } else if manager {
            let _ = mapped.managers.add(before..now);
        } else if mapped.program_break.add(before..now).is_err() {
            family::fatal(c"heaptoll: the sweep layer has no memory to record what the program maps\n");
        }
    });
}

/// The next function of this name, kept in `place`.
fn next(place: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = place.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    let found = family::symbol(name).unwrap_or(ptr::null_mut());
    place.store(found, Ordering::Relaxed);
    found
}

/// `sbrk`: the C library keeps the break in a variable of its own, so it must move it.
unsafe extern "C" fn move_break(by: isize, caller: usize) -> *mut c_void {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let found = next(&NEXT, c"sbrk");
    if found.is_null() {
        return answered(-(libc::ENOMEM as isize));
    }
    // SAFETY: the C library's function, of that type; the argument is the caller's own, unchanged.
    let before = unsafe {
        let function = core::mem::transmute::<*mut c_void, unsafe extern "C" fn(isize) -> *mut c_void>(found);
        function(by)
    };
    if before != libc::MAP_FAILED && by != 0 {
        note_break(before as usize, (before as usize).wrapping_add_signed(by), caller);
    }
    before
}

/// `brk`.
unsafe extern "C" fn set_break(end: *mut c_void, caller: usize) -> c_int {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let found = next(&NEXT, c"brk");
    if found.is_null() {
        answered(-(libc::ENOMEM as isize));
        return -1;
    }
    let before = break_now();
    // SAFETY: the C library's function, of that type; the argument is the caller's own, unchanged.
    let status = unsafe {
        let function = core::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> c_int>(found);
        function(end)
    };
    if status == 0 {
        note_break(before, end as usize, caller);
    }
    status
}

/// Where the break is.
pub fn break_now() -> usize {
    // SAFETY: `brk` takes no pointer that it follows; no break can be at 0, so that the kernel returns where it is.
    unsafe { system_call(libc::SYS_brk, [0; 6]) as usize }
}
