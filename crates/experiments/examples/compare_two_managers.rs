//! Compares the CPU time of two managers on a command, by the library:
//! `cargo run --release -p heaptoll-experiments --example compare_two_managers -- gawk -f report.awk data.txt`

use heaptoll_experiment::compare::compare;
use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::places::Places;
use heaptoll_experiments::context::{Context, Silent};
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::run::{Request, Run};
use heaptoll_experiments::workload::Workload;

fn main() -> Result<(), Failure> {
    let (places, interrupt) = (Places::find()?, Interrupt::default());
    let context = Context { places: &places, interrupt: &interrupt, messages: &Silent };
    let command = Workload::of_command(std::env::args_os().skip(1));
    let mut run = Run::begin(&Request::of(command, &["knuth"]), &context)?;
    run.measure(&context)?;
    for row in compare(&run.experiment).tables.iter().flat_map(|table| &table.rows) {
        let ratio = row.figures.get(&Metric::Cpu).and_then(|cpu| cpu.ratio);
        match ratio {
            Some(cpu) => println!("{}: {:.3} ({:.3} to {:.3})", row.stack, cpu.ratio, cpu.low, cpu.high),
            None => println!("{}: the baseline, or too few good runs", row.stack),
        }
    }
    println!("every run is kept in {}", run.store.path().display());
    Ok(())
}
