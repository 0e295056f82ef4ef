//! Arguments of a command that traces: programs, managers, limits, and where runs are kept.

use std::path::PathBuf;

use clap::Args;
use heaptoll_runs::preparation::baseline::DEFAULT;
use heaptoll_runs::traced::{LIMIT_S, Request};

use crate::duration::positive_seconds;
use crate::outputs::own_arguments;
use crate::workload_args::{Programs, SizeArg};

/// What to run under which managers.
#[derive(Debug, Args)]
pub struct TracedArguments {
    /// A manager by name (`heaptoll managers`) or path, or a group: modern, historic, collectors, all. Layers go in
    /// front (`quarantine=2M/mimalloc`), options after (`tithe,heap=32M`). May be given several times [default: the
    /// baseline]
    #[arg(short, long, value_name = "MANAGER")]
    pub manager: Vec<String>,
    /// The manager that the others are compared with; run first
    #[arg(long, value_name = "MANAGER", default_value = DEFAULT)]
    pub baseline: String,
    /// Seconds after which a run is ended; its trace until then is shown and marked
    #[arg(long, value_name = "T", default_value_t = LIMIT_S, allow_negative_numbers = true, value_parser = positive_seconds)]
    pub timeout: f64,
    /// Exit status of a good run
    #[arg(long, value_name = "STATUS", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=255))]
    pub expect_status: i32,
    /// Keep the program's randomness: runs then differ as they do natively
    #[arg(long)]
    pub no_pin: bool,
    /// A file that names further allocators inside programs, besides share/heaptoll/allocator-symbols.toml
    /// (docs/questions/own-allocators.md)
    #[arg(long, value_name = "FILE")]
    pub allocator_symbols: Option<PathBuf>,
    /// File that keeps the runs [default: a new one in $XDG_STATE_HOME/heaptoll]
    #[arg(long, value_name = "FILE")]
    pub db: Option<PathBuf>,
    #[command(flatten)]
    programs: Programs,
}

impl TracedArguments {
    /// What to run, as the library takes it.
    pub fn request(&self) -> Request {
        Request {
            workload: self.programs.workload(SizeArg::Demo),
            manager: self.manager.clone(),
            baseline: self.baseline.clone(),
            timeout_s: self.timeout,
            expect_status: self.expect_status,
            pin: !self.no_pin,
            is_stored: true,
            db: self.db.clone(),
            allocator_symbols: self.allocator_symbols.clone(),
            command: own_arguments(),
        }
    }
}
