//! What Tithe's modes have to reach, and how far each figure is from it.

use super::measured::Measured;
use super::summary::{Over, Summary, over};
use crate::table;

/// The mode that ignores every free.
pub const COLLECT: &str = "tithe-collect";
/// Boehm's collector, frees ignored, in both of its modes.
pub const LIBGC: [&str; 2] = ["bdw-nofree", "bdw-nofree,incremental=on"];
const EXPLICIT: &str = "tithe-explicit";
/// Means over the nine: a mode, the most of glibc's CPU, and the most memory, excess or peak.
const MEANS: [(&str, f64, Memory); 3] = [
    (COLLECT, 1.08, Memory::Excess(1.40)),
    ("tithe", 0.90, Memory::Peak(1.10)),
    (EXPLICIT, 0.91, Memory::Peak(1.08)),
];
/// The most of glibc's CPU that any program may take under [`COLLECT`].
const WORST: f64 = 1.45;
/// Programs with a limit of their own under [`EXPLICIT`].
const SINGLE: [(&str, f64); 2] = [("cfrac", 1.00), ("sqlite", 1.03)];
/// From so much live memory on, peak memory is to be below libgc's.
const LIVE_BYTES: f64 = 8.0 * 1024.0 * 1024.0;

#[derive(Clone, Copy)]
enum Memory {
    Excess(f64),
    Peak(f64),
}

/// Each target with its figure; then where Boehm's collector takes less.
pub fn table(nine: &[Summary], measured: &Measured) -> String {
    let mut lines: Vec<Line> = vec![];
    for (mode, cpu, memory) in MEANS {
        let Some(found) = nine.iter().find(|one| one.manager == mode) else { continue };
        lines.push((format!("{mode}: CPU, the nine"), found.cpu.map(|cpu| cpu.ratio), cpu));
        lines.push(match memory {
            Memory::Excess(limit) => (format!("{mode}: excess memory, the nine"), found.excess, limit),
            Memory::Peak(limit) => {
                (format!("{mode}: peak RSS, the nine"), found.peak.map(|peak| peak.ratio), limit)
            }
        });
    }
    let cpu = |program: &str, mode| over(measured, program, mode).cpu.map(|cpu| cpu.ratio);
    let worst = measured.programs().filter_map(|program| Some((program, cpu(program, COLLECT)?)));
    if let Some((program, value)) = worst.max_by(|a, b| a.1.total_cmp(&b.1)) {
        lines.push((format!("{COLLECT}: CPU, worst program ({program})"), Some(value), WORST));
    }
    for (program, limit) in SINGLE {
        lines.push((format!("{EXPLICIT}: CPU, {program}"), cpu(program, EXPLICIT), limit));
    }
    let mut text = verdicts(lines);
    for theirs in LIBGC.into_iter().filter(|theirs| measured.managers().contains(theirs)) {
        text.push_str(&format!("\n{}\n", against(measured, theirs)));
    }
    text
}

/// What has to be reached, the figure where there is one, and the most that it may be.
pub type Line = (String, Option<f64>, f64);

/// The targets that have a figure, each with its verdict.
pub fn verdicts(lines: Vec<Line>) -> String {
    let rows = lines.into_iter().filter_map(|(what, value, limit)| {
        let value = value?;
        Some(vec![what, format!("{value:.3}"), format!("{limit:.2}"), verdict(value, limit)])
    });
    table::table(&["target", "reached", "at most", "verdict"], 1, rows).markdown()
}

/// Where [`COLLECT`] does not take less than another collector, in CPU, and in peak memory where much is live.
fn against(measured: &Measured, theirs: &str) -> String {
    let lost = |programs: &[&str], figure: fn(&Over) -> Option<f64>| {
        let over = |program: &&str| {
            let [ours, theirs] = [COLLECT, theirs].map(|manager| figure(&over(measured, program, manager)));
            Some((program.to_string(), ours? / theirs?))
        };
        let all: Vec<(String, f64)> = programs.iter().filter_map(over).collect();
        let lost: Vec<String> = all
            .iter()
            .filter(|(_, ratio)| *ratio >= 1.0)
            .map(|(program, ratio)| format!("{program} ({ratio:.2}x)"))
            .collect();
        match lost.as_slice() {
            [] if all.is_empty() => "no program".into(),
            [] => format!("less on all of {} programs: pass", all.len()),
            _ => format!(
                "less on {} of {}, not on {}: miss",
                all.len() - lost.len(),
                all.len(),
                lost.join(", ")
            ),
        }
    };
    let all: Vec<&str> = measured.programs().collect();
    let much_is_live = |program: &&&str| {
        let live = measured.timed(program, EXPLICIT, |row| row.used_high_bytes.map(|bytes| bytes as f64));
        live.is_some_and(|bytes| bytes >= LIVE_BYTES)
    };
    let large: Vec<&str> = all.iter().filter(much_is_live).copied().collect();
    format!(
        "{COLLECT} against {theirs}, each at its default. CPU: {}. Peak RSS where 8 MiB or more are live: {}.",
        lost(&all, |over| over.cpu.map(|cpu| cpu.ratio)),
        lost(&large, |over| over.peak)
    )
}

/// `pass`, or by how much it is missed.
fn verdict(value: f64, limit: f64) -> String {
    match (value / limit - 1.0) * 100.0 {
        missed if missed <= 0.0 => "pass".into(),
        missed if missed < 0.05 => "miss by less than 0.1 %".into(),
        missed => format!("miss by {missed:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_missed_by_a_share_of_its_limit() {
        assert_eq!(verdict(1.2, 1.0), "miss by 20.0 %");
        assert_eq!(verdict(1.0003, 1.0), "miss by less than 0.1 %");
        assert_eq!(verdict(1.0, 1.0), "pass");
    }
}
