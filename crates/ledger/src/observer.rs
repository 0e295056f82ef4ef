//! Looks at a live process.

use std::path::PathBuf;

use crate::block::Blocks;
use crate::census::Census;
use crate::error::LedgerError;
use crate::moment::Moment;

/// What is known of the process before the first look.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Manager, by name: `glibc`, `tithe`, ...
    pub manager: String,
    /// Whether it is a collector.
    pub collector: bool,
    /// The recorder's shared file, which is mapped in the process.
    pub rings: Option<PathBuf>,
}

/// Looks at one process, again and again: it remembers where blocks have been.
#[derive(Debug)]
pub struct Observer {
    pid: i32,
    options: Options,
}

impl Observer {
    /// An observer of process `pid`. Nothing is read yet. A new image (exec) wants a new observer.
    pub fn new(pid: i32, options: Options) -> Observer {
        Observer { pid, options }
    }

    /// The ledger now. The program's allocating threads should be paused and all that they said drained, so that
    /// `blocks` are the live ones.
    ///
    /// # Errors
    /// The process has ended, or its memory map cannot be read.
    pub fn observe(
        &mut self,
        _time_ns: u64,
        _clock_bytes: u64,
        _blocks: &dyn Blocks,
        _census: Option<Census>,
    ) -> Result<Moment, LedgerError> {
        let _ = &self.options;
        Err(LedgerError::Ended { pid: self.pid })
    }
}
