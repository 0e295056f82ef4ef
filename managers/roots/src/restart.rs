//! System calls go on after a stop.
//!
//! The kernel restarts most calls that a handler has interrupted, but not those that wait for a time or for several
//! things (signal(7)): these end with `EINTR`, and a program that has no handlers does not expect it. The handler of
//! the stop sees from the interrupted registers that a call has just ended so, and from the instructions before which
//! one. There are two ways to go on:
//!
//! - The call is made again: its arguments say all that there is to say (no time, the time of a clock, or what is left,
//!   which the kernel writes there).
//! - The kernel has kept the rest: `restart_syscall`, see [`leave`].
//!
//! A signal of the program's that came during the stop ends the call as ever. Calls that wait with a mask of their own
//! are left alone, since they are made to be interrupted: had a handler run just before the stop, a second call would
//! wait for ever. So are those of which nobody knows how much time is left.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::kernel;
use crate::leave::{self, Call};

/// `syscall`, by which the C library and everybody else calls the kernel.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// So many bytes of instructions are looked at before the one that was interrupted.
const BEFORE: usize = 12;
const FUTEX_COMMAND: usize = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as usize;
const SYS_EPOLL_PWAIT2: i64 = 441;

/// How an interrupted call goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It is made again.
    Again,
    /// The kernel has kept its end.
    Kept,
}

/// Whether the kernel goes on with calls that a handler has interrupted.
static KEEPS: AtomicBool = AtomicBool::new(false);

/// Finds out whether the kernel has `restart_syscall`: an emulator may not. `send` has the calling thread handle the
/// signal of the stop, after which there is nothing to go on with.
pub fn learn(send: impl FnOnce() -> bool) {
    // SAFETY: nothing to go on with: the call ends with EINTR.
    let keeps = send()
        && unsafe { kernel::call(libc::SYS_restart_syscall, [0; 6]) } == Err(kernel::Error(libc::EINTR));
    KEEPS.store(keeps, Ordering::Relaxed);
}

/// Has the call that was interrupted go on, if there is one and it can. The last thing that the handler does: it may not
/// return.
///
/// # Safety
/// The context is that of a handler which is running, blocks all signals, and owns nothing that needs to be dropped.
pub unsafe fn go_on(context: &mut libc::ucontext_t) {
    // SAFETY: the caller's.
    unsafe { leave::resume(context) };
    let registers = &context.uc_mcontext.gregs;
    let register = |register: libc::c_int| registers[register as usize];
    let (at, result) = (register(libc::REG_RIP) as usize, register(libc::REG_RAX));
    if result == libc::SYS_restart_syscall && code(at).is_some_and(|code| code[BEFORE..] == SYSCALL) {
        // A second stop before the first has gone on; or the kernel restarts a call by itself.
        // SAFETY: the caller's.
        return unsafe { leave::leave(context, Call { at, number: result as usize }) };
    }
    // `syscall` leaves the address of the next instruction there.
    if result != -i64::from(libc::EINTR) || register(libc::REG_RCX) as usize != at {
        return;
    }
    let at = at.wrapping_sub(SYSCALL.len());
    let Some(number) = code(at).and_then(number) else { return };
    let arguments = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9]
        .map(register);
    match way(number, arguments.map(|argument| argument as usize)) {
        // SAFETY: the caller's.
        Some(Way::Kept) if KEEPS.load(Ordering::Relaxed) => unsafe {
            leave::leave(context, Call { at, number: libc::SYS_restart_syscall as usize });
        },
        Some(Way::Again) if kernel::pending() & !leave::mask(context) == 0 => {
            context.uc_mcontext.gregs[libc::REG_RIP as usize] = at as i64;
            context.uc_mcontext.gregs[libc::REG_RAX as usize] = number;
        }
        _ => {}
    }
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

/// How a call goes on that has ended with `EINTR`; `None`: it does not.
fn way(number: i64, arguments: [usize; 6]) -> Option<Way> {
    let [_, second, third, fourth, fifth, sixth] = arguments;
    let again = |may: bool| may.then_some(Way::Again);
    match number {
        libc::SYS_nanosleep | libc::SYS_poll => Some(Way::Kept),
        libc::SYS_clock_nanosleep if second & libc::TIMER_ABSTIME as usize != 0 => Some(Way::Again),
        libc::SYS_clock_nanosleep => Some(Way::Kept),
        libc::SYS_futex => match (second & FUTEX_COMMAND) as i32 {
            libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET if fourth != 0 => Some(Way::Kept),
            _ => None,
        },
        // The kernel writes the time that is left.
        libc::SYS_select => Some(Way::Again),
        libc::SYS_pselect6 => again(sixth == 0 || has_no_mask(sixth)),
        libc::SYS_ppoll => again(fourth == 0),
        libc::SYS_epoll_wait => again((fourth as i32) < 0),
        libc::SYS_epoll_pwait => again((fourth as i32) < 0 && fifth == 0),
        SYS_EPOLL_PWAIT2 => again(fourth == 0 && fifth == 0),
        libc::SYS_rt_sigtimedwait => again(third == 0),
        libc::SYS_semop | libc::SYS_msgrcv | libc::SYS_msgsnd | libc::SYS_pause => Some(Way::Again),
        libc::SYS_semtimedop => again(fourth == 0),
        libc::SYS_io_getevents => again(fifth == 0),
        _ => None,
    }
}

/// Whether the sixth argument of `pselect6`, an address and a length, has no mask.
fn has_no_mask(address: usize) -> bool {
    // SAFETY: it can be read, as words.
    kernel::is_readable(address) && unsafe { (address as *const usize).read() } == 0
}
