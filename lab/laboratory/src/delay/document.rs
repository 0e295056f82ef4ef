//! The document of the study of delays.

use heaptoll_experiment::sweep::Sweep;
use heaptoll_report::document::Document;
use heaptoll_report::format::{and_list, mib_from_bytes, mib_from_kib, seconds};
use heaptoll_report::sweep::sentence;
use heaptoll_units::size_label;

use super::comparison::{NO_DELAY, Sizes};
use super::figures::Delay;
use super::published;
use crate::axis::Shown;
use heaptoll_runs::studied::StudyOutcome;

/// The whole document.
pub fn document(found: &Delay, sweep: &Sweep<Sizes>, outcome: &StudyOutcome) -> Document {
    let shown = Shown::setting(sweep, "quarantine", size_label, (NO_DELAY, "a quarantine of 1 byte"));
    // One sentence a manager: what the longest delay does, and from which size on a difference is seen.
    let verdict = |manager: &String| {
        let delays = shown.over_all(manager);
        sentence(manager, &format!("a quarantine of {}", delays.last()?.0), "no size", &delays)
    };
    let text: Vec<String> = found.managers.iter().filter_map(verdict).collect();
    let mut all = vec![shown.findings("What the delay costs", text)];
    all.extend(shown.layer(
        "What the quarantine itself costs",
        "The work of queueing and counting in a quarantine of 1 byte, without a delay. Every other ratio here has \
         it on both sides.",
    ));
    all.extend(published::section(found));
    all.extend(outcome.experiment.programs.iter().filter_map(|program| {
        shown.program(&program.name, |table| {
            table
                .figure("CPU, s", |row| row.medians.map(|medians| seconds(medians.cpu_s)))
                .figure("vs 1 B", |row| row.cell(|ratios| ratios.cpu))
                .figure("time vs 1 B", |row| row.cell(|ratios| ratios.wall))
                .figure("peak MiB", |row| row.medians.map(|medians| mib_from_kib(medians.peak_rss_kib)))
                .figure("vs 1 B", |row| row.cell(|ratios| ratios.peak_rss))
                .figure("delayed MiB", |row| row.medians?.held_high_bytes.map(mib_from_bytes))
        })
    }));
    let sizes: Vec<String> = found.sizes_bytes.iter().map(|bytes| size_label(*bytes)).collect();
    let what = format!("{} with quarantines of {}", and_list(&found.managers), and_list(&sizes));
    outcome.document("What it costs to delay the reuse of freed memory", &what, all)
}
