//! Everything the template of the page shows.

use askama::Template;
use heaptoll_experiment::comparison::{Comparison, Metric, ProgramTable};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_statistics::Interval;

use super::chart_registry::{ChartRegistry, ChartSlot};
use super::palette::Palette;
use super::program::{BoundLine, Program, environment};
use super::views::{Chip, Fact, Ratio};
use super::{charts, engine};
use crate::format::{self, NONE, plural};
use crate::terminal::overall_verdict;

/// The page; the template escapes every text that is not marked safe, and only our own files are.
#[derive(Template)]
#[template(path = "page.html")]
pub(super) struct Page {
    /// Style sheet.
    pub style: &'static str,
    /// Script.
    pub script: &'static str,
    /// Charting library, packed.
    pub engine: String,
    /// Charts, JSON.
    pub charts: String,
    /// Title.
    pub title: String,
    /// When, how often, where, in one line.
    pub subtitle: String,
    /// Why the figures are not the whole, if they are not.
    pub incomplete: String,
    /// Baseline.
    pub baseline: String,
    /// Percentage at which all intervals of a table hold together.
    pub level: String,
    /// Marks of all stacks.
    pub legend: Vec<Chip>,
    /// Geometric means; empty with one program.
    pub overall: Vec<Overall>,
    /// Charts over all programs.
    pub overall_charts: Vec<ChartSlot>,
    /// Geometric means of lower bounds; the last cell is the number of programs.
    pub overall_bounds: Vec<BoundLine>,
    /// Program by stack, of CPU and memory.
    pub matrices: Vec<Matrix>,
    /// Sections.
    pub programs: Vec<Program>,
    /// The machine and the settings.
    pub machine: Vec<Fact>,
    /// Stacks.
    pub stacks: Vec<Stack>,
    /// Programs without a section, each with the reason.
    pub left_out: Vec<String>,
    /// Stacks left out: program, stack, reason.
    pub refused: Vec<(String, String, String)>,
    /// Rows that did not end well.
    pub bad_rows: usize,
    /// The folder in which it was begun; empty when unknown.
    pub directory: String,
    /// The command that repeats the experiment.
    pub repeat: String,
    /// Version of heaptoll.
    pub version: String,
}

/// One stack over all programs.
pub(super) struct Overall {
    /// Stack.
    pub chip: Chip,
    /// Programs with ratios.
    pub programs: u32,
    /// CPU.
    pub cpu: Ratio,
    /// Memory.
    pub rss: Ratio,
    /// In words.
    pub verdict: String,
}

/// One metric of every program under every stack.
pub(super) struct Matrix {
    /// What it shows.
    pub title: &'static str,
    /// Columns.
    pub stacks: Vec<Chip>,
    /// Anchor, program, cells.
    pub rows: Vec<(String, String, Vec<Ratio>)>,
}

/// One stack, whatever program it ran.
pub(super) struct Stack {
    /// Stack.
    pub chip: Chip,
    /// Version.
    pub version: String,
    /// Where it comes from.
    pub origin: String,
    /// Objects preloaded.
    pub preload: String,
    /// Extra environment.
    pub environment: String,
    /// Warnings, each with its program.
    pub warnings: Vec<String>,
}

impl Page {
    /// Everything but the charting library and the charts, which come last.
    pub fn new(experiment: &Experiment, comparison: &Comparison, registry: &mut ChartRegistry) -> Self {
        let palette = Palette::new(experiment);
        let settings = &experiment.settings;
        let overall_charts = match comparison.overall.is_empty() {
            true => Vec::new(),
            false => overall_charts(comparison, &palette, registry),
        };
        let programs = comparison.tables.iter().enumerate();
        Page {
            style: include_str!("../../templates/style.css"),
            script: engine::SCRIPT,
            engine: String::new(),
            charts: String::new(),
            title: title(experiment, &palette),
            subtitle: format!(
                "{} · {} after {} warm-up · {}, {} · {}",
                format::date(experiment.created_unix_s),
                plural(settings.repetitions as usize, "repetition"),
                settings.warmup,
                format::printable(&experiment.machine.cpu),
                plural(experiment.machine.cores as usize, "core"),
                format::printable(&experiment.machine.distribution),
            ),
            incomplete: if experiment.complete {
                String::new()
            } else {
                plural(experiment.observations.len(), "row")
            },
            baseline: format::printable(&comparison.baseline),
            level: format!("{:.1}", (1.0 - comparison.alpha) * 100.0).trim_end_matches(".0").to_owned(),
            legend: palette.names().map(|name| Chip::of(name, &palette)).collect(),
            overall: overall(comparison, &palette),
            overall_charts,
            overall_bounds: overall_bounds(comparison, &palette),
            matrices: matrices(comparison, &palette),
            programs: programs
                .map(|(index, table)| Program::new(index, experiment, comparison, table, &palette, registry))
                .collect(),
            machine: machine(experiment),
            stacks: stacks(experiment, &palette),
            left_out: format::left_out(experiment).iter().map(|text| format::printable(text)).collect(),
            refused: experiment
                .refused
                .iter()
                .map(|(a, b, c)| (format::printable(a), format::printable(b), format::printable(c)))
                .collect(),
            bad_rows: experiment.observations.iter().filter(|row| !row.outcome.is_ok()).count(),
            directory: format::printable(&settings.directory),
            repeat: format::printable(&format::shell_command(&settings.repeat_command)),
            version: format::printable(&experiment.heaptoll_version),
        }
    }
}

fn title(experiment: &Experiment, palette: &Palette) -> String {
    let managers = plural(palette.names().count(), "memory manager");
    match &experiment.programs[..] {
        [one] => format!("{} under {managers}", format::printable(&one.name)),
        programs => format!("{} under {managers}", plural(programs.len(), "program")),
    }
}

fn overall(comparison: &Comparison, palette: &Palette) -> Vec<Overall> {
    let rows = comparison.overall.iter().map(|row| {
        let words = if row.stack == comparison.baseline { "baseline" } else { NONE };
        Overall {
            chip: Chip::of(&row.stack, palette),
            programs: row.programs,
            cpu: Ratio::of(row.cpu.as_ref(), words),
            rss: Ratio::of(row.peak_rss.as_ref(), words),
            verdict: overall_verdict(comparison, row),
        }
    });
    rows.collect()
}

fn overall_charts(
    comparison: &Comparison,
    palette: &Palette,
    registry: &mut ChartRegistry,
) -> Vec<ChartSlot> {
    let cpu = charts::overall_ratios(comparison, Metric::Cpu, palette);
    let rss = charts::overall_ratios(comparison, Metric::PeakRss, palette);
    let places = [
        registry.put(cpu, "CPU", "Left of the line is cheaper. Pale: no difference seen."),
        registry.put(rss, "Peak memory", "Left of the line is smaller. Pale: no difference seen."),
    ];
    places.into_iter().flatten().collect()
}

fn overall_bounds(comparison: &Comparison, palette: &Palette) -> Vec<BoundLine> {
    let rows = comparison.lower_bounds.overall.iter();
    rows.map(|row| {
        let ratio =
            |interval: &Option<Interval>| Ratio { class: "same", ..Ratio::of(interval.as_ref(), NONE) };
        BoundLine {
            chip: Chip::of(&row.stack, palette),
            wall: ratio(&row.wall),
            cpu: ratio(&row.cpu),
            taken: row.programs.to_string(),
        }
    })
    .collect()
}

/// The tables next to the overall charts, with the same figures.
fn matrices(comparison: &Comparison, palette: &Palette) -> Vec<Matrix> {
    if comparison.overall.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = palette.names().filter(|name| *name != comparison.baseline).collect();
    let cell = |table: &ProgramTable, stack: &str, metric| {
        let figure =
            table.rows.iter().find(|row| row.stack == stack).and_then(|row| row.figures.get(&metric));
        Ratio::of(figure.and_then(|figure| figure.ratio.as_ref()), NONE)
    };
    let matrix = |title, metric| Matrix {
        title,
        stacks: names.iter().map(|name| Chip::of(name, palette)).collect(),
        rows: comparison
            .tables
            .iter()
            .enumerate()
            .map(|(index, table)| {
                let cells = names.iter().map(|name| cell(table, name, metric)).collect();
                (format!("program-{index}"), format::printable(&table.program), cells)
            })
            .collect(),
    };
    vec![matrix("CPU ratio", Metric::Cpu), matrix("Peak memory ratio", Metric::PeakRss)]
}

fn machine(experiment: &Experiment) -> Vec<Fact> {
    let machine = &experiment.machine;
    let settings = &experiment.settings;
    let thp = match settings.thp.as_str() {
        "" => format!("{} (the system's setting)", machine.thp),
        set => format!("{set} (set for each process; the system has {})", machine.thp),
    };
    let aslr = match machine.aslr.as_str() {
        "0" => "off",
        "1" => "on, without the heap",
        "2" => "on",
        other => other,
    };
    let mut facts = vec![
        Fact::new("Processor", format!("{}, {} usable", machine.cpu, plural(machine.cores as usize, "core"))),
        Fact::new("Memory", format!("{} MiB", format::mib_from_kib(machine.memory_kib as f64))),
        Fact::new("System", format!("{}, Linux {}", machine.distribution, machine.kernel)),
        Fact::new("glibc", &machine.libc),
        Fact::new("Transparent huge pages", thp),
        Fact::new("Frequency governor", &machine.governor),
        Fact::new("Address randomisation", aslr),
        Fact::new("Load at the start", machine.load.map(|load| format!("{load:.2}")).join(", ")),
        Fact::new(
            "Hardware counters",
            machine.no_hardware_counters.as_deref().map_or("yes".to_owned(), |why| format!("none: {why}")),
        ),
        Fact::new(
            "Plan",
            format!(
                "{} after {} warm-up, seed {}, time limit {} s",
                plural(settings.repetitions as usize, "repetition"),
                settings.warmup,
                settings.seed,
                settings.timeout_s
            ),
        ),
    ];
    if let Some((seconds, kib)) = experiment.own_cost {
        let text = format!(
            "{} an invocation, above fork and exec of the bare command",
            format::own_cost(seconds, kib)
        );
        facts.push(Fact::new("Own cost", text));
    }
    facts
}

fn stacks(experiment: &Experiment, palette: &Palette) -> Vec<Stack> {
    let of = |name: &str| {
        let mut found = experiment.stacks.iter().filter(|stack| stack.name == name);
        let first = found.clone().next();
        let text = |text: Option<String>| {
            text.filter(|text| !text.is_empty()).map_or(NONE.to_owned(), |text| format::printable(&text))
        };
        Stack {
            chip: Chip::of(name, palette),
            version: text(first.map(|stack| stack.version.clone())),
            origin: text(first.map(|stack| stack.origin.clone())),
            preload: text(first.map(|stack| stack.preload.join(" "))),
            environment: text(first.map(|stack| environment(&stack.environment))),
            warnings: found
                .by_ref()
                .flat_map(|stack| {
                    stack.warnings.iter().map(move |warning| format!("{}: {warning}", stack.program))
                })
                .map(|warning| format::printable(&warning))
                .collect(),
        }
    };
    palette.names().map(of).collect()
}
