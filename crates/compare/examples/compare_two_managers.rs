//! Compares the CPU time of two managers on a command, by the library:
//! `cargo run --release -p heaptoll-compare --example compare_two_managers -- gawk -f report.awk data.txt`

use std::ffi::OsString;
use std::path::PathBuf;

use heaptoll_command::context::{Context, Silent};
use heaptoll_command::failure::Failure;
use heaptoll_command::own_input::OwnInput;
use heaptoll_compare::run::{Run, RunRequest};
use heaptoll_experiment::compare::compare;
use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::places::Places;
use heaptoll_runs::workload::Workload;

fn main() -> Result<(), Failure> {
    let ratios = cpu_ratios(std::env::args_os().skip(1), None)?;
    ratios.iter().for_each(|ratio| println!("{ratio}"));
    Ok(())
}

/// A line for each manager on the command; the runs are kept in `db`, or in a new file of heaptoll's own folder.
pub fn cpu_ratios(
    command: impl Iterator<Item = OsString>,
    db: Option<PathBuf>,
) -> Result<Vec<String>, Failure> {
    let (places, interrupt) = (Places::find()?, Interrupt::default());
    let context = Context {
        places: &places,
        interrupt: &interrupt,
        own_input: &OwnInput::default(),
        messages: &Silent,
    };
    let request = RunRequest { db, ..RunRequest::of(Workload::of_command(command), &["knuth"]) };
    let mut run = Run::begin(&request, &context)?;
    run.measure(&context)?;
    let comparison = compare(&run.experiment);
    let rows = comparison.tables.iter().flat_map(|table| &table.rows);
    let lines = rows.map(|row| match row.figures.get(&Metric::Cpu).and_then(|cpu| cpu.ratio) {
        Some(cpu) => format!("{}: {:.3} ({:.3} to {:.3})", row.stack, cpu.ratio, cpu.low, cpu.high),
        None => format!("{}: the baseline, or too few good runs", row.stack),
    });
    Ok(lines.collect())
}
