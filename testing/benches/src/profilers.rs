//! How wrong sampled heap profiles are, and what they cost: heaptoll's own, jemalloc's and gperftools', by the distance
//! of samples, against an exact recording of the same program.

mod accuracy;
mod cost;
mod held;
mod profiler;
mod subject;

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use heaptoll_units::size_text;
use heaptoll_units::text_table::Table;

use self::accuracy::Accuracy;
use self::held::Held;
use self::profiler::Profiler;
use self::subject::{Subject, Subjects};
use crate::installation::{Installation, heaptoll, scratch};
use crate::table::table;
use crate::{Error, child};

/// Mean distances of samples, bytes: those that profilers are used with.
const RATES: [u64; 3] = [64 << 10, 512 << 10, 2 << 20];

/// Compare sampled heap profiles with exact recordings.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// What to measure; both without it
    #[arg(value_enum)]
    part: Option<Part>,
    /// Profiles of each program, profiler and rate
    #[arg(short, default_value_t = 10)]
    n: u64,
    /// Pairs of runs by which CPU time is compared
    #[arg(long, default_value_t = 20)]
    pairs: usize,
    /// Seed of the planted programs, of heaptoll's samples, and of the order of runs
    #[arg(long, default_value_t = 1992)]
    seed: u64,
    /// The folder with jemalloc-prof.so, which `heaptoll-peers --out DIR profiling` builds
    #[arg(long, value_name = "DIR", default_value = "target/profiling")]
    peers: PathBuf,
    /// Print tables for a page
    #[arg(long)]
    markdown: bool,
}

/// A part of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// How wrong the profiles are
    Errors,
    /// What sampling costs
    Costs,
}

/// Measures and prints.
///
/// # Errors
/// A program is missing, or ends badly.
pub fn run(options: &Options) -> Result<(), Error> {
    let installation = Installation::find()?;
    let folder = scratch()?;
    let subjects = Subjects::prepare(&installation, folder.path(), options.seed)?;
    let (profilers, lacking) = Profiler::all(&installation.places, &options.peers, folder.path())?;
    if options.part != Some(Part::Costs) {
        print_errors(options, &profilers, &subjects.profiled, folder.path())?;
    }
    if options.part != Some(Part::Errors) {
        println!("{}", costs(options, &profilers, &subjects.timed)?);
    }
    lacking.iter().for_each(|sentence| println!("left out: {sentence}"));
    Ok(())
}

/// The programs with what they hold, then the errors of all profilers.
fn print_errors(
    options: &Options,
    profilers: &[Profiler],
    subjects: &[Subject],
    folder: &Path,
) -> Result<(), Error> {
    let exact: Vec<Held> =
        subjects.iter().map(|subject| record(subject, folder)).collect::<Result<_, _>>()?;
    let headings = ["program", "in use at the end", "sites", "of 5 % or more"];
    let mut programs = table(&headings, 1, []).in_markdown(options.markdown);
    for (subject, held) in subjects.iter().zip(&exact) {
        let large = held.sites.values().filter(|bytes| **bytes >= accuracy::SHARE * held.total()).count();
        let mib = format!("{:.1} MiB", held.total() / f64::from(1 << 20));
        programs.row([subject.name.clone(), mib, held.sites.len().to_string(), large.to_string()]);
    }
    println!("{programs}\n");
    println!("{}\n", errors(options, profilers, subjects, &exact)?);
    Ok(())
}

/// The exact figures, by a recording of each call.
fn record(subject: &Subject, folder: &Path) -> Result<Held, Error> {
    let tool = heaptoll()?.display().to_string();
    let (trace, profile) = (folder.join("exact.heaptoll"), folder.join("exact.pb.gz"));
    let output = trace.display().to_string();
    child::run(&mut subject.command(&[&tool, "record", "--sites", "--force", "-o", &output, "--"])?)?;
    let mut export = Command::new(&tool);
    export.args(["export", "--to", "pprof", "--force", "-o"]).args([&profile, &trace]);
    child::run(&mut export)?;
    Held::read(&profile, &subject.object())
}

fn errors(
    options: &Options,
    profilers: &[Profiler],
    subjects: &[Subject],
    exact: &[Held],
) -> Result<Table, Error> {
    let header =
        ["profiler", "a sample in", "error, median", "error, worst", "of the ten largest", "bias of the sum"];
    let mut table = table(&header, 2, []).in_markdown(options.markdown);
    for profiler in profilers {
        for rate in RATES {
            let mut accuracy = Accuracy::default();
            for run in 0..options.n {
                for (subject, exact) in subjects.iter().zip(exact) {
                    let folder = scratch()?;
                    let path = profiler.profile(subject, rate, options.seed + run, folder.path())?;
                    accuracy.add(exact, &Held::read(&path, &subject.object())?);
                }
            }
            table.row([profiler.name().to_owned(), size_text(rate)].into_iter().chain(accuracy.cells()));
        }
    }
    Ok(table)
}

fn costs(options: &Options, profilers: &[Profiler], subjects: &[Subject]) -> Result<Table, Error> {
    let mut header = vec!["profiler".to_owned(), "a sample in".to_owned()];
    for subject in subjects {
        header.extend([format!("instructions, {}", subject.name), format!("CPU time, {}", subject.name)]);
    }
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = table(&header, 2, []).in_markdown(options.markdown);
    for profiler in profilers {
        let measured: Vec<Vec<[String; 2]>> = subjects
            .iter()
            .map(|subject| cost::rows(profiler, &RATES, subject, options.pairs, options.seed))
            .collect::<Result<_, _>>()?;
        for (at, rate) in RATES.iter().enumerate() {
            let cells = measured.iter().flat_map(|rows| rows[at].clone());
            table.row([profiler.name().to_owned(), size_text(*rate)].into_iter().chain(cells));
        }
    }
    Ok(table)
}
