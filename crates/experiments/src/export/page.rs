//! The call stacks of a trace, or of another tool's profile, as a page with heaptoll's own flame graph.

use std::path::PathBuf;

use heaptoll_profiles::{Measure, Profile, Unit};
use heaptoll_report::document::{Column, Document, Flame, Item, Section, Table};
use heaptoll_report::format::{plural, printable, shell_command};
use heaptoll_report::{ReportError, files, html};
use heaptoll_units::{number, percent, whole_bytes};

use super::profile::{self, Exported, Request};
use super::target;
use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;

/// Call stacks in the table.
const ROWS: usize = 20;
/// Functions of a call stack in it.
const FUNCTIONS: usize = 4;

/// Writes the page. Returns whether the trace is whole.
///
/// # Errors
/// It is neither a trace nor a profile, has no call stacks, or cannot be read; the file exists, or cannot be written.
pub fn run(request: &Request, messages: &dyn Messages) -> Result<bool, Failure> {
    let path = output(request)?;
    let Exported { profile, is_whole, warnings, remarks, .. } = profile::exported(request)?;
    let stacks = profile.stacks().len();
    let document = document(profile, &warnings, &remarks, request);
    let page = html::document::render(&document)?;
    files::write_atomically(&path, |out| {
        out.write_all(page.as_bytes()).map_err(|source| ReportError::Stream { form: "page", source })
    })?;
    messages.note(&format!("wrote {} to {}", plural(stacks, "call stack"), path.display()));
    warnings.iter().for_each(|warning| messages.warning(warning));
    Ok(is_whole)
}

fn output(request: &Request) -> Result<PathBuf, Failure> {
    if request.output.as_deref() == Some(std::path::Path::new("-")) {
        return Err(Failure::Usage("a page is not written to standard output: name a file with -o".into()));
    }
    let path = target::path(&request.trace, request.output.as_deref(), |name| format!("{name}.html"))?;
    target::check(&path, request.force)?;
    Ok(path)
}

fn document(profile: Profile, warnings: &[String], remarks: &[String], request: &Request) -> Document {
    let first = [Measure::EndBytes, Measure::AllocatedBytes, Measure::EndObjects, Measure::AllocatedObjects]
        .into_iter()
        .find(|measure| profile.total(*measure) > 0)
        .unwrap_or(Measure::AllocatedBytes);
    let totals =
        profile.measures().iter().filter(|measure| measure.adds_up()).map(|&measure| {
            format!("{}: {}", measure.title(), amount(measure.unit(), profile.total(measure)))
        });
    let program = printable(profile.subject.program());
    let trace = request.trace.display().to_string();
    let command = ["heaptoll", "export", &trace, "--to", "html"].map(str::to_owned);
    Document {
        title: if program.is_empty() { "Call stacks".into() } else { format!("Call stacks of {program}") },
        subtitle: totals.collect::<Vec<_>>().join("; "),
        warnings: warnings.iter().chain(remarks).cloned().collect(),
        sections: vec![Section {
            title: "Call stacks".into(),
            text: Vec::new(),
            items: vec![
                Item::Table(table(&profile, first)),
                Item::Flame(Flame {
                    title: "Call stacks that allocate".into(),
                    caption: "An object counts for the call stack that allocated it.".into(),
                    profile,
                    first,
                    base: None,
                }),
            ],
        }],
        facts: vec![("file".into(), trace)],
        command: shell_command(&command),
        ..Document::default()
    }
}

fn amount(unit: Unit, value: u64) -> String {
    if unit == Unit::Bytes { whole_bytes(value) } else { number(value) }
}

/// The call stacks with most.
fn table(profile: &Profile, measure: Measure) -> Table {
    let column = profile.column(measure).unwrap_or(0);
    let total = profile.total(measure).max(1);
    let mut stacks: Vec<_> = profile.stacks().filter(|stack| stack.values.get(column) > Some(&0)).collect();
    stacks.sort_by_key(|stack| std::cmp::Reverse(stack.values[column]));
    let rows = stacks.into_iter().take(ROWS).map(|stack| {
        let functions: Vec<String> =
            profile.frames_of(stack.call).take(FUNCTIONS).map(|frame| printable(&frame.name())).collect();
        let value = stack.values[column];
        vec![functions.join(" < "), amount(measure.unit(), value), percent(value as f64 / total as f64)]
    });
    Table {
        columns: vec![
            Column::sites("Call stack"),
            Column::figures(measure.title()),
            Column::figures("of all"),
        ],
        rows: rows.collect(),
        ..Table::default()
    }
}
