//! The document of `heaptoll lab minheap`.

use heaptoll_experiment::machine;
use heaptoll_experiment::manager::Manager;
use heaptoll_report::document::{Axis, Chart, Column, Document, Form, Item, Section, Series, Table};
use heaptoll_report::format::{NONE, count, ratio};
use heaptoll_units::kib;

use super::figures::{Baseline, Collector, Figures, Program};
use super::overheads::{Mean, Overhead};
use super::search::{End, Tried};

/// Headings of baselines: their stacks, but for the part that all share.
fn baseline_title(baseline: &str) -> String {
    let short = baseline.strip_prefix("sweep,").unwrap_or(baseline);
    short.to_owned()
}

/// The document.
pub fn document(
    figures: &Figures,
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

fn warnings(figures: &Figures) -> Vec<String> {
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
    let mut all: Vec<String> = Vec::new();
    for row in programs.iter().flat_map(|program| &program.baselines) {
        if !all.contains(&row.stack) {
            all.push(row.stack.clone());
        }
    }
    all
}

fn collector_stacks(programs: &[Program]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for row in programs.iter().flat_map(|program| &program.collectors) {
        if !all.contains(&row.stack) {
            all.push(row.stack.clone());
        }
    }
    all
}

fn ratio_columns(baselines: &[String]) -> Vec<Column> {
    std::iter::once(Column::text("collector"))
        .chain(baselines.iter().map(|baseline| Column::figures(&baseline_title(baseline))))
        .collect()
}

fn over_programs(figures: &Figures) -> Section {
    let baselines = baseline_stacks(&figures.programs);
    let row = |collector: &String| {
        let of = |baseline: &String| {
            let found =
                figures.means.iter().find(|one| one.collector == *collector && one.baseline == *baseline);
            found.map_or(NONE.to_owned(), |one| match one.mean.programs {
                n if n == figures.programs.len() => mean(&one.mean),
                n => format!("{} [{n}]", mean(&one.mean)),
            })
        };
        std::iter::once(collector.clone()).chain(baselines.iter().map(of)).collect::<Vec<String>>()
    };
    let collectors = collector_stacks(&figures.programs);
    let table = Table {
        caption: "Smallest heap divided by the baseline's footprint, geometric mean over programs".into(),
        columns: ratio_columns(&baselines),
        rows: collectors.iter().map(row).collect(),
        notes: vec![
            "In brackets: 95 % interval over programs (Student's t on logarithms). In square brackets: how \
             many programs have both, if not all do."
                .into(),
        ],
    };
    let mut items = vec![Item::Table(table)];
    items.extend(baselines.first().map(|baseline| Item::Chart(bars(figures, &collectors, baseline))));
    Section { title: "Over all programs".into(), text: vec![], items }
}

/// The paper's means compared with ours; nothing where none of its baselines was run.
fn published_section(figures: &Figures) -> Option<Section> {
    let row = |one: &super::figures::PublishedPair| {
        vec![
            one.ours.baseline.clone(),
            one.published.collector.clone(),
            ratio(one.published.ratio()),
            one.ours.collector.clone(),
            mean(&one.ours.mean),
            one.ours.mean.programs.to_string(),
        ]
    };
    let columns = vec![
        Column::text("vs footprint of"),
        Column::text("theirs"),
        Column::figures("ratio"),
        Column::text("ours"),
        Column::figures("ratio"),
        Column::figures("programs"),
    ];
    (!figures.published.is_empty()).then(|| Section {
        title: "Compared with Sareen and Blackburn (2022)".into(),
        text: vec![
            "The paper's figure is a geometric mean over programs of DaCapo on a virtual machine for Java, \
             without an interval. That collector may move blocks and knows where pointers are. Ours are C \
             and C++ programs under conservative collectors that move nothing."
                .into(),
        ],
        items: vec![Item::Table(Table {
            columns,
            rows: figures.published.iter().map(row).collect(),
            ..Table::default()
        })],
    })
}

fn bars(figures: &Figures, collectors: &[String], baseline: &str) -> Chart {
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
        y: Axis { title: "ratio".into(), ..Axis::default() },
        series: collectors.iter().map(series).collect(),
    }
}

fn section(program: &Program, figures: &Figures) -> Section {
    let mut items = vec![smallest_heaps(program, figures)];
    items.extend(footprints(program));
    items.extend(overheads(program));
    Section {
        title: program.program.clone(),
        text: vec![],
        items: items.into_iter().map(Item::Table).collect(),
    }
}

/// The edge that each collector's search found, and its runs.
fn smallest_heaps(program: &Program, figures: &Figures) -> Table {
    let row = |row: &Collector| {
        let (heap, failed_at) = match row.edge() {
            Some((heap, failed_at)) => (kib(heap), kib(failed_at)),
            None => (NONE.to_owned(), NONE.to_owned()),
        };
        let answer = row.search.as_ref();
        let sum = |of: fn(&Tried) -> u32| answer.map_or(0, |answer| answer.tried.iter().map(of).sum::<u32>());
        vec![
            row.stack.clone(),
            heap,
            failed_at,
            row.unlimited_used_high_bytes.map_or(NONE.to_owned(), kib),
            sum(|tried| tried.done).to_string(),
            sum(|tried| tried.out_of_memory).to_string(),
            sum(|tried| tried.other.len() as u32).to_string(),
            row.edge().map_or(NONE.to_owned(), |_| count(row.collections as f64)),
        ]
    };
    let titles = [
        "smallest heap, KiB",
        "failed at, KiB",
        "used without limit, KiB",
        "done",
        "out of memory",
        "other",
        "collections",
    ];
    Table {
        caption: "Smallest heaps".into(),
        columns: std::iter::once(Column::text("collector")).chain(titles.map(Column::figures)).collect(),
        rows: program.collectors.iter().map(row).collect(),
        notes: vec![format!(
            "Found within {} % (at least one page); both sides of the edge ran {} times. Collections: of the \
             last run in the smallest heap.",
            ratio(figures.tolerance * 100.0),
            figures.repeats
        )],
    }
}

/// The footprints of the baselines, where there are some.
fn footprints(program: &Program) -> Option<Table> {
    let row = |row: &Baseline| {
        let range = match (row.used_high_bytes.iter().min(), row.used_high_bytes.iter().max()) {
            (Some(least), Some(most)) if least == most => kib(*least),
            (Some(least), Some(most)) => format!("{}–{}", kib(*least), kib(*most)),
            _ => NONE.to_owned(),
        };
        vec![row.stack.clone(), range, row.used_high_bytes.len().to_string(), count(row.collections as f64)]
    };
    (!program.baselines.is_empty()).then(|| Table {
        caption: "Footprints of the baselines".into(),
        columns: vec![
            Column::text("stack"),
            Column::figures("used pages, KiB"),
            Column::figures("runs"),
            Column::figures("collections"),
        ],
        rows: program.baselines.iter().map(row).collect(),
        notes: vec![
            "The most pages that have a live block at any moment. With free=honour, the program's own frees \
             count, and collections only take what it leaks."
                .into(),
        ],
    })
}

/// Each collector's smallest heap over each baseline's footprint, where there are some.
fn overheads(program: &Program) -> Option<Table> {
    let baselines = baseline_stacks(std::slice::from_ref(program));
    let row = |row: &Collector| {
        let of = |baseline: &String| {
            let found =
                program.overheads.iter().find(|one| one.collector == row.stack && one.baseline == *baseline);
            found.map_or(NONE.to_owned(), |one| over(&one.overhead))
        };
        std::iter::once(row.stack.clone()).chain(baselines.iter().map(of)).collect::<Vec<String>>()
    };
    (!program.overheads.is_empty()).then(|| Table {
        caption: "Smallest heap over footprint".into(),
        columns: ratio_columns(&baselines),
        rows: program.collectors.iter().map(row).collect(),
        notes: vec![
            "Of the median run. In brackets: from the largest heap that failed over the largest footprint, \
             to the smallest heap over the smallest."
                .into(),
        ],
    })
}

fn facts(figures: &Figures, collectors: &[Manager], allocators: &[Manager]) -> Vec<(String, String)> {
    let versions = collectors
        .iter()
        .chain(allocators)
        .map(|manager| (manager.name.clone(), format!("{} ({})", manager.version, manager.origin)));
    let machine = machine::read();
    let mut facts: Vec<(String, String)> = Vec::new();
    for fact in versions {
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
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
