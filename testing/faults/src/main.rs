//! `heaptoll-faults [NAME]...`: tries seeded faults, and prints how each was found or missed; ends with 1 when one was
//! missed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use heaptoll_faults::list::{self, Fault};
use heaptoll_faults::sources::Sources;
use heaptoll_faults::{Error, trial};

/// Seeds faults in a copy of the sources, one at a time: each must be found by the assertion that is named for it.
#[derive(Parser)]
struct Arguments {
    /// Only faults whose name, package or assertion contains one of these texts
    names: Vec<String>,
    /// The repository
    #[arg(long, default_value = ".")]
    root: PathBuf,
    /// Print the list and try nothing
    #[arg(long)]
    list: bool,
    /// Print what the test of a missed fault writes to standard error
    #[arg(long)]
    verbose: bool,
}

impl Arguments {
    fn selects(&self, fault: &Fault) -> bool {
        let texts = [&fault.name, &fault.package, &fault.assertion];
        self.names.is_empty() || self.names.iter().any(|name| texts.iter().any(|text| text.contains(name)))
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("heaptoll-faults: {error}");
            ExitCode::from(2)
        }
    }
}

/// Tries the selected faults; returns how many findings there are.
fn run(arguments: &Arguments) -> Result<usize, Error> {
    let root = root(&arguments.root)?;
    let mut faults = list::read(&root)?;
    faults.retain(|fault| arguments.selects(fault));
    if faults.is_empty() {
        return Err(Error::NoneSelected { names: arguments.names.join(", ") });
    }
    if arguments.list {
        for fault in &faults {
            println!("{}: {}: {}", fault.package, fault.name, fault.assertion);
        }
        return Ok(0);
    }
    let findings = list::findings(&root, &faults)?;
    findings.iter().for_each(|finding| println!("{finding}"));
    if !findings.is_empty() {
        return Ok(findings.len());
    }
    let sources = Sources::copy(&root)?;
    let mut missed = 0;
    for fault in &faults {
        let trial = trial::run(&sources, fault)?;
        let seconds = trial.time.as_secs_f64();
        match trial.outcome {
            Ok(()) => println!("found  {seconds:6.1} s  {}: {}", fault.package, fault.name),
            Err(how) => {
                missed += 1;
                println!("MISSED {seconds:6.1} s  {}: {}: {how}", fault.package, fault.name);
                if arguments.verbose {
                    println!("{}", trial.stderr);
                }
            }
        }
    }
    println!("{} faults, {missed} missed", faults.len());
    Ok(missed)
}

fn root(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(Error::read(path))
}
