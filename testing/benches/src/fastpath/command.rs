//! Counts the instructions of malloc and free where a free list has a block, and holds some managers to a promise.

use std::process::ExitCode;

use clap::Parser;
use heaptoll_bench::fastpath::{Operation, Path, Program, StepError, Verdict, gate, tracer};
use heaptoll_experiment::manager::{self, Manager, ManagerError};
use heaptoll_experiment::places::{Places, PlacesError};
use heaptoll_units::text_table::Table;
use thiserror::Error;

/// Step through malloc and free where a free list has a block: instructions, loops and calls on the way.
///
/// Held to having neither loop nor call: malloc and free of kingsley, quickfit and pow2, free of lea, malloc of bump.
///
/// Exit status: 0 all well; 1 a promise is broken, or a manager could not be stepped through; 2 nothing could be
/// measured.
#[derive(Debug, Parser)]
#[command(name = "heaptoll-fastpath", version)]
struct Cli {
    /// Managers by name or path, or a group of them: modern, historic, collectors, all
    #[arg(value_name = "MANAGER", default_value = "all")]
    managers: Vec<String>,
    /// Sizes of blocks, bytes
    #[arg(long, value_delimiter = ',', default_values_t = [8usize, 24, 40, 100, 400, 1000])]
    sizes: Vec<usize>,
    /// Print Markdown
    #[arg(long)]
    markdown: bool,
}

#[derive(Debug, Error)]
enum Error {
    #[error(transparent)]
    Places(#[from] PlacesError),
    #[error(transparent)]
    Manager(#[from] ManagerError),
    #[error(transparent)]
    Step(#[from] StepError),
}

/// Least and most instructions over the sizes, stack and what is on the way.
fn cell(paths: &[Path], operation: Operation, threads: bool) -> String {
    let of = || paths.iter().filter(move |path| path.operation == operation && path.threads == threads);
    let counts = || of().map(|path| path.instructions);
    let (Some(least), Some(most)) = (counts().min(), counts().max()) else { return String::new() };
    let range = if least == most { least.to_string() } else { format!("{least}-{most}") };
    let calls = of().map(|path| path.calls.len()).max().unwrap_or(0);
    let loops = of().any(|path| !path.loops.is_empty());
    let system = of().any(|path| path.system_calls > 0);
    let marks = [
        (calls > 0).then(|| format!("{calls} calls")),
        loops.then(|| "loop".into()),
        system.then(|| "system".into()),
    ];
    let marks: Vec<String> = marks.into_iter().flatten().collect();
    if marks.is_empty() { range } else { format!("{range} ({})", marks.join(", ")) }
}

fn header() -> Vec<String> {
    ["manager", "malloc", "free", "malloc, 2 threads", "free, 2 threads", "stack B", "held to it"]
        .map(String::from)
        .into()
}

fn row(manager: &str, paths: &[Path], broken: usize) -> Vec<String> {
    let stack = paths.iter().map(|path| path.stack_bytes).max().unwrap_or(0);
    let gate = gate(manager);
    let names: Vec<String> = gate.operations.iter().map(Operation::to_string).collect();
    let limit =
        if gate.most_bytes == usize::MAX { String::new() } else { format!(" up to {} B", gate.most_bytes) };
    vec![
        manager.to_string(),
        cell(paths, Operation::Malloc, false),
        cell(paths, Operation::Free, false),
        cell(paths, Operation::Malloc, true),
        cell(paths, Operation::Free, true),
        stack.to_string(),
        match (gate.is_open(), broken) {
            (true, _) => "no".into(),
            (false, 0) => format!("{}{limit}: yes", names.join(", ")),
            (false, _) => format!("{}{limit}: BROKEN", names.join(", ")),
        },
    ]
}

fn print(rows: Vec<Vec<String>>, markdown: bool) {
    if markdown {
        let line = |cells: &[String]| println!("| {} |", cells.join(" | "));
        line(&header());
        line(&vec!["---".into(); header().len()]);
        rows.iter().for_each(|row| line(row));
        return;
    }
    let mut table = Table::new(header());
    rows.into_iter().for_each(|row| table.row(row));
    table.figures(1..6);
    println!("{table}");
}

fn measure(program: &Program, manager: &Manager, sizes: &[usize]) -> Result<Vec<Path>, StepError> {
    let object = manager.object.as_deref();
    let paths = |threads| tracer::paths(program.path(), object, &manager.environment, sizes, threads);
    Ok([paths(false)?, paths(true)?].concat())
}

fn run(cli: &Cli) -> Result<bool, Error> {
    let known = manager::known(&Places::find()?)?;
    let managers = manager::choose(&known, cli.managers.iter().map(String::as_str))?;
    let program = Program::build()?;
    let (mut rows, mut faults, mut remarks) = (vec![], vec![], vec![]);
    for manager in &managers {
        let paths = match measure(&program, manager, &cli.sizes) {
            Ok(paths) => paths,
            // A restartable sequence begins again at each step and never ends (TCMalloc's caches by CPU).
            Err(error @ StepError::Endless { .. }) if gate(&manager.name).is_open() => {
                remarks.push(format!("{}: cannot be stepped through: {error}", manager.name));
                continue;
            }
            Err(error) => {
                faults.push(format!("{}: {error}", manager.name));
                continue;
            }
        };
        let before = faults.len();
        faults.extend(Verdict::of_all(&manager.name, &paths).into_iter().filter_map(
            |verdict| match verdict {
                Verdict::Broken(what) => Some(format!("{}: {what}", manager.name)),
                _ => None,
            },
        ));
        rows.push(row(&manager.name, &paths, faults.len() - before));
    }
    print(rows, cli.markdown);
    let sizes: Vec<String> = cli.sizes.iter().map(usize::to_string).collect();
    println!(
        "\nInstructions from call to return, blocks of {} bytes, a free list having one.",
        sizes.join(", ")
    );
    for remark in &remarks {
        println!("{remark}");
    }
    for fault in &faults {
        eprintln!("heaptoll-fastpath: {fault}");
    }
    Ok(faults.is_empty())
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("heaptoll-fastpath: {error}");
            ExitCode::from(2)
        }
    }
}
