//! The document of `heaptoll lab minheap`.

use heaptoll_compare::smallest_heap::{Collector, End, Tried};
use heaptoll_experiment::machine;
use heaptoll_experiment::manager::Manager;
use heaptoll_report::document::{Axis, Chart, Column, Columns, Document, Form, Section, Series, Table};
use heaptoll_report::format::{count, ratio};
use heaptoll_units::{each_once, kib};

use super::figures::{Baseline, MeanOver, MinheapFigures, Over, Program};
use super::overheads::{Mean, Overhead};

/// Headings of baselines: their stacks, but for the part that all share.
fn baseline_title(baseline: &str) -> &str {
    baseline.strip_prefix("sweep,").unwrap_or(baseline)
}

/// The document.
pub fn document(
    figures: &MinheapFigures,
    collectors: &[Manager],
    allocators: &[Manager],
    command: String,
) -> Document {
    let names: Vec<&str> = figures.programs.iter().map(|program| program.program.as_str()).collect();
    let mut sections = Vec::new();
    if figures.programs.len() > 1 {
        sections.push(over_programs(figures));
    }
    sections.extend(figures.programs.iter().map(|program| section(program, figures)));
    sections.extend(published_section(figures));
    Document {
        title: "Smallest heaps".into(),
        subtitle: names.join(", "),
        warnings: warnings(figures),
        sections,
        facts: facts(figures, collectors, allocators),
        command,
        ..Document::default()
    }
}

fn warnings(figures: &MinheapFigures) -> Vec<String> {
    let mut all = Vec::new();
    if !figures.complete {
        all.push("interrupted: what was finished until then is shown".into());
    }
    for program in &figures.programs {
        let name = &program.program;
        if !program.steady_output {
            all.push(format!(
                "{name}: the output differs from run to run even under glibc, so only the exit status shows \
                 whether a run was right"
            ));
        }
        for row in &program.collectors {
            all.extend(
                remarks(row).into_iter().map(|remark| format!("{name} under {}: {remark}", row.stack)),
            );
        }
        let refused: Vec<&Baseline> = program.baselines.iter().filter(|row| row.refused.is_some()).collect();
        if let Some(why) = refused.first().and_then(|row| row.refused.as_ref()) {
            let stacks: Vec<&str> = refused.iter().map(|row| row.stack.as_str()).collect();
            all.push(format!("{name}: no baseline {}: {why}", stacks.join(", ")));
        }
        for row in program.baselines.iter().filter(|row| !row.failures.is_empty()) {
            all.push(format!(
                "{name} under {}: {} of {} runs did not complete: {}",
                row.stack,
                row.failures.len(),
                row.failures.len() + row.used_high_bytes.len(),
                row.failures[0]
            ));
        }
    }
    all
}

/// Warnings about one row.
fn remarks(row: &Collector) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(why) = &row.failure {
        all.push(format!("not searched: {why}"));
    }
    let Some(answer) = &row.search else { return all };
    match answer.end {
        End::Found => {}
        End::NeverDone => all.push(format!(
            "it did not complete in {} KiB either, the largest heap tried{}",
            kib(answer.failed_at),
            answer.failed_otherwise.first().map(|why| format!(" ({why})")).unwrap_or_default()
        )),
        End::TooManyRuns => all.push(format!(
            "{} runs were too few to find it exactly",
            answer
                .tried
                .iter()
                .map(|tried| tried.done + tried.out_of_memory + tried.other.len() as u32)
                .sum::<u32>()
        )),
    }
    if answer.is_flaky() {
        all.push(format!(
            "flaky: it completed in {} KiB once, and did not in {} KiB once; the smallest heap is the one above which \
             no run failed",
            answer.sometimes_from.map(kib).unwrap_or_default(),
            kib(answer.failed_at)
        ));
    }
    if answer.heap.is_some() && !answer.failed_otherwise.is_empty() {
        all.push(format!(
            "at {} KiB the run failed for another reason than memory ({}), so the limit is uncertain",
            kib(answer.failed_at),
            answer.failed_otherwise[0]
        ));
    } else if answer.heap.is_some() && answer.has_others() {
        let others = answer.tried.iter().filter(|tried| !tried.other.is_empty());
        let words: Vec<String> =
            others.map(|tried| format!("{} KiB: {}", kib(tried.heap), tried.other[0])).collect();
        all.push(format!("failed for another reason than memory at {}", words.join("; ")));
    }
    if row.completed_although_refused > 0 {
        all.push(format!(
            "{} runs completed after a failed allocation: the program copes with less",
            row.completed_although_refused
        ));
    }
    all
}

/// A ratio with its ends.
fn over(overhead: &Overhead) -> String {
    format!("{} ({}–{})", ratio(overhead.ratio), ratio(overhead.low), ratio(overhead.high))
}

fn mean(mean: &Mean) -> String {
    match mean.programs {
        1 => ratio(mean.ratio),
        _ => format!("{} ({}–{})", ratio(mean.ratio), ratio(mean.low), ratio(mean.high)),
    }
}

fn baseline_stacks(programs: &[Program]) -> Vec<String> {
    let rows = programs.iter().flat_map(|program| &program.baselines);
    each_once(rows.map(|row| row.stack.clone()))
}

fn collector_stacks(programs: &[Program]) -> Vec<String> {
    let rows = programs.iter().flat_map(|program| &program.collectors);
    each_once(rows.map(|row| row.stack.clone()))
}

/// A row a collector, with a column for each baseline.
fn over_baselines<R>(
    table: Columns<R>,
    baselines: &[String],
    cell: impl Fn(&R, &str) -> Option<String>,
) -> Columns<R> {
    table.each(baselines, |baseline| Column::figures(baseline_title(baseline)), |row, one| cell(row, one))
}

fn over_programs(figures: &MinheapFigures) -> Section {
    let baselines = baseline_stacks(&figures.programs);
    let collectors = collector_stacks(&figures.programs);
    let of = |collector: &&String, baseline: &str| {
        let is = |one: &&MeanOver| one.collector == **collector && one.baseline == baseline;
        let found = &figures.means.iter().find(is)?.mean;
        Some(match found.programs {
            n if n == figures.programs.len() => mean(found),
            n => format!("{} [{n}]", mean(found)),
        })
    };
    let table = Table::of(&collectors)
        .caption("Smallest heap divided by the baseline's footprint, geometric mean over programs")
        .text("collector", |collector| collector.as_str());
    let table = over_baselines(table, &baselines, of).note(
        "In brackets: 95 % interval over programs (Student's t on logarithms). In square brackets: how \
         many programs have both, if not all do.",
    );
    let chart = baselines.first().map(|baseline| bars(figures, &collectors, baseline));
    Section::new("Over all programs").with(table).with_all(chart)
}

/// The paper's means compared with ours; nothing where none of its baselines was run.
fn published_section(figures: &MinheapFigures) -> Option<Section> {
    let table = Table::of(&figures.published)
        .text("vs footprint of", |one| one.ours.baseline.clone())
        .text("theirs", |one| one.published.collector.clone())
        .figure("ratio", |one| ratio(one.published.ratio()))
        .text("ours", |one| one.ours.collector.clone())
        .figure("ratio", |one| mean(&one.ours.mean))
        .figure("programs", |one| one.ours.mean.programs.to_string());
    let section = Section::new("Compared with Sareen and Blackburn (2022)").state(
        "The paper's figure is a geometric mean over programs of DaCapo on a virtual machine for Java, \
         without an interval. That collector may move blocks and knows where pointers are. Ours are C \
         and C++ programs under conservative collectors that move nothing.",
    );
    Some(section.with(table.if_any()?))
}

fn bars(figures: &MinheapFigures, collectors: &[String], baseline: &str) -> Chart {
    let series = |collector: &String| Series {
        name: collector.clone(),
        points: figures
            .programs
            .iter()
            .enumerate()
            .filter_map(|(at, program)| {
                let found = program
                    .overheads
                    .iter()
                    .find(|one| one.collector == *collector && one.baseline == baseline)?;
                Some((at as f64, found.overhead.ratio))
            })
            .collect(),
        ..Series::default()
    };
    Chart {
        title: format!("Smallest heap over {baseline}"),
        caption: "1: only the pages with a live block, with garbage given back immediately.".into(),
        form: Form::Bars,
        x: Axis {
            names: figures.programs.iter().map(|program| program.program.clone()).collect(),
            ..Axis::default()
        },
        y: Axis::even("ratio"),
        series: collectors.iter().map(series).collect(),
    }
}

fn section(program: &Program, figures: &MinheapFigures) -> Section {
    let section = Section::new(&program.program).with(smallest_heaps(program, figures));
    section.with_all(footprints(program)).with_all(overheads(program))
}

/// The edge that each collector's search found, and its runs.
fn smallest_heaps(program: &Program, figures: &MinheapFigures) -> Table {
    let sum = |row: &Collector, of: fn(&Tried) -> u32| {
        let tried = row.search.iter().flat_map(|answer| &answer.tried);
        tried.map(of).sum::<u32>().to_string()
    };
    Table::of(&program.collectors)
        .caption("Smallest heaps")
        .text("collector", |row| row.stack.clone())
        .figure("smallest heap, KiB", |row| row.edge().map(|(heap, _)| kib(heap)))
        .figure("failed at, KiB", |row| row.edge().map(|(_, failed_at)| kib(failed_at)))
        .figure("used without limit, KiB", |row| row.unlimited_used_high_bytes.map(kib))
        .figure("done", |row| sum(row, |tried| tried.done))
        .figure("out of memory", |row| sum(row, |tried| tried.out_of_memory))
        .figure("other", |row| sum(row, |tried| tried.other.len() as u32))
        .figure("collections", |row| row.edge().map(|_| count(row.collections as f64)))
        .note(format!(
            "Found within {} % (at least one page); both sides of the edge ran {} times. Collections: of the \
             last run in the smallest heap.",
            ratio(figures.tolerance * 100.0),
            figures.repeats
        ))
        .table()
}

/// The footprints of the baselines, where there are some.
fn footprints(program: &Program) -> Option<Table> {
    let range = |row: &Baseline| {
        let (least, most) = (row.used_high_bytes.iter().min()?, row.used_high_bytes.iter().max()?);
        Some(if least == most { kib(*least) } else { format!("{}–{}", kib(*least), kib(*most)) })
    };
    Table::of(&program.baselines)
        .caption("Footprints of the baselines")
        .text("stack", |row| row.stack.clone())
        .figure("used pages, KiB", |row| range(row))
        .figure("runs", |row| row.used_high_bytes.len().to_string())
        .figure("collections", |row| count(row.collections as f64))
        .note(
            "The most pages that have a live block at any moment. With free=honour, the program's own frees \
             count, and collections only take what it leaks.",
        )
        .if_any()
}

/// Each collector's smallest heap over each baseline's footprint, where there are some.
fn overheads(program: &Program) -> Option<Table> {
    let baselines = baseline_stacks(std::slice::from_ref(program));
    let of = |row: &&Collector, baseline: &str| {
        let is = |one: &&Over| one.collector == row.stack && one.baseline == baseline;
        program.overheads.iter().find(is).map(|one| over(&one.overhead))
    };
    let table = Table::of(&program.collectors)
        .caption("Smallest heap over footprint")
        .text("collector", |row| row.stack.clone());
    let table = over_baselines(table, &baselines, of).note(
        "Of the median run. In brackets: from the largest heap that failed over the largest footprint, \
         to the smallest heap over the smallest.",
    );
    (!program.overheads.is_empty()).then(|| table.table())
}

fn facts(figures: &MinheapFigures, collectors: &[Manager], allocators: &[Manager]) -> Vec<(String, String)> {
    let versions = collectors
        .iter()
        .chain(allocators)
        .map(|manager| (manager.name.clone(), format!("{} ({})", manager.version, manager.origin)));
    let machine = machine::read();
    let mut facts: Vec<(String, String)> = each_once(versions);
    facts.push((
        "what a heap is".into(),
        "sweep: pages of 4 KiB with a live block, because a layer cannot see what a manager maps; other \
         collectors: what their own limit counts"
            .into(),
    ));
    facts.push(("time limit".into(), format!("{} s a run", figures.timeout_s)));
    if let Some(limit) = cgroup_limit() {
        facts.push(("memory.max of this control group".into(), format!("{} MiB", limit >> 20)));
    }
    facts.push(("machine".into(), format!("{}, {} cores", machine.cpu, machine.cores)));
    facts
}

/// The memory limit of the control group that heaptoll runs in, where it has one: no run can have more.
fn cgroup_limit() -> Option<u64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let folder = std::path::Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/'));
    std::fs::read_to_string(folder.join("memory.max")).ok()?.trim().parse().ok()
}
