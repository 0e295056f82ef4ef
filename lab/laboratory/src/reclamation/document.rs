//! The document of the study of reclamation.

use heaptoll_oracle::FreePoint;
use heaptoll_report::document::Document;
use heaptoll_report::format::{and_list, plural, verdict};
use heaptoll_statistics::Interval;

use super::figures::Reclamation;
use super::part::point_label;
use super::sections;
use crate::layered::Ratios;
use heaptoll_runs::studied::StudyOutcome;

/// The whole document.
pub fn document(found: &Reclamation, outcome: &StudyOutcome) -> Document {
    let verdicts = found.managers.iter().flat_map(|manager| verdicts(found, manager)).collect();
    let mut all = vec![sections::findings(found, verdicts)];
    all.extend(sections::alive(found));
    all.extend(sections::layer(found));
    let programs = &outcome.experiment.programs;
    all.extend(programs.iter().filter_map(|program| sections::program(found, &program.name)));
    let points: Vec<String> = found.points.iter().map(|point| point_label(*point)).collect();
    Document {
        title: "What it costs to free earlier or later".into(),
        subtitle: format!(
            "{} with objects freed at {}; {}",
            and_list(&found.managers),
            and_list(&points),
            plural(programs.len(), "program")
        ),
        warnings: outcome.warnings(),
        sections: all,
        facts: outcome.facts(),
        command: outcome.command(),
        ..Document::default()
    }
}

/// The ratios of a point: means over programs, or those of the only one.
fn over_all(found: &Reclamation, manager: &str, point: FreePoint) -> Option<Ratios> {
    if found.means.is_empty() {
        let curve = found.curves.iter().find(|curve| curve.manager == manager)?;
        return Some(curve.rows.iter().find(|row| row.point == point)?.over_free);
    }
    let mean = found.means.iter().find(|mean| mean.manager == manager && mean.point == Some(point));
    mean.map(|mean| mean.ratios)
}

/// What freeing earlier would save, what freeing later costs, and where the least CPU is.
fn verdicts(found: &Reclamation, manager: &str) -> Vec<String> {
    let claims = |ratios: Ratios| verdict(&[(ratios.cpu, "CPU"), (ratios.peak_rss, "peak memory")]);
    let others = found.points.iter().filter(|point| **point != FreePoint::Free);
    let sentences: Vec<String> = others
        .filter_map(|point| Some((point, over_all(found, manager, *point)?)))
        .map(|(point, ratios)| format!("{} {}", point_label(*point), claims(ratios)))
        .collect();
    if sentences.is_empty() {
        return vec![];
    }
    let mut all = vec![format!("{manager}, compared with the program's own free: {}.", sentences.join("; "))];
    all.extend(best(found, manager));
    all
}

/// The point with the least CPU, where it differs from the program's free.
fn best(found: &Reclamation, manager: &str) -> Option<String> {
    let cpu = |point: &FreePoint| -> Option<(FreePoint, Interval)> {
        over_all(found, manager, *point)?.cpu.map(|interval| (*point, interval))
    };
    let (point, interval) =
        found.points.iter().filter_map(cpu).min_by(|one, other| one.1.ratio.total_cmp(&other.1.ratio))?;
    if !interval.has_enough_pairs() {
        return None;
    }
    Some(if interval.differs && interval.ratio < 1.0 {
        format!("{manager}: freeing at {} takes the least CPU.", point_label(point))
    } else {
        format!("{manager}: freeing earlier or later does not measurably save CPU.")
    })
}
