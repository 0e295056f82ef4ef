//! Lower bounds of overhead, of a program and over programs.

use heaptoll_experiment::comparison::{Comparison, ProgramBounds};
use heaptoll_statistics::Interval;

use super::super::ratio::ratio_text;
use super::super::style::{Style, Tone, right};
use crate::bounds::{self, Bound};
use crate::format::NONE;

/// What memory management costs at least.
pub fn lower_bounds(found: &ProgramBounds, style: &Style) -> String {
    let lines = bounds::lines(found);
    let mut out = String::new();
    if style.width.is_some_and(|width| width < 64) {
        for line in lines {
            let text = format!(
                "lower bound under {}: time {}, CPU {}; taken out: {}",
                line.stack,
                bounds::text(&line.wall),
                bounds::text(&line.cpu),
                line.taken
            );
            out.push_str(&style.paragraph("", &text, Tone::Plain));
        }
    } else {
        let split = style.width.is_some_and(|width| width < 100);
        let mut table = style.table(&["lower bound of overhead", "time", "CPU", "taken out"]);
        for line in lines {
            let cell = |bound: &Bound| match bound {
                Bound::Of(interval) => style.cell(&ratio_text(interval, split), Tone::Plain),
                Bound::Words(words) => style.cell(words, Tone::Dim),
            };
            table.add_row([
                style.cell(line.stack, Tone::Plain),
                cell(&line.wall),
                cell(&line.cpu),
                style.cell(&line.taken, Tone::Plain),
            ]);
        }
        style.pad(&mut table);
        out.push_str(&style.lines(&table));
    }
    out.push_str(&style.paragraph("-", &bounds::sentence(found), Tone::Dim));
    for note in &found.notes {
        out.push_str(&style.paragraph("-", note, Tone::Dim));
    }
    out
}

/// Geometric means of lower bounds.
pub fn overall_bounds(comparison: &Comparison, style: &Style) -> String {
    let title = "overall: lower bounds of overhead, geometric means over programs";
    let mut out = style.paragraph("", title, Tone::Bold);
    let split = style.width.is_some_and(|width| width < 72);
    let mut table = style.table(&["stack", "programs", "time", "CPU"]);
    for row in &comparison.lower_bounds.overall {
        let cell = |interval: &Option<Interval>| match interval {
            Some(interval) => style.cell(&ratio_text(interval, split), Tone::Plain),
            None => style.cell(NONE, Tone::Dim),
        };
        table.add_row([
            style.cell(&row.stack, Tone::Plain),
            style.cell(&row.programs.to_string(), Tone::Plain),
            cell(&row.wall),
            cell(&row.cpu),
        ]);
    }
    style.pad(&mut table);
    right(&mut table, &[1]);
    out.push_str(&style.lines(&table));
    out
}
