//! `heaptoll-papers all`: the three tables in turn, for a document that has all of them.

use std::path::PathBuf;

use crate::installation::Choice;
use crate::result_table::Outputs;
use crate::{Error, cfrac, expansion, instructions};

/// What the tables have in common.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub timing: cfrac::Timing,
    #[command(flatten)]
    pub choice: Choice,
    /// Put the tables into a document, each in place of its last one; - prints them in that form
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// Makes the tables, each written before the next is begun, and returns whether all of them are well.
///
/// # Errors
/// A document without their blocks, before anything is measured; an error that prevents a whole table.
pub fn run(options: &Options) -> Result<bool, Error> {
    let Options { timing, choice, markdown } = options;
    let outputs = Outputs { markdown: markdown.clone(), ..Outputs::default() };
    outputs.check(&[instructions::COMMAND, expansion::COMMAND, cfrac::COMMAND])?;
    let owned = |programs: &[&str]| programs.iter().map(|program| (*program).to_owned()).collect();
    let (choice, outputs) = (|| choice.clone(), || outputs.clone());
    let instructions = instructions::run(&instructions::Options {
        programs: owned(&instructions::PROGRAMS),
        choice: choice(),
        outputs: outputs(),
    })?;
    let expansion = expansion::run(&expansion::Options {
        programs: owned(&expansion::PROGRAMS),
        choice: choice(),
        outputs: outputs(),
    })?;
    let cfrac = cfrac::run(&cfrac::Options {
        timing: *timing,
        no_callgrind: false,
        choice: choice(),
        outputs: outputs(),
    })?;
    Ok(instructions && expansion && cfrac)
}
