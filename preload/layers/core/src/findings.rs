//! Defects of the program that a layer finds: a line of each on standard error, up to a bound, and the end of the
//! process where the settings require it.

use core::fmt::Write;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use heaptoll_next::stderr_line::StderrLine;

/// Lines at most; what comes after is counted only.
const LINES: u32 = 100;

/// What a layer has found: a static of it.
pub struct Findings {
    emitted: AtomicU32,
    silent: AtomicBool,
    aborts: AtomicBool,
}

impl Default for Findings {
    fn default() -> Findings {
        Findings::new()
    }
}

impl Findings {
    pub const fn new() -> Findings {
        Findings {
            emitted: AtomicU32::new(0),
            silent: AtomicBool::new(false),
            aborts: AtomicBool::new(false),
        }
    }

    /// Sets whether findings are written, and whether the first ends the process, which is written in any case.
    pub fn configure(&self, written: bool, aborts: bool) {
        self.silent.store(!written && !aborts, Relaxed);
        self.aborts.store(aborts, Relaxed);
    }

    /// Whether the first ends the process.
    pub fn aborts(&self) -> bool {
        self.aborts.load(Relaxed)
    }

    /// Reports one.
    pub fn emit(&self, line: StderrLine) {
        if self.silent.load(Relaxed) {
            return;
        }
        match self.emitted.fetch_add(1, Relaxed) {
            emitted if emitted < LINES => line.write_out(),
            LINES => {
                let mut line = StderrLine::new();
                let _ = write!(line, "{LINES} such blocks have been reported; further ones are counted only");
                line.write_out();
            }
            _ => {}
        }
        if self.aborts() {
            // SAFETY: `abort` takes no pointers and does not return.
            unsafe { libc::abort() };
        }
    }
}
