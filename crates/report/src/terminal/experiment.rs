//! One experiment as text: a head line, one table a program, what was refused, and the geometric means.

use comfy_table::{ColumnConstraint, Table, Width};
use heaptoll_experiment::comparison::{Comparison, Metric, OverallRow, ProgramTable, Row};
use heaptoll_experiment::experiment::{Experiment, StackInfo};
use heaptoll_experiment::lower_bound::ProgramBounds;
use heaptoll_statistics::Interval;

use super::ratio::{ratio_text, tone};
use super::style::{Style, Tone, right};
use crate::bounds::{self, Bound};
use crate::format::{self, NO_DIFFERENCE, NONE, and_list, plural};

/// Tables that are shown on request: most readers want only a manager's cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extras {
    /// Lower bounds of overhead.
    pub bounds: bool,
    /// Garbage collections of the managers that count them.
    pub collections: bool,
}

/// The whole experiment as text: one table a program, then the geometric means over programs; with `extras` what else
/// there is.
pub fn render(experiment: &Experiment, comparison: &Comparison, style: &Style, extras: Extras) -> String {
    let mut out = head(experiment, style);
    for table in &comparison.tables {
        out.push('\n');
        out.push_str(&program(experiment, comparison, table, style, extras));
    }
    let left_out = format::left_out(experiment);
    if !left_out.is_empty() {
        out.push('\n');
    }
    for text in left_out {
        out.push_str(&style.paragraph("!", &text, Tone::Bad));
    }
    if !comparison.overall.is_empty() {
        out.push('\n');
        out.push_str(&overall(comparison, style));
    }
    if extras.bounds && !comparison.lower_bounds.overall.is_empty() {
        out.push('\n');
        out.push_str(&overall_bounds(comparison, style));
    }
    out.push('\n');
    out.push_str(&style.paragraph("", &how_to_read(comparison), Tone::Dim));
    if let Some(text) = available_on_request(comparison, extras) {
        out.push_str(&style.paragraph("", &text, Tone::Dim));
    }
    for text in requested_but_absent(comparison, extras) {
        out.push_str(&style.paragraph("", text, Tone::Dim));
    }
    out
}

/// Why a requested table is not there.
fn requested_but_absent(comparison: &Comparison, extras: Extras) -> impl Iterator<Item = &'static str> {
    let no_collections = extras.collections && !comparison.tables.iter().any(has_collections);
    let no_bounds = extras.bounds && !comparison.lower_bounds.programs.iter().any(bounds::is_shown);
    [
        (no_collections, "No garbage collections (--collections): no manager of this experiment counted any."),
        (
            no_bounds,
            "No lower bounds of overhead (--bounds): they need two managers, or one whose costs are known, and two \
             repetitions in which all of them ran well.",
        ),
    ]
    .into_iter()
    .filter_map(|(is_missing, why)| is_missing.then_some(why))
}

/// Which tables there are besides, and how to have them.
fn available_on_request(comparison: &Comparison, extras: Extras) -> Option<String> {
    let bounds = !extras.bounds && comparison.lower_bounds.programs.iter().any(bounds::is_shown);
    let collections = !extras.collections && comparison.tables.iter().any(has_collections);
    let names: Vec<String> = [
        (collections, "garbage collections (--collections)"),
        (bounds, "lower bounds of overhead (--bounds)"),
    ]
    .into_iter()
    .filter(|(is_left, _)| *is_left)
    .map(|(_, name)| name.to_owned())
    .collect();
    (!names.is_empty()).then(|| format!("Not shown here, but in the page (--html): {}", and_list(&names)))
}

fn has_collections(table: &ProgramTable) -> bool {
    table.rows.iter().any(|row| row.collections.is_some_and(|collections| collections.count > 0.0))
}

/// What was done, where and when.
fn head(experiment: &Experiment, style: &Style) -> String {
    let machine = &experiment.machine;
    let settings = &experiment.settings;
    let thp = if settings.thp.is_empty() { &machine.thp } else { &settings.thp };
    let mut out = style.paragraph(
        "",
        &format!(
            "heaptoll {} · {} · {} after {} warm-up · seed {}",
            experiment.heaptoll_version,
            format::date(experiment.created_unix_s),
            plural(settings.repetitions as usize, "repetition"),
            settings.warmup,
            settings.seed
        ),
        Tone::Bold,
    );
    let place = format!(
        "{}, {}, {} MiB · {}, Linux {}, glibc {} · THP {thp} · load {:.2}",
        machine.cpu,
        plural(machine.cores as usize, "core"),
        format::mib_from_kib(machine.memory_kib as f64),
        machine.distribution,
        machine.kernel,
        machine.libc,
        machine.load[0]
    );
    out.push_str(&style.paragraph("", &place, Tone::Dim));
    if let Some(why) = &machine.no_hardware_counters {
        out.push_str(&style.paragraph("", &format!("no hardware counters: {why}"), Tone::Dim));
    }
    if let Some((seconds, kib)) = experiment.own_cost {
        let text = format!("own cost: {} an invocation", format::own_cost(seconds, kib));
        out.push_str(&style.paragraph("", &text, Tone::Dim));
    }
    if !experiment.complete {
        let rows = plural(experiment.observations.len(), "row");
        let text = format!("incomplete: interrupted or still running; {rows} so far, shown below");
        out.push_str(&style.paragraph("!", &text, Tone::Bad));
    }
    out
}

/// One program: what it is, its table, then everything its reader must know.
fn program(
    experiment: &Experiment,
    comparison: &Comparison,
    table: &ProgramTable,
    style: &Style,
    extras: Extras,
) -> String {
    let about = experiment.programs.iter().find(|p| p.name == table.program).map_or("", |p| p.about.as_str());
    let title = if about.is_empty() { table.program.clone() } else { format!("{}: {about}", table.program) };
    let mut out = style.paragraph("", &title, Tone::Bold);
    out.push_str(&figures(comparison, table, style));
    if table.rows.iter().any(|row| !row.load_figures.is_empty()) {
        out.push('\n');
        out.push_str(&load(table, style));
    }
    if let Some(exact) = &table.exact {
        out.push('\n');
        out.push_str(&super::exact::render(comparison, exact, style));
        out.push('\n');
    }
    if extras.collections && has_collections(table) {
        out.push('\n');
        out.push_str(&collections(table, style));
    }
    let found = comparison.lower_bounds.programs.iter().find(|bounds| bounds.program == table.program);
    if let Some(found) = found.filter(|found| extras.bounds && bounds::is_shown(found)) {
        out.push('\n');
        out.push_str(&lower_bounds(found, style));
    }
    for row in table.rows.iter().filter(|row| !row.marks.is_empty()) {
        let text = format!(
            "{}: {} (left out; {} remain)",
            row.stack,
            row.marks.join(", "),
            plural(row.good as usize, "good row")
        );
        out.push_str(&style.paragraph("!", &text, Tone::Bad));
        if let Some(output) = last_output(experiment, &table.program, &row.stack) {
            out.push_str(&style.paragraph(" ", &format!("it wrote: {output}"), Tone::Plain));
        }
    }
    for text in warnings(experiment, &table.program) {
        out.push_str(&style.paragraph("!", &text, Tone::Plain));
    }
    for (_, stack, reason) in experiment.refused.iter().filter(|(program, ..)| *program == table.program) {
        out.push_str(&style.paragraph("-", &format!("{stack} refused: {reason}"), Tone::Plain));
    }
    for note in &table.notes {
        out.push_str(&style.paragraph("-", note, Tone::Plain));
    }
    for text in
        [table.disturbance.as_ref().map(format::disturbed), format::switches(table)].into_iter().flatten()
    {
        out.push_str(&style.paragraph("-", &text, Tone::Dim));
    }
    if let Some(ratio) = table.detectable_cpu_ratio {
        let text =
            format!("CPU differences under about {} could not be seen here", format::percent_off(ratio));
        out.push_str(&style.paragraph("-", &text, Tone::Dim));
    }
    out
}

/// The last line on standard error of the first run that failed: often the reason.
fn last_output<'a>(experiment: &'a Experiment, program: &str, stack: &str) -> Option<&'a str> {
    let rows = experiment.observations.iter().filter(|row| row.program == program && row.stack == stack);
    rows.filter(|row| row.phase.is_measured() && !row.outcome.is_ok())
        .find_map(|row| row.stderr_tail.lines().rev().map(str::trim).find(|line| !line.is_empty()))
}

/// The preflight's warnings, each once: most are about the program and so the same under every manager.
fn warnings(experiment: &Experiment, program: &str) -> Vec<String> {
    let stacks: Vec<&StackInfo> = experiment.stacks.iter().filter(|stack| stack.program == program).collect();
    let mut found: Vec<(&str, Vec<String>)> = Vec::new();
    for stack in &stacks {
        for warning in &stack.warnings {
            match found.iter_mut().find(|(text, _)| text == warning) {
                Some((_, names)) => names.push(stack.name.clone()),
                None => found.push((warning, vec![stack.name.clone()])),
            }
        }
    }
    let which = |names: &[String]| {
        if names.len() == stacks.len() { "every manager".to_owned() } else { format::and_list(names) }
    };
    found.into_iter().map(|(warning, names)| format!("{}: {warning}", which(&names))).collect()
}

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

fn figures(comparison: &Comparison, table: &ProgramTable, style: &Style) -> String {
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

/// What the collectors of those managers did that report it: a table of its own, for the one above is wide.
fn collections(table: &ProgramTable, style: &Style) -> String {
    let narrow = style.width.is_some_and(|width| width < 72);
    let headings = match narrow {
        false => ["garbage collections", "number", "pauses ms", "longest ms", "reclaimed MiB"],
        true => ["collector", "GCs", "ms", "max ms", "MiB"],
    };
    // A table of five columns has its least width; below that the figures go into lines.
    if style.width.is_some_and(|width| width < 52) {
        let mut out = String::new();
        for (row, collections) in table.rows.iter().filter_map(|row| Some((row, row.collections?))) {
            let text = format!(
                "{}: {} collections, pauses {} ms, longest {} ms, {} MiB reclaimed",
                row.stack,
                format::count(collections.count),
                format::milliseconds(collections.pause_total_s),
                format::milliseconds(collections.pause_max_s),
                format::mib_from_bytes(collections.reclaimed_bytes)
            );
            out.push_str(&style.paragraph("", &text, Tone::Plain));
        }
        return out;
    }
    let mut text = style.table(&headings);
    for (row, collections) in table.rows.iter().filter_map(|row| Some((row, row.collections?))) {
        text.add_row([
            style.cell(&row.stack, Tone::Plain),
            style.cell(&format::count(collections.count), Tone::Plain),
            style.cell(&format::milliseconds(collections.pause_total_s), Tone::Plain),
            style.cell(&format::milliseconds(collections.pause_max_s), Tone::Plain),
            style.cell(&format::mib_from_bytes(collections.reclaimed_bytes), Tone::Plain),
        ]);
    }
    style.pad(&mut text);
    right(&mut text, &[1, 2, 3, 4]);
    style.lines(&text)
}

/// What memory management costs at least.
fn lower_bounds(found: &ProgramBounds, style: &Style) -> String {
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

/// The figures that the load printed about the server, or the program about itself.
fn load(table: &ProgramTable, style: &Style) -> String {
    let mut names: Vec<&str> =
        table.rows.iter().flat_map(|r| r.load_figures.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    // A load reports more figures than there are managers, so figures go down and managers across.
    let stacks: Vec<&Row> = table.rows.iter().filter(|row| !row.load_figures.is_empty()).collect();
    let heads: Vec<&str> = stacks.iter().map(|row| row.stack.as_str()).collect();
    let mut text = style.table(&[&["own report (medians)"][..], &heads].concat());
    for name in names {
        let figures = stacks
            .iter()
            .map(|row| row.load_figures.get(name).map_or(NONE.into(), |value| format::significant(*value)));
        let figures: Vec<String> = figures.collect();
        text.add_row(
            std::iter::once(style.cell(name, Tone::Plain))
                .chain(figures.iter().map(|figure| style.cell(figure, Tone::Plain))),
        );
    }
    style.pad(&mut text);
    right(&mut text, &(1..=stacks.len()).collect::<Vec<_>>());
    style.lines(&text)
}

fn overall(comparison: &Comparison, style: &Style) -> String {
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

/// Geometric means of lower bounds.
fn overall_bounds(comparison: &Comparison, style: &Style) -> String {
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

/// The claims of one overall row in words.
pub(crate) fn overall_verdict(comparison: &Comparison, row: &OverallRow) -> String {
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

fn how_to_read(comparison: &Comparison) -> String {
    format!(
        "Ratios are to {}, paired within a repetition, in brackets their interval: all intervals of a table hold \
         together in {} % of experiments. Where one holds 1, no difference was seen. CPU is user + system seconds less \
         start-up; RSS is the peak.",
        comparison.baseline,
        format::significant((1.0 - comparison.alpha) * 100.0).trim_end_matches('0').trim_end_matches('.'),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOSTILE, Shape, experiment};

    const ALL: Extras = Extras { bounds: true, collections: true };

    fn shown(shape: Shape, width: Option<u16>) -> String {
        let (experiment, comparison) = experiment(shape);
        render(&experiment, &comparison, &Style { color: false, width, unicode: true }, ALL)
    }

    fn words<'a>(text: &'a str, first: &str) -> Vec<&'a str> {
        text.lines()
            .map(|l| l.split_whitespace().collect::<Vec<_>>())
            .find(|w| w.first() == Some(&first))
            .unwrap()
    }

    #[test]
    fn a_stack_with_options_is_written_in_one_line_where_it_fits() {
        let (mut made, _) = experiment(Shape::Single);
        let long = "quarantine=64K,evict=random/tcmalloc";
        let other =
            made.stacks.iter().map(|stack| &stack.name).find(|name| **name != made.baseline).unwrap().clone();
        for stack in made.stacks.iter_mut().filter(|stack| stack.name == other) {
            stack.name = long.into();
        }
        for row in made.observations.iter_mut().filter(|row| row.stack == other) {
            row.stack = long.into();
        }
        let comparison = heaptoll_experiment::compare::compare(&made);
        for width in [None, Some(200)] {
            let text = render(&made, &comparison, &Style { color: false, width, unicode: true }, ALL);
            let row = text.lines().find(|line| line.starts_with(long));
            assert!(row.is_some_and(|row| row.contains('–') || row.contains('(')), "{text}");
        }
    }

    #[test]
    fn a_warning_that_every_manager_has_stands_once() {
        let (mut made, comparison) = experiment(Shape::Single);
        for stack in &mut made.stacks {
            stack.warnings = vec!["a child is static".to_owned()];
        }
        let text = render(&made, &comparison, &Style { color: false, width: None, unicode: true }, ALL);
        assert_eq!(text.matches("a child is static").count(), 1, "{text}");
        assert!(text.contains("every manager: a child is static"), "{text}");
    }

    #[test]
    fn a_program_that_is_left_out_is_named_with_its_reason() {
        let (mut made, comparison) = experiment(Shape::Single);
        made.refused.push(("stat".into(), "glibc".into(), "statically linked".into()));
        let text = render(&made, &comparison, &Style { color: false, width: None, unicode: true }, ALL);
        assert!(text.contains("stat is left out, refused under glibc: statically linked"), "{text}");
    }

    #[test]
    fn one_row_a_stack_in_the_order_given() {
        let (experiment, comparison) = experiment(Shape::Single);
        let style = Style { color: false, width: Some(120), unicode: true };
        let text = render(&experiment, &comparison, &style, ALL);
        let order: Vec<&str> = comparison.tables[0].rows.iter().map(|row| row.stack.as_str()).collect();
        let at =
            |name: &&str| text.lines().position(|line| line.split_whitespace().next() == Some(name)).unwrap();
        assert!(order.iter().map(at).is_sorted(), "{text}");
        let row = &comparison.tables[0].rows[0];
        let cpu = &row.figures[&Metric::Cpu];
        let expected = format!("{} {}", format::seconds(cpu.median), format::interval(&cpu.ratio.unwrap()));
        assert!(words(&text, &row.stack).join(" ").contains(&expected), "{text}");
        assert!(words(&text, "glibc").join(" ").ends_with("baseline"), "{text}");
        assert!(text.contains("15 repetitions after 1 warm-up") && text.contains("THP madvise"), "{text}");
        assert!(text.contains("own cost: 0.63 ms and 212 KiB an invocation"), "{text}");
        assert!(text.contains("no difference was seen"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for shape in Shape::ALL {
            for width in [30, 40, 60, 72, 80, 100, 120, 200] {
                let text = shown(shape, Some(width));
                for line in text.lines() {
                    assert!(
                        line.chars().count() <= usize::from(width),
                        "{shape:?} {width}: {line:?}\n{text}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_in_a_row_stays_readable_when_narrow() {
        for width in [40, 80, 100, 120] {
            let text = shown(Shape::Single, Some(width));
            for stack in ["glibc", "mimalloc3", "jemalloc", "snmalloc", "tcmalloc"] {
                assert!(text.contains(stack), "{width}: {text}");
            }
            // No figure is ever broken in two.
            assert!(text.matches('(').count() == text.matches(')').count());
            let broken = text.lines().any(|line| line.trim_end().ends_with(['–', '.']) && line.contains('('));
            assert!(!broken || width < 60, "{width}: {text}");
        }
    }

    #[test]
    fn trouble_is_marked_and_explained() {
        let text = shown(Shape::Troubled, Some(110));
        for needle in [
            "incomplete",
            "! snmalloc",
            "2x killed by signal 11",
            "it wrote: </pre>",
            "! tcmalloc",
            "5x wrong output",
            "./libnothing.so refused: exports no malloc",
            "the manager does not reach it",
            "5 pairs at most",
            "THP never",
        ] {
            assert!(text.contains(needle), "{needle}: {text}");
        }
        assert!(
            !text.contains('\x1b') && !text.contains('\u{202e}') && text.contains("\\u{1b}[31m"),
            "{text}"
        );
        assert!(HOSTILE.contains('\x1b'));
    }

    #[test]
    fn colours_follow_the_claims() {
        let (experiment, mut comparison) = experiment(Shape::Single);
        let rows = &mut comparison.tables[0].rows;
        let mut set = |stack: &str, low: f64, ratio: f64, high: f64| {
            let row = rows.iter_mut().find(|row| row.stack == stack).unwrap();
            let differs = low > 1.0 || high < 1.0;
            let interval = Interval { ratio, low, high, differs, pairs: 15 };
            row.figures.get_mut(&Metric::Cpu).unwrap().ratio = Some(interval);
        };
        set("mimalloc3", 0.85, 0.9, 0.95);
        set("jemalloc", 1.1, 1.2, 1.3);
        set("snmalloc", 0.97, 1.01, 1.05);
        let style = Style { color: true, width: Some(130), unicode: true };
        let text = render(&experiment, &comparison, &style, ALL);
        assert!(text.contains("\x1b[38;5;10m0.90 (0.85–0.95)"), "{text:?}");
        assert!(text.contains("\x1b[38;5;9m1.20 (1.10–1.30)"), "{text:?}");
        assert!(text.contains("\x1b[2m1.01 (0.97–1.05)"), "{text:?}");
        assert!(!render(&experiment, &comparison, &Style { color: false, ..style }, ALL).contains('\x1b'));
    }

    #[test]
    fn collections_are_shown_where_a_manager_reported_any() {
        let collections = |width| shown(Shape::Single, Some(width));
        for width in [60, 80, 120] {
            let line = collections(width)
                .split("lower bound")
                .next()
                .unwrap_or_default()
                .lines()
                .filter(|line| line.trim_start().starts_with("mimalloc3"))
                .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
                .next_back()
                .expect("a line of its own");
            assert_eq!(line, "mimalloc3 17 24.2 3.10 5.0", "{}", collections(width));
        }
        let (experiment, mut comparison) = experiment(Shape::Single);
        for row in &mut comparison.tables[0].rows {
            if let Some(collections) = &mut row.collections {
                collections.count = 0.0;
            }
        }
        let text =
            render(&experiment, &comparison, &Style { color: false, width: Some(120), unicode: true }, ALL);
        assert!(!text.contains("garbage collections  "), "{text}");
        assert!(text.contains("No garbage collections (--collections): no manager"), "and why: {text}");
        comparison.lower_bounds.programs.clear();
        let text =
            render(&experiment, &comparison, &Style { color: false, width: Some(120), unicode: true }, ALL);
        assert!(text.contains("No lower bounds of overhead (--bounds): they need"), "{text}");
    }

    #[test]
    fn lower_bounds_state_what_they_rest_on() {
        let text = shown(Shape::Single, Some(120));
        let bounds = text.split("lower bound of overhead").nth(1).expect("a table");
        assert!(
            words(bounds, "mimalloc3").join(" ").contains("collections: 0.0242 s, 0.0261 s of CPU"),
            "{bounds}"
        );
        assert!(bounds.contains("nothing is taken out, for there are no exact counts"), "{bounds}");
        let narrow = shown(Shape::Single, Some(50)).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(narrow.contains("lower bound under glibc: time"), "{narrow}");
        let suite = shown(Shape::Suite, Some(120));
        assert!(suite.contains("overall: lower bounds of overhead"), "{suite}");
    }

    #[test]
    fn bounds_and_collections_are_shown_on_request_alone() {
        let (experiment, comparison) = experiment(Shape::Suite);
        let style = Style { color: false, width: Some(120), unicode: true };
        let output = |extras| {
            let text = render(&experiment, &comparison, &style, extras);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let has = |words: &str| text.contains(words);
            [
                has("pauses ms longest ms"),
                has("lower bound of overhead"),
                has("overall: lower bounds"),
                has("--bounds"),
            ]
        };
        assert_eq!(output(Extras::default()), [false, false, false, true]);
        assert_eq!(output(Extras { bounds: true, ..Extras::default() }), [false, true, true, false]);
        assert_eq!(output(Extras { collections: true, ..Extras::default() }), [true, false, false, true]);
        let text = render(&experiment, &comparison, &style, ALL);
        assert!(!text.contains("Not shown here"), "{text}");
    }

    #[test]
    fn several_programs_end_in_geometric_means() {
        let text = shown(Shape::Suite, Some(120));
        let overall = text.split("overall: geometric means").nth(1).unwrap();
        let overall = overall.split("overall: lower bounds").next().unwrap();
        assert!(words(overall, "mimalloc3").join(" ").contains("less CPU"), "{overall}");
        assert!(!shown(Shape::Single, Some(120)).contains("geometric means"));
    }

    #[test]
    fn a_server_shows_its_load_and_ascii_is_ascii() {
        assert!(shown(Shape::Server, None).contains("requests_per_s"));
        let (experiment, comparison) = experiment(Shape::Troubled);
        let text =
            render(&experiment, &comparison, &Style { color: false, width: Some(100), unicode: false }, ALL);
        assert!(text.is_ascii(), "{text}");
    }
}
