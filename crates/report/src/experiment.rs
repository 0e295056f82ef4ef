//! A measured experiment and its comparison as a [`Document`]: what was compared, the means over programs, then a
//! section a program. One file a section.

mod bound_text;
mod bounds;
mod charts;
mod classes;
mod collections;
mod exact;
mod exact_text;
mod figures;
mod heap_charts;
mod heap_text;
mod heaps;
mod invocations;
mod lead;
mod machine;
mod managers;
mod more;
mod nodes;
mod overall;
mod pair;
mod parts;
mod peaks;
mod program;
mod question;
mod varied;

use heaptoll_experiment::comparison::{Comparison, ProgramTable};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::given_up::given_up;
use heaptoll_experiment::observation::{Observation, Phase};
use heaptoll_statistics::ALPHA;

use crate::document::{Document, Item, Part, Section};
use crate::format::{self, plural};

pub use classes::of_classes;
pub use pair::pair;
pub use parts::Extras;
pub use program::{brief as program_in_brief, section as program_section};

/// The whole experiment.
pub fn document(experiment: &Experiment, comparison: &Comparison, extras: Extras) -> Document {
    let tables = comparison.tables.iter();
    let programs = tables.map(|table| program::section(experiment, comparison, table, extras)).collect();
    gathered(experiment, comparison, extras, programs, RowCount::of(&experiment.observations))
}

/// What is left to show of an experiment whose programs were shown one by one: the means over them, how all was measured,
/// and what was found.
pub fn rest(experiment: &Experiment, comparison: &Comparison, extras: Extras) -> Document {
    let palette = palette(experiment);
    let mut sections: Vec<Section> = overall::section(comparison, &palette, extras).into_iter().collect();
    sections.extend([measured(experiment, comparison, extras), found(experiment, comparison, extras)]);
    for section in &mut sections {
        section.items.retain(|item| !matches!(item, Item::Part(Part { folded: true, .. })));
    }
    let warnings = warnings(experiment, experiment.observations.len());
    Document { warnings, sections, palette, ..Document::default() }
}

/// How many rows an experiment has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCount {
    /// All.
    pub rows: usize,
    /// Those that did not end well.
    pub bad: usize,
}

impl RowCount {
    /// Of these rows.
    pub fn of(rows: &[Observation]) -> RowCount {
        let bad = rows.iter().filter(|row| !row.outcome.is_ok()).count();
        RowCount { rows: rows.len(), bad }
    }
}

/// An experiment whose rows need not be there, from the sections of its programs.
pub fn gathered(
    experiment: &Experiment,
    comparison: &Comparison,
    extras: Extras,
    programs: Vec<Section>,
    count: RowCount,
) -> Document {
    let palette = palette(experiment);
    let mut sections = vec![found(experiment, comparison, extras)];
    sections.extend(overall::section(comparison, &palette, extras));
    sections.extend(programs);
    sections.push(managers::section(experiment, &palette));
    sections.push(measured(experiment, comparison, extras));
    let mut facts = machine::facts(experiment);
    if !experiment.settings.directory.is_empty() {
        facts.push(("Folder".into(), experiment.settings.directory.clone()));
    }
    if count.bad > 0 {
        facts.push(("Failed invocations".into(), count.bad.to_string()));
    }
    Document {
        title: title(experiment, comparison, &palette),
        subtitle: machine::plan(experiment),
        warnings: warnings(experiment, count.rows),
        sections,
        facts,
        command: format::shell_command(&experiment.settings.repeat_command),
        palette,
    }
}

/// With how many repetitions in all a table would show more; `None` where each shows enough.
pub fn advised_repetitions(experiment: &Experiment, comparison: &Comparison) -> Option<u32> {
    let is_planned = experiment.settings.precision.is_none() && experiment.settings.budget_s.is_none();
    let advised = comparison.tables.iter().filter_map(|table| program::advised(experiment, table));
    advised.filter(|_| is_planned).max()
}

/// The baseline, then the other stacks as they were requested, whatever program they ran. What a search tried is none.
fn palette(experiment: &Experiment) -> Vec<String> {
    let mut names = vec![experiment.baseline.clone()];
    let by_request = experiment.stacks.iter().map(|stack| &stack.name);
    let compared = experiment.observations.iter().filter(|row| row.phase != Phase::Search);
    for name in by_request.chain(compared.map(|row| &row.stack)) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn title(experiment: &Experiment, comparison: &Comparison, palette: &[String]) -> String {
    let managers = palette.iter().filter(|stack| !heaps::is_limited(comparison, stack)).count();
    let managers = plural(managers, "memory manager");
    match &experiment.programs[..] {
        [one] => format!("{} under {managers}", one.name),
        programs => format!("{} under {managers}", plural(programs.len(), "program")),
    }
}

fn warnings(experiment: &Experiment, rows: usize) -> Vec<String> {
    let rows = plural(rows, "row");
    let incomplete = match experiment.missing_shards().as_slice() {
        [] => match stopped(experiment) {
            Some(program) => format!(
                "stopped: {program} failed too often under {} itself; {rows} so far, shown below",
                experiment.baseline
            ),
            None => format!("incomplete: interrupted or still running; {rows} so far, shown below"),
        },
        missing => nodes::lacking(experiment, missing),
    };
    let incomplete = (!experiment.complete).then_some(incomplete);
    incomplete.into_iter().chain(format::left_out(experiment)).collect()
}

/// The program whose baseline failed so often that the experiment ended.
fn stopped(experiment: &Experiment) -> Option<&str> {
    let [program] = &experiment.programs[..] else { return None };
    given_up(experiment, &program.name, &experiment.baseline).then_some(&program.name)
}

/// What was found, in two sentences, and what was requested and is not there.
fn found(experiment: &Experiment, comparison: &Comparison, extras: Extras) -> Section {
    let absent = absent(comparison, extras).map(str::to_owned);
    let heaps = heaps::summary(comparison);
    let answer = match question::sentences(experiment, comparison) {
        none if none.is_empty() => lead::answer(comparison).into_iter().collect(),
        answer => answer,
    };
    let varied = varied::summary(comparison);
    let sentences = heaps.into_iter().chain(varied).chain(answer).chain(lead::linked(experiment));
    Section { text: sentences.chain(absent).collect(), ..Section::default() }
}

/// Where it ran, and how to read the tables.
fn measured(experiment: &Experiment, comparison: &Comparison, extras: Extras) -> Section {
    let mut text = machine::lines(experiment);
    text.push(in_short(experiment, comparison));
    let mut reading = reading(experiment, comparison);
    reading.text.extend(machine::limits(experiment));
    reading.folded = !extras.explain;
    Section { title: "How it was measured".into(), text, items: vec![Item::Part(reading)] }
}

/// How to read the tables.
fn reading(experiment: &Experiment, comparison: &Comparison) -> Part {
    let baseline = &comparison.baseline;
    let how = [
        format!(
            "A ratio compares a manager with {baseline}: 0.90 means 10 % less. It is the geometric mean of \
             ratios within one repetition, where every manager ran once, in random order."
        ),
        format!(
            "Brackets are {} % confidence intervals, corrected for all comparisons in the table. An interval \
             that contains 1.00 means no difference was detected, not that there is none.",
            level(experiment)
        ),
        format!("CPU is user and system time {}. Memory is peak RSS.", startup(comparison)),
        "Runs that crashed, or whose output differs from the first manager's, are marked and left out of \
         every average."
            .to_owned(),
    ];
    Part {
        title: "How to read the tables".into(),
        text: how.into(),
        option: "--explain".into(),
        ..Part::default()
    }
}

/// The same in short.
fn in_short(experiment: &Experiment, comparison: &Comparison) -> String {
    format!(
        "Ratios are to {}, paired within a repetition, so they may differ from the ratio of two columns. In \
         parentheses: {} % confidence intervals, corrected for all comparisons in a table. One that contains 1.00 means no difference detected. CPU is user + \
         system time {}; RSS is the peak.",
        comparison.baseline,
        level(experiment),
        startup(comparison)
    )
}

/// Whether CPU time is with start-up.
fn startup(comparison: &Comparison) -> &'static str {
    match comparison.tables.iter().filter(|table| table.includes_startup).count() {
        0 => "without start-up",
        all if all == comparison.tables.len() => "with start-up",
        _ => "without start-up, unless a note includes it",
    }
}

/// Percentage at which all intervals of a table hold together. Where an experiment decides itself when it has enough,
/// its stricter level holds as much as the usual one.
fn level(experiment: &Experiment) -> String {
    let level = format::significant((1.0 - experiment.settings.level.unwrap_or(ALPHA)) * 100.0);
    level.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Why a requested table is not there.
fn absent(comparison: &Comparison, extras: Extras) -> impl Iterator<Item = &'static str> {
    let no_collections = extras.collections && !comparison.tables.iter().any(ProgramTable::has_collections);
    let no_bounds = extras.bounds && !comparison.lower_bounds.programs.iter().any(bound_text::is_shown);
    [
        (
            no_collections,
            "No garbage collections (--collections): no manager of this experiment counted any.",
        ),
        (
            no_bounds,
            "No lower bounds of overhead (--bounds): they need two managers, or one with known costs, and \
             two repetitions without a failure.",
        ),
    ]
    .into_iter()
    .filter_map(|(is_missing, why)| is_missing.then_some(why))
}

#[cfg(test)]
mod tests;
