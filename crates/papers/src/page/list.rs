//! The studies and their steps, as a list shows them.

use crate::budget::whole_s;
use crate::definition::Study;
use heaptoll_report::document::{Column, Document, Item, Section, Table};

/// The list.
pub fn list(studies: &[Study]) -> Document {
    let overview = Table {
        columns: vec![
            Column::text("study"),
            Column::figures("steps"),
            Column::figures("tables and figures"),
            Column::figures("claims of the paper"),
            Column::figures("of ours"),
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
                    step.kind.command().to_owned(),
                    step.size.clone(),
                    step.programs.len().to_string(),
                    step.managers.len().to_string(),
                    step.repetitions().to_string(),
                    format!("{:.1}", whole_s(step) / 60.0),
                ]
            })
            .collect(),
        ..Table::default()
    };
    Section { title: study.title.clone(), text: vec![], items: vec![Item::Table(table)] }
}
