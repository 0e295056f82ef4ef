//! A gate for github-action-benchmark's `customSmallerIsBetter`: a list of figures with unit and range.

use heaptoll_report::ReportError;
use heaptoll_report::format::{NOT_DECIDED, printable};
use serde::Serialize;

use super::figures::{Figures, MetricFigures, MetricVerdict, Program};
use super::values::{change, ends, unit_name, value};

/// One figure.
#[derive(Debug, PartialEq, Serialize)]
struct Entry {
    name: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    extra: String,
}

/// The JSON.
///
/// # Errors
/// A figure cannot be written.
pub fn json(figures: &Figures) -> Result<String, ReportError> {
    let of = |program: &Program| {
        let entries = program.metrics.iter().filter_map(|metric| entry(&program.name, metric));
        entries.collect::<Vec<_>>()
    };
    let entries: Vec<Entry> = figures.programs.iter().flat_map(of).collect();
    let text = serde_json::to_string_pretty(&entries);
    let text = text.map_err(|error| ReportError::Encode { form: "JSON", detail: error.to_string() })?;
    Ok(text + "\n")
}

fn entry(program: &str, metric: &MetricFigures) -> Option<Entry> {
    let figure = metric.new.filter(|value| value.is_finite())?;
    let verdict = match &metric.verdict {
        MetricVerdict::Within => "within the limit",
        MetricVerdict::Broken => "beyond the limit",
        MetricVerdict::Undecided { .. } => NOT_DECIDED,
        MetricVerdict::NotGated { .. } => "not gated",
    };
    let extra = format!("base {}\n{}\n{verdict}", value(metric.unit, metric.base), change(&metric.change));
    Some(Entry {
        name: format!("{}: {}", printable(program), metric.metric.name()),
        unit: unit_name(metric.unit),
        value: figure,
        range: ends(metric).map(|(low, high)| format!("{low} to {high}")),
        extra,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::made_up;

    #[test]
    fn each_figure_of_the_new_build_is_an_entry() {
        let read: Value = serde_json::from_str(&json(&made_up::figures()).expect("JSON")).expect("JSON");
        let names: Vec<&str> =
            read.as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
        assert_eq!(names, ["parse: instructions", "parse: live", "parse: cpu"]);
        assert_eq!((&read[0]["unit"], &read[0]["value"]), (&"count".into(), &10_100_000.0.into()));
        assert_eq!(read[2]["range"], "0.495 to 0.515");
        assert!(read[0]["extra"].as_str().is_some_and(|extra| extra.ends_with("+1.000 %\nbeyond the limit")));
    }
}
