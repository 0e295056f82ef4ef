//! What every document of a trace has: warnings, facts and the command; and the names in it.

use std::path::Path;

use heaptoll_ledger::{EXTRA, Ledger};
use heaptoll_preflight::own_heap_of_trace;
use heaptoll_report::document::Document;
use heaptoll_report::format::{plural, shell_command};
use heaptoll_trace::Tables;
use heaptoll_trace_analysis::subject::takes_all_from_malloc;

use crate::subject::manager_name;

/// Adds warnings, facts and the command.
pub fn finish(document: &mut Document, tables: &Tables, command: &str) {
    document.warnings.extend(tables.warnings.iter().cloned());
    if !takes_all_from_malloc(&tables.header) {
        document.warnings.extend(own_heap_of_trace(Path::new(&tables.header.exe)));
    }
    if let Some(missed) = missed_peak(tables) {
        document.warnings.push(missed);
    }
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
    document.command = command.into();
}

/// A warning that the process was larger between the snapshots than in any of them, by more than a twentieth.
fn missed_peak(tables: &Tables) -> Option<String> {
    let ledger = tables.extra::<Ledger>(EXTRA)?.ok()?;
    let sampled_kib = ledger.snapshots.get(ledger.peak()?)?.rss_bytes / 1024;
    let seen = tables.samples.iter().max_by_key(|sample| sample.rss_kib)?;
    (seen.rss_kib > sampled_kib + sampled_kib / 20).then(|| {
        format!(
            "The peak was not sampled: {} KiB were resident after {:.3} s, and {sampled_kib} KiB in the largest of \
            {}. What follows is of these snapshots: fragmentation that comes after them is not in it. A snapshot is taken \
            before the program ends by `exit`, and others in shares of its time: let a program that is killed, ends by \
            `_exit` or frees all before it ends stay at its peak for longer, or give it a machine with less other work.",
            seen.rss_kib,
            seen.time_ns as f64 / 1e9,
            plural(ledger.snapshots.len(), "snapshot")
        )
    })
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
