//! System calls continue after a stop.
//!
//! The kernel restarts most calls that a handler has interrupted, but not those that wait for a time or for several
//! things (signal(7)): these end with `EINTR`, and a program that has no handlers does not expect it. The handler of
//! the stop sees from the interrupted registers that a call has just ended so, and from the instructions before which
//! one. There are two ways to continue:
//!
//! - The call is made again: its arguments suffice (no time, the time of a clock, or what is left, which the kernel
//!   writes there; the time of the stop is subtracted from it).
//! - The kernel has kept the rest: `restart_syscall`, see [`leave`].
//!
//! A signal of the program's that came during the stop ends the call as ever. Calls that wait with a mask of their own
//! are left alone, since they are made to be interrupted: had a handler run just before the stop, a second call would
//! wait for ever. So are those whose remaining time is unknown.

use core::sync::atomic::{AtomicBool, Ordering};

use heaptoll_assertions::assert_internal;

use crate::kernel;
use crate::leave::{self, NextCall};

/// `syscall`, by which the C library and all other code calls the kernel.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Bytes of instructions that are examined before the one that was interrupted.
const BEFORE: usize = 12;
const FUTEX_COMMAND: usize = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as usize;
const SYS_EPOLL_PWAIT2: i64 = 441;

/// How an interrupted call continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Continuation {
    /// It is made again.
    Repeat,
    /// It is made again; at this address the kernel has written how much time is left, seconds and so many parts of a
    /// second.
    RepeatWithRest { at: usize, parts: i64 },
    /// The kernel has kept its end.
    KernelRestart,
}

/// Whether the kernel has `restart_syscall`, so that calls can go on which a handler has interrupted.
static HAS_RESTART_SYSCALL: AtomicBool = AtomicBool::new(false);

/// Finds out whether the kernel has `restart_syscall`: an emulator may not. `send` makes the calling thread handle the
/// signal of the stop, after which there is nothing to continue.
pub fn learn(send: impl FnOnce() -> bool) {
    // SAFETY: `restart_syscall` takes no arguments; nothing is left to continue, so it ends with EINTR.
    let has_it = !is_under_valgrind()
        && send()
        && unsafe { kernel::call(libc::SYS_restart_syscall, [0; 6]) } == Err(kernel::Error(libc::EINTR));
    HAS_RESTART_SYSCALL.store(has_it, Ordering::Relaxed);
}

/// Whether this is Valgrind's processor, which has no such call and complains of it: it responds to instructions that
/// do nothing elsewhere.
fn is_under_valgrind() -> bool {
    /// Its request for whether it is Valgrind, and the request's arguments.
    const REQUEST: [u64; 6] = [0x1001, 0, 0, 0, 0, 0];
    let answer: u64;
    // SAFETY: rotates a register by 128 bits in all, and exchanges one with itself.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") REQUEST.as_ptr(),
            inout("rdx") 0_u64 => answer,
            out("rdi") _,
            options(nostack),
        );
    }
    answer != 0
}

/// Parts of a second in a `timespec` and in a `timeval`.
const NANOS: i64 = 1_000_000_000;
const MICROS: i64 = 1_000_000;

/// When a thread was stopped, ns, if a system call was interrupted; else 0. Called first in the handler.
pub fn begin(context: &libc::ucontext_t) -> u64 {
    if is_interrupted(context) { kernel::now_ns() } else { 0 }
}

/// Whether the handler came at the end of a system call that was interrupted.
fn is_interrupted(context: &libc::ucontext_t) -> bool {
    let registers = &context.uc_mcontext.gregs;
    // `syscall` leaves the address of the next instruction in rcx.
    registers[libc::REG_RAX as usize] == -i64::from(libc::EINTR)
        && registers[libc::REG_RCX as usize] == registers[libc::REG_RIP as usize]
        && HAS_RESTART_SYSCALL.load(Ordering::Relaxed)
}

/// Continues the call that was interrupted, if there is one and it can continue. The last thing that the handler does:
/// it may not return. `begun` is what [`begin`] returned.
///
/// # Safety
/// The context is that of a handler which is running, blocks all signals, and owns nothing that needs to be dropped.
pub unsafe fn go_on(context: &mut libc::ucontext_t, begun: u64) {
    // SAFETY: `context` is that of a running handler with all signals blocked, which this function requires.
    unsafe { leave::resume(context) };
    let registers = &context.uc_mcontext.gregs;
    let register = |register: libc::c_int| registers[register as usize];
    let (at, result) = (register(libc::REG_RIP) as usize, register(libc::REG_RAX));
    if result == libc::SYS_restart_syscall && code(at).is_some_and(|code| code[BEFORE..] == SYSCALL) {
        // A second stop before the first has continued the call; or the kernel restarts a call by itself.
        // SAFETY: `context` is that of a running handler with all signals blocked, which this function requires.
        return unsafe { leave::leave(context, NextCall { at, number: result as usize }) };
    }
    if !is_interrupted(context) {
        return;
    }
    let at = at.wrapping_sub(SYSCALL.len());
    let Some(number) = code(at).and_then(number) else { return };
    let arguments = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9]
        .map(register);
    let Some(continuation) = continuation(number, arguments.map(|argument| argument as usize)) else {
        return;
    };
    if continuation == Continuation::KernelRestart {
        // SAFETY: `context` is that of a running handler with all signals blocked, which this function requires.
        return unsafe { leave::leave(context, NextCall { at, number: libc::SYS_restart_syscall as usize }) };
    }
    // A signal that has come meanwhile ends the call, as its handler is about to run. One that is ignored does not.
    let pending = kernel::pending() & !leave::mask(context);
    if pending != 0 && kernel::effective(pending) != 0 {
        return;
    }
    if let Continuation::RepeatWithRest { at, parts } = continuation
        && !shorten(at, parts, kernel::now_ns().saturating_sub(begun))
    {
        return;
    }
    assert_internal!(
        code(at + SYSCALL.len()).is_none_or(|code| code[BEFORE - SYSCALL.len()..BEFORE] == SYSCALL),
        "a call is made again by its own instruction"
    );
    context.uc_mcontext.gregs[libc::REG_RIP as usize] = at as i64;
    context.uc_mcontext.gregs[libc::REG_RAX as usize] = number;
}

/// Subtracts the time of a stop, ns, from the time that is left. False: the kernel cannot have written there.
fn shorten(at: usize, parts: i64, stop: u64) -> bool {
    if !kernel::is_readable(at) || !kernel::is_readable(at + size_of::<i64>()) {
        return false;
    }
    let place = at as *mut [i64; 2];
    // SAFETY: `kernel::is_readable` has shown that both words can be read.
    let [seconds, part] = unsafe { place.read() };
    // Another thread of the program may have written there meanwhile.
    if seconds < 0 || !(0..parts).contains(&part) {
        return false;
    }
    // SAFETY: what is there was read, and is written again.
    if unsafe { !kernel::is_time_writable(at) } {
        return false;
    }
    let off = i64::try_from(stop).unwrap_or(i64::MAX) / (NANOS / parts);
    let in_parts = |seconds: i64, part: i64| i128::from(seconds) * i128::from(parts) + i128::from(part);
    let left = in_parts(seconds, part);
    let (mut seconds, mut part) = (seconds - off / parts, part - off % parts);
    if part < 0 {
        (seconds, part) = (seconds - 1, part + parts);
    }
    assert_internal!((0..parts).contains(&part) || seconds < 0, "parts of a second are less than one");
    assert_internal!(
        in_parts(seconds, part) == left - i128::from(off),
        "what is left of a time is less by the stop"
    );
    // SAFETY: `kernel::is_time_writable` has shown that both words can be written.
    unsafe { place.write(if seconds < 0 { [0, 0] } else { [seconds, part] }) };
    true
}

/// The instruction at an address, as long as `syscall`, and the bytes before it, if all can be read.
fn code(at: usize) -> Option<[u8; BEFORE + SYSCALL.len()]> {
    let (first, last) = (at.checked_sub(BEFORE)?, at.checked_add(SYSCALL.len() - 1)?);
    if !kernel::is_readable(first & !7) || !kernel::is_readable(last & !7) {
        return None;
    }
    // SAFETY: the words that the ends lie in can be read, and what is between them lies in one of them or in a third
    // on a page of theirs.
    Some(unsafe { (first as *const [u8; BEFORE + SYSCALL.len()]).read_unaligned() })
}

/// The number of the call that the code makes. The C library sets it by the last instruction before the call or by the
/// last but one: `mov $number, %eax`, `mov n(%rsp), %edi`.
fn number(code: [u8; BEFORE + SYSCALL.len()]) -> Option<i64> {
    let before = code.strip_suffix(&SYSCALL)?;
    let before = match before {
        [rest @ .., 0x8b, 0x7c, 0x24, _] => rest,
        rest => rest,
    };
    match before {
        // A prefix makes it another register.
        [.., 0x40..=0x4f, 0xb8, _, _, _, _] => None,
        [.., 0xb8, a, b, c, d] => Some(i64::from(i32::from_le_bytes([*a, *b, *c, *d]))),
        _ => None,
    }
}

/// How a call continues that has ended with `EINTR`; `None`: it does not.
fn continuation(number: i64, arguments: [usize; 6]) -> Option<Continuation> {
    let [_, second, third, fourth, fifth, sixth] = arguments;
    let repeat_if = |may: bool| may.then_some(Continuation::Repeat);
    let rest = |at: usize, parts: i64| {
        if at == 0 { Continuation::Repeat } else { Continuation::RepeatWithRest { at, parts } }
    };
    match number {
        libc::SYS_nanosleep | libc::SYS_poll => Some(Continuation::KernelRestart),
        libc::SYS_clock_nanosleep if second & libc::TIMER_ABSTIME as usize != 0 => Some(Continuation::Repeat),
        libc::SYS_clock_nanosleep => Some(Continuation::KernelRestart),
        libc::SYS_futex => match (second & FUTEX_COMMAND) as i32 {
            libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET if fourth != 0 => Some(Continuation::KernelRestart),
            _ => None,
        },
        libc::SYS_select => Some(rest(fifth, MICROS)),
        libc::SYS_pselect6 if sixth == 0 || has_no_mask(sixth) => Some(rest(fifth, NANOS)),
        libc::SYS_ppoll if fourth == 0 => Some(rest(third, NANOS)),
        libc::SYS_epoll_wait => repeat_if((fourth as i32) < 0),
        libc::SYS_epoll_pwait => repeat_if((fourth as i32) < 0 && fifth == 0),
        SYS_EPOLL_PWAIT2 => repeat_if(fourth == 0 && fifth == 0),
        libc::SYS_rt_sigtimedwait => repeat_if(third == 0),
        libc::SYS_semop | libc::SYS_msgrcv | libc::SYS_msgsnd | libc::SYS_pause => Some(Continuation::Repeat),
        libc::SYS_semtimedop => repeat_if(fourth == 0),
        libc::SYS_io_getevents => repeat_if(fifth == 0),
        _ => None,
    }
}

/// Whether the sixth argument of `pselect6`, an address and a length, has no mask.
fn has_no_mask(address: usize) -> bool {
    // SAFETY: `is_readable` has shown that the word can be read.
    kernel::is_readable(address) && unsafe { (address as *const usize).read() } == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code before and with `syscall`, its end.
    fn code_of(end: &[u8]) -> [u8; BEFORE + SYSCALL.len()] {
        let mut code = [0x90; BEFORE + SYSCALL.len()];
        let at = code.len() - end.len();
        code[at..].copy_from_slice(end);
        code
    }

    #[test]
    fn the_number_of_a_call_is_seen_where_the_c_library_sets_it() {
        let number = |end: &[u8]| number(code_of(end));
        assert_eq!(number(&[0xb8, 0xe6, 0, 0, 0, 0x0f, 0x05]), Some(libc::SYS_clock_nanosleep));
        assert_eq!(
            number(&[0xb8, 0x0e, 0x01, 0, 0, 0x8b, 0x7c, 0x24, 0x1c, 0x0f, 0x05]),
            Some(libc::SYS_pselect6)
        );
        // Into r8d; from another register; no call.
        assert_eq!(number(&[0x41, 0xb8, 7, 0, 0, 0, 0x0f, 0x05]), None);
        assert_eq!(number(&[0x48, 0x89, 0xf8, 0x0f, 0x05]), None);
        assert_eq!(number(&[0xb8, 7, 0, 0, 0, 0x0f, 0x34]), None);
    }

    #[test]
    fn calls_with_a_mask_or_with_an_unknown_rest_are_left_alone() {
        let none = [0, 0];
        let masked = [&raw const none as usize, 8];
        let (no_mask, mask) = (none, masked);
        let pselect =
            |mask: &[usize; 2]| continuation(libc::SYS_pselect6, [0, 0, 0, 0, 0, mask.as_ptr() as usize]);
        assert_eq!((pselect(&no_mask), pselect(&mask)), (Some(Continuation::Repeat), None));
        assert_eq!(
            continuation(libc::SYS_ppoll, [0, 0, 64, 0, 8, 0]),
            Some(Continuation::RepeatWithRest { at: 64, parts: NANOS })
        );
        assert_eq!(continuation(libc::SYS_ppoll, [0, 0, 64, 1, 8, 0]), None);
        assert_eq!(
            continuation(libc::SYS_epoll_wait, [0, 0, 0, 0xffff_ffff, 0, 0]),
            Some(Continuation::Repeat)
        );
        assert_eq!(continuation(libc::SYS_epoll_wait, [0, 0, 0, 1000, 0, 0]), None);
        assert_eq!(continuation(libc::SYS_rt_sigsuspend, [0; 6]), None);
        assert_eq!(continuation(libc::SYS_recvfrom, [0; 6]), None);
        let wait = (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as usize;
        assert_eq!(continuation(libc::SYS_futex, [0, wait, 0, 64, 0, 0]), Some(Continuation::KernelRestart));
        assert_eq!(continuation(libc::SYS_futex, [0, wait, 0, 0, 0, 0]), None);
    }

    #[test]
    fn a_stop_is_taken_off_what_is_left_and_no_more_than_that() {
        let mut time = [5_i64, 100];
        let at = &raw mut time as usize;
        assert!(shorten(at, NANOS, 2_000_000_200));
        assert_eq!(time, [2, 999_999_900]);
        assert!(shorten(at, NANOS, u64::MAX));
        assert_eq!(time, [0, 0]);
        time = [1, 500_000];
        assert!(shorten(at, MICROS, 750_000_000));
        assert_eq!(time, [0, 750_000]);
        static FIXED: [i64; 2] = [7, 8];
        assert!(!shorten(FIXED.as_ptr() as usize, NANOS, 1), "what cannot be written was not");
        assert!(!shorten(8, NANOS, 1));
        for mut not_a_time in [[-1, 0], [1, -1], [1, NANOS]] {
            let before = not_a_time;
            assert!(!shorten(&raw mut not_a_time as usize, NANOS, 1));
            assert_eq!(not_a_time, before);
        }
    }
}
