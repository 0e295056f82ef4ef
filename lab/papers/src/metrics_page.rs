//! The metrics on the page of a study's file, made from their declarations: `make reference` writes them.

use heaptoll_compare::comparative::Comparable;
use heaptoll_facts::Metric;
use heaptoll_laboratory::comparative::ALL;

use crate::definition::StepKind;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/study-format.md");
const HEAD: &str = "\n| kind | metrics |\n|---|---|\n";

fn metric(metric: &Metric) -> String {
    let end = if metric.is_open { "NAME" } else { "" };
    let names = metric.beginnings.iter().map(|beginning| format!("`{beginning}{}{end}`", metric.id));
    format!("{} ({})", names.collect::<Vec<_>>().join(", "), metric.about)
}

/// None of a command that studies do not run.
fn row(command: &Comparable) -> Option<String> {
    StepKind::of(command)?;
    let kind = command.name.rsplit([' ', '-']).next().unwrap_or_default();
    let metrics: Vec<String> = command.metrics.iter().map(metric).collect();
    Some(format!("| `{kind}` | {} |\n", metrics.join(", ")))
}

#[test]
fn the_page_has_the_metrics_of_every_kind_of_step() {
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let (before, rest) = page.split_once(HEAD).expect("the table");
    let (_, after) = rest.split_once("\n\n").expect("its end");
    let expected = format!("{before}{HEAD}{}\n{after}", ALL.iter().filter_map(row).collect::<String>());
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &expected).expect("the page");
    } else {
        assert!(page == expected, "WRITE_DOCS=1 writes the table of metrics");
    }
}
