//! The program's threads and roots, as `heaptoll-roots` finds them.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use heaptoll_roots::{NoMemory, RootKinds, RootsError, StopError, World};
use heaptoll_runtime::{Message, SignalMaskGuard};

use crate::{Aborted, Mutators, Visitor};

/// How long a stop waits for the program's threads, ms.
const PATIENCE_MS: u32 = 2000;

const NO_DESCRIPTOR: &str = "no file descriptor is free to read /proc/self with";

/// Whether an aborted collection was reported.
static REPORTED: AtomicBool = AtomicBool::new(false);

fn report_once(why: &str, thread: Option<&[u8]>) {
    if REPORTED.swap(true, Ordering::Relaxed) {
        return;
    }
    let mut line = Message::new().text("a collection was aborted, and the heap grows instead: ").text(why);
    if let Some(name) = thread {
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        line = line.text(core::str::from_utf8(&name[..length]).unwrap_or("?"));
    }
    line.text(" (reported once)").write();
}

impl Mutators for World {
    fn start(&'static self) {
        World::start(self, None, PATIENCE_MS);
    }

    fn with_world_stopped(
        &self,
        left_out: &[Range<usize>],
        visitor: &mut dyn Visitor,
    ) -> Result<(), Aborted> {
        let shown =
            self.on_own_stack(&SignalMaskGuard::all_but(&[]), || stop_and_show(self, left_out, visitor));
        shown.unwrap_or_else(|NoMemory| {
            report_once("there is no memory for the stack of a collection", None);
            Err(Aborted)
        })
    }

    fn after_fork_in_child(&self) {
        World::after_fork_in_child(self);
    }
}

/// See [`Mutators::with_world_stopped`].
fn stop_and_show(world: &World, left_out: &[Range<usize>], visitor: &mut dyn Visitor) -> Result<(), Aborted> {
    let stopped = match world.stop() {
        Ok(stopped) => stopped,
        Err(refused) => {
            match refused {
                StopError::Thread(one) => report_once("this thread did not stop: ", Some(&one.name)),
                StopError::NoMemory => report_once("there is no memory for a list of the threads", None),
                StopError::NoDescriptor => report_once(NO_DESCRIPTOR, None),
                StopError::ProcUnreadable => {
                    report_once("/proc/self/task cannot be read; is /proc mounted?", None)
                }
                StopError::NoSignal => report_once("no signal is left to stop threads with", None),
                // A child of vfork, about to become another program.
                StopError::NotOurProcess => {}
            }
            return Err(Aborted);
        }
    };
    if let Err(failed) = stopped.roots(RootKinds::ALL, left_out, &mut |root| visitor.root(root)) {
        drop(stopped);
        report_once(
            match failed {
                RootsError::NoDescriptor => NO_DESCRIPTOR,
                RootsError::NoMemory => "there is no memory for a list of the mappings",
                RootsError::Maps => "/proc/self/maps cannot be read; is /proc mounted?",
            },
            None,
        );
        return Err(Aborted);
    }
    visitor.finish();
    Ok(())
}
