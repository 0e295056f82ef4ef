//! The requests of ptrace that a tracer makes. One for a thread that is not stopped for this tracer, or was killed
//! meanwhile, fails and changes nothing.

use std::ffi::{c_uint, c_void};
use std::ptr;

/// What the kernel states of a fault: nothing is mapped there, or it may not be accessed so.
const SEGV_MAPERR: i32 = 1;
const SEGV_ACCERR: i32 = 2;

/// Every event of a process tree that the tracer takes; the tree dies with its tracer.
const OPTIONS: i32 = libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_EXITKILL;

/// Begins to trace a process and all that it starts; false when that is not permitted.
pub fn seize(pid: i32) -> bool {
    ptrace(libc::PTRACE_SEIZE, pid, OPTIONS as usize)
}

/// Lets a stopped thread run on, with a signal when it is not 0.
pub fn resume(tid: i32, signal: i32) {
    ptrace(libc::PTRACE_CONT, tid, usize::try_from(signal).unwrap_or(0));
}

/// Leaves a thread stopped, as its process's group is, until the group is continued.
pub fn listen(tid: i32) {
    ptrace(libc::PTRACE_LISTEN, tid, 0);
}

/// What the kernel attaches to the event at which a thread is stopped.
pub fn message(tid: i32) -> Option<libc::c_ulong> {
    let mut value: libc::c_ulong = 0;
    // SAFETY: `value` is a live local of the type that PTRACE_GETEVENTMSG writes.
    let got = unsafe {
        libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, ptr::null_mut::<c_void>(), ptr::from_mut(&mut value))
    };
    (got == 0).then_some(value)
}

/// The registers of a stopped thread.
pub fn registers(tid: i32) -> Option<libc::user_regs_struct> {
    // SAFETY: all zeroes is a valid user_regs_struct, which PTRACE_GETREGS writes to the live local `registers`.
    unsafe {
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        let place = (&raw mut registers).cast::<c_void>();
        (libc::ptrace(libc::PTRACE_GETREGS, tid, ptr::null_mut::<c_void>(), place) == 0).then_some(registers)
    }
}

/// Whether a thread that is stopped by SIGSEGV has accessed what lies next to its stack pointer: only where its stack ends
/// is no memory there.
pub fn faults_next_to_stack_pointer(tid: i32) -> bool {
    // A push or a call accesses what is below; a frame larger than a guard page may reach further.
    const BELOW: u64 = 64 << 10;
    const ABOVE: u64 = 1 << 20;
    // SAFETY: all zeroes is a valid siginfo_t, which PTRACE_GETSIGINFO writes to the live local `info`; SIGSEGV's has an
    // address.
    let address = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let place = (&raw mut info).cast::<c_void>();
        if libc::ptrace(libc::PTRACE_GETSIGINFO, tid, ptr::null_mut::<c_void>(), place) != 0
            || !matches!(info.si_code, SEGV_MAPERR | SEGV_ACCERR)
        {
            return false;
        }
        info.si_addr() as u64
    };
    registers(tid).is_some_and(|registers| {
        let range = registers.rsp.saturating_sub(BELOW)..registers.rsp.saturating_add(ABOVE);
        range.contains(&address)
    })
}

/// A request without an address; false when the kernel rejects it.
fn ptrace(request: c_uint, tid: i32, data: usize) -> bool {
    // SAFETY: for the requests made here, PTRACE_SEIZE, PTRACE_CONT and PTRACE_LISTEN, `data` is a number, so the
    // kernel reads and writes no memory.
    unsafe { libc::ptrace(request, tid, ptr::null_mut::<c_void>(), data as *mut c_void) == 0 }
}
