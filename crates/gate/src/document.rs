//! The document of a gate: the verdict first, then what this machine can see, what changed, and how it was measured.

use heaptoll_report::document::{Document, Section, Table};
use heaptoll_report::format::{NOT_DECIDED, date, shell_command};
use heaptoll_units::{and_list, bytes, count};

use super::diagnosis;
use super::figures::{Change, Figures, MetricFigures, MetricVerdict, Program, Side, SizeFigures, Verdict};
use super::judge::OWN;
use super::metric::Metric;
use super::values::{change, value};

/// Size classes that are shown, those that change most.
const SIZES: usize = 8;

/// The whole document.
pub fn document(figures: &Figures, facts: Vec<(String, String)>, command: String) -> Document {
    let several = figures.programs.len() > 1;
    let refused = figures.refused.iter().map(|one| {
        let why = one.why.strip_prefix(&format!("{}: ", one.name)).unwrap_or(&one.why);
        format!("{} could not be run: {why}.", one.name)
    });
    let mut sections = vec![
        Section {
            title: "Verdict".into(),
            text: worst_first(figures).into_iter().flat_map(verdict).chain(refused).collect(),
            items: vec![],
        },
        Section {
            title: "What this machine can detect now".into(),
            text: figures.sight.clone(),
            items: vec![],
        },
    ];
    for program in &figures.programs {
        let prefix = if several { format!("{}: ", program.name) } else { String::new() };
        sections.extend(of_program(program, &prefix));
    }
    Document {
        title: title(figures),
        subtitle: subtitle(figures),
        warnings: if figures.complete { vec![] } else { vec!["interrupted: not all runs were made".into()] },
        sections,
        facts,
        command,
        ..Document::default()
    }
}

fn worst_first(figures: &Figures) -> Vec<&Program> {
    let mut all: Vec<&Program> = figures.programs.iter().collect();
    all.sort_by_key(|program| std::cmp::Reverse(program.verdict));
    all
}

/// The verdict as a headline.
fn title(figures: &Figures) -> String {
    let names: Vec<&str> = figures.programs.iter().map(|program| program.name.as_str()).collect();
    let of = |verdict| {
        let all = figures.programs.iter().filter(|program| program.verdict == verdict);
        and_list(&all.map(|program| program.name.clone()).collect::<Vec<_>>())
    };
    let refused: Vec<String> = figures.refused.iter().map(|one| one.name.clone()).collect();
    let failed = figures.programs.iter().filter(|program| program.failure.is_some());
    let failed: Vec<String> = failed.map(|program| program.name.clone()).collect();
    let verdict = match figures.verdict {
        Verdict::Broken if !failed.is_empty() => format!("The new build fails: {}", and_list(&failed)),
        Verdict::Broken => format!("Limits broken by: {}", of(Verdict::Broken)),
        _ if !refused.is_empty() => format!("Could not be run: {}", and_list(&refused)),
        Verdict::Within => format!("Within limits: {}", names.join(", ")),
        Verdict::Undecided => format!("Not decided: {}", of(Verdict::Undecided)),
    };
    let also = match figures.verdict {
        Verdict::Broken if !refused.is_empty() => format!("; could not be run: {}", and_list(&refused)),
        _ => String::new(),
    };
    let so_far = if figures.complete { "" } else { ", in what was measured" };
    format!("{verdict}{also}{so_far}")
}

fn subtitle(figures: &Figures) -> String {
    match figures.programs.as_slice() {
        [one] => format!("base: {}; new: {}", in_words(&one.base), in_words(&one.new)),
        many => many.iter().map(|program| program.name.as_str()).collect::<Vec<_>>().join(", "),
    }
}

/// The verdict on a program in sentences, what is worst first.
fn verdict(program: &Program) -> Vec<String> {
    let name = &program.name;
    let unchanged = program.unchanged.iter().map(|how| format!("{name}: there is no change: {how}."));
    let failure = program.failure.iter().map(|failure| format!("{name}: {failure}."));
    let mut text: Vec<String> = unchanged.chain(failure).collect();
    let all = |of: fn(&MetricFigures) -> bool| program.metrics.iter().filter(move |one| of(one));
    let is_broken: fn(&MetricFigures) -> bool = |one| one.verdict == MetricVerdict::Broken;
    for one in all(is_broken) {
        let limit = one.limit.map(|limit| limit.text()).unwrap_or_default();
        // The place of more instructions is stated once.
        let is_stated =
            one.metric == Metric::Cpu && all(is_broken).any(|one| one.metric == Metric::Instructions);
        let place = (!is_stated).then(|| diagnosis::cause(&program.into(), one)).flatten();
        text.push(format!(
            "{name}: {}: {}, over the limit of {limit}{}{}.",
            one.metric.label(),
            change_in_words(one),
            one.base_again
                .map(|_| format!(" plus {OWN} times the difference between two runs of the base"))
                .unwrap_or_default(),
            place.map(|place| format!("; most by {place}")).unwrap_or_default()
        ));
    }
    for one in &program.metrics {
        if let MetricVerdict::Undecided { why } = &one.verdict {
            let limit = one.limit.map(|limit| limit.text()).unwrap_or_default();
            let label = one.metric.label();
            text.push(format!("{name}: the limit of {limit} on {label} is {NOT_DECIDED}: {why}."));
        }
    }
    let within: Vec<String> =
        all(|one| one.verdict == MetricVerdict::Within).map(|one| one.metric.label().to_owned()).collect();
    if !within.is_empty() {
        text.push(format!("{name}: within limits: {}.", and_list(&within)));
    }
    if text.is_empty() {
        text.push(format!("{name}: nothing is gated; metrics are shown below."));
    }
    text
}

fn change_in_words(one: &MetricFigures) -> String {
    let figures = || format!("from {} to {}", value(one.unit, one.base), value(one.unit, one.new));
    match one.change {
        Change::None => figures(),
        _ => format!("{} ({})", change(&one.change), figures()),
    }
}

fn of_program(program: &Program, prefix: &str) -> Vec<Section> {
    let mut all = Vec::new();
    all.extend(metrics(program).map(|table| Section::new("What changed").with(table)));
    all.extend(sizes(&program.sizes).map(|table| Section::new("Requests by size").with(table)));
    all.extend(diagnosis::sections(program.into()));
    if !program.notes.is_empty() {
        all.push(Section { text: program.notes.clone(), ..Section::new("How it was measured") });
    }
    all.iter_mut().for_each(|section| section.title.insert_str(0, prefix));
    all
}

fn metrics(program: &Program) -> Option<Table> {
    let measured = program.metrics.iter().any(|one| matches!(one.change, Change::Measured(_)));
    let note = "Counts are exact. Changes with an interval come from paired runs, so they may differ from the \
                ratio of two columns. Intervals are at 95 %, corrected for all comparisons. A limit is broken \
                only if the whole interval lies beyond it; a limit on a count also has a floor.";
    Table::of(&program.metrics)
        .text("metric", |one| one.metric.label())
        .figure("base", |one| value(one.unit, one.base))
        .figure("new", |one| value(one.unit, one.new))
        .figure("change", |one| change(&one.change))
        .figure("limit", |one| one.limit.map(|limit| limit.text()))
        .text("verdict", |one| word(one))
        .notes(measured.then(|| note.to_owned()))
        .if_any()
}

fn word(one: &MetricFigures) -> String {
    // More than the share of the limit, and less than its floor.
    let floor = one.limit.filter(|limit| one.change.ratio().is_some_and(|ratio| ratio > 1.0 + limit.share));
    match &one.verdict {
        MetricVerdict::Within => match floor.filter(|limit| limit.floor > 0.0) {
            Some(limit) => format!("within: less than {} more", value(one.unit, Some(limit.floor))),
            None => "within".into(),
        },
        MetricVerdict::Broken => "BROKEN".into(),
        MetricVerdict::Undecided { .. } => NOT_DECIDED.into(),
        MetricVerdict::NotGated { why } => format!("not gated: {why}"),
    }
}

/// The size classes whose bytes change most.
fn sizes(all: &[SizeFigures]) -> Option<Table> {
    let moved =
        |one: &SizeFigures| (one.base_bytes.abs_diff(one.new_bytes), one.base_calls.abs_diff(one.new_calls));
    let mut rows: Vec<&SizeFigures> = all.iter().filter(|one| moved(one) != (0, 0)).collect();
    rows.sort_by_key(|one| (std::cmp::Reverse(moved(one)), one.up_to));
    let left = rows.len().saturating_sub(SIZES);
    rows.truncate(SIZES);
    let signed = |base: u64, new: u64| {
        let sign = if new >= base { "+" } else { "-" };
        format!("{sign}{}", count(base.abs_diff(new) as f64))
    };
    Table::of(rows)
        .figure("up to", |one| one.up_to.map_or_else(|| "unknown".into(), |size| bytes(size as f64)))
        .figure("calls, base", |one| count(one.base_calls as f64))
        .figure("calls, new", |one| count(one.new_calls as f64))
        .figure("more calls", |one| signed(one.base_calls, one.new_calls))
        .figure("more bytes", |one| signed(one.base_bytes, one.new_bytes))
        .notes((left > 0).then(|| format!("{left} more size classes change less.")))
        .if_any()
}

/// Machine and builds.
pub fn facts(figures: &Figures) -> Vec<(String, String)> {
    let machine = &figures.machine;
    let mut facts = vec![
        ("measured".to_owned(), date(figures.created_unix_s)),
        (
            "machine".to_owned(),
            format!(
                "{}, {} processors, {}, glibc {}",
                machine.cpu, machine.cores, machine.kernel, machine.libc
            ),
        ),
    ];
    for program in &figures.programs {
        for (name, side) in [("base", &program.base), ("new", &program.new)] {
            facts.push((format!("{}, {name}", program.name), in_words(side)));
        }
    }
    facts
}

/// A build: its command, its commit, its manager.
fn in_words(side: &Side) -> String {
    let commit = side.commit.as_ref().map(|commit| {
        format!(", of commit {commit}{}", if side.dirty { " and what is changed over it" } else { "" })
    });
    let manager = side.manager.as_ref().map(|manager| format!(", under {manager}"));
    format!("{}{}{}", shell_command(&side.command), commit.unwrap_or_default(), manager.unwrap_or_default())
}
