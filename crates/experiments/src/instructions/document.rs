//! The document of `heaptoll exact instructions`: its sentences, tables and charts.

use heaptoll_report::document::{Document, Item, Section};
use heaptoll_report::format::{count, shell_command};

use super::figures::{Figures, Program, Row};
use super::{charts, check, functions, sections};

/// The whole document.
pub fn document(figures: &Figures, facts: Vec<(String, String)>, command: String) -> Document {
    let several = figures.programs.len() > 1;
    let mut warnings = Vec::new();
    if !figures.complete {
        warnings.push("interrupted: not all runs were made".to_owned());
    }
    let mut all = Vec::new();
    for program in &figures.programs {
        let name =
            |text: &String| if several { format!("{}: {text}", program.program) } else { text.clone() };
        warnings.extend(program.warnings.iter().map(name));
        for row in &program.managers {
            let label = |text: &String| name(&format!("{}: {text}", row.manager));
            warnings.extend(row.problem.iter().map(label));
            let more = row.warnings.iter().filter(|text| row.problem.as_ref() != Some(*text));
            warnings.extend(more.map(label));
        }
        let prefix = if several { format!("{}: ", program.program) } else { String::new() };
        all.extend(of_program(program, &prefix));
    }
    warnings.dedup();
    Document {
        title: title(figures),
        subtitle: subtitle(figures),
        warnings,
        sections: all,
        facts,
        command,
        ..Document::default()
    }
}

fn title(figures: &Figures) -> String {
    match figures.programs.as_slice() {
        [one] => format!("What malloc and free cost {}", one.program),
        many => format!("What malloc and free cost {} programs", many.len()),
    }
}

fn subtitle(figures: &Figures) -> String {
    match figures.programs.as_slice() {
        [one] => shell_command(&one.command),
        many => many.iter().map(|program| program.program.as_str()).collect::<Vec<_>>().join(", "),
    }
}

fn of_program(program: &Program, prefix: &str) -> Vec<Section> {
    let rows: Vec<&Row> = program.managers.iter().filter(|row| row.figures.is_some()).collect();
    if rows.is_empty() {
        return vec![];
    }
    let section = |title: &str, text: Vec<String>, items: Vec<Option<Item>>| {
        let items: Vec<Item> = items.into_iter().flatten().collect();
        (!items.is_empty()).then(|| Section { title: format!("{prefix}{title}"), text, items })
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
