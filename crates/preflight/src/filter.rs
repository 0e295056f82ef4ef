//! The seccomp filter of a proof run: it stops the program for the tracer at the calls that reach beyond the process.
//!
//! The kernel runs the filter at each system call, so that all other calls cost some ns and no stop. Opening a file to
//! read it is one of these. A call of another
//! architecture (32 bit) always stops: it goes unwatched, which is an effect of its own.

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_JUMP, BPF_K, BPF_LD, BPF_RET, BPF_STMT, BPF_W};
use libc::{c_long, sock_filter, sock_fprog};

/// `AUDIT_ARCH_X86_64` of `linux/audit.h`.
const X86_64: u32 = 0xc000_003e;
/// Offsets in the kernel's `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// The value that the filter passes to the tracer with a call of another architecture.
pub const FOREIGN: u16 = 1;

/// Flags with which an open file can change, or come into being.
pub const WRITES: i32 = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;

/// Calls that stop whatever their arguments are.
const ALWAYS: [c_long; 60] = [
    libc::SYS_creat,
    libc::SYS_openat2,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rmdir,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_flock,
    libc::SYS_shmget,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
    libc::SYS_setsid,
    libc::SYS_setpriority,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_alarm,
    libc::SYS_setitimer,
    libc::SYS_timer_settime,
    libc::SYS_timerfd_settime,
    libc::SYS_mknod,
    libc::SYS_mknodat,
    libc::SYS_io_uring_setup,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_chmod,
    libc::SYS_fchmodat,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_fchownat,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_kill,
];

/// Calls that stop when an argument has one of these bits: the call, the argument's place, the bits.
const WITH_BITS: [(c_long, u32, i32); 3] =
    [(libc::SYS_open, 1, WRITES), (libc::SYS_openat, 2, WRITES), (libc::SYS_sendto, 4, -1)];

/// Commands of `fcntl` that lock, for which it stops.
const LOCKS: [i32; 4] = [libc::F_SETLK, libc::F_SETLKW, libc::F_OFD_SETLK, libc::F_OFD_SETLKW];

fn load(offset: u32) -> sock_filter {
    // SAFETY: it builds a value from its arguments and reads no memory.
    unsafe { BPF_STMT((BPF_LD | BPF_W | BPF_ABS) as u16, offset) }
}

fn give(action: u32) -> sock_filter {
    // SAFETY: it builds a value from its arguments and reads no memory.
    unsafe { BPF_STMT((BPF_RET | BPF_K) as u16, action) }
}

/// Skips the next instruction unless the accumulator is the value.
fn when_equal(value: u32) -> sock_filter {
    // SAFETY: it builds a value from its arguments and reads no memory.
    unsafe { BPF_JUMP((BPF_JMP | BPF_JEQ | BPF_K) as u16, value, 0, 1) }
}

/// Skips the next instruction unless the accumulator has one of the bits.
fn when_set(bits: u32) -> sock_filter {
    // SAFETY: it builds a value from its arguments and reads no memory.
    unsafe { BPF_JUMP((BPF_JMP | BPF_JSET | BPF_K) as u16, bits, 0, 1) }
}

/// The filter's instructions, prepared before fork, since the child may not allocate.
pub fn instructions() -> Vec<sock_filter> {
    let stop = || give(libc::SECCOMP_RET_TRACE);
    let pass = || give(libc::SECCOMP_RET_ALLOW);
    // SAFETY: it builds a value from its arguments and reads no memory.
    let native = unsafe { BPF_JUMP((BPF_JMP | BPF_JEQ | BPF_K) as u16, X86_64, 1, 0) };
    let foreign = give(libc::SECCOMP_RET_TRACE | u32::from(FOREIGN));
    let mut code = vec![load(ARCHITECTURE), native, foreign, load(NUMBER)];
    for number in ALWAYS {
        code.extend([when_equal(number as u32), stop()]);
    }
    let mut on_argument = |number: c_long, argument: u32, tests: &[sock_filter]| {
        let body = 2 + 2 * tests.len();
        // SAFETY: it builds a value from its arguments and reads no memory; the bodies are far shorter than the 255
        // instructions that a jump reaches.
        code.push(unsafe { BPF_JUMP((BPF_JMP | BPF_JEQ | BPF_K) as u16, number as u32, 0, body as u8) });
        code.push(load(ARGUMENTS + 8 * argument));
        tests.iter().for_each(|test| code.extend([*test, stop()]));
        code.push(pass());
    };
    for (number, argument, bits) in WITH_BITS {
        on_argument(number, argument, &[when_set(bits as u32)]);
    }
    on_argument(libc::SYS_fcntl, 1, &LOCKS.map(|command| when_equal(command as u32)));
    code.push(pass());
    code
}

/// Installs the filter in this process, which may do nothing but what is async-signal-safe; false when the kernel
/// rejects it. Without privilege the kernel requires `no_new_privs`, which takes nothing away: a traced process gains
/// no privilege from a set-user-id file either.
pub fn install(code: &[sock_filter]) -> bool {
    let program = sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() };
    // SAFETY: the instructions live until the call returns; the kernel only reads them.
    let set = || unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) == 0
    };
    // SAFETY: PR_SET_NO_NEW_PRIVS takes plain numbers.
    set() || unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } == 0 && set()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filter's verdict, by a small interpreter of the instructions used here.
    fn answer(number: c_long, arguments: [u64; 6]) -> u32 {
        let mut data = [0u8; 64];
        data[0..4].copy_from_slice(&(number as u32).to_le_bytes());
        data[4..8].copy_from_slice(&X86_64.to_le_bytes());
        for (place, argument) in arguments.iter().enumerate() {
            data[16 + 8 * place..][..8].copy_from_slice(&argument.to_le_bytes());
        }
        let code = instructions();
        let (mut at, mut accumulator) = (0, 0u32);
        loop {
            let one = code[at];
            at += 1;
            let jump = |holds: bool| usize::from(if holds { one.jt } else { one.jf });
            match u32::from(one.code) {
                c if c == BPF_LD | BPF_W | BPF_ABS => {
                    let from = one.k as usize;
                    accumulator = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
                }
                c if c == BPF_JMP | BPF_JEQ | BPF_K => at += jump(accumulator == one.k),
                c if c == BPF_JMP | BPF_JSET | BPF_K => at += jump(accumulator & one.k != 0),
                c if c == BPF_RET | BPF_K => return one.k,
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    #[test]
    fn the_filter_stops_writing_opens_and_locks_and_lets_the_rest_run() {
        let stops = |number, arguments| answer(number, arguments) == libc::SECCOMP_RET_TRACE;
        let open = |flags: i32| stops(libc::SYS_openat, [0, 0, flags as u64, 0, 0, 0]);
        assert!(!open(libc::O_RDONLY | libc::O_CLOEXEC) && open(libc::O_RDWR) && open(libc::O_CREAT));
        assert!(stops(libc::SYS_open, [0, libc::O_WRONLY as u64, 0, 0, 0, 0]));
        assert!(!stops(libc::SYS_open, [0, 0, libc::O_WRONLY as u64, 0, 0, 0]), "the mode is no flag");
        let fcntl = |command: i32| stops(libc::SYS_fcntl, [0, command as u64, 0, 0, 0, 0]);
        assert!(LOCKS.into_iter().all(fcntl) && !fcntl(libc::F_GETFL) && !fcntl(libc::F_SETFD));
        for number in ALWAYS {
            assert!(stops(number, [0; 6]), "{number}");
        }
        for number in [libc::SYS_read, libc::SYS_mmap, libc::SYS_brk, libc::SYS_futex, libc::SYS_execve] {
            assert!(!stops(number, [0; 6]), "{number}");
        }
    }
}
