//! The document of `heaptoll lab proximity`.

use heaptoll_experiment::machine;
use heaptoll_experiment::manager::Manager;
use heaptoll_report::document::{Column, Document, Section, Table};
use heaptoll_report::format::{count, percent_off, significant};
use heaptoll_units::{about, factor, part};

use super::charts::charts;
use super::figures::{Program, ProximityFigures, Scale, Stack};
use super::groups::Group;
use super::portions::{PORTIONS, Portion, Ratio};

/// The document.
pub fn document(figures: &ProximityFigures, stacks: &[Manager], command: String) -> Document {
    let names: Vec<&str> = figures.programs.iter().map(|program| program.program.as_str()).collect();
    let mut facts: Vec<(String, String)> =
        stacks.iter().map(|one| (one.name.clone(), format!("{} ({})", one.version, one.origin))).collect();
    let machine = machine::read();
    facts.push((
        "plan".into(),
        format!(
            "{} runs of each, the numbers of collections interleaved in random order; seed {}",
            figures.runs, figures.seed
        ),
    ));
    facts.push(("collector".into(), "one marker and eager sweeps: all of its work is in its pauses".into()));
    facts.push(("machine".into(), format!("{}, {} cores", machine.cpu, machine.cores)));
    Document {
        title: "Requests by their distance to the last collection".into(),
        subtitle: names.join(", "),
        warnings: warnings(figures),
        sections: figures.programs.iter().map(section).chain(published_section(figures)).collect(),
        facts,
        command,
        ..Document::default()
    }
}

fn warnings(figures: &ProximityFigures) -> Vec<String> {
    let mut all = Vec::new();
    if !figures.complete {
        all.push("interrupted: what was measured until then is shown".into());
    }
    for program in &figures.programs {
        for stack in &program.stacks {
            let label = format!("{} under {}", program.program, stack.stack);
            if let Some(why) = &stack.refused {
                all.push(format!("{label}: not run: {why}"));
            }
            for scale in &stack.scales {
                let at = format!("{label}, {} collections", scale.aimed_at);
                if let Some(why) = scale.failures.first() {
                    all.push(format!("{at}: {} runs are left out: {why}", scale.failures.len()));
                }
                if scale.lost > 0 {
                    all.push(format!("{at}: there was no space for {} events", scale.lost));
                }
                let median = middle(&scale.collections);
                if median.is_some_and(|median| median > 2 * scale.aimed_at || 2 * median < scale.aimed_at) {
                    all.push(format!(
                        "{at}: it was {} a run; the period was set by the bytes that the program requests",
                        median.unwrap_or(0)
                    ));
                }
            }
        }
    }
    all
}

fn middle(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// ns as µs.
fn micro(ns: f64) -> String {
    significant(ns / 1e3)
}

fn scales(program: &Program) -> impl Iterator<Item = (&Stack, &Scale)> {
    program.stacks.iter().flat_map(|stack| stack.scales.iter().map(move |scale| (stack, scale)))
}

fn section(program: &Program) -> Section {
    let has_cpu = scales(program).flat_map(|(_, scale)| &scale.stretches).any(|one| one.cpu_mean.is_some());
    let over = |figure: &str, of: fn(&Portion) -> Option<Ratio>| {
        over_middle(&format!("{figure}, ratio to the middle"), program, of)
    };
    let cpu = has_cpu.then(|| {
        [over("Mean processor time", |one| one.cpu_mean), over("Median processor time", |one| one.cpu_median)]
    });
    Section { text: sentences(program), ..Section::new(&program.program) }
        .with(runs(program))
        .with(over("Mean time", |one| one.mean))
        .with(over("Median time", |one| one.median))
        .with_all(cpu.into_iter().flatten())
        .with_all(charts(program))
}

/// The runs of each collector with each number of collections.
fn runs(program: &Program) -> Table {
    let whole = |scale: &Scale, of: fn(&Group) -> f64| {
        let sum: f64 = scale.grouped.groups.iter().map(|group| of(group) * group.requests as f64).sum();
        (scale.requests > 0).then(|| micro(sum / scale.requests as f64))
    };
    let biased = |scale: &Scale| Some(survivor_bias(scale, scale.grouped.biased_from_ns?));
    Table::of(scales(program))
        .caption("Runs")
        .text("collector", |(stack, _)| stack.stack.clone())
        .figure("aimed at", |(_, scale)| scale.aimed_at.to_string())
        .figure("collections", |(_, scale)| middle(&scale.collections).map(|median| count(median as f64)))
        .figure("every", |(_, scale)| about(scale.every))
        .figure("requests", |(_, scale)| count(scale.requests as f64))
        .figure("interrupted", |(_, scale)| part(scale.interrupted, scale.requests + scale.interrupted))
        .figure("mean, µs", |(_, scale)| whole(scale, |group| group.mean_ns))
        .figure("median, µs", |(_, scale)| whole(scale, |group| group.median_ns))
        .figure("99 of 100 within, µs", |(_, scale)| micro(scale.grouped.long_ns as f64))
        .figure("capped", |(_, scale)| count(scale.grouped.capped as f64))
        .figure("farthest, µs", |(_, scale)| {
            scale.grouped.groups.last().map(|group| micro(group.to_ns as f64))
        })
        .figure("survivor bias from, µs", |(_, scale)| biased(scale))
        .note(
            "Collections: of the median run. Requests: of all runs, without those that a collection \
             interrupted (or that began during one) and those before the first. Median: the mean of the \
             groups' medians.",
        )
        .note(
            "Capped: requests that took several times as long as 99 of 100 do (--cap), because the system \
             held them up. Means count them at that limit.",
        )
        .note(
            "Survivor bias: from this distance on, more than one request in 20 had less time until the next \
             collection than a long one takes. In brackets: the share of the requests there.",
        )
        .table()
}

/// The distance from which survivors bias the figures, and the share of the requests there.
fn survivor_bias(scale: &Scale, from_ns: u64) -> String {
    let biased = scale.grouped.groups.iter().filter(|group| group.from_ns >= from_ns);
    let requests = biased.map(|group| group.requests).sum::<u64>();
    format!("{} ({})", micro(from_ns as f64), part(requests, scale.requests))
}

/// A figure of each range of distances over that of the middle.
fn over_middle(caption: &str, program: &Program, of: fn(&Portion) -> Option<Ratio>) -> Table {
    let cell = |scale: &Scale, name: &str| {
        scale.stretches.iter().find(|one| one.name == name).and_then(of).map(interval)
    };
    Table::of(scales(program))
        .caption(caption)
        .text("collector", |(stack, _)| stack.stack.clone())
        .figure("aimed at", |(_, scale)| scale.aimed_at.to_string())
        .each(PORTIONS, |(name, ..)| Column::figures(name), |(_, scale), (name, ..)| cell(scale, name))
        .note(
            "Places are ranks between two collections, without the last request before each; the middle is \
             from 20 to 80 %. Ratios are paired within runs. The 95 % intervals of these tables are valid \
             together; *: a difference is claimed.",
        )
        .table()
}

/// The paper's figures compared with ours; nothing where none can be.
fn published_section(figures: &ProximityFigures) -> Option<Section> {
    let with_cpu = figures.published.iter().any(|one| one.ours_cpu.is_some());
    let table = Table::of(&figures.published)
        .text("program", |one| one.program.clone())
        .text("collector", |one| one.stack.clone())
        .text("requests", |one| one.ours_of.clone())
        .figure("theirs", |one| format!("{}–{} %", one.published.low_percent, one.published.high_percent))
        .text("of", |one| format!("{}, {}", one.published.collectors, one.published.machine))
        .figure("ours, mean vs the middle", |one| interval(one.ours))
        .when(with_cpu, |table| table.figure("of processor time", |one| one.ours_cpu.map(interval)));
    let section = Section::new("Compared with Sareen and Blackburn (2022)").state(
        "The paper's requests are queries of Lucene, about 150 µs each, under five collectors of a \
         virtual machine for Java. The paper compares with the fastest group, we compare with the \
         middle. If its figure is the largest change anywhere, ours is the largest that is claimed.",
    );
    Some(section.with(table.if_any()?))
}

fn interval(one: Ratio) -> String {
    let star = if one.differs { "*" } else { "" };
    format!("{} ({}–{}){star}", factor(one.ratio), factor(one.low), factor(one.high))
}

/// Sentences on what may be claimed.
fn sentences(program: &Program) -> Vec<String> {
    let mut all = Vec::new();
    for stack in &program.stacks {
        let mut claims = Vec::new();
        for scale in &stack.scales {
            for one in &scale.stretches {
                let Some(mean) = one.mean.filter(|mean| mean.differs) else { continue };
                let median = match one.median {
                    Some(median) if median.differs && (median.ratio > 1.0) == (mean.ratio > 1.0) => {
                        ", medians too"
                    }
                    _ => ", not detected in medians",
                };
                claims.push(format!(
                    "with {} collections the {} of the requests after one ({} µs after it, the median) take {} {} than the \
                     middle{median}",
                    scale.aimed_at,
                    one.name,
                    micro(one.distance_ns as f64),
                    percent_off(mean.ratio),
                    if mean.ratio > 1.0 { "longer" } else { "less" },
                ));
            }
        }
        let runs = stack
            .scales
            .iter()
            .flat_map(|scale| &scale.stretches)
            .filter_map(|one| one.mean)
            .map(|one| one.runs);
        let enough = runs.max().is_some_and(|runs| runs as usize >= heaptoll_statistics::FEWEST_PAIRS);
        match (claims.is_empty(), enough) {
            (false, _) => all.push(format!("{}: {}.", stack.stack, claims.join("; "))),
            (true, true) => {
                all.push(format!(
                    "{}: no range of distances differs measurably from the middle.",
                    stack.stack
                ));
            }
            (true, false) => {}
        }
    }
    all
}
