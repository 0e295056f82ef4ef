//! The document of the study of delays.

use heaptoll_experiment::sweep::Sweep;
use heaptoll_report::document::{Document, Table};
use heaptoll_report::format::{and_list, mib_from_bytes, mib_from_kib, seconds};
use heaptoll_report::sweep::sentence;
use heaptoll_units::size_label;

use super::comparison::{NO_DELAY, Sizes};
use super::figures::Delay;
use super::published;
use crate::layered::Shown;
use heaptoll_runs::studied::{StudyOutcome, ratio_cell};

/// What the columns of a mean mean that take programs as the sample.
const OTHER_PROGRAMS: &str = "Intervals are over repetitions of these programs. \"Other programs\": the programs are a \
                              sample of their kind (Student's t on their logarithms, each at 95 % by itself).";

/// The whole document.
pub fn document(found: &Delay, sweep: &Sweep<Sizes>, outcome: &StudyOutcome) -> Document {
    let shown = Shown {
        sweep,
        values: &found.sizes_bytes,
        label: size_label,
        base: (NO_DELAY, "a quarantine of 1 byte"),
        axis: "most bytes that the quarantine delays",
    };
    // One sentence a manager: what the longest delay does, and from which size on a difference is seen.
    let verdict = |manager: &String| {
        let delays = shown.over_all(manager).into_iter();
        let delays: Vec<_> = delays.map(|(bytes, ratios)| (size_label(bytes), ratios)).collect();
        sentence(manager, &format!("a quarantine of {}", delays.last()?.0), "no size", &delays)
    };
    let mut text: Vec<String> = found.managers.iter().filter_map(verdict).collect();
    text.push(
        "All ratios are to a quarantine of 1 byte in front of the same manager, within a repetition. All \
         intervals of a table are valid together at 95 %."
            .into(),
    );
    let means = (!found.means.is_empty()).then(|| means(found));
    let mut all = vec![shown.findings("What the delay costs", text, means)];
    all.extend(shown.layer(
        "What the quarantine itself costs",
        "A quarantine of 1 byte compared with the manager alone: the work of queueing and counting, without a \
         delay. Every other ratio here has it on both sides.",
    ));
    all.extend(published::section(found));
    all.extend(outcome.experiment.programs.iter().filter_map(|program| {
        shown.program(&program.name, |table| {
            table
                .text("manager", |row| row.manager)
                .figure("quarantine", |row| size_label(row.value))
                .figure("CPU, s", |row| row.medians.map(|medians| seconds(medians.cpu_s)))
                .figure("vs 1 B", |row| shown.cell(row, |ratios| ratios.cpu))
                .figure("time vs 1 B", |row| shown.cell(row, |ratios| ratios.wall))
                .figure("peak MiB", |row| row.medians.map(|medians| mib_from_kib(medians.peak_rss_kib)))
                .figure("vs 1 B", |row| shown.cell(row, |ratios| ratios.peak_rss))
                .figure("delayed MiB", |row| row.medians?.held_high_bytes.map(mib_from_bytes))
        })
    }));
    let sizes: Vec<String> = found.sizes_bytes.iter().map(|bytes| size_label(*bytes)).collect();
    let what = format!("{} with quarantines of {}", and_list(&found.managers), and_list(&sizes));
    outcome.document("What it costs to delay the reuse of freed memory", &what, all)
}

fn means(found: &Delay) -> Table {
    Table::of(found.means.iter().filter_map(|mean| Some((mean, mean.size_bytes?))))
        .caption("Geometric means over programs, ratios to a quarantine of 1 byte")
        .text("manager", |(mean, _)| mean.manager.clone())
        .figure("quarantine", |(_, size)| size_label(*size))
        .figure("programs", |(mean, _)| mean.programs.to_string())
        .figure("CPU", |(mean, _)| ratio_cell(mean.ratios.cpu))
        .figure("CPU, other programs", |(mean, _)| ratio_cell(mean.between_programs.cpu))
        .figure("time", |(mean, _)| ratio_cell(mean.ratios.wall))
        .figure("peak memory", |(mean, _)| ratio_cell(mean.ratios.peak_rss))
        .figure("memory, other programs", |(mean, _)| ratio_cell(mean.between_programs.peak_rss))
        .note(OTHER_PROGRAMS)
        .table()
}
