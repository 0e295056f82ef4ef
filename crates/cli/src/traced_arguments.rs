//! Arguments of a command that traces: programs, managers, limits, and where runs are kept.

use std::path::PathBuf;

use clap::Args;
use heaptoll_catalog::Size;
use heaptoll_runs::preparation::baseline::DEFAULT;
use heaptoll_runs::traced::Request;

use crate::protocol_arguments::Limits;
use crate::workload_args::Programs;

/// [`heaptoll_runs::traced::LIMIT_S`] as an option has it.
pub const LIMIT: &str = "3600";

/// What to run under which managers.
#[derive(Debug, Args)]
#[command(mut_arg("timeout", |arg| arg.default_value(LIMIT)))]
pub struct TracedArguments {
    /// A manager by name (`heaptoll managers`) or path, or a group: modern, historic, collectors, all. Layers go in
    /// front (`quarantine=2M/mimalloc`), options after (`tithe,heap=32M`). May be given several times [default: the
    /// baseline]
    #[arg(short, long, value_name = "MANAGER")]
    pub manager: Vec<String>,
    /// The manager that the others are compared with; run first
    #[arg(long, value_name = "MANAGER", default_value = DEFAULT)]
    pub baseline: String,
    #[command(flatten)]
    limits: Limits,
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
            workload: self.programs.workload(Size::Demo),
            manager: self.manager.clone(),
            baseline: self.baseline.clone(),
            protocol: self.limits.protocol(),
            pin: !self.no_pin,
            is_stored: true,
            db: self.db.clone(),
            allocator_symbols: self.allocator_symbols.clone(),
        }
    }
}
