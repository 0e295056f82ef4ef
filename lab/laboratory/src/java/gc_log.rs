//! The unified log that HotSpot writes of its collections (JEP 158, `-Xlog:gc*`), read for what a comparison needs: which
//! collector ran, in how large a heap, when it stopped the program, and how full the heap was.
//!
//! Only logs with the decorations `timenanos,level,tags` are read. `timenanos` is `System.nanoTime()`, which on Linux is
//! `CLOCK_MONOTONIC`: the clock of heaptoll's own events, so that requests and pauses need no conversion.

mod error;
mod line;
mod log;

pub use error::GcLogError;
pub use log::{Collector, GcLog, HeapChange, Pause};
