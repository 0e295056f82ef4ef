//! Is what `heaptoll choose` chooses as good as the best of a full search, and how many runs does it save? The price of the
//! difference is of fresh runs, so that neither search's luck is in it.

mod measure;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use heaptoll_catalog::Size;
use heaptoll_command::context::{Context, Silent};
use heaptoll_command::own_input::OwnInput;
use heaptoll_compare::choose::{Preference, REPETITIONS};
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::places::Places;
use heaptoll_units::percent;
use heaptoll_units::text_table::Table;

use self::measure::{Effort, Measured, again, measure};
use crate::Error;

/// The programs of the table of peers, and a server.
const PROGRAMS: [&str; 10] =
    ["cfrac", "espresso", "gawk", "ghostscript", "lua", "make", "perl", "python", "sqlite", "redis"];
/// A loss of more than this share is to be excluded, and of servers, whose runs vary more.
const LOSS: f64 = 0.02;
const SERVERS_LOSS: f64 = 0.10;
/// Of the full search's runs the search is to take this share.
const SHARE: f64 = 0.1;

/// What is wanted.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Wanted {
    Time,
    Memory,
    Balance,
}

/// Compare the choice of `heaptoll choose` with the best of a full search.
///
/// A full search runs all candidates in as many repetitions as the fresh runs of a choice. Choice and best then run
/// afresh, together; the loss is the weighted mean of the logarithms of both ratios, as `choose` weighs them. Where its
/// interval does not decide, there are twice as many fresh runs, and twice as many again.
///
/// Exit status: 0 measured, whether or not the targets are met; 1 a program could not be; 2 nothing could be.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Programs of the catalog [default: the nine of the table of peers, and redis]
    #[arg(short, long = "program", value_name = "PROGRAM")]
    programs: Vec<String>,
    /// Managers to choose from, with their settings [default: those of `heaptoll choose`]
    #[arg(short, long = "manager", value_name = "MANAGER")]
    managers: Vec<String>,
    /// Size of the programs' inputs
    #[arg(long, value_name = "SIZE", default_value = "quick")]
    size: Size,
    /// What is wanted
    #[arg(long, value_enum, value_name = "WHAT", default_value = "balance")]
    prefer: Wanted,
    /// Repetitions of the fresh runs of a choice, and of the full search
    #[arg(short = 'n', long, value_name = "N", default_value_t = REPETITIONS, value_parser = clap::value_parser!(u32).range(6..=1000))]
    repetitions: u32,
    /// Repetitions of the fresh runs of the choice against the best
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(6..=1000))]
    fresh: u32,
    /// Seed of the order
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Append the figures to this file, a line of JSON a program
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Read the figures in this file, and repeat the fresh runs where a larger loss than the target was not excluded
    #[arg(long, value_name = "FILE", conflicts_with_all = ["programs", "json"])]
    again: Option<PathBuf>,
}

/// Measures and prints; whether all programs could be measured.
///
/// # Errors
/// heaptoll is not built, or earlier figures cannot be read.
pub fn run(options: &Options) -> Result<bool, Error> {
    let places = Places::find()?;
    let interrupt = Interrupt::default();
    let context = Context {
        places: &places,
        interrupt: &interrupt,
        own_input: &OwnInput::default(),
        messages: &Silent,
    };
    let effort = |program: &str| Effort {
        target: target(program),
        size: options.size,
        repetitions: options.repetitions,
        fresh: options.fresh,
        preference: match options.prefer {
            Wanted::Time => Preference::Time,
            Wanted::Memory => Preference::Memory,
            Wanted::Balance => Preference::Balance,
        },
        seed: options.seed,
        managers: options.managers.clone(),
    };
    if let Some(path) = &options.again {
        let found = undecided_again(path, &effort, &context)?;
        println!("{}\n{}", table(&found), verdict(&found));
        return Ok(true);
    }
    let programs: Vec<&str> = match options.programs.is_empty() {
        true => PROGRAMS.to_vec(),
        false => options.programs.iter().map(String::as_str).collect(),
    };
    let (mut found, mut failed) = (Vec::new(), 0);
    for program in programs {
        eprintln!("{program}: choice, full search, fresh runs of both");
        match measure(program, &effort(program), &context) {
            Ok(measured) => {
                if let Some(path) = &options.json {
                    append(path, &measured)?;
                }
                found.push(measured);
            }
            Err(error) => {
                eprintln!("{program}: {error}");
                failed += 1;
            }
        }
    }
    println!("{}", table(&found));
    println!("{}", verdict(&found));
    Ok(failed == 0)
}

/// The figures of a file, with new fresh runs where they did not decide.
fn undecided_again(
    path: &Path,
    effort: &dyn Fn(&str) -> Effort,
    context: &Context,
) -> Result<Vec<Measured>, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::file("read", path))?;
    let one = |line: &str| -> Result<Measured, Error> {
        let before: Measured = serde_json::from_str(line)
            .map_err(|error| Error::failed(format!("cannot read figures from {}", path.display()), error))?;
        match before.loss_at_most() > target(&before.program) {
            true => again(&before, &effort(&before.program), context),
            false => Ok(before),
        }
    };
    text.lines().map(one).collect()
}

/// One line of JSON at the end of a file: what was measured is kept when a later program fails.
fn append(path: &Path, measured: &Measured) -> Result<(), Error> {
    use std::io::Write;
    let line = serde_json::to_string(measured)?;
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| writeln!(file, "{line}")).map_err(Error::file("write", path))
}

fn table(found: &[Measured]) -> Table {
    let headings = ["program", "choice", "best of the full search", "loss", "runs", "of", "share"];
    let row = |one: &Measured| {
        let loss = match &one.loss {
            None if one.choice == one.best => "0, the same".into(),
            None => "not compared".into(),
            Some(loss) => {
                let off = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
                format!("{} ({} to {})", off(loss.ratio), off(loss.low), off(loss.high))
            }
        };
        vec![
            one.program.clone(),
            one.choice.clone(),
            one.best.clone(),
            loss,
            one.search_runs.to_string(),
            one.full_runs.to_string(),
            percent(one.share()),
        ]
    };
    crate::table::table(&headings, 3, found.iter().map(row))
}

/// The most that a choice may lose.
fn target(program: &str) -> f64 {
    if program == "redis" { SERVERS_LOSS } else { LOSS }
}

fn verdict(found: &[Measured]) -> String {
    let missed: Vec<String> = found
        .iter()
        .filter(|one| one.loss_at_most() > target(&one.program))
        .map(|one| match &one.loss {
            Some(loss) if loss.low > 1.0 + target(&one.program) => format!("{}: a larger loss", one.program),
            _ => format!("{}: a larger loss is not excluded", one.program),
        })
        .collect();
    let share = found.iter().map(Measured::share).fold(0.0, f64::max);
    format!(
        "targets: a loss of more than {} (redis {}) excluded: {}; a tenth of the runs: {} (at most {})",
        percent(LOSS),
        percent(SERVERS_LOSS),
        if missed.is_empty() {
            format!("met on all {}", found.len())
        } else {
            format!("MISSED: {}", missed.join("; "))
        },
        if share <= SHARE + 1e-9 { "met" } else { "MISSED" },
        percent(share)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_statistics::Interval;

    fn measured(program: &str, loss: Option<(f64, f64)>) -> Measured {
        Measured {
            program: program.into(),
            choice: if loss.is_some() { "one" } else { "best" }.into(),
            best: "best".into(),
            candidates: 30,
            search_runs: 62,
            full_runs: 620,
            loss: loss.map(|(low, high)| Interval {
                ratio: (low * high).sqrt(),
                low,
                high,
                differs: low > 1.0 || high < 1.0,
                pairs: 30,
            }),
        }
    }

    #[test]
    fn a_verdict_names_losses_and_what_is_not_excluded() {
        let met = [
            measured("cfrac", None),
            measured("lua", Some((0.99, 1.015))),
            measured("redis", Some((0.95, 1.09))),
        ];
        assert!(verdict(&met).contains("met on all 3") && verdict(&met).contains("a tenth of the runs: met"));
        let missed = [measured("cfrac", Some((1.03, 1.05))), measured("lua", Some((0.97, 1.03)))];
        let text = verdict(&missed);
        assert!(
            text.contains("cfrac: a larger loss;") && text.contains("lua: a larger loss is not excluded"),
            "{text}"
        );
        assert_eq!(table(&missed).to_string().lines().count(), 4);
    }
}
