//! The program's threads and roots, as `heaptoll-roots` finds them.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use heaptoll_floor::Message;
use heaptoll_roots::{StopError, World};

use crate::{Abandoned, Mutators, Visitor};

/// How long the program is waited for, ms.
const PATIENCE_MS: u32 = 2000;

/// Whether it was said that a collection was given up.
static SAID: AtomicBool = AtomicBool::new(false);

fn say(why: &str, thread: Option<&[u8]>) {
    if SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    let mut line = Message::new().text("a collection was given up, and the heap grows instead: ").text(why);
    if let Some(name) = thread {
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        line = line.text(core::str::from_utf8(&name[..length]).unwrap_or("?"));
    }
    line.text(" (said once)").write();
}

impl Mutators for World {
    fn start(&'static self) {
        World::start(self, None, PATIENCE_MS);
    }

    fn hold(&self, left_out: &[Range<usize>], visitor: &mut dyn Visitor) -> Result<(), Abandoned> {
        let stopped = match self.stop() {
            Ok(stopped) => stopped,
            Err(refused) => {
                match refused {
                    StopError::Thread(one) => say("this thread did not stop: ", Some(&one.name)),
                    StopError::NoMemory => say("there is no memory for a list of the threads", None),
                    StopError::ProcUnreadable => {
                        say("/proc/self/task cannot be read; is /proc mounted?", None)
                    }
                    StopError::NoSignal => say("no signal is left to stop threads with", None),
                    // A child of vfork, about to become another program.
                    StopError::NotOurProcess => {}
                }
                return Err(Abandoned);
            }
        };
        if stopped.roots(left_out, &mut |root| visitor.root(root)).is_err() {
            drop(stopped);
            say("/proc/self/maps cannot be read; is /proc mounted?", None);
            return Err(Abandoned);
        }
        visitor.finish();
        Ok(())
    }

    fn after_fork_in_child(&self) {
        World::after_fork_in_child(self);
    }
}
