//! Tables and charts of the study of delays.

use heaptoll_report::document::{Item, Section, Table};
use heaptoll_report::format::{mib_from_bytes, mib_from_kib, seconds};

use super::comparison::NO_DELAY;
use super::figures::{Curve, Delay, Mean, Point};
use crate::layered::{self, Ratios, layer_section};
use heaptoll_runs::studied::{ratio_cell, size_label};

/// What the columns of a mean mean that take programs as the sample.
pub const OTHER_PROGRAMS: &str = "Intervals are over repetitions of these programs. \"Other programs\": the \
                                  programs are a sample of their kind (Student's t on their logarithms, each \
                                  at 95 % by itself).";

/// The section to read first: means over programs, where there are several.
pub fn findings(found: &Delay, verdicts: Vec<String>) -> Section {
    let mut text = verdicts;
    text.push(
        "All ratios are to a quarantine of 1 byte in front of the same manager, within a repetition. All \
         intervals of a table are valid together at 95 %."
            .into(),
    );
    let mut items = Vec::new();
    if !found.means.is_empty() {
        items.push(Item::Table(means(found)));
        let of = |manager: &str, bytes: u64| mean(found, manager, Some(bytes)).map(|mean| mean.ratios);
        items.extend(charts(found, "geometric mean over programs", &of));
    }
    Section { title: "What the delay costs".into(), text, items }
}

fn mean<'a>(found: &'a Delay, manager: &str, size: Option<u64>) -> Option<&'a Mean> {
    found.means.iter().find(|mean| mean.manager == manager && mean.size_bytes == size)
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

/// What the quarantine of one byte costs over the manager without it.
pub fn layer(found: &Delay) -> Option<Section> {
    let curves = found.curves.iter().filter(|curve| curve.plain.is_some());
    let of_programs = curves.map(|curve| (curve.program.as_str(), curve.manager.as_str(), curve.layer));
    let means = found.means.iter().filter(|mean| mean.size_bytes.is_none());
    let of_all = means.map(|mean| ("geometric mean", mean.manager.as_str(), mean.ratios));
    layer_section(
        "What the quarantine itself costs",
        "A quarantine of 1 byte compared with the manager alone: the work of queueing and counting, without a \
         delay. Every other ratio here has it on both sides.",
        of_programs.chain(of_all),
    )
}

/// One program: every manager and size.
pub fn program(found: &Delay, name: &str) -> Option<Section> {
    let curves: Vec<&Curve> = found.curves.iter().filter(|curve| curve.program == name).collect();
    let ratio = |point: &Point, interval| match point.size_bytes {
        NO_DELAY => "1".into(),
        _ => ratio_cell(interval),
    };
    let points =
        curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (&curve.manager, point)));
    let table = Table::of(points)
        .text("manager", |(manager, _)| manager.as_str())
        .figure("quarantine", |(_, point)| size_label(point.size_bytes))
        .figure("CPU, s", |(_, point)| point.medians.map(|medians| seconds(medians.cpu_s)))
        .figure("vs 1 B", |(_, point)| ratio(point, point.over_no_delay.cpu))
        .figure("time vs 1 B", |(_, point)| ratio(point, point.over_no_delay.wall))
        .figure("peak MiB", |(_, point)| point.medians.map(|medians| mib_from_kib(medians.peak_rss_kib)))
        .figure("vs 1 B", |(_, point)| ratio(point, point.over_no_delay.peak_rss))
        .figure("delayed MiB", |(_, point)| point.medians?.held_high_bytes.map(mib_from_bytes));
    let of = |manager: &str, bytes: u64| {
        let curve = curves.iter().find(|curve| curve.manager == manager)?;
        Some(curve.points.iter().find(|point| point.size_bytes == bytes)?.over_no_delay)
    };
    let section = Section::new(name).with(table).with_all(charts(found, name, &of));
    (!curves.is_empty()).then_some(section)
}

/// CPU and memory by size; `of` has the ratios of a manager at a size.
fn charts(found: &Delay, what: &str, of: &dyn Fn(&str, u64) -> Option<Ratios>) -> [Item; 2] {
    let sizes = &found.sizes_bytes;
    let base = sizes.iter().position(|bytes| *bytes == NO_DELAY).unwrap_or(0);
    layered::charts(
        [what, "most bytes that the quarantine delays", "a quarantine of 1 byte"],
        (sizes.iter().map(|bytes| size_label(*bytes)).collect(), base),
        &found.managers,
        &|manager, place| of(&found.managers[manager], sizes[place]),
    )
}
