//! What layers cost: a malloc/free pair through a layer against the same pair without, in nanoseconds and in exact
//! instructions, a pair of marks of a request, and whole programs of the catalog; with the targets.

mod marks;
mod pair;
mod programs;

use self::pair::Pair;
use crate::installation::Installation;
use crate::table::table;
use crate::{Error, Stack};

/// Measure what a malloc/free pair costs through each layer, and what a pair of marks of a request costs.
///
/// A figure is the shortest time of a pair over many short slices, in runs that take turns: what other processes take
/// is left out by that, as far as it can be. So are the collections of `sweep`, of which most slices have none.
/// Instructions are Valgrind's (callgrind), exact, where it is installed.
///
/// Exit status: 0 measured, whether or not the targets are met; 2 nothing could be measured.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Managers by name or path, or a group of them
    #[arg(value_name = "MANAGER", default_values_t = ["glibc", "mimalloc3", "tcmalloc"].map(String::from))]
    managers: Vec<String>,
    /// Rounds
    #[arg(short, default_value_t = 7)]
    n: usize,
    /// Size of the blocks, bytes
    #[arg(long, default_value_t = 24)]
    bytes: usize,
    /// Threads at once in the second table
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,
    /// Print Markdown
    #[arg(long)]
    markdown: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Time of whole programs: forwarding over none, and a quarantine of 1 B over forwarding
    Programs(programs::Effort),
}

/// At most so much over none, ns a pair.
const FORWARD_TARGET: f64 = 3.0;
/// At most so much over forwarding, ns a pair.
const QUARANTINE_TARGET: f64 = 6.0;
const LAYERS: [&str; 5] =
    ["", "forward/", "quarantine=1B/", "sweep,every=4M/", "sweep,every=4M,free=honour/"];
/// Of the first ones instructions are counted.
const COUNTED: usize = 3;

/// Measures and prints.
///
/// # Errors
/// A program or a manager is not there, or fails.
pub fn run(options: &Options) -> Result<(), Error> {
    let installation = Installation::find()?;
    match &options.command {
        Some(Command::Programs(effort)) => programs::run(&installation, effort),
        None => pairs(&installation, options),
    }
}

fn pairs(installation: &Installation, options: &Options) -> Result<(), Error> {
    let pair = Pair::build(options.bytes)?;
    let header = [
        "manager",
        "none ns",
        "forward ns",
        "over none",
        "quarantine 1B ns",
        "over forward",
        "sweep ns",
        "sweep, free=honour ns",
    ];
    let mut alone = table(&header, 1, []).in_markdown(options.markdown);
    let mut together = table(&header, 1, []).in_markdown(options.markdown);
    let mut exact =
        table(&["manager", "none", "forward", "quarantine 1B"], 1, []).in_markdown(options.markdown);
    let mut missed = Vec::new();
    for base in installation.managers(&options.managers, &[])? {
        let stack = |layer: &&str| installation.stack(&format!("{layer}{}", base.name));
        let stacks: Vec<Stack> = LAYERS.iter().map(stack).collect::<Result<_, Error>>()?;
        let one = shortest(&pair, &stacks, options.n, 1)?;
        alone.row(cells(&base.name, one));
        together.row(cells(&base.name, shortest(&pair, &stacks, options.n, options.threads.into())?));
        let mut counts = vec![base.name.clone()];
        for stack in &stacks[..COUNTED] {
            counts
                .push(pair.instructions(stack)?.map_or("no valgrind".into(), |count| format!("{count:.0}")));
        }
        exact.row(counts);
        let [none, forward, quarantine, ..] = one;
        if forward - none > FORWARD_TARGET {
            missed.push(format!("{}: forward over none {:.1} ns", base.name, forward - none));
        }
        if quarantine - forward > QUARANTINE_TARGET {
            missed.push(format!("{}: quarantine 1B over forward {:.1} ns", base.name, quarantine - forward));
        }
    }
    println!("a pair of malloc and free, one thread\n{alone}");
    let outcome = if missed.is_empty() { "met".into() } else { format!("MISSED: {}", missed.join("; ")) };
    println!(
        "targets: forward over none at most {FORWARD_TARGET} ns a pair, quarantine 1B over forward at most {QUARANTINE_TARGET}: {outcome}"
    );
    println!("\n{} threads at once\n{together}", options.threads);
    println!("\ninstructions of a pair, one thread\n{exact}\n");
    marks::run(&installation.places, options.n, options.markdown)
}

/// The shortest time of a pair under each stack, over rounds in which they take turns.
fn shortest(
    pair: &Pair,
    stacks: &[Stack],
    rounds: usize,
    threads: usize,
) -> Result<[f64; LAYERS.len()], Error> {
    let mut best = [f64::INFINITY; LAYERS.len()];
    for _ in 0..rounds.max(1) {
        for (best, stack) in best.iter_mut().zip(stacks) {
            *best = best.min(pair.time_ns(stack, threads)?);
        }
    }
    Ok(best)
}

fn cells(manager: &str, ns: [f64; LAYERS.len()]) -> Vec<String> {
    let [none, forward, quarantine, sweep, honour] = ns.map(|ns| format!("{ns:.1}"));
    let over = |at: usize| format!("{:+.1}", ns[at] - ns[at - 1]);
    vec![manager.into(), none, forward, over(1), quarantine, over(2), sweep, honour]
}
