//! The command line of `agreement`, which each of its comparisons reads too.

use std::path::PathBuf;

use crate::exact::setup::Choice;

/// The command line of `agreement`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub(super) choice: Choice,
    /// Only instructions, against callgrind
    #[arg(long, conflicts_with = "caches")]
    pub(super) instructions: bool,
    /// Only cache misses, against cachegrind
    #[arg(long)]
    pub(super) caches: bool,
    /// Let programs and managers see the real clock: work that depends on the time then depends on the tool
    #[arg(long)]
    pub(super) real_clock: bool,
    /// Folder of the tracer [default: the installation's]; one built by `make -C tracer ALIKE=yes OUT=DIR BUILD=DIR` gives
    /// programs the addresses that they have under Valgrind's own tools
    #[arg(long, value_name = "DIR")]
    pub(super) tracer: Option<PathBuf>,
    /// Bind functions at their first call, as programs do, and not at the start
    #[arg(long)]
    pub(super) lazy: bool,
    /// Per cent that a figure may be off
    #[arg(long, value_name = "PERCENT", default_value_t = 0.01)]
    pub(super) tolerance: f64,
}
