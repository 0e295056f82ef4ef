//! `heaptoll __smoke`: what `heaptoll managers add` starts with a new manager preloaded; it is not listed in the help.

use std::path::PathBuf;

use clap::Args;
use heaptoll::entry::Command;
use heaptoll::exit;
use heaptoll_command::failure::Failure;
use heaptoll_preflight::smoke::Expected;

/// Allocate in every way and check that OBJECT serves the calls.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The preloaded object
    object: PathBuf,
    /// Do not test calloc with a product that overflows
    #[arg(long)]
    no_overflow: bool,
    /// Operators of C++ may be the C++ library's
    #[arg(long)]
    library_operators: bool,
}

impl Command for Arguments {
    const NAME: &'static str = heaptoll_preflight::smoke::WORD;

    /// What does not hold goes to standard error as it is, which the caller reports.
    fn run(arguments: &Self) -> Result<u8, Failure> {
        let expected = Expected { overflow: !arguments.no_overflow, operators: !arguments.library_operators };
        match heaptoll_preflight::smoke::run(&arguments.object, expected) {
            Ok(()) => Ok(0),
            Err(problem) => {
                eprintln!("{problem}");
                Ok(exit::TROUBLE)
            }
        }
    }
}
