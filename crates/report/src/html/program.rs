//! One program's section of the page.

use std::collections::BTreeSet;

use heaptoll_experiment::comparison::{Comparison, ExactRow, ExactTable, Metric, ProgramTable, Row};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::lower_bound::ProgramBounds;
use heaptoll_experiment::observation::{Counters, Observation, Phase};

use super::chart_registry::{ChartRegistry, ChartSlot};
use super::charts;
use super::palette::Palette;
use super::views::{Chip, Fact, Ratio};
use crate::bounds::{self, Bound, StackBounds};
use crate::columns;
use crate::exact;
use crate::format::{self, NONE};

/// A section.
pub(super) struct Program {
    /// Anchor.
    pub id: String,
    /// Name.
    pub name: String,
    /// One line: what it is.
    pub about: String,
    /// Command, input, environment, load.
    pub facts: Vec<Fact>,
    /// What the reader must see first.
    pub notes: Vec<String>,
    /// Whether it is a server under load.
    pub is_server: bool,
    /// Columns of the second table: what only some programs or managers have figures for.
    pub extra_headings: Vec<String>,
    /// The table.
    pub rows: Vec<ProgramRow>,
    /// Exact counts with the measured ratio; without rows where there are only notes, or nothing.
    pub exact: Exact,
    /// What memory management costs at least.
    pub bounds: Vec<BoundLine>,
    /// How to read that, and what is missing.
    pub bound_notes: Vec<String>,
    /// The charts.
    pub charts: Vec<ChartSlot>,
    /// What the preflight proved.
    pub proofs: Vec<Proof>,
    /// Stacks left out: name, reason.
    pub refused: Vec<Fact>,
    /// Peaks by three ways.
    pub peaks: Vec<Peak>,
    /// Every invocation.
    pub invocations: Vec<Invocation>,
    /// Rows that did not end well.
    pub bad: Vec<Bad>,
    /// Whether any row was measured.
    pub measured: bool,
}

/// One stack in the table.
pub(super) struct ProgramRow {
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

/// Exact counts.
#[derive(Default)]
pub(super) struct Exact {
    /// Headings of the figures.
    pub headings: Vec<String>,
    /// One a stack.
    pub rows: Vec<ExactLine>,
    /// Where counts and time disagree, what was left out, how to read it.
    pub notes: Vec<String>,
}

/// One stack's exact counts.
pub(super) struct ExactLine {
    /// Stack.
    pub chip: Chip,
    /// Is the baseline.
    pub baseline: bool,
    /// As many as headings.
    pub cells: Vec<String>,
    /// The measured CPU ratio.
    pub cpu: Ratio,
}

/// One stack's lower bound of overhead.
pub(super) struct BoundLine {
    /// Stack.
    pub chip: Chip,
    /// In time.
    pub wall: Ratio,
    /// In CPU.
    pub cpu: Ratio,
    /// What was taken out of its cost.
    pub taken: String,
}

/// What the preflight proved of a stack.
pub(super) struct Proof {
    /// Stack.
    pub chip: Chip,
    /// In one sentence.
    pub text: String,
    /// For the reader.
    pub warnings: Vec<String>,
}

/// The peak of resident memory as it was seen in three ways.
pub(super) struct Peak {
    /// Stack.
    pub chip: Chip,
    /// Median `ru_maxrss` of the timed rows, MiB.
    pub median: String,
    /// `VmHWM` of the watched run, MiB.
    pub high_water: String,
    /// Highest sample of the process tree, MiB.
    pub sampled: String,
}

/// One invocation.
pub(super) struct Invocation {
    /// Position.
    pub order: u32,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Why it was made.
    pub phase: &'static str,
    /// Stack.
    pub stack: String,
    /// CPU seconds.
    pub cpu: String,
    /// Elapsed seconds.
    pub wall: String,
    /// Peak MiB.
    pub rss: String,
    /// Minor faults.
    pub faults: String,
    /// Load average before it.
    pub load: String,
    /// Share of the span that was stolen, percent.
    pub steal: String,
    /// Share of it that interrupts took, percent.
    pub interrupts: String,
    /// Share of the processors that ran other work, percent, and whether the span was loaded.
    pub other_work: String,
    /// How it ended.
    pub outcome: String,
    /// Whether well.
    pub ok: bool,
}

/// Rows that ended alike.
pub(super) struct Bad {
    /// Stack.
    pub chip: Chip,
    /// How they ended.
    pub outcome: String,
    /// Which ones.
    pub which: String,
    /// The end of standard error.
    pub stderr: String,
}

impl Program {
    /// Builds the section and keeps its charts.
    pub fn new(
        index: usize,
        experiment: &Experiment,
        comparison: &Comparison,
        table: &ProgramTable,
        palette: &Palette,
        registry: &mut ChartRegistry,
    ) -> Self {
        let rows: Vec<&Observation> =
            experiment.observations.iter().filter(|o| o.program == table.program).collect();
        let info = experiment.programs.iter().find(|program| program.name == table.program);
        let (extra_headings, extra) = extra_columns(table, &rows);
        let proofs =
            experiment.stacks.iter().filter(|stack| stack.program == table.program).map(|stack| Proof {
                chip: Chip::of(&stack.name, palette),
                text: format::printable(&stack.proof),
                warnings: stack.warnings.iter().map(|text| format::printable(text)).collect(),
            });
        let refused = experiment.refused.iter().filter(|(program, ..)| *program == table.program);
        let mut notes: Vec<String> = table.notes.iter().map(|note| format::printable(note)).collect();
        notes.extend(table.disturbance.as_ref().map(format::disturbed));
        if let Some(ratio) = table.detectable_cpu_ratio {
            notes.push(format!(
                "CPU differences under about {} could not be seen here.",
                format::percent_off(ratio)
            ));
        }
        let bounds = comparison.lower_bounds.programs.iter().find(|found| found.program == table.program);
        let bounds = bounds.filter(|found| bounds::is_shown(found));
        Program {
            exact: table
                .exact
                .as_ref()
                .map_or_else(Exact::default, |found| exact(found, comparison, palette)),
            bounds: bounds.map_or(Vec::new(), |found| bound_lines(found, palette)),
            bound_notes: bounds.map_or(Vec::new(), |found| {
                let sentence = bounds::sentence(found);
                let all = std::iter::once(&sentence).chain(&found.notes);
                all.map(|text| format::printable(text)).collect()
            }),
            id: format!("program-{index}"),
            name: format::printable(&table.program),
            about: info.map_or(String::new(), |info| format::printable(&info.about)),
            facts: info.map_or(Vec::new(), facts),
            notes,
            is_server: info.is_some_and(|info| info.serve.is_some()),
            extra_headings,
            rows: table
                .rows
                .iter()
                .zip(extra)
                .map(|(row, extra)| program_row(row, extra, comparison, palette))
                .collect(),
            charts: charts(experiment, comparison, table, &rows, palette, registry),
            proofs: proofs.collect(),
            refused: refused.map(|(_, stack, reason)| Fact::new(stack, reason)).collect(),
            peaks: peaks(experiment, table, palette),
            invocations: rows.iter().map(|row| invocation(row)).collect(),
            bad: bad(&rows, palette),
            measured: !table.rows.is_empty(),
        }
    }
}

fn exact(found: &ExactTable, comparison: &Comparison, palette: &Palette) -> Exact {
    let line = |row: &ExactRow| {
        let baseline = row.stack == comparison.baseline;
        ExactLine {
            chip: Chip::of(&row.stack, palette),
            baseline,
            cells: exact::cells(found, row),
            cpu: Ratio::of(row.cpu.as_ref(), if baseline { "baseline" } else { NONE }),
        }
    };
    let mut notes = exact::disagreements(found);
    notes.extend(found.notes.iter().cloned());
    if exact::has_rows(found) {
        notes.push(exact::sentence(found));
    }
    Exact {
        headings: exact::headings(found).iter().map(|heading| format::printable(heading)).collect(),
        rows: found.rows.iter().map(line).collect(),
        notes: notes.iter().map(|note| format::printable(note)).collect(),
    }
}

fn bound_lines(found: &ProgramBounds, palette: &Palette) -> Vec<BoundLine> {
    let ratio = |bound: &Bound| match bound {
        // These baselines were not chosen: no side of 1 is the better one.
        Bound::Of(interval) => Ratio { class: "same", ..Ratio::of(Some(interval), "") },
        Bound::Words(words) => Ratio::of(None, words),
    };
    let line = |line: &StackBounds| BoundLine {
        chip: Chip::of(line.stack, palette),
        wall: ratio(&line.wall),
        cpu: ratio(&line.cpu),
        taken: line.taken.clone(),
    };
    bounds::lines(found).iter().map(line).collect()
}

fn facts(info: &heaptoll_experiment::experiment::ProgramInfo) -> Vec<Fact> {
    let mut facts = vec![Fact::new("Command", format::shell_command(&info.command))];
    if let Some(stdin) = &info.stdin {
        facts.push(Fact::new("Standard input", stdin));
    }
    if !info.environment.is_empty() {
        facts.push(Fact::new("Environment", environment(&info.environment)));
    }
    if let Some(serve) = &info.serve {
        facts.push(Fact::new("Load", format::shell_command(&serve.load)));
    }
    if let Some(digest) = &info.expected_digest {
        facts.push(Fact::new("Expected output", format!("SHA-256 {digest}")));
    }
    facts
}

/// Pinned variables in shell syntax.
pub(super) fn environment(pairs: &[(String, String)]) -> String {
    // The value alone is quoted: in quotes as a whole, a shell would take it for a command.
    let pair = |(name, value): &(String, String)| {
        format!("{name}={}", format::shell_command(std::slice::from_ref(value)))
    };
    let pairs: Vec<String> = pairs.iter().map(pair).collect();
    pairs.join(" ")
}

fn program_row(row: &Row, extra: Vec<String>, comparison: &Comparison, palette: &Palette) -> ProgramRow {
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

/// Headings and cells for what only some programs or managers have: wall time, instructions, heap, load figures.
fn extra_columns(table: &ProgramTable, observations: &[&Observation]) -> (Vec<String>, Vec<Vec<String>>) {
    let mut headings = Vec::new();
    let mut cells: Vec<Vec<String>> = table.rows.iter().map(|_| Vec::new()).collect();
    let mut column = |heading: String, cell: &dyn Fn(&Row) -> Option<String>| {
        let found: Vec<Option<String>> = table.rows.iter().map(cell).collect();
        if found.iter().any(Option::is_some) {
            headings.push(heading);
            for (row, cell) in cells.iter_mut().zip(found) {
                row.push(cell.unwrap_or_else(|| NONE.to_owned()));
            }
        }
    };
    let with_ratio = |row: &Row, metric: Metric, unit: f64| {
        let figure = row.figures.get(&metric)?;
        let median = if unit == 1.0 {
            format::median(metric, figure)
        } else {
            format::significant(figure.median / unit)
        };
        Some(
            figure
                .ratio
                .as_ref()
                .map_or(median.clone(), |ratio| format!("{median}, {}", format::interval(ratio))),
        )
    };
    column("Wall s, ratio".into(), &|row| with_ratio(row, Metric::Wall, 1.0));
    column("Instructions 10⁹, ratio".into(), &|row| with_ratio(row, Metric::Instructions, 1e9));
    let counted = |row: &Row, count: fn(&Counters) -> Option<u64>| {
        let good = observations
            .iter()
            .filter(|o| o.stack == row.stack && o.phase == Phase::Timed && o.outcome.is_ok());
        let counts: Vec<f64> = good.filter_map(|o| count(&o.counters)).map(|count| count as f64).collect();
        (!counts.is_empty()).then(|| heaptoll_statistics::median(&counts))
    };
    column("Cycles 10⁹".into(), &|row| counted(row, |c| c.cycles).map(|n| format::significant(n / 1e9)));
    column("Cache misses 10⁶".into(), &|row| {
        counted(row, |c| c.llc_misses).map(|n| format::significant(n / 1e6))
    });
    column("TLB misses 10⁶".into(), &|row| {
        counted(row, |c| c.dtlb_misses).map(|n| format::significant(n / 1e6))
    });
    column("Involuntary switches a CPU s".into(), &|row| {
        row.involuntary_switches_per_cpu_s.map(format::significant)
    });
    column("Heap peak MiB".into(), &|row| row.heap_high_water_bytes.map(format::mib_from_bytes));
    if collected(table) {
        column("Collections".into(), &|row| row.collections.map(|c| format::count(c.count)));
        column("Pauses ms".into(), &|row| row.collections.map(|c| format::milliseconds(c.pause_total_s)));
        column("Longest pause ms".into(), &|row| {
            row.collections.map(|c| format::milliseconds(c.pause_max_s))
        });
        column("Reclaimed MiB".into(), &|row| {
            row.collections.map(|c| format::mib_from_bytes(c.reclaimed_bytes))
        });
    }
    let names: BTreeSet<&String> = table.rows.iter().flat_map(|row| row.load_figures.keys()).collect();
    for name in names {
        column(format::printable(name), &|row| {
            row.load_figures.get(name).map(|value| format::significant(*value))
        });
    }
    (headings, cells)
}

/// Whether any manager reported a collection.
fn collected(table: &ProgramTable) -> bool {
    table.rows.iter().any(|row| row.collections.is_some_and(|collections| collections.count > 0.0))
}

fn charts(
    experiment: &Experiment,
    comparison: &Comparison,
    table: &ProgramTable,
    rows: &[&Observation],
    palette: &Palette,
    registry: &mut ChartRegistry,
) -> Vec<ChartSlot> {
    let ratios = |metric| charts::program_ratios(table, metric, &comparison.baseline, palette);
    let is_server = experiment.programs.iter().any(|p| p.name == table.program && p.serve.is_some());
    let watched = match is_server {
        true => "Sampled during the timed runs.",
        false => "One watched run a stack, apart from the timed ones; its pace is not the measurement.",
    };
    let mut charts = vec![
        registry.put(ratios(Metric::Cpu), "CPU", "Left of the line is cheaper. Pale: no difference seen."),
        registry.put(ratios(Metric::PeakRss), "Peak memory", "Left of the line is smaller. Pale: no difference seen."),
        registry.put(
            charts::time_against_memory(table, palette),
            "CPU against memory",
            "Medians; whiskers reach from the smallest to the largest. Outlined and joined: nothing else here is \
             both cheaper and smaller.",
        ),
        registry.put(
            charts::memory_over_time(experiment, &table.program, palette),
            "Resident memory over time",
            watched,
        ),
    ];
    let mut dots = registry.put(
        charts::invocations(rows, palette),
        "Every timed invocation",
        "In the order in which they were made, so that drift of the machine shows. Crosses did not end well and are \
         in no average.",
    );
    if let Some(place) = &mut dots {
        place.wide = true;
    }
    charts.push(dots);
    charts.into_iter().flatten().collect()
}

fn peaks(experiment: &Experiment, table: &ProgramTable, palette: &Palette) -> Vec<Peak> {
    let tracks = experiment.tracks.iter().filter(|track| track.program == table.program);
    tracks
        .map(|track| {
            let row = table.rows.iter().find(|row| row.stack == track.stack);
            let median = row.and_then(|row| row.figures.get(&Metric::PeakRss));
            let sampled = track.samples.iter().map(|sample| sample.1).max();
            Peak {
                chip: Chip::of(&track.stack, palette),
                median: median.map_or(NONE.to_owned(), |figure| format::median(Metric::PeakRss, figure)),
                high_water: format::mib_from_kib(track.vm_hwm_kib as f64),
                sampled: sampled.map_or(NONE.to_owned(), |kib| format::mib_from_kib(kib as f64)),
            }
        })
        .collect()
}

fn invocation(row: &Observation) -> Invocation {
    let disturbance = row.disturbance.as_ref();
    Invocation {
        order: row.order,
        repetition: row.repetition + 1,
        phase: columns::phase(row.phase),
        stack: format::printable(&row.stack),
        cpu: format::seconds(charts::cpu_s(row)),
        wall: format::seconds(row.wall_s),
        rss: format::mib_from_kib(row.peak_rss_kib as f64),
        faults: format::count(row.minor_faults as f64),
        load: format!("{:.2}", row.load_average),
        steal: disturbance.map_or(NONE.to_owned(), |found| format::percent(found.steal)),
        interrupts: disturbance.map_or(NONE.to_owned(), |found| format::percent(found.interrupts)),
        other_work: disturbance.map_or(NONE.to_owned(), |found| {
            let loaded = if found.is_loaded() == Some(true) { ", loaded" } else { "" };
            format::percent(found.other_work) + loaded
        }),
        outcome: format::printable(&row.outcome.to_string()),
        ok: row.outcome.is_ok(),
    }
}

/// Bad rows, those of one stack with the same ending and output grouped.
fn bad(rows: &[&Observation], palette: &Palette) -> Vec<Bad> {
    let mut groups: Vec<(&Observation, Vec<u32>)> = Vec::new();
    for row in rows.iter().filter(|row| !row.outcome.is_ok()) {
        let alike = |first: &Observation| {
            first.stack == row.stack && first.outcome == row.outcome && first.stderr_tail == row.stderr_tail
        };
        match groups.iter_mut().find(|(first, _)| alike(first)) {
            Some((_, orders)) => orders.push(row.order),
            None => groups.push((row, vec![row.order])),
        }
    }
    let group = |(row, orders): (&Observation, Vec<u32>)| {
        let orders: Vec<String> = orders.iter().map(u32::to_string).collect();
        let noun = if orders.len() == 1 { "invocation" } else { "invocations" };
        Bad {
            chip: Chip::of(&row.stack, palette),
            outcome: format::printable(&row.outcome.to_string()),
            which: format!("{noun} {}", format::and_list(&orders)),
            stderr: format::printable_lines(row.stderr_tail.trim_end()),
        }
    };
    groups.into_iter().map(group).collect()
}
