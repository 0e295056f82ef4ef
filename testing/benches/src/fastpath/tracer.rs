//! One run of the stepped program under ptrace.

use std::collections::HashSet;
use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::Path as FilePath;
use std::process::{Child, Command, Stdio};

use thiserror::Error;

/// The function stepped through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `malloc`
    Malloc,
    /// `free`
    Free,
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Operation::Malloc => "malloc",
            Operation::Free => "free",
        })
    }
}

/// An instruction's location: the object's file and the offset in it, as `objdump -d` counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeLocation {
    /// File name of the object, or the address where there is none.
    pub object: String,
    /// Offset from where the object is loaded.
    pub offset: u64,
}

impl fmt::Display for CodeLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}+{:#x}", self.object, self.offset)
    }
}

/// The path from a call to its return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The function called.
    pub operation: Operation,
    /// Size of the block, bytes.
    pub bytes: usize,
    /// Whether a second thread slept meanwhile.
    pub threads: bool,
    /// Instructions executed, the return among them.
    pub instructions: u64,
    /// Bytes of stack used, the return address apart.
    pub stack_bytes: u64,
    /// Instructions that were executed again, each once: loops, `rep` prefixes too.
    pub loops: Vec<CodeLocation>,
    /// Calls, each as often as it was made, and to where.
    pub calls: Vec<(CodeLocation, CodeLocation)>,
    /// System calls made.
    pub system_calls: u64,
}

/// Why there is no path.
#[derive(Debug, Error)]
pub enum StepError {
    /// ptrace, or the program, could not be started.
    #[error(
        "{what}: {reason}; stepping needs ptrace of one's own children (in a container: --cap-add SYS_PTRACE)"
    )]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's error.
        reason: String,
    },
    /// The program ended before the last step.
    #[error("the stepped program ended early ({how}): the manager failed in it")]
    Ended {
        /// How.
        how: String,
    },
    /// A call that does not come to an end.
    #[error("{operation} of {bytes} bytes: no return after {steps} instructions")]
    Endless {
        /// The function.
        operation: Operation,
        /// Size of the block.
        bytes: usize,
        /// Steps taken.
        steps: u64,
    },
}

/// No path is as long: a manager that requests memory from the system takes some ten thousand.
const MOST_STEPS: u64 = 2_000_000;
/// The longest x86-64 instruction, bytes.
const LONGEST: u64 = 15;
/// How often the program does it with each size.
const ROUNDS: usize = 3;

/// Steps three times through malloc and free of each size under a manager, `None` being the C library's, with its
/// variables set; in that order.
///
/// # Errors
/// No ptrace, or a program that does not come to its end.
pub fn paths(
    program: &FilePath,
    object: Option<&FilePath>,
    environment: &[(String, String)],
    sizes: &[usize],
    threads: bool,
) -> Result<Vec<Path>, StepError> {
    let mut tracee = Tracee::start(program, object, environment, sizes, threads)?;
    let mut paths = vec![];
    for &bytes in sizes {
        for operation in [Operation::Malloc, Operation::Free].repeat(ROUNDS) {
            tracee.run_to_breakpoint()?;
            paths.push(tracee.step_through(operation, bytes, threads)?);
            tracee.run_to_breakpoint()?;
        }
    }
    tracee.finish()?;
    Ok(paths)
}

struct Tracee {
    child: Child,
    pid: libc::pid_t,
}

fn system(what: &'static str) -> StepError {
    StepError::System { what, reason: std::io::Error::last_os_error().to_string() }
}

impl Tracee {
    fn start(
        program: &FilePath,
        object: Option<&FilePath>,
        environment: &[(String, String)],
        sizes: &[usize],
        threads: bool,
    ) -> Result<Tracee, StepError> {
        let mut command = Command::new(program);
        if threads {
            command.arg("asleep");
        }
        command.args(sizes.iter().map(usize::to_string)).stdin(Stdio::null()).env_remove("LD_PRELOAD");
        if let Some(object) = object {
            command.env("LD_PRELOAD", object).envs(environment.iter().cloned());
        }
        // SAFETY: between fork and exec only `ptrace` is called, which is async-signal-safe as a bare system call and
        // takes no pointers here.
        unsafe {
            command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
        let child = command
            .spawn()
            .map_err(|error| StepError::System { what: "the stepped program", reason: error.to_string() })?;
        let pid = child.id() as libc::pid_t;
        let tracee = Tracee { child, pid };
        tracee.wait()?; // exec
        // SAFETY: `tracee.wait` above has seen the tracee stop; the options are a number, and no memory of ours is
        // passed.
        if unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, libc::PTRACE_O_EXITKILL) } == -1 {
            return Err(system("ptrace options"));
        }
        Ok(tracee)
    }

    /// Waits until it stops for a breakpoint or a step.
    fn wait(&self) -> Result<(), StepError> {
        let mut status = 0;
        // SAFETY: `waitpid` writes to `status`, a live local, and nowhere else.
        if unsafe { libc::waitpid(self.pid, &raw mut status, 0) } != self.pid {
            return Err(system("waiting for the stepped program"));
        }
        if libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGTRAP {
            return Ok(());
        }
        let how = if libc::WIFEXITED(status) {
            format!("status {}", libc::WEXITSTATUS(status))
        } else if libc::WIFSTOPPED(status) {
            format!("signal {}", libc::WSTOPSIG(status))
        } else {
            format!("killed by signal {}", libc::WTERMSIG(status))
        };
        Err(StepError::Ended { how })
    }

    fn request(&self, request: libc::c_uint, what: &'static str) -> Result<(), StepError> {
        // SAFETY: the tracee is stopped, as `wait` returned last; the requests made here pass no memory of ours.
        if unsafe { libc::ptrace(request, self.pid, 0, 0) } == -1 { Err(system(what)) } else { Ok(()) }
    }

    fn run_to_breakpoint(&mut self) -> Result<(), StepError> {
        self.request(libc::PTRACE_CONT, "continuing the stepped program")?;
        self.wait()
    }

    fn registers(&self) -> Result<libc::user_regs_struct, StepError> {
        let mut registers = std::mem::MaybeUninit::<libc::user_regs_struct>::zeroed();
        // SAFETY: the tracee is stopped, as `wait` returned last; ptrace writes one `user_regs_struct`, the size of
        // `registers`.
        if unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.pid, 0, registers.as_mut_ptr()) } == -1 {
            return Err(system("reading registers"));
        }
        // SAFETY: every bit pattern is a valid `user_regs_struct`, and ptrace has succeeded and filled it.
        Ok(unsafe { registers.assume_init() })
    }

    fn word(&self, address: u64) -> Result<u64, StepError> {
        // SAFETY: the pointer is to this thread's errno, valid while the thread runs. A value of -1 is distinguished
        // from an error by it.
        unsafe { *libc::__errno_location() = 0 };
        // SAFETY: the tracee is stopped, as `wait` returned last; `address` is the tracee's, and an unmapped one is an
        // error of the call.
        let word = unsafe { libc::ptrace(libc::PTRACE_PEEKDATA, self.pid, address, 0) };
        // SAFETY: the pointer is to this thread's errno, valid while the thread runs.
        if word == -1 && unsafe { *libc::__errno_location() } != 0 {
            return Err(system("reading the stepped program's memory"));
        }
        Ok(word as u64)
    }

    fn step(&self) -> Result<libc::user_regs_struct, StepError> {
        self.request(libc::PTRACE_SINGLESTEP, "stepping")?;
        self.wait()?;
        self.registers()
    }

    /// From the breakpoint before a call to the function's return.
    fn step_through(&self, operation: Operation, bytes: usize, threads: bool) -> Result<Path, StepError> {
        let mut now = self.step()?; // the call itself, which is not the function's
        let stack = now.rsp;
        let back = self.word(stack)?;
        let maps = Maps::read(self.pid);
        let mut path = Path {
            operation,
            bytes,
            threads,
            instructions: 0,
            stack_bytes: 0,
            loops: vec![],
            calls: vec![],
            system_calls: 0,
        };
        let (mut seen, mut again) = (HashSet::new(), HashSet::new());
        while now.rip != back || now.rsp != stack + 8 {
            if path.instructions == MOST_STEPS {
                return Err(StepError::Endless { operation, bytes, steps: MOST_STEPS });
            }
            if !seen.insert(now.rip) && again.insert(now.rip) {
                path.loops.push(maps.location(now.rip));
            }
            // `syscall` is 0f 05.
            path.system_calls += u64::from(self.word(now.rip)? & 0xffff == 0x050f);
            let next = self.step()?;
            path.instructions += 1;
            path.stack_bytes = path.stack_bytes.max(stack.saturating_sub(next.rsp));
            // A call leaves the address of the instruction after it on the stack and goes elsewhere.
            let follows = |address: u64| (1..=LONGEST).contains(&address.wrapping_sub(now.rip));
            if next.rsp == now.rsp.wrapping_sub(8) && !follows(next.rip) && follows(self.word(next.rsp)?) {
                path.calls.push((maps.location(now.rip), maps.location(next.rip)));
            }
            now = next;
        }
        Ok(path)
    }

    fn finish(mut self) -> Result<(), StepError> {
        self.request(libc::PTRACE_CONT, "continuing the stepped program")?;
        let status = self
            .child
            .wait()
            .map_err(|error| StepError::System { what: "the stepped program", reason: error.to_string() })?;
        if status.success() { Ok(()) } else { Err(StepError::Ended { how: status.to_string() }) }
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        // It has ended already, or is no longer waited for: an error of either call can be ignored.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The mappings of the stepped program.
struct Maps(Vec<(u64, u64, u64, String)>);

impl Maps {
    fn read(pid: libc::pid_t) -> Maps {
        // Without it, locations are bare addresses.
        let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        Maps(text.lines().filter_map(parse_mapping).collect())
    }

    fn location(&self, address: u64) -> CodeLocation {
        self.0.iter().find(|(start, end, ..)| (*start..*end).contains(&address)).map_or_else(
            || CodeLocation { object: "nowhere".into(), offset: address },
            |(start, _, offset, object)| CodeLocation {
                object: object.clone(),
                offset: address - start + offset,
            },
        )
    }
}

/// Start, end, offset and file name of a line of /proc/PID/maps.
fn parse_mapping(line: &str) -> Option<(u64, u64, u64, String)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let offset = fields.nth(1)?;
    let name = fields.nth(2).unwrap_or("memory");
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((hex(start)?, hex(end)?, hex(offset)?, name.rsplit('/').next().unwrap_or(name).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_file_and_offset() {
        let line = "7f10a000-7f10b000 r-xp 00002000 08:01 1234    /usr/lib/x.so.6";
        let maps = Maps(parse_mapping(line).into_iter().collect());
        assert_eq!(maps.location(0x7f10_a010).to_string(), "x.so.6+0x2010");
        assert_eq!(maps.location(0x10).to_string(), "nowhere+0x10");
    }
}
