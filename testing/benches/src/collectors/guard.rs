//! The guard next to its targets, and next to others that hold freed memory back or check it: `docs/results/guard.md`.

use heaptoll_catalog::{Prepared, Size, fill_scratch};
use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::{self, Invocation};
use heaptoll_launcher::Ended;
use heaptoll_statistics::median;
use heaptoll_stats_page::{StatsPage, WriterKind};
use heaptoll_units::count;

use super::measured::{Measured, Plan, SizedOptions};
use super::summary::Summary;
use super::table::{NINE, means, programs};
use super::targets::{Line, verdicts};
use crate::Error;
use crate::installation::{Installation, scratch};
use crate::table::table;

/// The set of programs that hardly allocate, as SPEC's.
pub const KIN: &str = "spec-kin";
/// How the groups of programs are called in headings.
const THE_NINE: &str = "the nine";
const THE_KIN: &str = "the kin of SPEC's";
const GUARD: &str = "tithe-guard";
/// The same heap without the guard.
const WITHOUT: &str = "tithe";
/// What the published page is made with.
const PLAN: Plan = Plan {
    sets: &["twenty", KIN],
    words: "-p ghostscript --size demo -n 10 --pairing lockstep --seed 20261130 -m tithe-guard -m tithe \
            -m guard/glibc -m guard/mimalloc3 -m quarantine=2M,check=on/glibc",
    added: &["hardened_malloc", "debian-scudo"],
};
/// The most CPU and excess memory under the guard, over glibc's.
const MOST: [(&str, f64, f64); 2] = [(THE_NINE, 1.10, 1.25), (THE_KIN, 1.03, 1.08)];
/// The most CPU under the guard on the nine, over the same heap without it.
const MOST_OVER_WITHOUT: f64 = 1.15;
/// What others published, as they measured it on SPEC CPU2006: time and memory.
const PUBLISHED: [[&str; 3]; 2] = [
    ["MarkUs (Ainsworth, Jones 2020)", "1.10", "1.16"],
    ["MineSweeper (Erdős and others 2022)", "1.054", "1.111"],
];

/// Processes that the page of counts has slots for.
const SLOTS: u32 = 64;

/// Runs it. False when a program failed under a manager.
///
/// # Errors
/// Nothing could be measured, a program of the set cannot be recorded, or the files cannot be written.
pub fn run(options: &SizedOptions) -> Result<bool, Error> {
    let installation = Installation::find()?;
    let measured = options.source.measured(&PLAN)?;
    let [twenty, kin] = [installation.set("twenty")?, installation.set(KIN)?];
    options.outputs.write("table", &section(&measured, &twenty, &kin))?;
    let kin: Vec<&str> = measured.programs().filter(|program| kin.iter().any(|one| one == program)).collect();
    options.outputs.write("rates", &rates(&installation, &measured, &kin, options.size)?)?;
    Ok(measured.not_well().is_empty())
}

/// The tables, over the groups that were measured.
pub fn section(measured: &Measured, twenty: &[String], kin: &[String]) -> String {
    let has = |names: &[String], program: &str| names.iter().any(|name| name == program);
    let groups = [
        (THE_NINE, measured.only(|program| NINE.contains(&program))),
        ("the twenty", measured.only(|program| has(twenty, program))),
        (THE_KIN, measured.only(|program| has(kin, program))),
        ("mimalloc-bench's", measured.only(|program| program.starts_with("mimb-"))),
        ("SPEC CPU 2017's", measured.only(|program| program.starts_with("spec-"))),
    ];
    let measured_groups = groups.into_iter().filter(|(_, group)| group.programs().next().is_some());
    let summaries: Vec<(&str, Vec<Summary>)> =
        measured_groups.map(|(name, group)| (name, Summary::of_all(&group))).collect();
    let published = PUBLISHED.map(|row| row.map(String::from).to_vec());
    format!(
        "{}\n\n{}\n{}\n**What the guard has to reach**\n\n{}{}{}",
        measured.heading(),
        means(&summaries),
        table(&["published means, SPEC CPU2006", "time", "memory"], 1, published).markdown(),
        verdicts(targets(&summaries)),
        programs(measured),
        measured.outputs()
    )
}

fn targets(summaries: &[(&str, Vec<Summary>)]) -> Vec<Line> {
    let find = |group: &str, manager: &str| {
        let (_, all) = summaries.iter().find(|(name, _)| *name == group)?;
        all.iter().find(|one| one.manager == manager)
    };
    let cpu = |group, manager| Some(find(group, manager)?.cpu?.ratio);
    let mut lines = vec![];
    for (group, most_cpu, most_excess) in MOST {
        let excess = find(group, GUARD).and_then(|one| one.excess);
        lines.push((format!("{GUARD}: CPU, {group}"), cpu(group, GUARD), most_cpu));
        lines.push((format!("{GUARD}: excess memory, {group}"), excess, most_excess));
    }
    let over = cpu(THE_NINE, GUARD).zip(cpu(THE_NINE, WITHOUT)).map(|(guard, without)| guard / without);
    lines.push((format!("{GUARD} over {WITHOUT}: CPU, {THE_NINE}"), over, MOST_OVER_WITHOUT));
    lines
}

/// What each program allocates a second of its CPU under the baseline: calls and bytes of one run that the counting layer
/// counted, seconds of the table's runs.
fn rates(
    installation: &Installation,
    measured: &Measured,
    programs: &[&str],
    size: Size,
) -> Result<String, Error> {
    let (mut rows, mut all) = (vec![], [vec![], vec![]]);
    for program in programs {
        let Some(seconds) = measured.median(program, &measured.experiment.baseline, Metric::Cpu) else {
            continue;
        };
        let counts = counted(installation, &installation.program(program, size)?)?;
        let a_second = counts.map(|count| count / seconds);
        all.iter_mut().zip(a_second).for_each(|(all, one)| all.push(one));
        rows.push(row(program, counts, a_second));
    }
    if rows.is_empty() {
        return Ok("None of the set was measured.".into());
    }
    let mut last = row("median", [0.0; 2], all.map(|one| median(&one)));
    last[1..3].iter_mut().for_each(String::clear);
    rows.push(last);
    Ok(table(&["program", "blocks", "MB", "blocks a CPU s", "MB a CPU s"], 1, rows).markdown())
}

/// The blocks that a program and its children request in one run, and their bytes.
fn counted(installation: &Installation, program: &Prepared) -> Result<[f64; 2], Error> {
    let places = &installation.places;
    let folder = scratch()?;
    let path = folder.path().display().to_string();
    let page = StatsPage::create(&folder.path().join("counts"), SLOTS);
    let page = page.map_err(|why| Error::failed("the page of counts", why))?;
    let mut environment = program.environment.clone();
    environment.push(("HEAPTOLL_STATS".into(), page.path().display().to_string()));
    let invocation = Invocation {
        command: program.command.iter().map(|word| fill_scratch(word, &path).into()).collect(),
        environment,
        preload: vec![places.count_layer()],
        directory: Some(folder.path().to_owned()),
        stdin: program.stdin.clone(),
        ..Invocation::default()
    };
    let finished = launch::run(&places.launcher(), &invocation, &Interrupt::default())?;
    if !matches!(finished.ended, Ended::Exit(0)) {
        return Err(Error::failed(
            &program.name,
            format!("ended with {:?}: {}", finished.ended, finished.error_tail),
        ));
    }
    let slots = page.read().map_err(|why| Error::failed("the page of counts", why))?;
    let of_layer = || slots.iter().filter(|slot| slot.kind == WriterKind::Layer);
    let blocks: u64 = of_layer().map(|slot| slot.malloc_calls + slot.realloc_calls).sum();
    let bytes: u64 = of_layer().map(|slot| slot.requested_bytes).sum();
    Ok([blocks as f64, bytes as f64])
}

fn row(program: &str, [blocks, bytes]: [f64; 2], [blocks_a_s, bytes_a_s]: [f64; 2]) -> Vec<String> {
    let mb = |bytes: f64| format!("{:.1}", bytes / 1e6);
    vec![program.to_owned(), count(blocks), mb(bytes), count(blocks_a_s.round()), mb(bytes_a_s)]
}

#[cfg(test)]
mod tests {
    use heaptoll_statistics::Interval;

    use super::*;

    fn summary(manager: &str, cpu: f64, excess: f64) -> Summary {
        Summary {
            manager: manager.into(),
            programs: 1,
            cpu: Some(Interval { ratio: cpu, low: cpu, high: cpu, differs: true, pairs: 10 }),
            excess: Some(excess),
            peak: None,
            mean: None,
            worst_cpu: None,
            worst_excess: None,
        }
    }

    #[test]
    fn a_target_without_a_figure_is_left_out_and_the_others_are_judged() {
        let nine = vec![summary(GUARD, 1.2, 1.25), summary(WITHOUT, 1.0, 1.0)];
        let both = verdicts(targets(&[(THE_NINE, nine), (THE_KIN, vec![summary(GUARD, 1.02, 1.1)])]));
        for line in ["CPU, the nine", "1.200 |    1.10 | miss by 9.1 %", "1.250 |    1.25 |          pass"] {
            assert!(both.contains(line), "{line}\n{both}");
        }
        assert!(both.contains("tithe-guard over tithe"), "{both}");
        let one = verdicts(targets(&[(THE_KIN, vec![summary(GUARD, 1.02, 1.1)])]));
        assert!(one.contains(THE_KIN) && !one.contains(THE_NINE), "{one}");
    }
}
