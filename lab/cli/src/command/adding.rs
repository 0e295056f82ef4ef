//! `heaptoll programs add` and `heaptoll managers add`: the product lists what there is, and the laboratory adds to it.

use clap::{ArgMatches, FromArgMatches};
use heaptoll::command::{managers, programs};
use heaptoll::entry::Command;
use heaptoll::messages::TerminalMessages;
use heaptoll::{exit, terminal};
use heaptoll_command::failure::Failure;
use heaptoll_experiment::places::Places;
use heaptoll_laboratory::{added_managers, originals};

/// What was matched, as the arguments of a command of the product.
pub fn read<C: FromArgMatches>(matches: &ArgMatches) -> Result<C, Failure> {
    C::from_arg_matches(matches).map_err(|error| Failure::Refused(Box::new(error)))
}

/// The product's `programs`, which adds some, too.
pub fn programs(matches: &ArgMatches, _: &dyn Fn() -> clap::Command) -> Result<u8, Failure> {
    let arguments: programs::Arguments = read(matches)?;
    let Some(programs::Action::Add(added)) = arguments.action else { return Command::run(&arguments) };
    let request =
        originals::OriginalsRequest { recipe: added.recipe, from: added.from, sha256: added.sha256 };
    let report = originals::fetch_and_build(&request, &Places::find()?, &TerminalMessages::default())?;
    if report.is_empty() {
        return Ok(exit::REFUSED);
    }
    terminal::print(&format!("added to {}\n", report.folder.display()))?;
    Ok(if report.is_whole() { 0 } else { exit::TROUBLE })
}

/// The product's `managers`, which adds some, too.
pub fn managers(matches: &ArgMatches, _: &dyn Fn() -> clap::Command) -> Result<u8, Failure> {
    let arguments: managers::Arguments = read(matches)?;
    let Some(managers::Action::Add(added)) = arguments.action else { return Command::run(&arguments) };
    let request = added_managers::AddedManagersRequest { recipe: added.recipe, from: added.from };
    let report = added_managers::fetch_and_build(&request, &Places::find()?, &TerminalMessages::default())?;
    let names: Vec<&str> = report.names().collect();
    if names.is_empty() {
        return Ok(exit::REFUSED);
    }
    terminal::print(&format!("added to {}: {}\n", report.folder.display(), names.join(", ")))?;
    Ok(if report.is_whole() { 0 } else { exit::TROUBLE })
}
