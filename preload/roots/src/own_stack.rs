//! The stack that a collection runs on. The thread that collects may have little left of its own: a coroutine's of 8 KiB
//! has the program's data below it.
//!
//! One thread at a time runs on it. Its registers are saved on the stack that it leaves, where they are read, and a
//! collection writes nothing below them.

use core::arch::{asm, naked_asm};
use core::ffi::c_void;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::SignalMaskGuard;

use crate::buffer::{self, NoMemory};
use crate::kernel::{self, PAGE};
use crate::vectors;

/// Bytes of the mapping. The C library's handlers of signals that stay unblocked run here too, and listeners of events.
const BYTES: usize = 256 << 10;

/// Where the mapping lies if the place is free: below other stacks, so that what compares stack pointers takes the
/// collection's frames for frames of calls, which they are; and above what programs map at fixed addresses below 4 GiB.
const BELOW_STACKS: usize = 0x2e00_0000_0000;

/// How many registers a call preserves, besides the stack pointer.
pub const SAVED: usize = 6;

/// See the module.
pub struct OwnStack {
    /// The lowest address of the mapping, which begins with a page that cannot be accessed; 0: there is none yet.
    start: AtomicUsize,
    /// The stack pointer with which the thread that runs here has left its own stack; 0: no thread does.
    left: AtomicUsize,
    /// Where its alternate signal stack begins; 0: it has none.
    alternate: AtomicUsize,
    /// It blocks all signals.
    is_undisturbed: AtomicBool,
}

impl OwnStack {
    pub const fn new() -> OwnStack {
        OwnStack {
            start: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            alternate: AtomicUsize::new(0),
            is_undisturbed: AtomicBool::new(false),
        }
    }

    /// Runs `action` on this stack, or where it is if a thread runs here already: then it is this one, or one whose world
    /// will not stop. `blocked`: what the thread blocks of signals; `None`: all.
    ///
    /// # Errors
    /// [`NoMemory`] for the stack: `action` was not run.
    pub fn run<R>(
        &self,
        blocked: Option<&SignalMaskGuard>,
        action: impl FnOnce() -> R,
    ) -> Result<R, NoMemory> {
        let claimed = self.left.compare_exchange(0, stack_pointer(), Ordering::Acquire, Ordering::Relaxed);
        if claimed.is_err() {
            return Ok(action());
        }
        let _all = self.keep_handlers_away(blocked);
        let done = self.top().and_then(|top| {
            let (mut action, mut result) = (Some(action), None);
            let mut act = |left| {
                assert_internal!(self.has(stack_pointer()), "a collection runs on its own stack");
                self.left.store(left, Ordering::Relaxed);
                result = action.take().map(|action| action());
            };
            let mut act: &mut dyn FnMut(usize) = &mut act;
            // SAFETY: the context is what `run_act` takes. The memory below `top` is mapped, and this thread's alone: it
            // has claimed the stack.
            unsafe { call_on((&raw mut act).cast(), run_act, top) };
            vectors::clear();
            result.ok_or(NoMemory)
        });
        self.left.store(0, Ordering::Release);
        done
    }

    /// The stack pointer with which the thread that runs here has left its own stack: the registers that it preserves for
    /// its callers lie there. 0: no thread runs here.
    pub fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Notes the alternate signal stack of a thread that is about to run here, and whether it blocks all signals: it does from
    /// now on where it is on that stack, which the kernel takes for free once the thread has left it.
    fn keep_handlers_away(&self, blocked: Option<&SignalMaskGuard>) -> Option<SignalMaskGuard> {
        let blocks_all = blocked.is_none_or(SignalMaskGuard::is_of_all);
        let alternate = kernel::alternate_stack();
        self.alternate.store(alternate.ss_sp as usize, Ordering::Relaxed);
        let is_on_alternate = alternate.ss_flags & libc::SS_ONSTACK != 0;
        self.is_undisturbed.store(blocks_all || is_on_alternate, Ordering::Relaxed);
        (is_on_alternate && !blocks_all).then(|| SignalMaskGuard::all_but(&[]))
    }

    /// Where the alternate signal stack of the thread that runs here begins; 0: it has none.
    pub fn alternate(&self) -> usize {
        self.alternate.load(Ordering::Relaxed)
    }

    /// Whether the calling thread runs here, and blocks all signals.
    pub fn is_undisturbed(&self) -> bool {
        self.has(stack_pointer()) && self.is_undisturbed.load(Ordering::Relaxed)
    }

    /// The addresses of the mapping.
    pub fn range(&self) -> Range<usize> {
        let start = self.start.load(Ordering::Relaxed);
        start..start + if start == 0 { 0 } else { BYTES }
    }

    /// In the child of a fork: frees the stack of a thread that the child has not.
    pub fn after_fork_in_child(&self) {
        if !self.has(stack_pointer()) {
            self.left.store(0, Ordering::Relaxed);
        }
    }

    fn has(&self, address: usize) -> bool {
        self.range().contains(&address)
    }

    /// The end of the mapping, which is made at first.
    fn top(&self) -> Result<usize, NoMemory> {
        let mut start = self.start.load(Ordering::Relaxed);
        if start == 0 {
            start = buffer::map_at(BELOW_STACKS, BYTES)?;
            // SAFETY: the first page of the new mapping, which nothing uses.
            let guarded = unsafe { kernel::call(libc::SYS_mprotect, [start, PAGE, 0, 0, 0, 0]) };
            if guarded.is_err() {
                // SAFETY: the new mapping, which nothing uses.
                let _ = unsafe { kernel::call(libc::SYS_munmap, [start, BYTES, 0, 0, 0, 0]) };
                return Err(NoMemory);
            }
            self.start.store(start, Ordering::Relaxed);
        }
        Ok(start + BYTES)
    }
}

/// # Safety
/// The context points to a reference to a function, which no other code uses meanwhile.
unsafe extern "C" fn run_act(context: *mut c_void, left: usize) {
    // SAFETY: the precondition of this function.
    let act = unsafe { &mut *context.cast::<&mut dyn FnMut(usize)>() };
    act(left);
}

/// Saves the registers that a call preserves, and calls `inner(context, stack pointer)` on the stack that ends at `top`.
/// The words are at the stack pointer; the frame has the usual form, so that debuggers and unwinders find the caller.
///
/// # Safety
/// Calling `inner` with this context and any stack pointer is sound, and the memory below `top`, a multiple of 16, is a
/// stack that no thread runs on.
#[unsafe(naked)]
unsafe extern "C" fn call_on(
    context: *mut c_void,
    inner: unsafe extern "C" fn(*mut c_void, usize),
    top: usize,
) {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "push rbx",
        ".cfi_offset rbx, -24",
        "push r12",
        ".cfi_offset r12, -32",
        "push r13",
        ".cfi_offset r13, -40",
        "push r14",
        ".cfi_offset r14, -48",
        "push r15",
        ".cfi_offset r15, -56",
        "mov rax, rsi",
        "mov rsi, rsp",
        "mov rsp, rdx",
        "call rax",
        "lea rsp, [rbp - 40]",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

/// The stack pointer.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}

const _: () = assert!(BYTES.is_multiple_of(PAGE) && PAGE.is_multiple_of(16) && BYTES > PAGE);

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    unsafe extern "C" fn copy_saved(context: *mut c_void, left: usize) {
        // SAFETY: the test passes a place for so many words, and `call_on` has saved them.
        unsafe { core::ptr::copy_nonoverlapping(left as *const usize, context.cast(), SAVED) };
    }

    #[test]
    fn the_registers_that_a_call_preserves_are_where_the_stack_was_left_and_are_kept() {
        let stack = OwnStack::new();
        let top = stack.top().expect("memory");
        let mut saved = [0_usize; SAVED];
        let changed: usize;
        // SAFETY: the function is called as C functions are, with an aligned stack; rbx and rbp are restored.
        unsafe {
            asm!(
                "push rbx",
                "push rbp",
                "push rsp",
                "push [rsp]",
                "and rsp, -16",
                "mov rbx, 11", "mov rbp, 12", "mov r12, 13", "mov r13, 14", "mov r14, 15", "mov r15, 16",
                "call {call_on}",
                "xor eax, eax",
                "xor rbx, 11", "xor rbp, 12", "xor r12, 13", "xor r13, 14", "xor r14, 15", "xor r15, 16",
                "or rax, rbx", "or rax, rbp", "or rax, r12", "or rax, r13", "or rax, r14", "or rax, r15",
                "mov rsp, [rsp + 8]",
                "pop rbp",
                "pop rbx",
                call_on = sym call_on,
                in("rdi") &raw mut saved,
                in("rsi") copy_saved as *const (),
                in("rdx") top,
                lateout("rax") changed,
                out("r12") _, out("r13") _, out("r14") _, out("r15") _,
                clobber_abi("C"),
            );
        }
        assert_eq!(changed, 0, "registers are as they were");
        saved.sort_unstable();
        assert_eq!(saved, [11, 12, 13, 14, 15, 16]);
    }

    #[test]
    fn actions_run_on_the_stack_and_those_within_them_on_the_same() {
        let stack = OwnStack::new();
        assert_eq!((stack.left(), stack.range()), (0, 0..0));
        let here = stack_pointer();
        for _ in 0..3 {
            let seen = stack.run(None, || {
                let outer = (stack_pointer(), stack.left());
                [outer, stack.run(None, || (stack_pointer(), stack.left())).expect("it is mapped")]
            });
            let seen: Vec<_> = seen.expect("memory").into();
            assert!(seen.iter().all(|(pointer, _)| stack.has(*pointer)), "{seen:x?}");
            assert!(seen.iter().all(|&(_, left)| left < here && here - left < PAGE), "{seen:x?}");
            assert!(seen[1].0 <= seen[0].0, "{seen:x?}");
            assert_eq!(stack.left(), 0);
        }
    }

    #[test]
    fn a_thread_that_finds_the_stack_in_use_acts_where_it_is() {
        let stack = OwnStack::new();
        let other = stack.run(None, || {
            std::thread::scope(|scope| {
                scope.spawn(|| stack.run(None, || stack.has(stack_pointer()))).join().expect("it ends")
            })
        });
        assert_eq!(other, Ok(Ok(false)));
        assert_eq!(stack.run(None, || stack.has(stack_pointer())), Ok(true));
    }

    #[test]
    fn the_child_of_a_fork_frees_the_stack_unless_it_runs_there() {
        let stack = OwnStack::new();
        let kept = stack.run(None, || {
            stack.after_fork_in_child();
            stack.left() != 0
        });
        assert_eq!(kept, Ok(true));
        // As a thread has left it that the child has not.
        stack.left.store(stack_pointer(), Ordering::Relaxed);
        stack.after_fork_in_child();
        assert_eq!(stack.run(None, || stack.has(stack_pointer())), Ok(true));
    }

    #[test]
    fn the_page_below_the_stack_cannot_be_accessed() {
        let stack = OwnStack::new();
        let top = stack.top().expect("memory");
        assert_eq!(stack.range(), top - BYTES..top);
        assert!(!kernel::is_readable(top - BYTES) && kernel::is_readable(top - BYTES + PAGE));
    }
}
