//! A gate as JUnit XML, which every CI shows: a suite a program, a test case a metric.

use std::fmt::Write;

use heaptoll_report::format::{NOT_DECIDED, printable_lines};

use super::diagnosis;
use super::figures::{Figures, MetricFigures, MetricVerdict, Outputs, Program, Refused};
use super::values::{change, value};

/// How a test case ended.
enum Status {
    Passed,
    Skipped { why: String },
    Failure { message: String, description: String },
    Error { message: String, description: String },
}

/// The test cases of a program.
struct Suite<'a> {
    name: &'a str,
    /// Names and values.
    properties: Vec<(&'static str, String)>,
    /// Names, and how each ended.
    cases: Vec<(&'a str, Status)>,
}

/// The XML. `is_strict`: what could not be decided is an error, and is skipped otherwise.
pub fn xml(figures: &Figures, is_strict: bool) -> String {
    let programs = figures.programs.iter().map(|program| suite(program, is_strict));
    let suites: Vec<Suite> = figures.refused.iter().map(refused).chain(programs).collect();
    let cases: Vec<&Status> = suites.iter().flat_map(|suite| &suite.cases).map(|case| &case.1).collect();
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "<testsuites name=\"heaptoll gate\" {}>", counts(&cases));
    for suite in &suites {
        let cases: Vec<&Status> = suite.cases.iter().map(|case| &case.1).collect();
        let name = escaped(suite.name);
        let _ = writeln!(out, "  <testsuite name=\"{name}\" {}>", counts(&cases));
        if !suite.properties.is_empty() {
            out += "    <properties>\n";
            for (name, value) in &suite.properties {
                let _ = writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", escaped(value));
            }
            out += "    </properties>\n";
        }
        for (case, status) in &suite.cases {
            let start = format!("    <testcase name=\"{}\" classname=\"{name}\"", escaped(case));
            let _ = match element(status) {
                Some(inner) => writeln!(out, "{start}>\n      {inner}\n    </testcase>"),
                None => writeln!(out, "{start}/>"),
            };
        }
        out += "  </testsuite>\n";
    }
    out + "</testsuites>\n"
}

/// The attributes that count test cases.
fn counts(cases: &[&Status]) -> String {
    let count = |is: fn(&Status) -> bool| cases.iter().filter(|status| is(status)).count();
    format!(
        "tests=\"{}\" skipped=\"{}\" errors=\"{}\" failures=\"{}\"",
        cases.len(),
        count(|status| matches!(status, Status::Skipped { .. })),
        count(|status| matches!(status, Status::Error { .. })),
        count(|status| matches!(status, Status::Failure { .. })),
    )
}

/// What a test case has inside that did not pass.
fn element(status: &Status) -> Option<String> {
    let with = |name: &str, message: &str, description: &str| {
        let (message, description) = (escaped(message), escaped(description));
        format!("<{name} message=\"{message}\" type=\"limit\">{description}</{name}>")
    };
    match status {
        Status::Passed => None,
        Status::Skipped { why } => Some(format!("<skipped message=\"{}\"/>", escaped(why))),
        Status::Failure { message, description } => Some(with("failure", message, description)),
        Status::Error { message, description } => Some(with("error", message, description)),
    }
}

/// Text in which nothing ends an attribute or an element, and that has no characters that XML cannot.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable_lines(text).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            // An attribute's line ends would be read as blanks.
            '\n' => out += "&#10;",
            '\t' => out += "&#9;",
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A program that could not be run.
fn refused(refused: &Refused) -> Suite<'_> {
    let error = Status::Error { message: refused.why.clone(), description: String::new() };
    Suite { name: &refused.name, properties: vec![], cases: vec![("runs", error)] }
}

fn suite(program: &Program, is_strict: bool) -> Suite<'_> {
    let command = heaptoll_report::format::shell_command;
    let metrics = program.metrics.iter();
    let cases = metrics.map(|metric| (metric.metric.name(), status(program, metric, is_strict)));
    Suite {
        name: &program.name,
        properties: vec![("base", command(&program.base.command)), ("new", command(&program.new.command))],
        cases: std::iter::once(("ends as the base does", ended(program))).chain(cases).collect(),
    }
}

/// Whether the new build ends as the base does, with the same output.
fn ended(program: &Program) -> Status {
    match (&program.failure, program.outputs) {
        (Some(failure), _) => Status::Failure { message: failure.clone(), description: String::new() },
        (None, Outputs::Unknown) => Status::Skipped { why: "no outputs could be compared".into() },
        _ => Status::Passed,
    }
}

fn status(program: &Program, metric: &MetricFigures, is_strict: bool) -> Status {
    let message = format!(
        "{}: base {}, new {}, {}",
        metric.metric.name(),
        value(metric.unit, metric.base),
        value(metric.unit, metric.new),
        change(&metric.change)
    );
    match &metric.verdict {
        MetricVerdict::Within => Status::Passed,
        MetricVerdict::Broken => {
            let description = diagnosis::place(&program.into(), metric.metric).unwrap_or_default();
            Status::Failure { message, description }
        }
        MetricVerdict::Undecided { why } if is_strict => Status::Error { message, description: why.clone() },
        MetricVerdict::Undecided { why } => Status::Skipped { why: format!("{NOT_DECIDED}: {why}") },
        MetricVerdict::NotGated { why } => Status::Skipped { why: format!("{message}; not gated: {why}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::made_up;

    #[test]
    fn each_metric_is_a_test_case_and_a_broken_limit_a_failure_with_its_place() {
        let text = xml(&made_up::figures(), false);
        let suite = "<testsuite name=\"parse\" tests=\"5\" skipped=\"3\" errors=\"0\" failures=\"1\">";
        assert!(text.contains(suite), "{text}");
        assert!(text.contains("parse of prog: 100"), "{text}");
        assert_eq!(
            (text.matches("<testsuite ").count(), text.matches("<testcase ").count()),
            (1, 5),
            "{text}"
        );
        assert!(xml(&made_up::figures(), true).contains("errors=\"1\" failures=\"1\">"));
    }

    #[test]
    fn what_a_program_is_called_ends_no_element() {
        let mut figures = made_up::figures();
        let name = "\u{1b}[2J\"/><failure>&]]>\u{0}\u{202e}\n\u{ffff}";
        let shown = "\\u{1b}[2J&quot;/&gt;&lt;failure&gt;&amp;]]&gt;\\u{0}\\u{202e}&#10;\u{fffd}";
        figures.programs[0].name = name.into();
        figures.programs[0].failure = Some(name.into());
        figures.programs[0].new.command = vec![name.into()];
        let text = xml(&figures, false);
        assert_eq!(text.matches("<failure ").count(), 2, "{text}");
        for place in [
            format!("<testsuite name=\"{shown}\" "),
            format!("classname=\"{shown}\""),
            format!("<failure message=\"{shown}\" type=\"limit\"></failure>"),
        ] {
            assert!(text.contains(&place), "{place} in {text}");
        }
        assert!(text.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{text}");
        // What is left without the elements and their attributes is indented, and nothing else.
        let outside = text.split('<').filter_map(|part| part.split_once('>')).map(|(_, after)| after.trim());
        let outside: Vec<&str> = outside.filter(|after| !after.is_empty()).collect();
        assert_eq!(outside.len(), 1, "the place of the broken limit: {outside:?}");
    }
}
