//! `heaptoll-peers`: builds the modern allocators that heaptoll compares, as preloadable shared objects, from the
//! sources their crates carry. A program of its own, because they are C and C++ compiled with their own flags: under
//! cargo's profiles a debug build of the tool would measure unoptimised allocators.

mod builder;
mod collector;
mod error;
mod fairness;
mod install;
mod licence;
mod note;
mod peer;
mod recipe;
mod selection;
mod source;
mod symbols;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use heaptoll_preflight::smoke::Expected;

use builder::{Outcome, Settings};
use error::{Error, IoContext};
use peer::Peer;
use selection::Selection;

/// Build mimalloc, jemalloc, snmalloc, TCMalloc and rpmalloc, and a shim for Debian's libgc, as preloadable shared
/// objects.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    /// Folder for NAME.so, NAME.toml and NAME.LICENSE
    #[arg(long, value_name = "DIR", default_value = "target/managers")]
    out: PathBuf,
    /// Folder for intermediate files [default: DIR/.work of --out]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Compilers that run at once [default: the number of processors]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Build again what is up to date
    #[arg(long)]
    force: bool,
    /// List the peers, their versions and whether they are built, and build nothing
    #[arg(long)]
    list: bool,
    /// Cargo.toml that names the source crates
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))]
    manifest: PathBuf,
    /// mimalloc3, mimalloc2, snmalloc, rpmalloc, jemalloc, tcmalloc, bdw, or a group: demo (mimalloc3,
    /// snmalloc and bdw), fast (the first four and bdw), slow, all; profiling (jemalloc-prof: with its heap profiler, for the bench of it)
    #[arg(value_name = "PEER", value_parser = Selection::parse, default_value = "all")]
    peers: Vec<Selection>,
    #[command(subcommand)]
    command: Option<Subcommand>,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    /// Compare the mimalloc 2 and jemalloc built here with Debian's; fails when ours takes over 3 % more instructions a
    /// call, or is shown to take over 3 % more CPU time
    Fairness(fairness::Options),
    /// Allocate in every way and check that OBJECT serves the calls
    #[command(name = heaptoll_preflight::smoke::WORD, hide = true)]
    Smoke {
        /// The preloaded object
        object: PathBuf,
        /// Do not test calloc with a product that overflows
        #[arg(long)]
        no_overflow: bool,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Some(Subcommand::Smoke { object, no_overflow }) => {
            return match heaptoll_preflight::smoke::run(
                object,
                Expected { overflow: !no_overflow, operators: true },
            ) {
                Ok(()) => ExitCode::SUCCESS,
                Err(message) => {
                    eprintln!("{message}");
                    ExitCode::FAILURE
                }
            };
        }
        Some(Subcommand::Fairness(options)) => {
            fairness::compare(options).map(|fair| if fair { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        None if arguments.list => list(&arguments),
        None => build(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(e) => {
            eprintln!("heaptoll-peers: {e}");
            ExitCode::FAILURE
        }
    }
}

/// The requested peers, each once, in the order they are built in.
fn wanted(arguments: &Arguments) -> Vec<Peer> {
    let mut peers: Vec<Peer> = arguments.peers.iter().flat_map(|word| &word.peers).copied().collect();
    peers.sort();
    peers.dedup();
    peers
}

fn list(arguments: &Arguments) -> Result<ExitCode, Error> {
    let sources = source::locate(&arguments.manifest)?;
    for peer in wanted(arguments) {
        let source = sources.get(peer.crate_name()).ok_or(Error::NoCrate(peer.crate_name()))?;
        let version = source.upstream_version(peer)?;
        let built = match note::existing(&arguments.out, peer) {
            Some(note) if note.version == version => "built",
            Some(_) => "built from another version",
            None => "not built",
        };
        println!("{:10} {version:22} {:32} {built:9} {}", peer.name(), source.origin(), peer.about());
    }
    Ok(ExitCode::SUCCESS)
}

fn build(arguments: &Arguments) -> Result<ExitCode, Error> {
    let sources = source::locate(&arguments.manifest)?;
    let absolute = |path: &Path| std::path::absolute(path).context("find", path);
    let out = absolute(&arguments.out)?;
    let work = match &arguments.work {
        Some(work) => absolute(work)?,
        None => out.join(".work"),
    };
    let here = Path::new("/proc/self/exe");
    let settings = Settings {
        out,
        work,
        jobs: arguments
            .jobs
            .map_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()), usize::from),
        force: arguments.force,
        prover: std::env::current_exe().context("find", here)?,
    };
    let source_of =
        |peer: Peer| sources.get(peer.crate_name()).cloned().ok_or(Error::NoCrate(peer.crate_name()));
    let mut code = ExitCode::SUCCESS;
    for (peer, result) in builder::build(&wanted(arguments), source_of, &settings)? {
        match result {
            Ok(Outcome::UpToDate(note)) => println!("{:10} {} is up to date", peer.name(), note.version),
            Ok(Outcome::Built(note, took)) => {
                println!(
                    "{:10} {} built and proved in {:.1} s",
                    peer.name(),
                    note.version,
                    took.as_secs_f64()
                );
            }
            Err(e) => {
                eprintln!("heaptoll-peers: {}: {e}", peer.name());
                code = ExitCode::FAILURE;
            }
        }
    }
    if arguments.peers.iter().any(|word| word.collector) {
        let named = arguments.peers.iter().any(|word| word.collector_named);
        match collector::build(&settings) {
            Ok(collector::Outcome::UpToDate(version)) => {
                println!("{:10} {version} is up to date", collector::NAME);
            }
            Ok(collector::Outcome::Built(version)) => {
                println!("{:10} {version} built and proved", collector::NAME);
            }
            Ok(collector::Outcome::NoLibrary) if !named => println!("{}", collector::advice()),
            Ok(collector::Outcome::NoLibrary) => {
                eprintln!("heaptoll-peers: {}", collector::advice());
                code = ExitCode::FAILURE;
            }
            Err(e) => {
                eprintln!("heaptoll-peers: {}: {e}", collector::NAME);
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}
