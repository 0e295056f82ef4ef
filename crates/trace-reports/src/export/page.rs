//! The call stacks of a trace, or of another tool's profile, as a page with heaptoll's own flame graph.

use std::path::PathBuf;

use heaptoll_callsites::Rows;
use heaptoll_profiles::{Frame, Measure, Profile, Unit};
use heaptoll_report::document::{Document, Flame, Item, Section, Table};
use heaptoll_report::format::{plural, printable, seconds, shell_command};
use heaptoll_report::{ReportError, files, html};
use heaptoll_units::{number, percent, whole_bytes};

use super::profile::{self, Exported, ProfileRequest};
use super::target;
use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;

/// Call stacks in the table.
const ROWS: usize = 20;

/// Writes the page. Returns whether the trace is whole.
///
/// # Errors
/// It is neither a trace nor a profile, has no call stacks, or cannot be read; the file exists, or cannot be written.
pub fn run(request: &ProfileRequest, messages: &dyn Messages) -> Result<bool, Failure> {
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

fn output(request: &ProfileRequest) -> Result<PathBuf, Failure> {
    if request.output.as_deref() == Some(std::path::Path::new("-")) {
        return Err(Failure::Usage("a page cannot go to standard output: name a file with -o".into()));
    }
    let path = target::path(&request.trace, request.output.as_deref(), |name| format!("{name}.html"))?;
    target::check(&path, request.force)?;
    Ok(path)
}

fn document(profile: Profile, warnings: &[String], remarks: &[String], request: &ProfileRequest) -> Document {
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
    let command = ["heaptoll", "trace", "export", &trace, "--to", "html"].map(str::to_owned);
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
    match unit {
        Unit::Bytes => whole_bytes(value),
        Unit::Nanoseconds => format!("{} s", seconds(value as f64 / 1e9)),
        _ => number(value),
    }
}

/// The call stacks with most, by the program's own functions, as in every table.
fn table(profile: &Profile, measure: Measure) -> Table {
    let column = profile.column(measure).unwrap_or(0);
    let total = profile.total(measure).max(1);
    let place = |frame: &Frame| match frame.line {
        0 => String::new(),
        line => format!("{}:{line}", frame.file),
    };
    let lines: Vec<String> = profile.frames().iter().map(place).collect();
    let (mut rows, mut sums) = (Rows::new(heaptoll_callsites::FRAMES), Vec::<u64>::new());
    for stack in profile.stacks().filter(|stack| stack.values.get(column) > Some(&0)) {
        let numbers: Vec<u32> =
            profile.path(stack.call).map(|call| profile.calls()[call as usize].frame).collect();
        let row = rows.stack(&numbers, |number| {
            let frame = profile.frames().get(number as usize)?;
            Some(heaptoll_callsites::Frame {
                function: &frame.function,
                line: &lines[number as usize],
                object: &frame.object,
                offset: frame.offset,
            })
        });
        sums.resize(sums.len().max(row + 1), 0);
        sums[row] = sums[row].saturating_add(stack.values[column]);
    }
    let mut named: Vec<(u64, String)> =
        sums.into_iter().enumerate().map(|(row, value)| (value, printable(&rows.name(row)))).collect();
    named.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    Table::of(named.into_iter().take(ROWS))
        .sites("Call stack", |(_, name)| name.clone())
        .figure(measure.title(), |(value, _)| amount(measure.unit(), *value))
        .figure("of all", |(value, _)| percent(*value as f64 / total as f64))
        .table()
}

#[cfg(test)]
mod tests {
    use heaptoll_profiles::Builder;

    use super::*;

    /// Before, a row was the standard library's frames, cut before the first one of the program.
    #[test]
    fn rows_of_the_page_begin_with_the_programs_own_functions() {
        let mut builder = Builder::new(vec![Measure::AllocatedBytes]);
        let frame = |function: &str, line| Frame {
            function: function.into(),
            file: "x.cc".into(),
            line,
            ..Frame::default()
        };
        let inner = ["operator new(unsigned long)", "std::a<int>()", "std::b()", "std::c()", "std::d()"];
        for (made, bytes) in [("Conn* make<Conn>()", 5), ("Session* make<Session>()", 9)] {
            let stack = inner.iter().map(|name| frame(name, 0)).chain([frame(made, 3), frame("main", 7)]);
            let stack: Vec<u32> = stack.map(|frame| builder.frame(frame)).collect();
            builder.stack(&stack, &[bytes]);
        }
        let table = table(&builder.finish(), Measure::AllocatedBytes);
        let cells: Vec<_> =
            table.rows.iter().map(|row| (row[0].text.as_str(), row[1].text.as_str())).collect();
        assert_eq!(cells, [("make<Session> (x.cc:3) < main", "9 B"), ("make<Conn> (x.cc:3) < main", "5 B")]);
    }
}
