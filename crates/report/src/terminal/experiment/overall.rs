//! Geometric means over programs.

use heaptoll_experiment::comparison::{Comparison, OverallRow};
use heaptoll_statistics::Interval;

use super::super::ratio::{ratio_text, tone};
use super::super::style::{Style, Tone, right};
use crate::format::{self, NO_DIFFERENCE, NONE, and_list};

/// A table of the stacks' means.
pub fn overall(comparison: &Comparison, style: &Style) -> String {
    let mut out = style.paragraph("", "overall: geometric means over programs", Tone::Bold);
    let split = style.width.is_some_and(|width| width < 90);
    let mut table = style.table(&["stack", "programs", "CPU ratio", "memory ratio", "verdict"]);
    for row in &comparison.overall {
        let is_baseline = row.stack == comparison.baseline;
        let cell = |interval: &Option<Interval>| match interval {
            Some(interval) => style.cell(&ratio_text(interval, split), tone(interval)),
            None if is_baseline => style.cell("baseline", Tone::Dim),
            None => style.cell(NONE, Tone::Dim),
        };
        table.add_row([
            style.cell(&row.stack, Tone::Plain),
            style.cell(&row.programs.to_string(), Tone::Plain),
            cell(&row.cpu),
            cell(&row.peak_rss),
            style.cell(&overall_verdict(comparison, row), Tone::Plain),
        ]);
    }
    style.pad(&mut table);
    right(&mut table, &[1]);
    out.push_str(&style.lines(&table));
    out
}

/// The claims of one overall row in words.
pub fn overall_verdict(comparison: &Comparison, row: &OverallRow) -> String {
    if row.stack == comparison.baseline {
        return "baseline".to_owned();
    }
    let metrics = [(&row.cpu, "CPU"), (&row.peak_rss, "memory")];
    let claims: Vec<String> =
        metrics.iter().filter_map(|(interval, noun)| format::claim(interval.as_ref()?, noun)).collect();
    match claims.is_empty() {
        true if row.cpu.is_none() && row.peak_rss.is_none() => "too few pairs".to_owned(),
        true => NO_DIFFERENCE.to_owned(),
        false => and_list(&claims),
    }
}
