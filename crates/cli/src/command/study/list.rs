//! The studies and their steps, as `--list` shows them.

use heaptoll_report::document::{Column, Document, Item, Section, Table};
use heaptoll_report::terminal::render_document;
use heaptoll_studies::paper::definition::Study;

use super::command_name::command_name;
use crate::terminal;

/// As text for the terminal.
pub fn list(studies: &[Study]) -> String {
    let overview = Table {
        columns: vec![
            Column::text("study"),
            Column::figures("steps"),
            Column::figures("tables and figures"),
            Column::figures("claims"),
            Column::text("of"),
        ],
        rows: studies
            .iter()
            .map(|study| {
                let counts = [study.steps.len(), study.exhibits.len(), study.claims.len()];
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
    let document = Document { title: "Studies".into(), sections, ..Document::default() };
    render_document(&document, &terminal::style())
}

fn steps(study: &Study) -> Section {
    let table = Table {
        columns: vec![
            Column::text("step"),
            Column::text("command"),
            Column::text("inputs"),
            Column::figures("programs"),
            Column::figures("managers"),
        ],
        rows: study
            .steps
            .iter()
            .map(|step| {
                vec![
                    step.id.clone(),
                    command_name(step.kind).to_owned(),
                    step.size.clone(),
                    step.programs.len().to_string(),
                    step.managers.len().to_string(),
                ]
            })
            .collect(),
        ..Table::default()
    };
    Section { title: study.title.clone(), text: vec![], items: vec![Item::Table(table)] }
}
