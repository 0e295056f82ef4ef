//! The document of the study of delays.

use heaptoll_report::document::Document;
use heaptoll_report::format::{and_list, claim, plural};
use heaptoll_statistics::{FEWEST_PAIRS, TOO_FEW};

use super::comparison::NO_DELAY;
use super::figures::Delay;
use super::published;
use super::sections;
use crate::layered::Ratios;
use heaptoll_runs::studied::{StudyOutcome, size_label};

/// The whole document.
pub fn document(found: &Delay, outcome: &StudyOutcome) -> Document {
    let mut all = vec![sections::findings(found, verdicts(found))];
    all.extend(sections::layer(found));
    all.extend(published::section(found));
    all.extend(
        outcome.experiment.programs.iter().filter_map(|program| sections::program(found, &program.name)),
    );
    let sizes: Vec<String> = found.sizes_bytes.iter().map(|bytes| size_label(*bytes)).collect();
    Document {
        title: "What it costs to delay the reuse of freed memory".into(),
        subtitle: format!(
            "{} with quarantines of {}; {}",
            and_list(&found.managers),
            and_list(&sizes),
            plural(outcome.experiment.programs.len(), "program")
        ),
        warnings: outcome.warnings(),
        sections: all,
        facts: outcome.facts(),
        command: outcome.command(),
        ..Document::default()
    }
}

/// One sentence a manager: what the longest delay does, and from which size on a difference is seen.
fn verdicts(found: &Delay) -> Vec<String> {
    found.managers.iter().filter_map(|manager| verdict(found, manager)).collect()
}

fn verdict(found: &Delay, manager: &str) -> Option<String> {
    // Over all programs where there are several, else of the only one.
    let over_all = |bytes: u64| {
        let mean = found.means.iter().find(|mean| mean.manager == manager && mean.size_bytes == Some(bytes));
        let only = || {
            let curve = found.curves.iter().find(|curve| curve.manager == manager)?;
            curve.points.iter().find(|point| point.size_bytes == bytes).map(|point| point.over_no_delay)
        };
        if found.means.is_empty() { only() } else { mean.map(|mean| mean.ratios) }
    };
    let delays: Vec<(u64, Ratios)> = found
        .sizes_bytes
        .iter()
        .filter(|bytes| **bytes != NO_DELAY)
        .filter_map(|bytes| Some((*bytes, over_all(*bytes)?)))
        .collect();
    let (longest, ratios) = delays.last()?;
    let differences: Vec<String> = [(ratios.cpu, "CPU"), (ratios.peak_rss, "peak memory")]
        .into_iter()
        .filter_map(|(interval, noun)| claim(&interval?, noun))
        .collect();
    if ![ratios.cpu, ratios.peak_rss].into_iter().flatten().any(|interval| interval.has_enough_pairs()) {
        return Some(format!(
            "{manager}: {TOO_FEW} to claim a difference; {FEWEST_PAIRS} good pairs of runs are enough, ten \
             are better (-n)."
        ));
    }
    let of_longest = match differences.is_empty() {
        true => "makes no detectable difference".to_string(),
        false => format!("takes {}", and_list(&differences)),
    };
    let first = |of: fn(&Ratios) -> Option<heaptoll_statistics::Interval>| {
        let slower = |(_, ratios): &&(u64, Ratios)| of(ratios).is_some_and(|it| it.differs && it.ratio > 1.0);
        delays.iter().find(slower).map(|(bytes, _)| size_label(*bytes))
    };
    let cpu = first(|ratios| ratios.cpu);
    let memory = first(|ratios| ratios.peak_rss);
    let from = match (cpu, memory) {
        (None, None) => "no size takes measurably more of either".into(),
        (Some(cpu), None) => format!("costs CPU from {cpu} upwards; no extra memory detected"),
        (None, Some(memory)) => format!("costs memory from {memory} upwards; no extra CPU detected"),
        (Some(cpu), Some(memory)) => {
            format!("costs CPU from {cpu} upwards, and memory from {memory} upwards")
        }
    };
    Some(format!("{manager}: a quarantine of {} {of_longest}; {from}.", size_label(*longest)))
}
