//! One stack's row in the table of a program.

use heaptoll_experiment::comparison::{Comparison, Metric, Row};

use super::super::palette::Palette;
use super::super::views::{Chip, Ratio};
use crate::format::{self, NONE};

/// One stack in the table.
pub struct ProgramRow {
    /// Stack.
    pub chip: Chip,
    /// Is the baseline.
    pub baseline: bool,
    /// CPU seconds.
    pub cpu: String,
    /// CPU ratio.
    pub cpu_ratio: Ratio,
    /// Peak MiB.
    pub rss: String,
    /// Memory ratio.
    pub rss_ratio: Ratio,
    /// Minor faults.
    pub faults: String,
    /// Start-up, ms.
    pub startup: String,
    /// Cells of the extra columns.
    pub extra: Vec<String>,
    /// Good rows.
    pub good: u32,
    /// What went wrong.
    pub marks: Vec<String>,
    /// In words.
    pub verdict: String,
    /// On the frontier of CPU and memory.
    pub frontier: bool,
}

/// The row, with its cells of the extra columns.
pub fn program_row(row: &Row, extra: Vec<String>, comparison: &Comparison, palette: &Palette) -> ProgramRow {
    let baseline = row.stack == comparison.baseline;
    let ratio = |metric| {
        let figure = row.figures.get(&metric);
        let words = match (baseline, figure) {
            (true, _) => "baseline",
            (_, None) => NONE,
            _ => "too few pairs",
        };
        Ratio::of(figure.and_then(|figure| figure.ratio.as_ref()), words)
    };
    let median =
        |metric| row.figures.get(&metric).map_or(NONE.to_owned(), |figure| format::median(metric, figure));
    ProgramRow {
        chip: Chip::of(&row.stack, palette),
        baseline,
        cpu: median(Metric::Cpu),
        cpu_ratio: ratio(Metric::Cpu),
        rss: median(Metric::PeakRss),
        rss_ratio: ratio(Metric::PeakRss),
        faults: if row.good == 0 { NONE.to_owned() } else { format::count(row.minor_faults) },
        startup: row.startup_cpu_s.map_or(NONE.to_owned(), format::milliseconds),
        extra,
        good: row.good,
        marks: row.marks.iter().map(|mark| format::printable(mark)).collect(),
        verdict: format::printable(&row.verdict),
        frontier: row.on_frontier,
    }
}
