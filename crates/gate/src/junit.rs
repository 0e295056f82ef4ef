//! A gate as JUnit XML, which every CI shows: a suite a program, a test case a metric.

use heaptoll_report::ReportError;
use heaptoll_report::format::{NOT_DECIDED, printable_lines};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::diagnosis;
use super::figures::{Figures, MetricFigures, MetricVerdict, Outputs, Program, Refused};
use super::values::{change, value};

/// The XML. `is_strict`: what could not be decided is an error, and is skipped otherwise.
///
/// # Errors
/// The XML cannot be written.
pub fn xml(figures: &Figures, is_strict: bool) -> Result<String, ReportError> {
    let mut report = Report::new("heaptoll gate");
    report.add_test_suites(figures.refused.iter().map(refused));
    report.add_test_suites(figures.programs.iter().map(|program| suite(program, is_strict)));
    report.to_string().map_err(|error| ReportError::Encode { form: "JUnit", detail: error.to_string() })
}

/// A program that could not be run.
fn refused(refused: &Refused) -> TestSuite {
    let mut suite = TestSuite::new(printable_lines(&refused.name));
    let mut case = TestCase::new("runs", failed(NonSuccessKind::Error, &refused.why, ""));
    case.set_classname(printable_lines(&refused.name));
    suite.add_test_case(case);
    suite
}

fn suite(program: &Program, is_strict: bool) -> TestSuite {
    let mut suite = TestSuite::new(printable_lines(&program.name));
    let property = |name: &str, command: &[String]| {
        Property::new(name, printable_lines(&heaptoll_report::format::shell_command(command)))
    };
    suite.add_property(property("base", &program.base.command));
    suite.add_property(property("new", &program.new.command));
    suite.add_test_case(case(program, "ends as the base does", ended(program)));
    for metric in &program.metrics {
        suite.add_test_case(case(program, metric.metric.name(), status(program, metric, is_strict)));
    }
    suite
}

fn case(program: &Program, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(printable_lines(&program.name));
    case
}

/// Whether the new build ends as the base does, with the same output.
fn ended(program: &Program) -> TestCaseStatus {
    match (&program.failure, program.outputs) {
        (Some(failure), _) => failed(NonSuccessKind::Failure, failure, ""),
        (None, Outputs::Unknown) => skipped("no outputs could be compared"),
        _ => TestCaseStatus::success(),
    }
}

fn status(program: &Program, metric: &MetricFigures, is_strict: bool) -> TestCaseStatus {
    let figures = format!(
        "{}: base {}, new {}, {}",
        metric.metric.name(),
        value(metric.unit, metric.base),
        value(metric.unit, metric.new),
        change(&metric.change)
    );
    match &metric.verdict {
        MetricVerdict::Within => TestCaseStatus::success(),
        MetricVerdict::Broken => {
            let place = diagnosis::cause(&program.into(), metric);
            failed(NonSuccessKind::Failure, &figures, &place.unwrap_or_default())
        }
        MetricVerdict::Undecided { why } if is_strict => failed(NonSuccessKind::Error, &figures, why),
        MetricVerdict::Undecided { why } => skipped(&format!("{NOT_DECIDED}: {why}")),
        MetricVerdict::NotGated { why } => skipped(&format!("{figures}; not gated: {why}")),
    }
}

fn failed(kind: NonSuccessKind, message: &str, description: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(printable_lines(message)).set_type("limit");
    if !description.is_empty() {
        status.set_description(printable_lines(description));
    }
    status
}

fn skipped(why: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(printable_lines(why));
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up;

    #[test]
    fn each_metric_is_a_test_case_and_a_broken_limit_a_failure_with_its_place() {
        let text = xml(&made_up::figures(), false).expect("XML");
        let report = Report::deserialize_from_str(&text).expect("JUnit");
        let suite = &report.test_suites[0];
        assert_eq!((suite.name.as_str(), suite.tests, suite.failures, suite.errors), ("parse", 5, 1, 0));
        assert!(text.contains("parse of prog: 100"), "{text}");
        assert_eq!(report.test_suites.len(), 1);
        let strict = xml(&made_up::figures(), true).expect("XML");
        assert_eq!(Report::deserialize_from_str(&strict).expect("JUnit").test_suites[0].errors, 1);
    }

    #[test]
    fn what_a_program_is_called_ends_no_element() {
        let mut figures = made_up::figures();
        let name = "\u{1b}[2J\"/><failure>&]]>\u{0}\u{202e}";
        figures.programs[0].name = name.into();
        figures.programs[0].failure = Some(name.into());
        figures.programs[0].new.command = vec![name.into()];
        let text = xml(&figures, false).expect("XML");
        let report = Report::deserialize_from_str(&text).expect("JUnit");
        assert_eq!(report.test_suites[0].failures, 2);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{text}");
    }
}
