//! Counts the instructions of malloc and free where a free list has a block, and holds some managers to a promise.

use heaptoll_experiment::manager::Manager;
use heaptoll_units::text_table::Table;

use super::gate::{Verdict, gate};
use super::program::Program;
use super::tracer::{self, Operation, Path, StepError};
use crate::Error;
use crate::installation::Installation;

/// Step through malloc and free where a free list has a block: instructions, loops and calls on the way.
///
/// Held to having neither loop nor call: malloc and free of kingsley, quickfit and pow2, free of lea, malloc of bump.
///
/// Exit status: 0 all well; 1 a promise is broken, or a manager could not be stepped through; 2 nothing could be
/// measured.
#[derive(Debug, clap::Args)]
pub struct Options {
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

const HEADINGS: [&str; 7] =
    ["manager", "malloc", "free", "malloc, 2 threads", "free, 2 threads", "stack B", "held to it"];

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

fn measure(program: &Program, manager: &Manager, sizes: &[usize]) -> Result<Vec<Path>, StepError> {
    let object = manager.object.as_deref();
    let paths = |threads| tracer::paths(program.path(), object, &manager.environment, sizes, threads);
    Ok([paths(false)?, paths(true)?].concat())
}

/// Measures and prints; whether every promise is kept.
///
/// # Errors
/// heaptoll is not built, a manager is not known, or there is no compiler.
pub fn run(options: &Options) -> Result<bool, Error> {
    let managers = Installation::find()?.managers(&options.managers, &[])?;
    let program = Program::build()?;
    let (mut rows, mut faults, mut remarks) = (vec![], vec![], vec![]);
    for manager in &managers {
        let paths = match measure(&program, manager, &options.sizes) {
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
    let mut table = Table::new(HEADINGS).in_markdown(options.markdown);
    rows.into_iter().for_each(|row| table.row(row));
    table.figures(1..6);
    println!("{table}");
    let sizes: Vec<String> = options.sizes.iter().map(usize::to_string).collect();
    println!(
        "\nInstructions from call to return, blocks of {} bytes, a free list having one.",
        sizes.join(", ")
    );
    for remark in &remarks {
        println!("{remark}");
    }
    for fault in &faults {
        eprintln!("heaptoll-bench: {fault}");
    }
    Ok(faults.is_empty())
}
