//! The start of a command: its pipes, the fork, the tracer's hold on it, and the outcome of its exec.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use super::output::Output;
use super::pipe::{pipe, read, set_nonblocking};
use super::requests;
use super::tracer::Tracer;
use crate::child::{Child, GO, GO_WATCHED, UNWATCHED};
use crate::plan::Plan;
use crate::refusal::Refusal;

/// Starts the plan's command, up to and with its exec.
pub fn start<'a>(plan: &'a Plan<'a>) -> Result<Tracer<'a>, Refusal> {
    let (stdout, child_stdout) = pipe()?;
    let (stderr, child_stderr) = pipe()?;
    let (child_go, go) = pipe()?;
    let (failure, child_failure) = pipe()?;
    let stdin = standard_input(plan)?;
    let child =
        Child::prepare(plan, stdin.as_raw_fd(), &child_stdout, &child_stderr, &child_go, &child_failure)
            .map_err(|_| refused(plan, "an argument or the environment contains a NUL byte".to_owned()))?;
    let root = fork(&child)?;
    drop((child_stdout, child_stderr, child_go, child_failure, stdin));
    let traced = plan.trace && requests::seize(root);
    let tracer = Tracer::new(plan, root, traced, Output::new(stdout, stderr));
    // Without a tracer the filtered calls would fail.
    let signal = if tracer.processes.effects.is_some() { GO_WATCHED } else { GO };
    // SAFETY: `signal` is a live local of one byte; `go` owns an open descriptor.
    unsafe { libc::write(go.as_raw_fd(), (&raw const signal).cast(), 1) };
    drop(go);
    executed(plan, tracer, &failure)
}

fn standard_input(plan: &Plan<'_>) -> Result<File, Refusal> {
    let path = plan.stdin.clone().unwrap_or_else(|| PathBuf::from("/dev/null"));
    File::open(&path).map_err(|e| refused(plan, format!("{}: {e}", path.display())))
}

fn refused(plan: &Plan<'_>, reason: String) -> Refusal {
    Refusal::CannotStart { program: plan.program.display().to_string(), reason }
}

/// Forks `child`, which waits for its tracer before it becomes the program; its process id.
fn fork(child: &Child) -> Result<i32, Refusal> {
    // SAFETY: the child calls only `become_program`: async-signal-safe functions on memory that `Child::prepare`
    // filled before.
    let root = unsafe { libc::fork() };
    if root == 0 {
        child.become_program();
    }
    if root < 0 {
        return Err(Refusal::system("fork", &io::Error::last_os_error()));
    }
    Ok(root)
}

/// Waits for the outcome of the exec, which closes `failure` when it succeeds. The exec itself may stop for the tracer,
/// so events have to be served meanwhile.
fn executed<'a>(plan: &Plan<'_>, mut tracer: Tracer<'a>, failure: &OwnedFd) -> Result<Tracer<'a>, Refusal> {
    set_nonblocking(failure);
    loop {
        let mut code = [0u8; 4];
        match read(failure, &mut code) {
            Some(0) => return Ok(tracer),
            Some(1) if code[0] == UNWATCHED => {
                tracer.processes.effects = None;
                continue;
            }
            Some(4) => {
                tracer.processes.kill_all();
                tracer.processes.reap();
                let error = io::Error::from_raw_os_error(i32::from_ne_bytes(code));
                return Err(refused(plan, error.to_string()));
            }
            _ => {}
        }
        if !tracer.processes.serve() {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}
