//! Plays every strategy of the adversary against memory managers and prints how far each was driven.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use heaptoll_bench::adversary::table::{self, Row};
use heaptoll_bench::adversary::{Game, GameError, STRATEGIES};
use heaptoll_experiment::manager::{self, Manager, ManagerError};
use heaptoll_experiment::places::{Places, PlacesError};
use heaptoll_units::size;
use thiserror::Error;

/// Drive memory managers to their worst: heap over live bytes, by an adversary that sees the addresses it gets.
///
/// Exit status: 0 all games were played, to the end or until they were stopped; 1 a game failed; 2 none could be
/// played.
#[derive(Debug, Parser)]
#[command(name = "heaptoll-adversary", version)]
struct Cli {
    /// Managers by name or path, or a group of them: modern, historic, collectors, all
    #[arg(value_name = "MANAGER", default_value = "all")]
    managers: Vec<String>,
    /// Bytes that may be live at once, M (K, M, G)
    #[arg(short = 'M', long = "live", default_value = "1M", value_parser = bytes)]
    live: u64,
    /// Bytes of the largest block, n (K, M, G)
    #[arg(short = 'n', long = "largest", default_value = "16K", value_parser = bytes)]
    largest: u64,
    /// Bytes of the smallest block, a power of two
    #[arg(long, default_value = "64", value_parser = bytes)]
    unit: u64,
    /// Bytes of addresses used at which a game stops
    #[arg(long, default_value = "1G", value_parser = bytes)]
    limit: u64,
    /// Seconds after which a game stops
    #[arg(long, default_value_t = 300.0)]
    seconds: f64,
    /// The adversary's binary, if it is not the installed one
    #[arg(long)]
    program: Option<PathBuf>,
    /// Print Markdown
    #[arg(long)]
    markdown: bool,
}

/// Why no game was played.
#[derive(Debug, Error)]
enum Error {
    #[error(transparent)]
    Places(#[from] PlacesError),
    #[error(transparent)]
    Manager(#[from] ManagerError),
    #[error("--unit is {unit} bytes; give a power of two, 16 or more")]
    Unit { unit: u64 },
    #[error("n is {largest} bytes (-n); give two units of {unit} bytes or more")]
    Largest { largest: u64, unit: u64 },
    #[error("M is {live} bytes (-M) and n {largest} (-n); give an M of twice n or more")]
    Live { live: u64, largest: u64 },
}

/// Refuses parameters that no strategy can be played with, before any is tried.
fn check(cli: &Cli) -> Result<(), Error> {
    let Cli { live, largest, unit, .. } = *cli;
    if !unit.is_power_of_two() || unit < 16 {
        return Err(Error::Unit { unit });
    }
    if largest / 2 < unit {
        return Err(Error::Largest { largest, unit });
    }
    if live / 2 < largest {
        return Err(Error::Live { live, largest });
    }
    Ok(())
}

fn bytes(text: &str) -> Result<u64, String> {
    size(text).ok_or_else(|| format!("`{text}` is no number of bytes (such as 64K)"))
}

fn managers(cli: &Cli, places: &Places) -> Result<Vec<Manager>, Error> {
    let known = manager::known(places)?;
    Ok(manager::choose(&known, cli.managers.iter().map(String::as_str))?)
}

fn run(cli: &Cli) -> Result<bool, Error> {
    check(cli)?;
    let places = Places::find()?;
    let managers = managers(cli, &places)?;
    let rules = Game {
        program: cli.program.clone().unwrap_or_else(|| places.programs().join("robson")),
        live_bytes: cli.live,
        largest_bytes: cli.largest,
        unit_bytes: cli.unit,
        limit_bytes: cli.limit,
        seconds: cli.seconds,
        environment: vec![],
    };
    let mut rows = vec![];
    for manager in &managers {
        let game = Game { environment: manager.environment.clone(), ..rules.clone() };
        let games = STRATEGIES.map(|strategy| game.play(strategy, manager.object.as_deref())).into();
        rows.push(Row { manager: manager.name.clone(), games });
    }
    print!("{}", if cli.markdown { table::markdown(&rows) } else { table::terminal(&rows) + "\n" });
    println!(
        "\nThe heap's high-water mark over the most requested bytes that were live; of the worst game also over live \
         bytes with\nheaders and rounding, and the addresses that were ever in a block over the same."
    );
    if let Some(outcome) = rows.iter().flat_map(|row| row.games.iter().flatten()).next() {
        let (m, n) = (outcome.live_units(), outcome.largest_units());
        println!("M = {m}, n = {n} units of {} bytes. Proved, for these M and n:\n", outcome.unit_bytes);
        print!("{}", table::bounds(m, n));
    }
    let stopped = rows.iter().flat_map(|row| row.games.iter().flatten().map(|game| (&row.manager, game)));
    for (manager, outcome) in stopped.filter(|(_, outcome)| !outcome.stopped.is_empty()) {
        println!("+ {manager}, {}: stopped {}", outcome.strategy, outcome.stopped);
    }
    let failures: Vec<(&String, &GameError)> = rows
        .iter()
        .flat_map(|row| row.games.iter().filter_map(|game| Some((&row.manager, game.as_ref().err()?))))
        .collect();
    for (manager, error) in &failures {
        eprintln!("heaptoll-adversary: {manager}: {error}");
    }
    Ok(failures.is_empty())
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("heaptoll-adversary: {error}");
            ExitCode::from(2)
        }
    }
}
