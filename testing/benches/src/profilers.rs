//! How wrong sampled heap profiles are, and what they cost: heaptoll's own, jemalloc's and gperftools', by the distance
//! of samples, against an exact recording of the same program.

mod accuracy;
mod cost;
mod held;
mod profiler;
mod subject;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use heaptoll_bench::{BenchError, child};
use heaptoll_experiment::places::Places;
use heaptoll_units::size_text;
use heaptoll_units::text_table::Table;

use accuracy::Accuracy;
use held::Held;
use profiler::Profiler;
use subject::{Subject, Subjects};

/// Mean distances of samples, bytes: those that profilers are used with.
const RATES: [u64; 3] = [64 << 10, 512 << 10, 2 << 20];

/// Compare sampled heap profiles with exact recordings.
#[derive(Debug, Parser)]
#[command(name = "heaptoll-profilers", version)]
struct Cli {
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

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("heaptoll-profilers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<(), BenchError> {
    let places = Places::find()?;
    let folder = tempfile::tempdir().map_err(BenchError::system("temporary folder"))?;
    let subjects = Subjects::prepare(&places, folder.path(), cli.seed)?;
    let (profilers, lacking) = Profiler::all(&places, &cli.peers, folder.path())?;
    if cli.part != Some(Part::Costs) {
        print_errors(cli, &profilers, &subjects.profiled, folder.path())?;
    }
    if cli.part != Some(Part::Errors) {
        println!("{}", costs(cli, &profilers, &subjects.timed)?);
    }
    lacking.iter().for_each(|sentence| println!("left out: {sentence}"));
    Ok(())
}

/// The programs with what they hold, then the errors of all profilers.
fn print_errors(
    cli: &Cli,
    profilers: &[Profiler],
    subjects: &[Subject],
    folder: &Path,
) -> Result<(), BenchError> {
    let exact: Vec<Held> =
        subjects.iter().map(|subject| record(subject, folder)).collect::<Result<_, _>>()?;
    let mut programs = table(&["program", "in use at the end", "sites", "of 5 % or more"], cli.markdown);
    for (subject, held) in subjects.iter().zip(&exact) {
        let large = held.sites.values().filter(|bytes| **bytes >= accuracy::SHARE * held.total()).count();
        let mib = format!("{:.1} MiB", held.total() / f64::from(1 << 20));
        programs.row([subject.name.clone(), mib, held.sites.len().to_string(), large.to_string()]);
    }
    println!("{programs}\n");
    println!("{}\n", errors(cli, profilers, subjects, &exact)?);
    Ok(())
}

/// The exact figures, by a recording of each call.
fn record(subject: &Subject, folder: &Path) -> Result<Held, BenchError> {
    let own = std::env::current_exe().map_err(BenchError::system("own path"))?;
    let tool = own.with_file_name("heaptoll").display().to_string();
    let (trace, profile) = (folder.join("exact.heaptoll"), folder.join("exact.pb.gz"));
    let output = trace.display().to_string();
    child::run(&mut subject.command(&[&tool, "record", "--sites", "--force", "-o", &output, "--"])?)?;
    let mut export = std::process::Command::new(&tool);
    export.args(["export", "--to", "pprof", "--force", "-o"]).args([&profile, &trace]);
    child::run(&mut export)?;
    Held::read(&profile, &subject.object())
}

fn errors(
    cli: &Cli,
    profilers: &[Profiler],
    subjects: &[Subject],
    exact: &[Held],
) -> Result<Table, BenchError> {
    let header =
        ["profiler", "a sample in", "error, median", "error, worst", "of the ten largest", "bias of the sum"];
    let mut table = table(&header, cli.markdown);
    for profiler in profilers {
        for rate in RATES {
            let mut accuracy = Accuracy::default();
            for run in 0..cli.n {
                for (subject, exact) in subjects.iter().zip(exact) {
                    let folder = tempfile::tempdir().map_err(BenchError::system("temporary folder"))?;
                    let path = profiler.profile(subject, rate, cli.seed + run, folder.path())?;
                    accuracy.add(exact, &Held::read(&path, &subject.object())?);
                }
            }
            table.row([profiler.name().to_owned(), size_text(rate)].into_iter().chain(accuracy.cells()));
        }
    }
    Ok(table)
}

fn costs(cli: &Cli, profilers: &[Profiler], subjects: &[Subject]) -> Result<Table, BenchError> {
    let mut header = vec!["profiler".to_owned(), "a sample in".to_owned()];
    for subject in subjects {
        header.extend([format!("instructions, {}", subject.name), format!("CPU time, {}", subject.name)]);
    }
    let mut table = table(&header.iter().map(String::as_str).collect::<Vec<_>>(), cli.markdown);
    for profiler in profilers {
        let measured: Vec<Vec<[String; 2]>> = subjects
            .iter()
            .map(|subject| cost::rows(profiler, &RATES, subject, cli.pairs, cli.seed))
            .collect::<Result<_, _>>()?;
        for (at, rate) in RATES.iter().enumerate() {
            let cells = measured.iter().flat_map(|rows| rows[at].clone());
            table.row([profiler.name().to_owned(), size_text(*rate)].into_iter().chain(cells));
        }
    }
    Ok(table)
}

/// An empty table; all columns but the first two are figures.
fn table(header: &[&str], markdown: bool) -> Table {
    let mut table = Table::new(header.iter().copied()).in_markdown(markdown);
    table.figures(if header[0] == "program" { 1 } else { 2 }..header.len());
    table
}
