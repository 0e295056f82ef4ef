//! Tables and charts of the study of reclamation.

use heaptoll_oracle::FreePoint;
use heaptoll_report::document::{Item, Section, Table};
use heaptoll_report::format::{NONE, mib_from_kib, seconds};
use heaptoll_units::{figure, number, percent, whole_bytes};

use super::figures::{Alive, Curve, Reclamation};
use super::part::point_label;
use crate::layered::{self, Ratios, layer_section};
use heaptoll_runs::studied::ratio_cell;

/// The section to read first: means over programs, where there are several.
pub fn findings(found: &Reclamation, verdicts: Vec<String>) -> Section {
    let mut text = verdicts;
    text.push(
        "All ratios are to a run whose same layer frees objects when the program does, over the same \
         manager, within a repetition. All intervals of a table are valid together at 95 %."
            .into(),
    );
    let means = Table::of(found.means.iter().filter_map(|mean| Some((mean, mean.point?))))
        .caption("Geometric means over programs, ratios to the program's own free")
        .text("manager", |(mean, _)| mean.manager.clone())
        .figure("objects are freed", |(_, point)| point_label(*point))
        .figure("programs", |(mean, _)| mean.programs.to_string());
    let means = Ratios::columns(means, |(mean, _)| mean.ratios).if_any();
    let mut section =
        Section { text, ..Section::new("What it costs to free earlier or later") }.with_all(means);
    if !found.means.is_empty() {
        let of = |manager: &str, point: FreePoint| {
            let mean = found.means.iter().find(|mean| mean.manager == manager && mean.point == Some(point));
            mean.map(|mean| mean.ratios)
        };
        section = section.with_all(charts(found, "geometric mean over programs", &of));
    }
    section
}

/// Bytes over others: a share, or from ten times as many on a factor.
fn share(bytes: u64, of: u64) -> String {
    match bytes as f64 / of as f64 {
        _ if of == 0 => NONE.into(),
        times if times >= 10.0 => format!("{}x", figure(times)),
        share => percent(share),
    }
}

/// Requested bytes alive: exact, and the same over every manager.
pub fn alive(found: &Reclamation) -> Option<Section> {
    let free = |program: &str| {
        let of_free = |one: &&Alive| one.program == program && one.point == FreePoint::Free;
        found.alive.iter().find(of_free).map_or(0, |one| one.live.peak_bytes)
    };
    let table = Table::of(&found.alive)
        .text("program", |one| one.program.clone())
        .figure("objects are freed", |one| point_label(one.point))
        .figure("peak", |one| whole_bytes(one.live.peak_bytes))
        .figure("% of free", |one| share(one.live.peak_bytes, free(&one.program)))
        .figure("mean", |one| whole_bytes(one.live.mean_bytes));
    let text = "Bytes that the program asked for, of objects that are not freed yet. They are counted in the \
                recording, so they are exact, and the same over every manager.";
    Some(Section::new("Requested bytes alive").state(text).with(table.if_any()?))
}

/// What the layer costs over the manager alone.
pub fn layer(found: &Reclamation) -> Option<Section> {
    let curves = found.curves.iter().filter(|curve| curve.plain.is_some());
    let of_programs = curves.map(|curve| (curve.program.as_str(), curve.manager.as_str(), curve.layer));
    let means = found.means.iter().filter(|mean| mean.point.is_none());
    let of_all = means.map(|mean| ("geometric mean", mean.manager.as_str(), mean.ratios));
    layer_section(
        "What the layer itself costs",
        "The layer that frees as the program does, compared with the manager alone: it compares each \
         allocation, and copies in place of realloc. Every other ratio here has it on both sides.",
        of_programs.chain(of_all),
    )
}

/// One program: every manager and point.
pub fn program(found: &Reclamation, name: &str) -> Option<Section> {
    let curves: Vec<&Curve> = found.curves.iter().filter(|curve| curve.program == name).collect();
    let ratio = |point, interval| if point == FreePoint::Free { "1".into() } else { ratio_cell(interval) };
    let rows = curves.iter().flat_map(|curve| curve.rows.iter().map(move |row| (&curve.manager, row)));
    let table = Table::of(rows)
        .text("manager", |(manager, _)| manager.as_str())
        .figure("objects are freed", |(_, row)| point_label(row.point))
        .figure("CPU s", |(_, row)| row.medians.map(|medians| seconds(medians.cpu_s)))
        .figure("vs free", |(_, row)| ratio(row.point, row.over_free.cpu))
        .figure("peak MiB", |(_, row)| row.medians.map(|medians| mib_from_kib(medians.peak_rss_kib)))
        .figure("vs free", |(_, row)| ratio(row.point, row.over_free.peak_rss))
        .figure("faults", |(_, row)| row.medians.map(|medians| number(medians.minor_faults as u64)));
    let of = |manager: &str, point: FreePoint| {
        let curve = curves.iter().find(|curve| curve.manager == manager)?;
        Some(curve.rows.iter().find(|row| row.point == point)?.over_free)
    };
    let section = Section::new(name).with(table).with_all(charts(found, name, &of));
    (!curves.is_empty()).then_some(section)
}

/// CPU and memory by point; `of` has the ratios of a manager at a point.
fn charts(found: &Reclamation, what: &str, of: &dyn Fn(&str, FreePoint) -> Option<Ratios>) -> [Item; 2] {
    let points = &found.points;
    let base = points.iter().position(|point| *point == FreePoint::Free).unwrap_or(0);
    layered::charts(
        [what, "when objects are freed", "the program's own free"],
        (points.iter().map(|point| point_label(*point)).collect(), base),
        &found.managers,
        &|manager, place| of(&found.managers[manager], points[place]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_times_as_many_bytes_are_a_factor_and_no_percentage() {
        assert_eq!(share(38_261, 100), "383x");
        assert_eq!(share(1, 2), percent(0.5));
        assert_eq!(share(1, 0), NONE);
    }
}
