//! The figures of one program: a row a stack, in as many columns as fit.

use comfy_table::{ColumnConstraint, Table, Width};
use heaptoll_experiment::comparison::{Comparison, Metric, ProgramTable, Row};
use heaptoll_statistics::Interval;

use super::super::ratio::{ratio_text, tone};
use super::super::style::{Style, Tone, right};
use crate::format::{self, NONE};

/// How much of a row fits, widest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Every column, intervals on the line of their ratio.
    Wide,
    /// Every column, intervals under their ratio.
    Medium,
    /// Without faults and start-up.
    Narrow,
    /// No columns: some lines a stack.
    List,
}

/// Columns that a verdict needs before its wrapping hurts.
const VERDICT_WIDTH: u16 = 22;
/// A longer stack name (a path, many options) wraps where it does not fit.
const NAME_WIDTH: u16 = 22;
/// A name longer than this wraps wherever it is written.
const LONGEST_NAME: u16 = 60;

/// The table in the widest layout that fits.
pub fn figures(comparison: &Comparison, table: &ProgramTable, style: &Style) -> String {
    for layout in [Layout::Wide, Layout::Medium, Layout::Narrow] {
        let filled = |name| filled(comparison, table, style, layout, name);
        let first = filled(NAME_WIDTH);
        let widths = first.column_max_content_widths();
        let verdict = widths.last().copied().unwrap_or(0).min(VERDICT_WIDTH);
        let others: u16 = widths.iter().skip(1).rev().skip(1).map(|width| width + 2).sum();
        let longest = widths.first().copied().unwrap_or(0);
        let needed = longest.min(NAME_WIDTH) + 2 + others + verdict + 2;
        let spare = style.width.map_or(Some(LONGEST_NAME), |width| width.checked_sub(needed));
        match spare {
            Some(spare) if longest > NAME_WIDTH && spare > 0 => {
                return style.lines(&filled((NAME_WIDTH + spare).min(LONGEST_NAME)));
            }
            Some(_) => return style.lines(&first),
            None => {}
        }
    }
    debug_assert_eq!(Layout::List as u8, 3);
    list(comparison, table, style)
}

fn filled(
    comparison: &Comparison,
    program: &ProgramTable,
    style: &Style,
    layout: Layout,
    name_width: u16,
) -> Table {
    let (split, all) = (layout != Layout::Wide, layout != Layout::Narrow);
    let mut headings = vec!["stack", "CPU s", "CPU ratio", "RSS MiB", "memory ratio"];
    // Only managers that keep the statistics page report it.
    let heap = all && program.rows.iter().any(|row| row.heap_high_water_bytes.is_some());
    if heap {
        headings.push("heap MiB");
    }
    if all {
        headings.extend(["faults", "start ms"]);
    }
    headings.push("verdict");
    let mut table = style.table(&headings);
    for row in &program.rows {
        let mut cells = vec![name(comparison, row, style)];
        for metric in [Metric::Cpu, Metric::PeakRss] {
            let figure = row.figures.get(&metric);
            cells.push(style.cell(&figure.map_or(NONE.into(), |f| format::median(metric, f)), Tone::Plain));
            cells.push(ratio_cell(comparison, row, metric, style, split));
        }
        if heap {
            let high = row.heap_high_water_bytes.map_or(NONE.into(), format::mib_from_bytes);
            cells.push(style.cell(&high, Tone::Plain));
        }
        if all {
            let faults = if row.good == 0 { NONE.to_owned() } else { format::count(row.minor_faults) };
            cells.push(style.cell(&faults, Tone::Plain));
            cells.push(style.cell(&row.startup_cpu_s.map_or(NONE.into(), format::milliseconds), Tone::Plain));
        }
        cells.push(style.cell(&row.verdict, verdict_tone(row)));
        table.add_row(cells);
    }
    style.pad(&mut table);
    let last = headings.len() - 1;
    for (index, column) in table.column_iter_mut().enumerate() {
        match index {
            0 => column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(name_width + 2))),
            i if i < last => column.set_constraint(ColumnConstraint::ContentWidth),
            _ => column,
        };
    }
    right(&mut table, &[&[1, 3][..], &(5..last).collect::<Vec<_>>()].concat());
    table
}

/// For terminals too narrow for columns.
fn list(comparison: &Comparison, table: &ProgramTable, style: &Style) -> String {
    let mut out = String::new();
    for row in &table.rows {
        let mut title = row.stack.clone();
        if row.stack == comparison.baseline {
            title.push_str(" (baseline)");
        }
        out.push_str(&style.paragraph("", &title, Tone::Plain));
        for (metric, label, unit) in [(Metric::Cpu, "CPU", "s"), (Metric::PeakRss, "RSS", "MiB")] {
            let Some(figure) = row.figures.get(&metric) else { continue };
            let mut text = format!("{label} {} {unit}", format::median(metric, figure));
            if let Some(interval) = &figure.ratio {
                text.push_str(&format!(", {}", format::interval(interval)));
            }
            out.push_str(&style.paragraph(" ", &text, figure.ratio.as_ref().map_or(Tone::Plain, tone)));
        }
        if row.stack != comparison.baseline {
            out.push_str(&style.paragraph(" ", &row.verdict, Tone::Plain));
        }
    }
    out
}

fn ratio_cell(
    comparison: &Comparison,
    row: &Row,
    metric: Metric,
    style: &Style,
    split: bool,
) -> comfy_table::Cell {
    match row.figures.get(&metric).map(|figure| &figure.ratio) {
        Some(Some(interval)) => style.cell(&ratio_text(interval, split), tone(interval)),
        _ if row.stack == comparison.baseline => style.cell("baseline", Tone::Dim),
        Some(None) => style.cell("too few pairs", Tone::Dim),
        None => style.cell(NONE, Tone::Dim),
    }
}

/// The name; `!` marks a stack with rows that were left out, the reason stands below the table.
fn name(comparison: &Comparison, row: &Row, style: &Style) -> comfy_table::Cell {
    let text = if row.marks.is_empty() { row.stack.clone() } else { format!("! {}", row.stack) };
    let tone = match row.stack == comparison.baseline {
        true => Tone::Bold,
        false if row.good == 0 => Tone::Bad,
        false => Tone::Plain,
    };
    style.cell(&text, tone)
}

fn verdict_tone(row: &Row) -> Tone {
    let claims = |metric| row.figures.get(&metric).and_then(|f| f.ratio).is_some_and(|i: Interval| i.differs);
    match row.good {
        0 => Tone::Bad,
        _ if claims(Metric::Cpu) || claims(Metric::PeakRss) => Tone::Plain,
        _ => Tone::Dim,
    }
}
