//! A gate in Bencher's metric format: what the new build costs, for tools that draw it over time.

use std::collections::BTreeMap;

use heaptoll_report::ReportError;
use heaptoll_report::format::printable;
use serde::Serialize;

use super::figures::{Figures, MetricFigures};
use super::values;

/// One figure.
#[derive(Debug, PartialEq, Serialize)]
struct BencherMetric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// The JSON: by program, by metric.
///
/// # Errors
/// A figure cannot be written.
pub fn json(figures: &Figures) -> Result<String, ReportError> {
    let benchmarks: BTreeMap<String, BTreeMap<&str, BencherMetric>> = figures
        .programs
        .iter()
        .map(|program| {
            let metrics = program.metrics.iter();
            (
                printable(&program.name),
                metrics.filter_map(|one| Some((one.metric.name(), metric(one)?))).collect(),
            )
        })
        .collect();
    let text = serde_json::to_string_pretty(&benchmarks);
    let text = text.map_err(|error| ReportError::Encode { form: "JSON", detail: error.to_string() })?;
    Ok(text + "\n")
}

fn metric(figures: &MetricFigures) -> Option<BencherMetric> {
    let value = figures.new.filter(|value| value.is_finite())?;
    let ends = values::ends(figures);
    Some(BencherMetric { value, lower_value: ends.map(|ends| ends.0), upper_value: ends.map(|ends| ends.1) })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json as value};

    use super::*;
    use crate::made_up;

    #[test]
    fn a_program_is_a_benchmark_and_a_metric_a_measure_with_the_ends_of_its_interval() {
        let text = json(&made_up::figures()).expect("JSON");
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read["parse"]["instructions"], value!({ "value": 10_100_000.0 }));
        let cpu = value!({ "value": 0.505, "lower_value": 0.495, "upper_value": 0.515 });
        assert_eq!(read["parse"]["cpu"], cpu);
        assert_eq!(read["parse"].as_object().map(|metrics| metrics.len()), Some(3), "no figure, no measure");
    }
}
