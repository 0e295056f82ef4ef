//! The programs of a run: a command line, entries of the catalog, or a server with its load.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use heaptoll_catalog::Size;
use heaptoll_runs::standard_input::StandardInput;
use heaptoll_runs::workload::{Server, Workload};

use crate::one_of::{Word, one_of};

/// Sizes of a catalog program's input.
pub const SIZES: [Word<Size>; 4] = [
    ("tiny", Size::Tiny, "About 10 ms a run, for slow commands; not every program has it"),
    ("quick", Size::Quick, "About 0.1 s a run, to try things out"),
    ("demo", Size::Demo, "About 0.4 s a run"),
    ("full", Size::Full, "1 to 4 s a run, for measuring"),
];

/// Programs to run: of the catalog, or a command.
#[derive(Debug, Args)]
pub struct Programs {
    /// A program of the catalog (`heaptoll programs`), or the file of an entry (`./server.toml`); may be given several times
    #[arg(short, long, value_name = "NAME", conflicts_with = "command")]
    pub program: Vec<String>,
    /// Every program of the catalog that is installed; under the tracer without servers
    #[arg(long, conflicts_with = "command")]
    pub all: bool,
    /// The installed programs of a set (`heaptoll programs` names the sets); under the tracer without servers
    #[arg(long, value_name = "NAME", conflicts_with_all = ["command", "all"])]
    pub set: Option<String>,
    /// Input size of catalog programs [default: full; under the tracer demo]
    #[arg(long, value_name = "SIZE", value_parser = one_of(&SIZES))]
    pub size: Option<Size>,
    /// Same as --size quick
    #[arg(long, conflicts_with = "size")]
    pub quick: bool,
    /// A folder with your own catalog entries (docs/reference/program-format.md)
    #[arg(long, value_name = "DIR")]
    pub catalog: Option<PathBuf>,
    /// Standard input of the command [default: heaptoll's own; a pipe is kept for all runs]
    #[arg(long, value_name = "FILE", requires = "command")]
    pub stdin: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl Programs {
    /// The programs, as the library takes them; inputs are of this size where none was named.
    pub fn workload(&self, usual: Size) -> Workload {
        Workload {
            program: self.program.clone(),
            all: self.all,
            set: self.set.clone(),
            size: if self.quick { Size::Quick } else { self.size.unwrap_or(usual) },
            catalog: self.catalog.clone(),
            stdin: StandardInput::file_or_own(self.stdin.clone()),
            ..Workload::of_command(&self.command)
        }
    }
}

/// Programs to run, or a server with its load.
#[derive(Debug, Args)]
pub struct WorkloadArgs {
    #[command(flatten)]
    programs: Programs,
    #[command(flatten)]
    server: ServerArgs,
}

/// A server with its load.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// A server to measure, as one shell-quoted string; {tmp} is a new folder for each round, in the load too
    /// ({{tmp}} for the word itself)
    #[arg(long, value_name = "COMMAND", requires = "load", requires = "ready",
        conflicts_with_all = ["program", "all", "set", "command"])]
    pub serve: Option<String>,
    /// The command that loads the server; it runs to its end
    #[arg(long, value_name = "COMMAND", requires = "serve")]
    pub load: Option<String>,
    /// The server is ready if a line of its output matches this
    #[arg(long, value_name = "REGEX", requires = "serve")]
    pub ready: Option<String>,
    /// Figures in the load's own report: named groups, e.g. '(?P<requests_per_s>[\d.]+) requests per second'
    #[arg(long, value_name = "REGEX", requires = "serve")]
    pub figures: Option<String>,
    /// Signal that stops the server cleanly
    #[arg(long, value_name = "SIGNAL", default_value = "TERM")]
    pub stop: String,
}

impl WorkloadArgs {
    /// The programs, as the library takes them.
    pub fn workload(&self) -> Workload {
        Workload {
            serve: self.server.serve.as_ref().map(|command| Server {
                command: command.clone(),
                load: self.server.load.clone(),
                ready: self.server.ready.clone(),
                figures: self.server.figures.clone(),
                stop: self.server.stop.clone(),
            }),
            ..self.programs.workload(Size::Full)
        }
    }
}
