//! The studies and their steps, as a list shows them.

use crate::budget::whole_s;
use crate::definition::{Step, Study};
use heaptoll_report::document::{Document, Section, Table};

/// The longest part of a run, minutes: as long as a machine is likely to be left alone.
const LONGEST_PART: f64 = 100.0;

/// The list.
pub fn list(studies: &[Study]) -> Document {
    let ours = |study: &Study| study.claims.iter().filter(|claim| claim.ours).count();
    let overview = Table::of(studies)
        .text("study", |study| study.name.clone())
        .figure("steps", |study| study.steps.len().to_string())
        .figure("tables and figures", |study| study.exhibits.len().to_string())
        .figure("claims of the paper", |study| (study.claims.len() - ours(study)).to_string())
        .figure("of ours", |study| ours(study).to_string())
        .figure("minutes, about", |study| format!("{:.0}", minutes(&study.steps)))
        .text("of", |study| study.source.clone());
    let mut sections = vec![Section::default().with(overview)];
    sections.extend(studies.iter().filter(|study| !study.steps.is_empty()).map(steps));
    Document { title: "Studies".into(), sections, ..Document::default() }
}

/// About how long steps take.
fn minutes<'a>(steps: impl IntoIterator<Item = &'a Step>) -> f64 {
    steps.into_iter().map(whole_s).sum::<f64>() / 60.0
}

/// A study's steps in their order, in parts that are not too long; one that is too long alone is a part.
fn parts(study: &Study) -> Vec<&[Step]> {
    let (mut parts, mut rest) = (Vec::new(), study.steps.as_slice());
    while !rest.is_empty() {
        let fits = |end: &usize| minutes(&rest[..*end]) <= LONGEST_PART;
        let (part, later) = rest.split_at((2..=rest.len()).take_while(fits).last().unwrap_or(1));
        parts.push(part);
        rest = later;
    }
    parts
}

/// The commands that run a study in parts; none where one is enough.
fn commands(study: &Study) -> Vec<String> {
    let parts = parts(study);
    let command = |(number, part): (usize, &&[Step])| {
        let only: String = part.iter().map(|step| format!(" --only {}", step.id)).collect();
        format!("Part {}, {:.0} minutes: heaptoll lab study {}{only}", number + 1, minutes(*part), study.name)
    };
    if parts.len() < 2 { Vec::new() } else { parts.iter().enumerate().map(command).collect() }
}

fn steps(study: &Study) -> Section {
    let table = Table::of(&study.steps)
        .text("step", |step| step.id.clone())
        .text("command", |step| step.kind.command().name.to_owned())
        .text("inputs", |step| step.size.clone())
        .figure("programs", |step| step.programs.len().to_string())
        .figure("managers", |step| step.managers.len().to_string())
        .figure("repetitions", |step| step.repetitions().to_string())
        .figure("minutes, about", |step| format!("{:.1}", minutes([*step])));
    Section { text: commands(study), ..Section::new(&study.title) }.with(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundled::all;

    #[test]
    fn each_part_of_a_run_is_whole_steps_of_a_hundred_minutes_at_most() {
        for mut study in all().expect("studies") {
            study.steps.iter_mut().for_each(|step| step.repeat(40));
            let parts = parts(&study);
            assert_eq!(parts.concat(), study.steps);
            assert!(
                parts.iter().all(|part| part.len() == 1 || minutes(*part) <= LONGEST_PART),
                "{}",
                study.name
            );
            let pairs = parts.windows(2).map(|pair| minutes(pair[0]) + minutes(&pair[1][..1]));
            assert!(
                pairs.into_iter().all(|together| together > LONGEST_PART),
                "{}: one would do",
                study.name
            );
            assert!(commands(&study).len() != 1 && steps(&study).text == commands(&study));
        }
    }
}
