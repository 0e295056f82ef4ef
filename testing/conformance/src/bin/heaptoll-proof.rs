//! `heaptoll-proof`: the cases over any preloadable object, one line a case.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use heaptoll_conformance::proof::program::{Error, Program};
use heaptoll_conformance::proof::subject::Subject;
use heaptoll_conformance::proof::verdict::Verdict;
use heaptoll_conformance::suite::in_parallel;

/// Tests a memory manager's collector, or what must hold of a manager without one.
#[derive(Parser)]
struct Options {
    /// The object to preload; without it, the C library's malloc is tested
    #[arg(short, long)]
    manager: Option<PathBuf>,
    /// A layer in front of it; may be given several times, the program's first
    #[arg(short, long)]
    layer: Vec<PathBuf>,
    /// A setting of its environment, NAME=VALUE; may be given several times
    #[arg(short, long)]
    env: Vec<String>,
    /// Lists the cases
    #[arg(long)]
    list: bool,
    /// Repeats less often
    #[arg(long)]
    quick: bool,
    /// Prints the notes of cases on their standard output
    #[arg(short, long)]
    verbose: bool,
    /// Seconds that a case may take
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// The cases whose names begin with these; without any, all
    cases: Vec<String>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("heaptoll-proof: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<bool, Error> {
    let work = tempfile::tempdir().map_err(|source| heaptoll_conformance::error::Error::Process {
        what: "a temporary folder".into(),
        source,
    })?;
    let program = Program::build(work.path())?;
    let chosen: Vec<_> = program
        .cases
        .iter()
        .filter(|case| {
            options.cases.is_empty() || options.cases.iter().any(|start| case.name.starts_with(start))
        })
        .collect();
    if options.list {
        chosen.iter().for_each(|case| println!("{:24} {}", case.name, case.about));
        return Ok(true);
    }
    let mut subject = Subject {
        layers: options.layer.clone(),
        object: options.manager.clone(),
        quick: options.quick,
        ..Subject::glibc()
    };
    for setting in &options.env {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        subject = subject.with(name, value);
    }
    let results = in_parallel(&chosen, |case| {
        let end = program.run(&case.name, &subject, Duration::from_secs(options.limit));
        (case.name.clone(), end)
    });
    let mut holds = true;
    for (name, end) in results {
        let end = end?;
        let (word, more) = match Verdict::of(&end) {
            Verdict::Holds => ("holds", String::new()),
            Verdict::NotApplicable => ("not applicable", String::new()),
            Verdict::Fails(how) => {
                holds = false;
                ("FAILS", how)
            }
        };
        println!("{name:24} {word:14} {:6} ms {more}", end.took.as_millis());
        if options.verbose {
            end.stdout.lines().for_each(|line| println!("    {line}"));
        }
    }
    Ok(holds)
}
