//! How long objects are held before their first use and after their last: `heaptoll exact drag`.
//!
//! Figures are those of the process image that executed most, as in the command's tables. A run that was not traced to
//! its end gives none.

use heaptoll_drag::space::Phase;
use heaptoll_drag::{Clock, Figures as ImageFigures};
use heaptoll_facts::{Comparative, Facts, Metric, metrics};

use super::figures::ExactDragFigures;

/// A metric of a process image; none where it has none.
type Of = fn(&ImageFigures) -> Option<f64>;

const ALL: [(Metric, Of); 9] = [
    (Metric::count("objects", "blocks that were allocated"), |of| Some(of.all.all.objects as f64)),
    (Metric::count("bytes", "requested"), |of| Some(of.all.all.bytes as f64)),
    (Metric::count("most_live_bytes", "most requested bytes alive"), |of| Some(of.most_bytes as f64)),
    (Metric::count("never_touched_bytes", "of objects"), |of| Some(of.all.never_touched.bytes as f64)),
    (Metric::count("not_freed_bytes", "of objects that existed at the end"), |of| {
        Some(of.all.not_freed.bytes as f64)
    }),
    (
        Metric::count("percent_lag", "of the program's instructions times bytes, before the first touch"),
        |of| share(of, Phase::Lag),
    ),
    (Metric::count("percent_use", "the same between the first and the last touch"), |of| {
        share(of, Phase::Use)
    }),
    (Metric::count("percent_drag", "the same after the last touch"), |of| share(of, Phase::Drag)),
    (Metric::count("percent_void", "the same of objects never touched"), |of| share(of, Phase::Void)),
];

/// The part of a phase in the time that objects are held.
fn share(figures: &ImageFigures, phase: Phase) -> Option<f64> {
    let space = figures.all.space(Clock::Instructions);
    (space.held() > 0).then(|| 100.0 * space.of(phase) as f64 / space.held() as f64)
}

/// Exact facts.
impl Comparative for ExactDragFigures {
    const METRICS: &'static [Metric] = &metrics(&ALL);

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for (program, row) in
            self.programs.iter().flat_map(|one| one.managers.iter().map(|row| (&one.program, row)))
        {
            match (&row.problem, &row.figures) {
                (Some(why), _) => facts.lack(program, &row.manager, why),
                (None, Some(figures)) => {
                    let mut writer = facts.of(program, &row.manager);
                    let known = ALL.iter().filter_map(|(metric, of)| Some((metric.id, of(figures)?)));
                    known.for_each(|(metric, value)| writer.exact(metric, None, value));
                }
                (None, None) => {}
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_drag::space::Space;
    use heaptoll_drag::{Drag, FigureOptions, ManagerInfo};
    use heaptoll_facts::testing::{assert_exact, measured};

    use super::*;
    use crate::drag::{Program, Row};

    #[test]
    fn phases_are_parts_of_the_time_that_objects_are_held_and_half_a_run_has_none() {
        let clock = Clock::Instructions;
        let options = FigureOptions { clock, sites: false, depth: 0, pointers: false, frames: 3 };
        let mut image = Drag::new(ManagerInfo { collector: false }).figures(options);
        image.all.all.bytes = 64;
        image.all.space_instructions =
            Space { lag: 1, in_use: 2, drag: 5, unreclaimed: 9, ..Space::default() };
        let row = |manager: &str, problem: Option<&str>| Row {
            manager: manager.into(),
            problem: problem.map(str::to_owned),
            figures: Some(image.clone()),
            ..Row::default()
        };
        let managers = vec![row("glibc", None), row("lea", Some("it was not traced to its end"))];
        let programs = vec![Program { program: "cfrac".into(), managers, ..Program::default() }];
        let figures = ExactDragFigures { complete: true, pinned: true, clock, programs };
        let facts = measured(&figures);
        assert_exact(&facts, "glibc", "bytes", None, 64.0);
        assert_exact(&facts, "glibc", "percent_drag", None, 62.5);
        assert!(facts.iter().all(|fact| fact.manager == "glibc"));
        let why: Vec<String> = figures.facts().reasons().collect();
        assert_eq!(why, ["cfrac under lea: it was not traced to its end"]);
    }
}
