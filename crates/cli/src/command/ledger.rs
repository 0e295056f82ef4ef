//! `heaptoll ledger`: Where the memory of a program is.

use std::path::PathBuf;

use clap::Args;
use heaptoll_ledger::{EXTRA, Ledger, LedgerError, Point};
use heaptoll_trace::Tables;
use serde::Serialize;

use crate::documents::DocumentOutputs;
use crate::failure::Failure;

mod document;

/// Where the memory of a program is: one sum that closes against its resident set.
///
/// Live bytes, fragmentation, caches, metadata, what a collector has not reclaimed, and what is no heap at all, each with
/// what of it is in memory and what is only mapped; at the peak, at other moments and over time. docs/ledger.md says how
/// each is known.
///
/// Exit status: 0 all well; 1 an output file could not be written; 2 the trace cannot be read or has nothing to show.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll record --ledger -o perl.heaptoll -- perl script.pl\n  \
    heaptoll ledger perl.heaptoll --html perl.html")]
pub struct Arguments {
    /// A trace that was recorded with --ledger
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

/// What the JSON file holds.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Figures<'a> {
    /// Of looks at the process.
    Pages {
        program: &'a str,
        manager: &'a str,
        collector: bool,
        collected: bool,
        /// Number of the moment with the largest resident set, and of that with the most live bytes.
        peak: Option<usize>,
        most_live: Option<usize>,
        moments: &'a [heaptoll_ledger::Moment],
    },
    /// Of samples.
    Coarse { program: &'a str, manager: &'a str, points: &'a [Point] },
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    arguments.outputs.check()?;
    show(&arguments.trace, &arguments.outputs)
}

/// Shows the ledger of a trace.
fn show(trace: &PathBuf, outputs: &DocumentOutputs) -> Result<u8, Failure> {
    let refused = |error: LedgerError| Failure::Refused(Box::new(error));
    let tables = heaptoll_trace::tables(trace).map_err(|error| refused(error.into()))?;
    let ledger = tables.extra::<Ledger>(EXTRA).transpose().map_err(|error| refused(error.into()))?;
    let (program, manager) = (program(&tables), manager(&tables));
    let command = format!("heaptoll ledger {}", trace.display());
    match ledger.filter(|ledger| !ledger.moments.is_empty()) {
        Some(mut ledger) => {
            if ledger.manager.is_empty() {
                ledger.manager.clone_from(&manager);
            }
            let mut document = document::document(&ledger, &program);
            finish(&mut document, &tables, command);
            let figures = Figures::Pages {
                program: &program,
                manager: &ledger.manager,
                collector: ledger.collector,
                collected: ledger.collected,
                peak: ledger.peak(),
                most_live: ledger.fullest(),
                moments: &ledger.moments,
            };
            outputs.deliver(&document, "heaptoll-ledger/1", &figures)
        }
        None => {
            let points = heaptoll_ledger::coarse(trace).map_err(refused)?;
            let mut document = document::coarse(&points, &manager, &program);
            finish(&mut document, &tables, command);
            let figures = Figures::Coarse { program: &program, manager: &manager, points: &points };
            outputs.deliver(&document, "heaptoll-ledger/1", &figures)
        }
    }
}

/// What every document of a trace says besides.
fn finish(document: &mut heaptoll_report::document::Document, tables: &Tables, command: String) {
    document.warnings.extend(tables.warnings.iter().cloned());
    for gap in &tables.gaps {
        document.warnings.push(format!("The trace has a hole ({}): blocks may be missing.", gap.why));
    }
    if let Some(ending) = &tables.ending {
        document.facts.push(("ended".into(), ending.how.clone()));
        if let Some(peak) = ending.peak_rss_kib {
            document.facts.push(("peak resident set of the run".into(), format!("{peak} KiB")));
        }
    }
    document.facts.extend(tables.header.machine.iter().cloned());
    document.command = command;
}

fn program(tables: &Tables) -> String {
    match tables.header.command.is_empty() {
        true => tables.header.exe.clone(),
        false => heaptoll_report::format::shell_command(&tables.header.command),
    }
}

fn manager(tables: &Tables) -> String {
    match tables.header.manager.as_str() {
        "" => "an unknown manager".into(),
        name => name.into(),
    }
}
