//! `heaptoll-papers`: the managers of the papers compared with the papers' tables, program by program, with a verdict
//! in sentences computed from the figures.

mod all;
mod cfrac;
mod counting;
mod error;
mod expansion;
mod installation;
mod instructions;
mod judgement;
mod published;
mod result_table;
mod search;
mod stand_ins;
mod timing;
mod verdict;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use error::Error;
use stand_ins::Design;

/// Compare the managers of the papers with the papers' tables.
///
/// Exit status: 0 all well; 1 a program failed under a manager, and its row is missing, or cfrac's CPU time is above
/// the limit under a manager whose design is no reason for it; 2 the table could not be made.
#[derive(Debug, Parser)]
#[command(name = "heaptoll-papers", version)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
struct Arguments {
    /// List the managers of the papers, what they stand for, and whether they are built here
    #[arg(long)]
    list: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Instructions per malloc and per free, and what an uncontended lock adds (Detlefs, Dosser, Zorn 1994, Tables IV,
    /// V)
    Instructions(instructions::Options),
    /// Most memory held from the system over most bytes live (the same paper, Table X)
    Expansion(expansion::Options),
    /// CPU time of cfrac over glibc's, with intervals, and whether it is within the limit
    Cfrac(cfrac::Options),
    /// All three in turn
    All(all::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Some(Command::Instructions(options)) => instructions::run(&options),
        Some(Command::Expansion(options)) => expansion::run(&options),
        Some(Command::Cfrac(options)) => cfrac::run(&options),
        Some(Command::All(options)) => all::run(&options),
        None => list(),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("heaptoll-papers: {error}");
            ExitCode::from(2)
        }
    }
}

/// The managers of the papers, by name.
fn list() -> Result<bool, Error> {
    let missing = installation::Installation::open(std::time::Duration::ZERO, None)?.not_built();
    for stand_in in &stand_ins::ALL {
        let built = if missing.contains(&stand_in.name) { "not built" } else { "built" };
        let stands_for =
            stand_in.detlefs.map_or(String::new(), |column| format!("{column} of Detlefs et al."));
        let design = match stand_in.design {
            Design::Lists => "",
            Design::Searches(_) => "searches for a fit",
            Design::NeverReuses => "frees nothing",
        };
        println!("{:10} {built:10} {design:19} {stands_for}", stand_in.name);
    }
    Ok(true)
}
