//! Plays every strategy of the adversary against memory managers and prints how far each was driven.

use std::path::PathBuf;

use heaptoll_units::size;

use super::game::{Game, GameError, STRATEGIES};
use super::table::{self, Row};
use crate::Error;
use crate::installation::Installation;

/// Drive memory managers to their worst: heap over live bytes, by an adversary that sees the addresses it gets.
///
/// Exit status: 0 all games were played, to the end or until they were stopped; 1 a game failed; 2 none could be
/// played.
#[derive(Debug, clap::Args)]
pub struct Options {
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

/// Refuses parameters that no strategy can be played with, before any is tried.
fn check(options: &Options) -> Result<(), Error> {
    let Options { live, largest, unit, .. } = *options;
    let text = if !unit.is_power_of_two() || unit < 16 {
        format!("--unit is {unit} bytes; give a power of two, 16 or more")
    } else if largest / 2 < unit {
        format!("n is {largest} bytes (-n); give two units of {unit} bytes or more")
    } else if live / 2 < largest {
        format!("M is {live} bytes (-M) and n {largest} (-n); give an M of twice n or more")
    } else {
        return Ok(());
    };
    Err(Error::Unexpected(text))
}

fn bytes(text: &str) -> Result<u64, String> {
    size(text).ok_or_else(|| format!("`{text}` is no number of bytes (such as 64K)"))
}

/// Plays and prints; whether all games were played.
///
/// # Errors
/// No strategy can be played with these parameters, heaptoll is not built, or a manager is not known.
pub fn run(options: &Options) -> Result<bool, Error> {
    check(options)?;
    let installation = Installation::find()?;
    let managers = installation.managers(&options.managers, &[])?;
    let rules = Game {
        program: options.program.clone().unwrap_or_else(|| installation.places.programs().join("robson")),
        live_bytes: options.live,
        largest_bytes: options.largest,
        unit_bytes: options.unit,
        limit_bytes: options.limit,
        seconds: options.seconds,
        environment: vec![],
    };
    let mut rows = vec![];
    for manager in &managers {
        let game = Game { environment: manager.environment.clone(), ..rules.clone() };
        let games = STRATEGIES.map(|strategy| game.play(strategy, manager.object.as_deref())).into();
        rows.push(Row { manager: manager.name.clone(), games });
    }
    println!("{}", table::table(&rows).in_markdown(options.markdown));
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
        eprintln!("heaptoll-bench: {manager}: {error}");
    }
    Ok(failures.is_empty())
}
