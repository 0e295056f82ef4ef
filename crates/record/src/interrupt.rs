//! What the user asks for while a program is being recorded, by signals to heaptoll.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};

/// Shared between whoever catches signals and the recorder, which looks at it every few milliseconds.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    asked: AtomicU32,
    forward: AtomicI32,
}

impl Interrupt {
    /// Ctrl-C, and what else a terminal sends to all that it runs. The first time the program has got it too and decides
    /// what it does; the recording goes on until it ends. The second time the recording stops, and the program goes on
    /// without it.
    pub fn ask(&self) {
        self.0.asked.fetch_add(1, Relaxed);
    }

    /// A signal that was meant for the program and reached heaptoll alone, as `kill` sends it: it is passed on. It
    /// counts as asked for, too.
    pub fn pass_on(&self, signal: i32) {
        self.0.forward.store(signal, Relaxed);
        self.ask();
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> u32 {
        self.0.asked.load(Relaxed)
    }

    /// A signal to pass on, once.
    pub(crate) fn take_signal(&self) -> Option<i32> {
        match self.0.forward.swap(0, Relaxed) {
            0 => None,
            signal => Some(signal),
        }
    }
}
