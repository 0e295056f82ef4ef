//! The document of the study of reclamation.

use heaptoll_experiment::comparison::Ratios;
use heaptoll_experiment::sweep::Sweep;
use heaptoll_oracle::FreePoint;
use heaptoll_report::document::{Document, Section, Table};
use heaptoll_report::format::{NONE, and_list, mib_from_kib, seconds, verdict};
use heaptoll_units::{figure, number, percent, whole_bytes};

use super::comparison::Points;
use super::figures::{Alive, Reclamation};
use super::part::point_label;
use crate::axis::Shown;
use heaptoll_runs::studied::StudyOutcome;

/// The whole document.
pub fn document(found: &Reclamation, sweep: &Sweep<Points>, outcome: &StudyOutcome) -> Document {
    let base = (FreePoint::Free, "the program's own free in the same layer");
    let shown = Shown::setting(sweep, "objects are freed", point_label, base);
    let text =
        found.managers.iter().flat_map(|manager| verdicts(&shown.over_all(manager), manager)).collect();
    let mut all = vec![shown.findings("What it costs to free earlier or later", text)];
    all.extend(alive(found));
    all.extend(shown.layer(
        "What the layer itself costs",
        "The layer that frees as the program does: it compares each allocation, and copies in place of realloc. \
         Every other ratio here has it on both sides.",
    ));
    all.extend(outcome.experiment.programs.iter().filter_map(|program| {
        shown.program(&program.name, |table| {
            table
                .figure("CPU s", |row| row.medians.map(|medians| seconds(medians.cpu_s)))
                .figure("vs free", |row| row.cell(|ratios| ratios.cpu))
                .figure("peak MiB", |row| row.medians.map(|medians| mib_from_kib(medians.peak_rss_kib)))
                .figure("vs free", |row| row.cell(|ratios| ratios.peak_rss))
                .figure("faults", |row| row.medians.map(|medians| number(medians.minor_faults as u64)))
        })
    }));
    let points: Vec<String> = found.points.iter().map(|point| point_label(*point)).collect();
    let what = format!("{} with objects freed at {}", and_list(&found.managers), and_list(&points));
    outcome.document("What it costs to free earlier or later", &what, all)
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
fn alive(found: &Reclamation) -> Option<Section> {
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

/// What freeing earlier would save, what freeing later costs, and where the least CPU is.
fn verdicts(points: &[(String, Ratios)], manager: &str) -> Vec<String> {
    let claims = |ratios: &Ratios| verdict(&[(ratios.cpu, "CPU"), (ratios.peak_rss, "peak memory")]);
    let sentences: Vec<String> =
        points.iter().map(|(point, ratios)| format!("{point} {}", claims(ratios))).collect();
    if sentences.is_empty() {
        return vec![];
    }
    let mut all = vec![format!("{manager}, compared with the program's own free: {}.", sentences.join("; "))];
    all.extend(best(points, manager));
    all
}

/// The point with the least CPU, where it differs from the program's free.
fn best(points: &[(String, Ratios)], manager: &str) -> Option<String> {
    let cpu = points.iter().filter_map(|(point, ratios)| Some((point, ratios.cpu?)));
    let (point, interval) = cpu.min_by(|one, other| one.1.ratio.total_cmp(&other.1.ratio))?;
    if !interval.has_enough_pairs() {
        return None;
    }
    Some(if interval.differs && interval.ratio < 1.0 {
        format!("{manager}: freeing at {point} takes the least CPU.")
    } else {
        format!("{manager}: freeing earlier or later does not measurably save CPU.")
    })
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
