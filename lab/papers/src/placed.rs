//! Where the published values of an exhibit belong: the program and the manager of ours that each is compared with.

#[cfg(test)]
use super::definition::Form;
use super::definition::{Exhibit, ListRow, MetricColumn, Published, Study};
use heaptoll_laboratory::published::{Table, table};

/// A published value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placed {
    /// Its line in the file, from 0.
    pub line: usize,
    /// Its column in the file.
    pub column: usize,
    /// As it is printed.
    pub text: String,
    /// The paper's program.
    pub program: String,
    /// What stands for it here.
    pub our_program: Option<String>,
    /// The paper's manager; empty where the file has none.
    pub manager: String,
    /// What stands for it here.
    pub our_manager: Option<String>,
    /// Which of the exhibit's columns, of a table over metrics.
    pub heading: usize,
}

/// The lines of a file that a selection leaves.
fn lines<'a>(published: &Published, table: &'a Table) -> impl Iterator<Item = (usize, &'a Vec<String>)> {
    let only: Vec<(Option<usize>, String)> =
        published.only.iter().map(|(column, text)| (table.column(column), text.clone())).collect();
    table.rows.iter().enumerate().filter(move |(_, row)| {
        only.iter().all(|(column, text)| column.and_then(|at| row.get(at)) == Some(text))
    })
}

/// The text of some columns of a line.
fn joined(row: &[String], columns: &[usize], by: &str) -> String {
    columns.iter().filter_map(|at| row.get(*at)).cloned().collect::<Vec<_>>().join(by)
}

/// What is mapped, or is run under the paper's own name.
fn our_program(study: &Study, exhibit: &Exhibit, key: &str, manager: &str) -> Option<String> {
    let names = &study.names.programs;
    let mapped = names.get(&format!("{key} {manager}")).or_else(|| names.get(key));
    let run = |name: String| {
        let is = |step: &str| study.step(step).is_some_and(|step| step.programs.contains(&name));
        (exhibit.steps().into_iter().any(is) || exhibit.programs.contains(&name)).then_some(name)
    };
    // Where columns for programs and variants are joined, the variant is ours by its name.
    let own = exhibit.names.get(key).or(mapped);
    own.cloned().or_else(|| run(key.into())).or_else(|| run(key.replacen(' ', ":", 1)))
}

fn our_manager(study: &Study, exhibit: &Exhibit, key: &str) -> Option<String> {
    let run = || {
        let is =
            |step: &str| study.step(step).is_some_and(|step| step.managers.iter().any(|name| name == key));
        exhibit.steps().into_iter().any(is).then(|| key.to_owned())
    };
    study.names.managers.get(key).cloned().or_else(run)
}

/// The published values of a table or of bars, in the order of the file.
pub(super) fn of_grid(study: &Study, exhibit: &Exhibit) -> Vec<Placed> {
    let Some(published) = exhibit.published.as_ref() else { return Vec::new() };
    let Some(table) = table(&published.file) else { return Vec::new() };
    let programs: Vec<usize> = published.program.iter().filter_map(|name| table.column(name)).collect();
    let managers = published.manager.as_ref().and_then(|name| table.column(name));
    // A table over managers has one column of values; one over metrics one for each heading that names one.
    let values: Vec<(usize, usize)> = if exhibit.columns.is_empty() {
        table.column(&published.value).map(|column| (0, column)).into_iter().collect()
    } else {
        let of = |(heading, column): (usize, &MetricColumn)| {
            Some((heading, table.column(column.published.as_ref()?)?))
        };
        exhibit.columns.iter().enumerate().filter_map(of).collect()
    };
    let mut placed = Vec::new();
    for (line, row) in lines(published, table) {
        let program = joined(row, &programs, " ");
        let manager = managers.and_then(|at| row.get(at)).cloned().unwrap_or_default();
        for (heading, column) in &values {
            let Some(text) = row.get(*column).filter(|text| !text.is_empty()) else { continue };
            placed.push(Placed {
                line,
                column: *column,
                text: text.clone(),
                our_program: our_program(study, exhibit, &program, &manager),
                our_manager: our_manager(study, exhibit, &manager),
                program: program.clone(),
                manager: manager.clone(),
                heading: *heading,
            });
        }
    }
    placed
}

/// By what a row of a list names a line of the file, with its values' columns.
pub(super) fn keys(published: &Published, table: &Table) -> (Vec<usize>, Vec<usize>) {
    let values: Vec<usize> = published.value.split(", ").filter_map(|name| table.column(name)).collect();
    let keys = if published.program.is_empty() {
        (0..table.columns.len()).filter(|column| !values.contains(column)).collect()
    } else {
        published.program.iter().filter_map(|name| table.column(name)).collect()
    };
    (keys, values)
}

/// The published values of a row of a list.
pub(super) fn of_row(exhibit: &Exhibit, row: &ListRow) -> Vec<Placed> {
    let Some(published) = exhibit.published.as_ref() else { return Vec::new() };
    let Some(table) = table(&published.file) else { return Vec::new() };
    let (keys, values) = keys(published, table);
    let mut placed = Vec::new();
    for requested in &row.published {
        for (line, texts) in
            lines(published, table).filter(|(_, texts)| joined(texts, &keys, ", ") == *requested)
        {
            for column in &values {
                let Some(text) = texts.get(*column).filter(|text| !text.is_empty()) else { continue };
                let name = if values.len() > 1 {
                    format!(" ({})", table.columns[*column].replace('_', " "))
                } else {
                    String::new()
                };
                placed.push(Placed {
                    line,
                    column: *column,
                    text: format!("{text}{name}"),
                    program: requested.clone(),
                    our_program: None,
                    manager: String::new(),
                    our_manager: None,
                    heading: 0,
                });
            }
        }
    }
    placed
}

#[cfg(test)]
/// Every published value that an exhibit shows: file, line (from 0) and column.
pub(super) fn covered(study: &Study, exhibit: &Exhibit) -> Vec<(String, usize, usize)> {
    let Some(published) = exhibit.published.as_ref() else { return Vec::new() };
    let placed: Vec<Placed> = match exhibit.form {
        Form::Table | Form::Bars => of_grid(study, exhibit),
        Form::List => exhibit.rows.iter().flat_map(|row| of_row(exhibit, row)).collect(),
        Form::Lines => Vec::new(),
    };
    // A ratio to a published value does not show it.
    let is_ratio =
        |placed: &Placed| exhibit.columns.get(placed.heading).is_some_and(|column| column.over_paper);
    placed
        .into_iter()
        .filter(|placed| !is_ratio(placed))
        .map(|placed| (published.file.clone(), placed.line, placed.column))
        .collect()
}
