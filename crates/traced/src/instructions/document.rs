//! The document of `heaptoll exact instructions`: its sentences, tables and charts.

use heaptoll_report::document::{Document, Item, Section};
use heaptoll_report::format::count;

use super::figures::{ExactInstructionsFigures, Program, Row};
use super::{charts, check, functions, sections};
use heaptoll_runs::traced::{self, Shown, warnings_of};

/// The whole document.
pub fn document(figures: &ExactInstructionsFigures) -> Document {
    let title = match figures.programs.as_slice() {
        [one] => format!("What malloc and free cost {}", one.program),
        many => format!("What malloc and free cost {} programs", many.len()),
    };
    let programs = figures.programs.iter().map(|one| Shown {
        program: &one.program,
        command: &one.command,
        warnings: warnings(one),
        sections: of_program(one),
    });
    let shown = traced::document(title, figures.complete, programs.collect());
    Document { facts: vec![("runs of each".into(), figures.repeat.to_string())], ..shown }
}

fn warnings(program: &Program) -> Vec<String> {
    let rows = program.managers.iter();
    let of_rows = rows.flat_map(|row| warnings_of(&row.manager, row.problem.as_ref(), &row.warnings));
    program.warnings.iter().cloned().chain(of_rows).collect()
}

fn of_program(program: &Program) -> Vec<Section> {
    let rows: Vec<&Row> = program.managers.iter().filter(|row| row.figures.is_some()).collect();
    if rows.is_empty() {
        return vec![];
    }
    let section = |title: &str, text: Vec<String>, items: Vec<Option<Item>>| {
        let items: Vec<Item> = items.into_iter().flatten().collect();
        (!items.is_empty()).then(|| Section { title: title.into(), text, items })
    };
    let mut shares = vec![Some(sections::shares(&rows))];
    shares.push(sections::phases(&rows));
    shares.push(sections::together(&rows));
    shares.extend(charts::shares(&rows).map(Some));
    shares.extend(functions::flames(&rows).into_iter().map(Some));
    [
        section("Instructions of a call", findings(&rows), vec![Some(sections::tables(&rows))]),
        section("Where the instructions go", vec![], shares),
        section("Calls", check::oddities(program), vec![sections::calls(&rows)]),
        section(
            "Instructions of a call by size",
            vec![],
            charts::per_call(&rows).into_iter().chain(sections::by_size(&rows)).map(Some).collect(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The finding in a sentence or two.
fn findings(rows: &[&Row]) -> Vec<String> {
    let whole = || rows.iter().filter(|row| row.is_whole());
    let per_object = |row: &Row| row.figures.as_ref()?.tables.instructions_per_object;
    let cheapest = whole().filter_map(|row| Some((row, per_object(row)?))).min_by(|a, b| a.1.total_cmp(&b.1));
    let dearest = whole().filter_map(|row| Some((row, per_object(row)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    let mut text = Vec::new();
    if let (Some((cheapest_row, few)), Some((expensive, many))) = (cheapest, dearest)
        && cheapest_row.manager != expensive.manager
    {
        text.push(format!(
            "An object costs {} instructions under {} and {} under {}, including everything done for it.",
            heaptoll_units::tenths(few),
            cheapest_row.manager,
            heaptoll_units::tenths(many),
            expensive.manager
        ));
    }
    if let Some(objects) = whole().next().and_then(|row| Some(row.figures.as_ref()?.amounts.objects)) {
        text.push(format!("{} objects are made.", count(objects as f64)));
    }
    text
}
