//! What layers cost: a malloc/free pair through a layer against the same pair without, in nanoseconds and in exact
//! instructions, beside the targets.

mod pair;

use std::process::ExitCode;

use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use heaptoll_lab::manager;
use heaptoll_lab::places::Places;

use crate::pair::{BenchError, Pair, Stack};

/// Measure what a malloc/free pair costs through the forwarding layer and through a quarantine of 1 B.
///
/// A figure is the shortest time of a pair over many short slices, in runs that take turns: what other processes take is
/// left out by that, as far as it can be. Instructions are Valgrind's (callgrind), exact, where it is installed.
///
/// Exit status: 0 measured, whether or not the targets are met; 2 nothing could be measured.
#[derive(Debug, Parser)]
#[command(name = "heaptoll-layers", version)]
struct Cli {
    /// Managers by name or path, or a group of them
    #[arg(value_name = "MANAGER", default_values_t = ["glibc", "mimalloc3", "tcmalloc"].map(String::from))]
    managers: Vec<String>,
    /// Rounds
    #[arg(short, default_value_t = 7)]
    n: usize,
    /// Size of the blocks, bytes
    #[arg(long, default_value_t = 24)]
    bytes: usize,
    /// Print Markdown
    #[arg(long)]
    markdown: bool,
}

/// At most so much over none, ns a pair.
const FORWARD_TARGET: f64 = 3.0;
/// At most so much over forwarding, ns a pair.
const QUARANTINE_TARGET: f64 = 6.0;
const LAYERS: [&str; 3] = ["", "forward/", "quarantine=1B/"];

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("heaptoll-layers: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<(), BenchError> {
    let places = Places::find()?;
    let known = manager::known(&places)?;
    let pair = Pair::build(cli.bytes)?;
    let mut table = Table::new();
    table.load_style(if cli.markdown { presets::ASCII_MARKDOWN } else { presets::UTF8_FULL_CONDENSED });
    table.set_header([
        "manager",
        "none ns",
        "forward ns",
        "over none",
        "quarantine 1B ns",
        "over forward",
        "instructions: none",
        "forward",
        "quarantine 1B",
    ]);
    let mut missed = Vec::new();
    for base in manager::choose(&known, cli.managers.iter().map(String::as_str))? {
        let stacks: Vec<Stack> = LAYERS
            .iter()
            .map(|layer| Ok(Stack::of(&manager::find(&known, &format!("{layer}{}", base.name))?, &places)))
            .collect::<Result<_, BenchError>>()?;
        let mut best = [f64::INFINITY; LAYERS.len()];
        for _ in 0..cli.n {
            for (best, stack) in best.iter_mut().zip(&stacks) {
                *best = best.min(pair.time_ns(stack)?);
            }
        }
        let [none, forward, quarantine] = best;
        let mut cells = vec![
            base.name.clone(),
            format!("{none:.1}"),
            format!("{forward:.1}"),
            format!("{:+.1}", forward - none),
            format!("{quarantine:.1}"),
            format!("{:+.1}", quarantine - forward),
        ];
        for stack in &stacks {
            cells.push(pair.instructions(stack)?.map_or("no valgrind".into(), |count| format!("{count:.0}")));
        }
        table.add_row(cells);
        if forward - none > FORWARD_TARGET {
            missed.push(format!("{}: forward over none {:.1} ns", base.name, forward - none));
        }
        if quarantine - forward > QUARANTINE_TARGET {
            missed.push(format!("{}: quarantine 1B over forward {:.1} ns", base.name, quarantine - forward));
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    let outcome = if missed.is_empty() { "met".into() } else { format!("MISSED: {}", missed.join("; ")) };
    println!(
        "targets: forward over none at most {FORWARD_TARGET} ns a pair, quarantine 1B over forward at most {QUARANTINE_TARGET}: {outcome}"
    );
    Ok(())
}
