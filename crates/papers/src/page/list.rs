//! The studies and their steps, as a list shows them.

use crate::budget::whole_s;
use crate::definition::{Step, Study};
use heaptoll_report::document::{Column, Document, Item, Section, Table};

/// The longest part of a run, minutes: as long as a machine is likely to be left alone.
const LONGEST_PART: f64 = 100.0;

/// The list.
pub fn list(studies: &[Study]) -> Document {
    let overview = Table {
        columns: vec![
            Column::text("study"),
            Column::figures("steps"),
            Column::figures("tables and figures"),
            Column::figures("claims of the paper"),
            Column::figures("of ours"),
            Column::figures("minutes, about"),
            Column::text("of"),
        ],
        rows: studies
            .iter()
            .map(|study| {
                let ours = study.claims.iter().filter(|claim| claim.ours).count();
                let of_paper = study.claims.len() - ours;
                let counts = [study.steps.len(), study.exhibits.len(), of_paper, ours];
                let mut row = vec![study.name.clone()];
                row.extend(counts.map(|count| count.to_string()));
                row.push(format!("{:.0}", minutes(&study.steps)));
                row.push(study.source.clone());
                row
            })
            .collect(),
        ..Table::default()
    };
    let mut sections = vec![Section { items: vec![Item::Table(overview)], ..Section::default() }];
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
    let table = Table {
        columns: vec![
            Column::text("step"),
            Column::text("command"),
            Column::text("inputs"),
            Column::figures("programs"),
            Column::figures("managers"),
            Column::figures("repetitions"),
            Column::figures("minutes, about"),
        ],
        rows: study
            .steps
            .iter()
            .map(|step| {
                vec![
                    step.id.clone(),
                    step.kind.command().name.to_owned(),
                    step.size.clone(),
                    step.programs.len().to_string(),
                    step.managers.len().to_string(),
                    step.repetitions().to_string(),
                    format!("{:.1}", minutes([step])),
                ]
            })
            .collect(),
        ..Table::default()
    };
    Section { title: study.title.clone(), text: commands(study), items: vec![Item::Table(table)] }
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
