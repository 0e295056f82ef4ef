//! The document of `heaptoll exact locality`.

use heaptoll_locality::placement::SAME_WORK;
use heaptoll_report::document::Document;
use heaptoll_report::format::{and_list, plural, shell_command};
use heaptoll_units::percent;

use super::figures::{ExactLocalityFigures, Program};
use super::sections;
use heaptoll_runs::traced::{self, Shown};

/// The whole document; tables have columns for caches of these sizes.
pub fn document(figures: &ExactLocalityFigures, sizes: &[u64]) -> Document {
    let names: Vec<String> = figures.programs.iter().map(|one| one.program.clone()).collect();
    let title = match names.len() {
        1..=3 => format!("Locality of {}", and_list(&names)),
        many => format!("Locality of {}", plural(many, "program")),
    };
    let programs = figures.programs.iter().map(|one| Shown {
        program: &one.program,
        command: &one.command,
        warnings: vec![],
        sections: sections::sections(&one.study, sizes),
    });
    let mut document = traced::document(title, figures.complete, programs.collect());
    document.subtitle = subtitle(figures);
    document.warnings.extend(warnings(figures));
    document.facts = sampled(figures);
    document
}

fn subtitle(figures: &ExactLocalityFigures) -> String {
    let managers = figures.programs.iter().map(|one| one.study.rows.len()).max().unwrap_or(0);
    let compared = match managers {
        0 | 1 => format!("under {}", figures.baseline),
        many => format!("under {many} managers, compared with {}", figures.baseline),
    };
    match &figures.programs[..] {
        [one] => format!("{}, {compared}", shell_command(&one.command)),
        many => format!("{}, {compared}", plural(many.len(), "program")),
    }
}

/// How the figures of each program's large caches were obtained.
fn sampled(figures: &ExactLocalityFigures) -> Vec<(String, String)> {
    let words = |one: &Program| match one.sampling {
        None => "all lines are followed".to_owned(),
        Some(sampling) => format!(
            "one line in {} beyond fully associative caches of {} lines; all lines elsewhere",
            sampling.one_in, sampling.exact_lines
        ),
    };
    let mut found: Vec<(String, String)> =
        figures.programs.iter().map(|one| (format!("sampling, {}", one.program), words(one))).collect();
    if let ([one], [(name, _)]) = (&figures.programs[..], &mut found[..]) {
        debug_assert!(name.ends_with(&one.program));
        *name = "sampling".into();
    }
    found
}

fn warnings(figures: &ExactLocalityFigures) -> Vec<String> {
    let mut found = Vec::new();
    let several = figures.programs.len() > 1;
    for one in &figures.programs {
        let baseline = one.study.rows.first().map(|row| row.about.manager.as_str()).unwrap_or_default();
        for row in &one.study.rows {
            let name = match several {
                true => format!("{} under {}", one.program, row.about.manager),
                false => row.about.manager.clone(),
            };
            if let Some(why) = row.about.cut_short.iter().find(|why| !row.about.warnings.contains(why)) {
                found.push(format!("{name}: {why}"));
            }
            found.extend(row.about.warnings.iter().map(|words| format!("{name}: {words}")));
            if let Some(apart) = row.other_work {
                found.push(format!(
                    "{name}: from main on, the program made {} references than under {baseline} (over {} % \
                     apart). The program did different work, so its misses are not comparable",
                    more_or_fewer(apart),
                    SAME_WORK * 100.0
                ));
            }
        }
    }
    found
}

fn more_or_fewer(apart: f64) -> String {
    let word = if apart > 0.0 { "more" } else { "fewer" };
    format!("{} {word}", percent(apart.abs()))
}

#[cfg(test)]
mod tests;
