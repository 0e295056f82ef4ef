//! `heaptoll-peers`: builds the modern allocators that heaptoll compares, as preloadable shared objects, from the
//! sources their crates carry. A program of its own, because they are C and C++ compiled with their own flags: under
//! cargo's profiles a debug build of the tool would measure unoptimised allocators.

mod error;
mod proof;
mod source;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use heaptoll_peers::{Builder, ManagerRecipe, Object, Refusal, Sources, installed};
use heaptoll_preflight::smoke::Expected;

use error::{Error, IoContext};

/// The recipes, those of managers that users add among them.
const RECIPES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../managers");

/// Build mimalloc, jemalloc, snmalloc, TCMalloc and rpmalloc, and a shim for Debian's libgc, as preloadable shared
/// objects.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    /// Folder for NAME.so, NAME.toml and NAME.LICENSE
    #[arg(long, value_name = "DIR", default_value = "target/managers")]
    out: PathBuf,
    /// Folder for intermediate files, on the file system of --out [default: DIR/.work of --out]
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
    #[arg(value_name = "PEER", default_value = "all")]
    peers: Vec<String>,
    #[command(subcommand)]
    command: Option<Subcommand>,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
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
            let expected = Expected { overflow: !no_overflow, operators: true };
            let outcome = heaptoll_preflight::smoke::run(object, expected);
            Ok(outcome.map_err(|message| eprintln!("{message}")).is_ok())
        }
        None => build(&arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("heaptoll-peers: {e}");
            ExitCode::FAILURE
        }
    }
}

/// The objects that words of the command line mean, each once. Ends the program where a word means none.
fn wanted<'a>(recipes: &'a [ManagerRecipe], words: &[String]) -> Vec<Object<'a>> {
    let mut objects: Vec<Object> = recipes.iter().flat_map(ManagerRecipe::objects).collect();
    if words.iter().any(|word| !objects.iter().any(|object| object.answers(word))) {
        let names: Vec<&str> = objects.iter().map(|object| object.name).collect();
        let message =
            format!("no such peer; choose among {}, demo, fast, slow, all, profiling", names.join(", "));
        Arguments::command().error(ErrorKind::InvalidValue, message).exit();
    }
    objects.retain(|object| words.iter().any(|word| object.answers(word)));
    objects
}

/// Builds or lists the requested peers; `false` when one of them is not there.
fn build(arguments: &Arguments) -> Result<bool, Error> {
    let recipes = ManagerRecipe::peers(Path::new(RECIPES))?;
    let objects = wanted(&recipes, &arguments.peers);
    let crates = source::locate(&arguments.manifest)?;
    let absolute = |path: &Path| std::path::absolute(path).context("find", path);
    let out = absolute(&arguments.out)?;
    let work = arguments.work.as_deref().map_or_else(|| Ok(out.join(".work")), absolute)?;
    let prover = std::env::current_exe().context("find", Path::new("/proc/self/exe"))?;

    let mut whole = true;
    let mut found: Vec<(Object, Sources)> = Vec::new();
    for object in objects {
        match Sources::installed(object.recipe, &|name| crates.get(name).cloned()) {
            Ok(sources) => found.push((object, sources)),
            Err(refusal @ Refusal::NoPackage { .. })
                if !arguments.peers.iter().any(|word| word == object.name) =>
            {
                println!("{:10} not built: {refusal}", object.name);
            }
            Err(refusal) => whole = failed(object.name, &refusal),
        }
    }
    if arguments.list {
        found.iter().for_each(|(object, sources)| list(&out, object, sources));
        return Ok(whole);
    }
    let mut builder = Builder::new(&out, &work)?;
    builder.jobs = arguments.jobs.map_or(builder.jobs, usize::from);
    builder.force = arguments.force;
    let builds: Vec<(Object, &Sources)> = found.iter().map(|(object, sources)| (*object, sources)).collect();
    let built = builder
        .build(&builds, &|recipe, object, environment| proof::prove(&prover, recipe, object, environment));
    for (one, (_, sources)) in built.iter().zip(&found) {
        match &one.outcome {
            Ok(None) => println!("{:10} {} is up to date", one.name, sources.version),
            Ok(Some(took)) => {
                println!(
                    "{:10} {} built and proved in {:.1} s",
                    one.name,
                    sources.version,
                    took.as_secs_f64()
                );
            }
            Err(refusal) => whole = failed(&one.name, refusal),
        }
    }
    Ok(whole)
}

fn failed(name: &str, refusal: &Refusal) -> bool {
    eprintln!("heaptoll-peers: {name}: {refusal}");
    false
}

fn list(out: &Path, object: &Object, sources: &Sources) {
    let there = installed(out, object.name);
    let version = there.as_ref().and_then(|there| there.get("version")?.as_str());
    let built = match version {
        Some(version) if version == sources.version => "built",
        Some(_) => "built from another version",
        None => "not built",
    };
    println!("{:10} {:22} {:32} {built:9} {}", object.name, sources.version, sources.origin, object.about());
}
