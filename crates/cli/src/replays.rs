//! What replays share: of traces under managers, and of graphs under collectors.

use std::time::Duration;

use clap::Args;
use heaptoll_report::format::shell_command;
use heaptoll_runs::findings::Ending;
use heaptoll_runs::preparation::repeat_command::repeating;
use heaptoll_trace_reports::replay::Touch;

use crate::documents::DocumentOutputs;
use crate::duration::positive_seconds;
use crate::memory::MemoryArguments;
use crate::one_of::Word;
use crate::outputs::own_arguments;
use crate::{exit, terminal};

/// Accesses to blocks in addition to the calls.
pub const TOUCHES: [Word<Touch>; 3] = [
    ("none", Touch::None, "Nothing"),
    ("write", Touch::Write, "Write each in full when it is allocated"),
    ("all", Touch::All, "Also read and compare each before it is freed"),
];

/// The arguments of both.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// Runs under each manager; below 6 no difference can be claimed
    #[arg(short = 'n', long = "repetitions", value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    /// Seed of all random choices [default: from the clock, printed]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Seconds after which a run is ended and marked
    #[arg(long, value_name = "T", default_value_t = 600.0, allow_negative_numbers = true, value_parser = positive_seconds)]
    timeout: f64,
    #[command(flatten)]
    pub memory: MemoryArguments,
    #[command(flatten)]
    pub outputs: DocumentOutputs,
}

impl ReplayArguments {
    /// How long a run may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout)
    }
}

/// The exit status of a replay.
pub fn status(complete: bool, has_trouble: bool, code: u8) -> u8 {
    if !complete {
        terminal::note("interrupted: the tables show the runs until then");
    }
    exit::of_runs(Ending::of(complete, has_trouble), code)
}

/// The command that repeats it.
pub fn again(seed: u64) -> String {
    shell_command(&repeating(own_arguments(), Some(seed)))
}
