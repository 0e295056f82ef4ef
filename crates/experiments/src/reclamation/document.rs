//! The document of the study of reclamation.

use heaptoll_oracle::Moment;
use heaptoll_report::document::Document;
use heaptoll_report::format::{and_list, claim, plural};
use heaptoll_statistics::Interval;

use super::figures::{Ratios, Reclamation};
use super::part::moment_label;
use super::sections;
use crate::studied::StudyOutcome;

/// The whole document.
pub fn document(found: &Reclamation, outcome: &StudyOutcome) -> Document {
    let verdicts = found.managers.iter().flat_map(|manager| verdicts(found, manager)).collect();
    let mut all = vec![sections::findings(found, verdicts)];
    all.extend(sections::alive(found));
    all.extend(sections::layer(found));
    let programs = &outcome.experiment.programs;
    all.extend(programs.iter().filter_map(|program| sections::program(found, &program.name)));
    let moments: Vec<String> = found.moments.iter().map(|moment| moment_label(*moment)).collect();
    Document {
        title: "What the moment of reclamation costs".into(),
        subtitle: format!(
            "{} with objects freed at {}; {}",
            and_list(&found.managers),
            and_list(&moments),
            plural(programs.len(), "program")
        ),
        warnings: outcome.warnings(),
        sections: all,
        facts: outcome.facts(),
        command: outcome.command(),
        ..Document::default()
    }
}

/// The ratios of a moment: means over programs, or those of the only one.
fn over_all(found: &Reclamation, manager: &str, moment: Moment) -> Option<Ratios> {
    if found.means.is_empty() {
        let curve = found.curves.iter().find(|curve| curve.manager == manager)?;
        return Some(curve.points.iter().find(|point| point.moment == moment)?.over_free);
    }
    let mean = found.means.iter().find(|mean| mean.manager == manager && mean.moment == Some(moment));
    mean.map(|mean| mean.ratios)
}

/// What freeing earlier would save, what freeing later costs, and where the least CPU is.
fn verdicts(found: &Reclamation, manager: &str) -> Vec<String> {
    let claims = |ratios: Ratios| {
        let claimed: Vec<String> = [(ratios.cpu, "CPU"), (ratios.peak_rss, "peak memory")]
            .into_iter()
            .filter_map(|(interval, noun)| claim(&interval?, noun))
            .collect();
        if claimed.is_empty() { "no difference".to_owned() } else { and_list(&claimed) }
    };
    let others = found.moments.iter().filter(|moment| **moment != Moment::Free);
    let sentences: Vec<String> = others
        .filter_map(|moment| Some((moment, over_all(found, manager, *moment)?)))
        .map(|(moment, ratios)| format!("{} {}", moment_label(*moment), claims(ratios)))
        .collect();
    if sentences.is_empty() {
        return vec![];
    }
    let mut all = vec![format!("{manager}, over the program's own free: {}.", sentences.join("; "))];
    all.extend(best(found, manager));
    all
}

/// The moment with the least CPU, where it differs from the program's free.
fn best(found: &Reclamation, manager: &str) -> Option<String> {
    let cpu = |moment: &Moment| -> Option<(Moment, Interval)> {
        over_all(found, manager, *moment)?.cpu.map(|interval| (*moment, interval))
    };
    let (moment, interval) =
        found.moments.iter().filter_map(cpu).min_by(|one, other| one.1.ratio.total_cmp(&other.1.ratio))?;
    Some(if interval.differs && interval.ratio < 1.0 {
        format!("{manager}: the least CPU is at {}.", moment_label(moment))
    } else {
        format!("{manager}: no moment takes less CPU than the program's own free.")
    })
}
