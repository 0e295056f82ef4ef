//! A block in lockstep: all stacks of a program at once on one processor.
//!
//! The scheduler slices the processor between them every few milliseconds, so that a noisy neighbour, a slower clock or
//! a busy sibling thread affects all of them alike, and each one's CPU time is its own. They are started by one gate,
//! and one that has ended continues as a filler until the last has ended (`heaptoll-launch`), so that all have the same
//! company throughout. The idea is that of Bulej et al., Duet Benchmarking (2020), who give each of a pair a processor
//! of its own.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use heaptoll_launcher::affinity;

use crate::interrupt::Interrupt;
use crate::launch::{self, Finished, Invocation, LaunchError, Running, Together};

/// Runs the invocations together on one processor and gives how each ended, in their order. Each one's time limit is
/// multiplied by their number, since together they take as long as one after the other. With `by_loop` the filler is a
/// loop, and not the program again: fillers are ended in the middle, and would leave the program's files.
///
/// # Errors
/// A launcher cannot be started, or died.
pub fn run(
    launcher: &Path,
    invocations: Vec<Invocation>,
    by_loop: bool,
    slice: Option<Duration>,
    interrupt: &Interrupt,
) -> Result<Vec<Finished>, LaunchError> {
    let (gate, open) = launch::pipe()?;
    let together = Together { cpu: processor()?, slice, gate: gate.as_raw_fd(), by_loop };
    let share = u32::try_from(invocations.len()).unwrap_or(u32::MAX);
    let mut members: Vec<Running> = Vec::new();
    for invocation in invocations {
        let timeout = invocation.timeout.checked_mul(share).unwrap_or(Duration::MAX);
        let invocation = Invocation { together: Some(together), timeout, ..invocation };
        members.push(launch::start(launcher, &invocation, interrupt)?);
    }
    // All wait at the gate, which opens when its last writing end is closed.
    drop::<OwnedFd>(open);
    let finished: Vec<Result<Finished, LaunchError>> = std::thread::scope(|scope| {
        let finish =
            |member| std::thread::Builder::new().spawn_scoped(scope, move || Running::finish(member));
        let threads: Vec<_> = members.iter_mut().map(finish).collect();
        threads.into_iter().map(|thread| thread?.join().unwrap_or_else(|_| Err(died()))).collect()
    });
    // Only now do the fillers end.
    drop(members);
    finished.into_iter().collect()
}

fn died() -> LaunchError {
    std::io::Error::other("a thread that waited for a program died").into()
}

/// The processor of blocks: the last of those that this process may use, since the first serves most interrupts.
///
/// # Errors
/// The system's: the processors are not known.
pub fn processor() -> std::io::Result<u32> {
    let last = affinity::allowed()?.last().copied();
    last.ok_or_else(|| std::io::Error::other("no processor may be used"))
}
