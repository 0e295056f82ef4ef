//! `heaptoll exact instructions`: what malloc and free cost, exactly, in instructions.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::callgrind_file;
use heaptoll_command::failure::Failure;
use heaptoll_traced::instructions::{self, ExactInstructionsRequest};

use crate::documents::DocumentOutputs;
use crate::entry::{Command, writes};
use crate::exit;
use crate::session::Session;
use crate::terminal;
use crate::traced_arguments::TracedArguments;

/// What malloc and free cost in instructions: exact figures that repeat, even on a noisy machine.
///
/// The program runs unchanged under each manager and a tracer that counts every instruction, load and store. The
/// tracer knows where malloc and its relatives begin and end. The tables show instructions per malloc, free and
/// object, their share of all, percentiles by size, and the largest heap. They are Tables IV to VII and X of Detlefs,
/// Dosser & Zorn (1994) and Table 2 of Zorn (1992). docs/questions/instructions.md explains how each is counted.
///
/// The program's own instructions must be equal under every manager; heaptoll checks this and reports differences.
///
/// Exit status: 0 all well; 1 a run failed or is incomplete, or an output file could not be written; 2 bad request;
/// 130 interrupted (finished runs are shown).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll exact instructions -m historic -- gawk -f words.awk words\n  \
    heaptoll exact instructions -m mimalloc3 -m ./libmine.so --html costs.html -p cfrac -p perl\n  \
    heaptoll exact instructions -n 2 -- ./prog        (do two runs agree?)")]
pub struct Arguments {
    #[command(flatten)]
    traced: TracedArguments,
    /// Run each program N times under each manager, and show whether the runs agree
    #[arg(short = 'n', long, alias = "repeat", value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,
    /// Write callgrind.out.PROGRAM.MANAGER files into a folder, for KCachegrind and callgrind_annotate
    #[arg(long, value_name = "FOLDER")]
    callgrind: Option<PathBuf>,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

impl Command for Arguments {
    const NAME: &'static str = "exact instructions";
    const FORMER: Option<&'static str> = Some("instructions");
    const FIRST: &'static [&'static str] = &["callgrind"];
    writes!(of: instructions::ExactInstructionsFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        arguments.callgrind.as_deref().map_or(Ok(()), callgrind_file::check)?;
        let session = Session::begin()?;
        let request =
            ExactInstructionsRequest { traced: arguments.traced.request(), repeat: arguments.repetitions };
        let found = instructions::run(&request, &session.context())?;
        let code = arguments.outputs.deliver(&found.document, &found.figures)?;
        if let Some(folder) = &arguments.callgrind {
            for file in instructions::callgrind::files(&found.figures) {
                terminal::note(&format!("wrote {}", file.write(folder)?.display()));
            }
        }
        Ok(exit::of_runs(found.ending, code))
    }
}
