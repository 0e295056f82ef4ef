//! `heaptoll lab corpus -o DIR`: twenty programs recorded into one folder.

use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_experiments::corpus::make::{Request, make};
use heaptoll_experiments::corpus::{Selected, check};
use heaptoll_report::format::{count, mib_from_bytes, plural, shell_path};

use crate::memory::bytes;
use crate::session::Session;
use crate::{exit, terminal};

/// Record twenty programs of the catalog into one folder, as a corpus of traces for studies of allocation.
///
/// Each program is recorded with call sites over its own malloc, with an input that makes a trace of some MiB. The
/// folder contains README.md and an index, corpus.json: commands, digests, Debian packages, machine and events. A
/// program whose traces exist is not recorded again. To go on after a stop, or after a package was installed, run the
/// same command.
///
/// Exit status: 0 all are there; 1 a program is missing (it is named, with its package), or with --check a trace
/// differs from the index; 2 bad request; 130 interrupted (recorded traces are kept).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll lab corpus -o traces\n  \
    heaptoll lab corpus -o traces -p cfrac -p gawk          (these two)\n  \
    heaptoll lab corpus --check traces\n  \
    heaptoll trace stat traces/cfrac.heaptoll")]
pub struct Arguments {
    /// The folder
    #[arg(short, long, value_name = "DIR", required_unless_present = "check")]
    output: Option<PathBuf>,
    /// A program of the catalog instead of the twenty; may be given several times
    #[arg(short, long, value_name = "NAME")]
    program: Vec<String>,
    /// A folder with your own catalog entries (docs/questions/programs.md)
    #[arg(long, value_name = "DIR")]
    catalog: Option<PathBuf>,
    /// The most that the traces of one program may take
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = bytes)]
    most: u64,
    /// The SPDX identifier of the licence that you give the traces
    #[arg(long, value_name = "LICENSE", default_value = "CC0-1.0")]
    license: String,
    /// Verify a corpus: every file matches the index, every trace is readable to its end
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "program", "catalog", "most", "license"])]
    check: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    match (&arguments.check, &arguments.output) {
        (Some(folder), _) => checked(folder),
        (None, Some(folder)) => made(arguments, folder),
        _ => Err(Failure::Usage("name a folder (-o)".into())),
    }
}

fn made(arguments: &Arguments, folder: &Path) -> Result<u8, Failure> {
    let programs = match arguments.program.as_slice() {
        [] => Selected::all(),
        named => named.iter().map(|name| Selected::named(name)).collect(),
    };
    let request = Request {
        folder: folder.to_path_buf(),
        programs,
        catalog: arguments.catalog.clone(),
        most_bytes: arguments.most,
        license: arguments.license.clone(),
    };
    let session = Session::begin()?;
    let corpus = make(&request, &session.context())?;
    terminal::note(&format!(
        "{}: {}, {} events in {} MiB; verify it with: heaptoll lab corpus --check {}",
        folder.display(),
        plural(corpus.programs.len(), "program"),
        count(corpus.events() as f64),
        mib_from_bytes(corpus.bytes() as f64),
        shell_path(folder)
    ));
    match (corpus.missing.as_slice(), corpus.programs.is_empty()) {
        ([], _) => Ok(0),
        (_, false) => Ok(exit::TROUBLE),
        (missing, true) => {
            Err(Failure::Usage(format!("none of {} could be recorded", plural(missing.len(), "program"))))
        }
    }
}

fn checked(folder: &Path) -> Result<u8, Failure> {
    let found = check::check(folder).map_err(|error| Failure::Refused(Box::new(error)))?;
    for (path, why) in &found.faults {
        terminal::warning(&format!("{path}: {why}"));
    }
    for missing in &found.corpus.missing {
        terminal::note(&format!("not recorded: {}", missing.why));
    }
    let (traces, faults) = (found.corpus.traces().count(), found.faults.len());
    terminal::print(&format!(
        "{} of {} whole, of {}: {} events in {} MiB\n",
        traces - faults,
        plural(traces, "trace"),
        plural(found.corpus.programs.len(), "program"),
        count(found.corpus.events() as f64),
        mib_from_bytes(found.corpus.bytes() as f64)
    ))?;
    Ok(if faults == 0 { 0 } else { exit::TROUBLE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use heaptoll_experiments::corpus::MOST_BYTES;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn the_usual_limit_is_that_of_the_library() {
        let words = Words::try_parse_from(["corpus", "-o", "x"]).expect("it is taken");
        assert_eq!(words.arguments.most, MOST_BYTES);
        assert!(Words::try_parse_from(["corpus"]).is_err());
        assert!(Words::try_parse_from(["corpus", "--check", "x", "-o", "y"]).is_err());
    }
}
