//! What every document of a trace has: warnings, facts and the command; and the names in it.

use std::path::Path;

use heaptoll_ledger::{Ledger, Term};
use heaptoll_preflight::{own_heap_by_size, own_heap_of_trace};
use heaptoll_report::document::Document;
use heaptoll_report::format::shell_command;
use heaptoll_trace::Tables;
use heaptoll_trace_analysis::subject::takes_all_from_malloc;

use heaptoll_command::subject::{ended_early, manager_name};

/// Adds warnings, facts and the command.
pub fn finish(document: &mut Document, tables: &Tables, ledger: Option<&Ledger>, command: &str) {
    document.warnings.extend(tables.warnings.iter().cloned());
    let exe = Path::new(&tables.header.exe);
    let named = own_heap_of_trace(exe).filter(|_| !takes_all_from_malloc(&tables.header));
    document.warnings.extend(named.or_else(|| own_heap(exe, ledger?)));
    for gap in &tables.gaps {
        document.warnings.push(format!("The trace has a hole ({}): blocks may be missing.", gap.why));
    }
    if let Some(ending) = &tables.ending {
        document.warnings.extend(ended_early(&ending.how));
        document.facts.push(("ended".into(), ending.how.clone()));
        if let Some(peak) = ending.peak_rss_kib {
            document.facts.push(("peak resident set of the run".into(), format!("at least {peak} KiB")));
        }
    }
    document.facts.extend(tables.header.machine.iter().cloned());
    document.command = command.into();
}

/// The heap of its own of any program, by what it has at the peak.
fn own_heap(exe: &Path, ledger: &Ledger) -> Option<String> {
    let top = &ledger.snapshots[ledger.peak()?];
    let elsewhere = top.amount(Term::OtherAnonymous).resident;
    let requested = ledger.snapshots.last()?.clock_bytes;
    own_heap_by_size(exe, elsewhere + top.amount(Term::Live).resident, requested)
}

/// Program and arguments, as a shell takes them.
pub fn program(tables: &Tables) -> String {
    match tables.header.command.is_empty() {
        true => tables.header.exe.clone(),
        false => shell_command(&tables.header.command),
    }
}

/// The manager that it ran over.
pub fn manager(tables: &Tables) -> String {
    manager_name(&tables.header.manager).to_owned()
}
