//! `heaptoll gate`: two builds, one verdict.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_gate::figures::{Figures, Verdict};

use crate::documents::DocumentOutputs;
use crate::entry::{Command, writes};
use crate::gate_outputs::GateOutputs;
use crate::gate_programs::ProgramArguments;
use crate::protocol_arguments::Seeded;
use crate::session::Session;
use crate::{exit, terminal};

/// A limit is broken.
const BROKEN: u8 = 1;

/// Did this change cost something? Two builds, one verdict.
///
/// The verdict covers time, instructions and memory. Both builds run paired, in lockstep if possible. A tracer counts
/// instructions, allocation calls, bytes and live bytes exactly. A limit is broken only if the whole interval of a
/// change lies beyond it, and kept only if none of it does. The interval of a count is 3 times what two runs of the
/// base differ by, to each side. Nothing is preloaded into timed and traced runs, so static programs and programs with
/// their own allocator work too.
///
/// Programs and limits come from the command line, or from heaptoll.toml in the current folder
/// (docs/questions/gate.md). An entry: [gate.parse] with command = "./app in.xml" (or base = and new =) and limits =
/// { instructions = "0.5%", cpu = "3%" }. `heaptoll lab shards plan gate` cuts a gate into shards for many machines;
/// --merged decides over them (docs/lab/cluster.md).
///
/// Exit status: 0 within limits; 1 a limit is broken, or only the new build fails; 2 it could not be run; 3
/// undecided, with --strict; 130 interrupted. With --bisect, 125 replaces 2 and 3, and any undecided limit gives 125.
#[derive(Debug, Args)]
#[command(mut_arg("expect_status", |arg| arg.help("Exit status of a good run [default: 0, or the file's]")))]
#[command(after_help = "Examples:\n  heaptoll gate --base ./old --new ./new -- in.xml\n  \
    heaptoll gate --base-cmd './app --fast in.xml' --new-cmd './app --small in.xml' --outputs-differ\n  \
    heaptoll gate --base-ref main --build 'make -j' --command './app in.xml'\n  \
    heaptoll gate --new-manager mimalloc3 -- ./app in.xml         (two managers)\n  \
    heaptoll gate --base ./old --new ./new --limit live=2% --limit cpu=none -- in.xml\n  \
    git bisect run heaptoll gate --bisect --limit cpu=none --base-ref v1.0 --build 'make -j' --command './app in.xml'")]
pub struct Arguments {
    #[command(flatten)]
    programs: ProgramArguments,
    #[command(flatten)]
    seeded: Seeded,
    /// Decide over merged shards of `heaptoll lab shards plan gate`; nothing runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ProgramArguments", "seed", "Limits"])]
    merged: Option<PathBuf>,
    /// An undecided limit fails too, with exit status 3
    #[arg(long)]
    strict: bool,
    /// Exit with 125 when undecided, for `git bisect run`
    #[arg(long)]
    bisect: bool,
    #[command(flatten)]
    outputs: DocumentOutputs,
    #[command(flatten)]
    gate_outputs: GateOutputs,
}

impl Command for Arguments {
    const NAME: &'static str = "gate";
    const FIRST: &'static [&'static str] = &["base", "new", "command", "base_ref", "limit", "strict"];
    writes!(of: Figures);

    /// What fails before there is a verdict is printed here, for its exit status is the gate's own.
    fn run(arguments: &Self) -> Result<u8, Failure> {
        let code = match gated(arguments) {
            Ok(code) => code,
            Err(failure) => {
                terminal::error(&failure.to_string());
                match exit::code(&failure) {
                    exit::INTERRUPTED => exit::INTERRUPTED,
                    _ => exit::REFUSED,
                }
            }
        };
        Ok(if arguments.bisect { of_bisect(code) } else { code })
    }
}

fn gated(arguments: &Arguments) -> Result<u8, Failure> {
    let found = match &arguments.merged {
        Some(path) => heaptoll_gate::sharded::decide(path)?,
        None => {
            let request = arguments.programs.request(&arguments.seeded, 1)?;
            heaptoll_gate::run(&request, &Session::begin()?.context())?
        }
    };
    let document = found.document();
    let written = arguments.gate_outputs.write(&found.figures, &document, arguments.strict);
    let code = status(&found.figures, arguments.strict || arguments.bisect);
    let delivered = arguments.outputs.deliver(&document, &found.figures);
    // What could not be written leaves no good verdict, and does not take a bad one back.
    match delivered {
        Err(failure) if code == 0 => Err(failure),
        Err(failure) => {
            terminal::error(&failure.to_string());
            Ok(code)
        }
        Ok(delivered) if code == 0 && (delivered != 0 || !written) => Ok(exit::REFUSED),
        Ok(_) => Ok(code),
    }
}

fn status(figures: &Figures, strict: bool) -> u8 {
    match figures.verdict {
        _ if !figures.complete => exit::INTERRUPTED,
        Verdict::Broken => BROKEN,
        _ if !figures.refused.is_empty() => exit::REFUSED,
        Verdict::Undecided if strict => exit::UNDECIDED,
        Verdict::Undecided | Verdict::Within => 0,
    }
}

fn of_bisect(code: u8) -> u8 {
    match code {
        // `git bisect run` ends at 128 and above, as Ctrl-C wants it.
        0 | BROKEN | exit::INTERRUPTED => code,
        _ => exit::SKIPPED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bisect_skips_all_that_is_neither_good_nor_bad() {
        assert_eq!([0, 1, 2, 3, 130].map(of_bisect), [0, 1, 125, 125, 130]);
    }
}
