//! `heaptoll lab` in the product, which hands it over to the laboratory ([`crate::laboratory`]).

use std::ffi::OsString;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_experiment::extension::require;
use heaptoll_report::format::shell_command;

use crate::entry::Command;
use crate::hints::texts;

/// What the help says of it, with a laboratory and without.
pub const ABOUT: &str = "Papers repeated, collectors and experiments: `heaptoll lab help` lists them";

#[derive(Debug, Args)]
#[command(about = ABOUT, disable_help_flag = true, disable_version_flag = true)]
pub struct Arguments {
    /// A command of the laboratory, with its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl Command for Arguments {
    const NAME: &'static str = "lab";

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let words = [vec!["heaptoll".into(), "lab".into()], texts(&arguments.words)].concat();
        require(&format!("`{}`", shell_command(&words)))?;
        Ok(0)
    }
}
