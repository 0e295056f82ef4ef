//! What is wanted, as a number: the lower the better.

use heaptoll_experiment::comparison::{Comparison, Metric, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preference {
    /// Little CPU time: ten per cent of memory are worth about one of it.
    Time,
    /// Little memory: ten per cent of CPU time are worth about one of it.
    Memory,
    /// Both alike.
    #[default]
    Balance,
}

impl Preference {
    /// The name in options and sentences.
    pub fn name(self) -> &'static str {
        match self {
            Preference::Time => "time",
            Preference::Memory => "memory",
            Preference::Balance => "balance",
        }
    }

    /// The logarithm of a mean of two ratios to the baseline, weighted as is wanted; 0 for the baseline itself.
    pub fn score(self, cpu: f64, memory: f64) -> f64 {
        let weight = match self {
            Preference::Time => 0.9,
            Preference::Memory => 0.1,
            Preference::Balance => 0.5,
        };
        weight * cpu.ln() + (1.0 - weight) * memory.ln()
    }
}

/// What a stack had, over all programs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    /// Geometric mean of the ratios of CPU time to the baseline's.
    pub cpu: f64,
    /// That of peak resident memory.
    pub memory: f64,
    /// The largest median of peak resident memory of a program, bytes.
    pub peak_bytes: f64,
}

/// What a stack had in an experiment; or why it is no candidate.
pub(super) fn measured(stack: &str, comparison: &Comparison) -> Result<Measured, String> {
    let (mut cpu, mut memory, mut peak_bytes) = (0.0, 0.0, 0.0_f64);
    for table in &comparison.tables {
        let row = table.rows.iter().find(|row| row.stack == stack);
        let row = row.ok_or_else(|| "does not work here".to_owned())?;
        if let Some(mark) = row.marks.first() {
            return Err(format!("{mark} ({})", table.program));
        }
        cpu += ratio(row, Metric::Cpu)?.ln();
        memory += ratio(row, Metric::PeakRss)?.ln();
        peak_bytes =
            peak_bytes.max(row.figures.get(&Metric::PeakRss).map_or(0.0, |figure| figure.median * 1024.0));
    }
    let programs = comparison.tables.len().max(1) as f64;
    Ok(Measured { cpu: (cpu / programs).exp(), memory: (memory / programs).exp(), peak_bytes })
}

fn ratio(row: &Row, metric: Metric) -> Result<f64, String> {
    let ratio = row.figures.get(&metric).and_then(|figure| figure.ratio.as_ref()).map(|ratio| ratio.ratio);
    ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0).ok_or_else(|| "could not be compared".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preference_weighs_time_and_memory() {
        // 35 % less memory for 4 % more CPU.
        let (cpu, memory) = (1.04, 0.65);
        assert!(Preference::Memory.score(cpu, memory) < 0.0 && Preference::Balance.score(cpu, memory) < 0.0);
        assert!(
            Preference::Time.score(1.10, 0.65) > 0.0,
            "ten per cent of time are worth more than a third of memory"
        );
        assert!(Preference::Time.score(1.01, 0.5) < 0.0);
        for preference in [Preference::Time, Preference::Memory, Preference::Balance] {
            assert!(preference.score(1.0, 1.0).abs() < 1e-12);
            assert!(preference.score(0.9, 0.9) < preference.score(1.0, 1.0));
        }
    }
}
