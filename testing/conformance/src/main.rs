//! `heaptoll-conformance`: compiles the suite and runs it over managers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use heaptoll_conformance::error::{Error, file};
use heaptoll_conformance::glibc::{self, Tests};
use heaptoll_conformance::outputs::{self, Output};
use heaptoll_conformance::suite::{self, Case, CaseKind, Suite};
use heaptoll_conformance::verdict::{self, Cell};
use heaptoll_conformance::{deviation, exceptions, misuse, security, table};
use heaptoll_experiment::manager::{self, Manager, ManagerError};
use heaptoll_experiment::places::Places;
use heaptoll_experiment::stack::StackError;
use serde::Serialize;

/// Run the conformance suite over managers, each case in a process of its own.
///
/// Exit status: 0 all is as expected; 1 a case fails, or a known deviation has disappeared; 2 the suite could not be
/// run.
#[derive(Debug, Parser)]
#[command(version, name = "heaptoll-conformance", args_conflicts_with_subcommands = true)]
struct Arguments {
    /// Managers by name or by path, or a group of them: modern, historic, collectors, all [default: all known here but those that were added]
    #[arg(value_name = "MANAGER")]
    managers: Vec<String>,
    /// Only this case; may be given several times
    #[arg(long, value_name = "NAME")]
    case: Vec<String>,
    /// Put layers in front of each manager: forward, quarantine=64K,check=on
    #[arg(long = "behind", value_name = "LAYERS")]
    layers: Option<String>,
    /// List the cases and run none
    #[arg(long)]
    list: bool,
    /// List the known deviations as a Markdown table and run nothing
    #[arg(long)]
    deviations: bool,
    /// Write verdicts, notes and records as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Record the effects of program defects, instead of judging
    #[arg(long)]
    misuse: bool,
    /// Fewer repetitions
    #[arg(long)]
    quick: bool,
    /// Folder with the suite's C sources
    #[arg(long, value_name = "DIR", default_value_os_t = suite::sources())]
    sources: PathBuf,
    /// Folder for what is compiled [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Subcommand>,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    /// Run every program of the catalog once under every manager and print a table of whether the output is the same
    Outputs {
        /// Managers by name or by path, or a group of them: modern, historic, collectors, all [default: all known here]
        #[arg(value_name = "MANAGER")]
        managers: Vec<String>,
        /// The heaptoll to call [default: the one in this program's folder]
        #[arg(long, value_name = "FILE")]
        heaptoll: Option<PathBuf>,
    },
    /// Record whether an attacker gains by a program's defects under each stack: double and invalid frees, writes past
    /// blocks and to freed ones, secrets read; detected, stopped, prevented, late (after its effect), or – (not at all)
    ///
    /// Nothing is judged: the exit status is 0 whatever the table shows, and 2 where it could not be made.
    Security(Attacks),
    /// The same for each of Juliet's shapes of CWE-415 (double free) and CWE-416 (use after free): types of data, ways to
    /// allocate, and numbered flows of the data. A read after the free may give zeroes, too
    ///
    /// The cases are written anew, and named as Juliet's. A – is a read of another object's data, or a block of two
    /// owners.
    Juliet(Attacks),
    /// Run glibc's own tests of malloc, from its unpacked source package (scripts/glibc-tests fetches it)
    Glibc {
        /// Managers and stacks of layers by name [default: glibc, all of this repository, both layers]
        #[arg(value_name = "MANAGER")]
        managers: Vec<String>,
        /// The unpacked source package of glibc
        #[arg(long, value_name = "DIR")]
        source: PathBuf,
        /// Only this test; may be given several times
        #[arg(long, value_name = "NAME")]
        test: Vec<String>,
        /// List the exceptions as a Markdown table and run nothing
        #[arg(long)]
        exceptions: bool,
    },
}

/// Which attacks, on what.
#[derive(Debug, clap::Args)]
struct Attacks {
    /// Managers and stacks of layers by name or by path, or a group [default: all known here, and the layers quarantine,
    /// sweep and guard in front of glibc and of mimalloc3]
    #[arg(value_name = "STACK")]
    stacks: Vec<String>,
    /// Only this case; may be given several times
    #[arg(long, value_name = "NAME")]
    case: Vec<String>,
    /// List the cases and run none
    #[arg(long)]
    list: bool,
    /// Write cases, stacks and outcomes as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Folder with the suite's C sources
    #[arg(long, value_name = "DIR", default_value_os_t = suite::sources())]
    sources: PathBuf,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    cases: Vec<&'a Case>,
    managers: Vec<(String, String)>,
    verdicts: Vec<Cell>,
    misuse: Vec<misuse::Record>,
}

#[derive(Serialize)]
struct SecurityReport<'a> {
    schema: String,
    cases: Vec<&'a Case>,
    stacks: Vec<(String, String)>,
    attacks: Vec<security::Attack>,
}

/// Stacks with layers that are measured by default next to the managers.
const LAYERED: [&str; 6] = [
    "quarantine=1M,check=on,abort=on/glibc",
    "quarantine=1M,check=on,abort=on/mimalloc3",
    "sweep/glibc",
    "sweep/mimalloc3",
    "guard/glibc",
    "guard/mimalloc3",
];

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Some(Subcommand::Outputs { managers, heaptoll }) => {
            compare_outputs(managers, &heaptoll.clone().unwrap_or_else(sibling_heaptoll))
        }
        Some(Subcommand::Glibc { exceptions: true, .. }) => {
            println!("{}", exceptions::markdown());
            Ok(true)
        }
        Some(Subcommand::Glibc { managers, source, test, .. }) => pass_glibc_tests(managers, source, test),
        Some(Subcommand::Security(attacks)) => attack("security", attacks).map(|()| true),
        Some(Subcommand::Juliet(attacks)) => attack("juliet", attacks).map(|()| true),
        None => conform(&arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("heaptoll-conformance: {error}");
            ExitCode::from(2)
        }
    }
}

/// The heaptoll in this program's own folder; the name alone, for the PATH, where that is not known.
fn sibling_heaptoll() -> PathBuf {
    std::env::current_exe().map_or_else(|_| "heaptoll".into(), |own| own.with_file_name("heaptoll"))
}

/// The managers with layers, such as `quarantine=64K`, in front of each. Stacks that cannot be built are left out with
/// a message.
fn in_front_of(layers: &str, managers: Vec<Manager>, places: &Places) -> Result<Vec<Manager>, Error> {
    let known = manager::known(places)?;
    let mut stacks = Vec::new();
    for manager in managers {
        match manager::find(&known, &format!("{layers}/{}", manager.name)) {
            Ok(stack) => stacks.push(stack),
            Err(ManagerError::Stack(error @ StackError::Nonsense { .. })) => eprintln!("left out: {error}"),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(stacks)
}

fn chosen(names: &[String], places: &Places) -> Result<Vec<Manager>, Error> {
    if names.is_empty() {
        return Ok(manager::installed(places)?);
    }
    Ok(manager::choose(&manager::known(places)?, names.iter().map(String::as_str))?)
}

fn conform(arguments: &Arguments) -> Result<bool, Error> {
    if arguments.deviations {
        println!("{}", deviation::markdown());
        return Ok(true);
    }
    let folder = tempfile::tempdir()
        .map_err(|source| Error::Process { what: "a compiler in a temporary folder".into(), source })?;
    let suite = Suite::build(&arguments.sources, arguments.work.as_deref().unwrap_or(folder.path()))?;
    let cases: Vec<&Case> = if arguments.case.is_empty() {
        suite.cases.iter().filter(|case| (case.kind == CaseKind::Misuse) == arguments.misuse).collect()
    } else {
        arguments.case.iter().map(|name| suite.case(name)).collect::<Result<_, _>>()?
    };
    if arguments.list {
        for case in &suite.cases {
            println!("{:24} {}", case.name, case.about);
        }
        return Ok(true);
    }
    let places = Places::find()?;
    let mut managers = chosen(&arguments.managers, &places)?;
    if let Some(layers) = &arguments.layers {
        managers = in_front_of(layers, managers, &places)?;
    }
    for manager in &managers {
        suite.check_bound(&manager.name, &manager.preload(&places), &manager.environment)?;
    }
    if let Some(path) = &arguments.json {
        // Minutes of cases should not be lost because the folder does not exist.
        file("write", path, std::fs::File::options().append(true).create(true).open(path))?;
    }
    let (judged, recorded): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| case.kind != CaseKind::Misuse);
    let verdicts = verdict::run(&suite, &places, &managers, &judged, arguments.quick)?;
    let records = misuse::run(&suite, &places, &managers, &recorded)?;
    if !verdicts.is_empty() {
        println!("{}", table::verdicts(&verdicts));
    }
    if !records.is_empty() {
        println!("{}", table::misuses(&records));
    }
    let well = verdicts.iter().all(|cell| cell.verdict.is_expected());
    if let Some(path) = &arguments.json {
        let managers = managers.iter().map(|m| (m.name.clone(), m.version.clone())).collect();
        let report = Report { schema: "heaptoll.conformance/1", cases, managers, verdicts, misuse: records };
        file("write", path, std::fs::write(path, serde_json::to_string_pretty(&report)?))?;
    }
    Ok(well)
}

/// Runs the attacks in the folder `subject` of the sources.
fn attack(subject: &str, attacks: &Attacks) -> Result<(), Error> {
    let folder = tempfile::tempdir()
        .map_err(|source| Error::Process { what: "a compiler in a temporary folder".into(), source })?;
    let suite = Suite::build_attacks(&attacks.sources, subject, folder.path())?;
    if attacks.list {
        suite.cases.iter().for_each(|case| println!("{:26} {}", case.name, case.about));
        return Ok(());
    }
    let cases: Vec<&Case> = match attacks.case.as_slice() {
        [] => suite.cases.iter().collect(),
        only => only.iter().map(|name| suite.case(name)).collect::<Result<_, _>>()?,
    };
    let places = Places::find()?;
    let mut stacks = chosen(&attacks.stacks, &places)?;
    if attacks.stacks.is_empty() {
        let known = manager::known(&places)?;
        // One whose manager is not built here is left out, as that manager is.
        stacks.extend(LAYERED.iter().filter_map(|name| manager::find(&known, name).ok()));
    }
    for stack in &stacks {
        suite.check_bound(&stack.name, &stack.preload(&places), &stack.environment)?;
    }
    let found = security::run(&suite, &places, &stacks, &cases)?;
    println!("{}", table::attacks(&found));
    if let Some(path) = &attacks.json {
        let stacks = stacks.iter().map(|stack| (stack.name.clone(), stack.version.clone())).collect();
        let report =
            SecurityReport { schema: format!("heaptoll.{subject}/1"), cases, stacks, attacks: found };
        file("write", path, std::fs::write(path, serde_json::to_string_pretty(&report)?))?;
    }
    Ok(())
}

fn pass_glibc_tests(names: &[String], source: &Path, only: &[String]) -> Result<bool, Error> {
    let places = Places::find()?;
    let managers = if names.is_empty() { glibc::default_stacks(&places)? } else { chosen(names, &places)? };
    let folder = tempfile::tempdir()
        .map_err(|source| Error::Process { what: "a compiler in a temporary folder".into(), source })?;
    let tests = Tests::build(source, folder.path())?;
    if let Some(name) = only.iter().find(|name| !tests.names.contains(name)) {
        return Err(Error::NoCase { name: name.clone() });
    }
    let wanted = |name: &&str| only.is_empty() || only.iter().any(|one| one == name);
    let names: Vec<&str> = tests.names.iter().map(String::as_str).filter(wanted).collect();
    let cells = glibc::run(&tests, &names, &managers, &places)?;
    println!("{}", glibc::table(&cells));
    Ok(cells.iter().all(|cell| cell.verdict.is_expected()))
}

fn compare_outputs(names: &[String], heaptoll: &Path) -> Result<bool, Error> {
    let places = Places::find()?;
    let managers = chosen(names, &places)?;
    let rows = outputs::run(heaptoll, &places, &managers)?;
    let grid: Vec<_> = rows
        .iter()
        .map(|(program, manager, output)| (program.clone(), manager.clone(), output.to_string()))
        .collect();
    println!("{}\n\n{}", outputs::version(heaptoll, &managers)?, table::matrix("program", &grid));
    for (program, manager, output) in &rows {
        if let Output::Failed(why) | Output::Refused(why) = output {
            println!("\n{program} under {manager}: {output}: {why}");
        }
    }
    Ok(rows.iter().all(|(_, _, output)| *output == Output::Same))
}
