//! The paper's own programs in an exhibit: how they are marked, and which they are.

use crate::definition::{Exhibit, Study};

/// After the name of what stands for a program of the paper, where the paper's own ran.
pub(super) const THE_PAPERS_OWN: &str = " (the paper's own)";

/// Which of an exhibit's programs are the paper's own, in the order of its steps.
pub(super) fn note(study: &Study, exhibit: &Exhibit) -> Option<String> {
    let shown = |program: &str| {
        let row = |row: &String| row == program || row.split(" under ").next() == Some(program);
        match (&exhibit.program, exhibit.programs.as_slice()) {
            (Some(one), _) => one == program,
            (None, []) => true,
            (None, named) => named.iter().any(row),
        }
    };
    let mut all = Vec::new();
    for step in exhibit.steps().into_iter().filter_map(|id| study.step(id)) {
        for program in step.programs.iter().filter(|program| shown(program)) {
            let of = if step.id == exhibit.step { String::new() } else { format!(" in step {}", step.id) };
            all.extend(step.originals.get(program).map(|original| format!("{program} is {original}{of}")));
        }
    }
    (!all.is_empty()).then(|| format!("The paper's own programs: {}.", heaptoll_units::and_list(&all)))
}
