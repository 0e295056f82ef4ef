//! The document of two results of one command: the figures that changed, and what they are.

use heaptoll_facts::{Basis, Known, Value, WIDEST};
use heaptoll_report::document::{Column, Document, Item, Section, Table};
use heaptoll_report::format::{NONE, plural};
use heaptoll_units::{factor, significant};

use super::figures::{Figures, Row};
use crate::comparative::{ALL, Comparable};

/// Figures that the table lists at most.
const LISTED: usize = 40;

/// The document. `command` repeats it.
pub fn document(figures: &Figures, command: &str) -> Document {
    let of = ALL.iter().find(|known| known.name == figures.command);
    let changed: Vec<&Row> = figures.rows.iter().filter(|row| row.has_changed()).collect();
    let table = table(&changed[..changed.len().min(LISTED)], of);
    let section = Section {
        title: "What changed".into(),
        text: text(figures, changed.len()),
        items: (!changed.is_empty()).then_some(Item::Table(table)).into_iter().collect(),
    };
    Document {
        title: format!("What changed between two results of heaptoll {}", figures.command),
        subtitle: format!("from {} to {}", figures.base, figures.new),
        warnings: figures.warnings.clone(),
        sections: vec![section],
        facts: vec![("base".into(), figures.base.clone()), ("new".into(), figures.new.clone())],
        command: command.into(),
        ..Document::default()
    }
}

fn text(figures: &Figures, changed: usize) -> Vec<String> {
    let decided = |row: &&Row| {
        row.base.value == row.new || row.change.is_some_and(|change| change.basis != Basis::None)
    };
    let measured = |row: &Row| !matches!(row.new, Value::Exact(_));
    let open = figures.rows.len() - figures.rows.iter().filter(decided).count();
    let mut text = vec![format!("{changed} of {} changed.", plural(figures.rows.len(), "figure"))];
    if open > 0 {
        text.push(format!("Without an interval nothing is decided: {}.", plural(open, "figure")));
    }
    if figures.rows.iter().any(measured) {
        text.push(
            "The two were not measured together, so a change of the machine between them shows as a difference."
                .into(),
        );
    }
    if changed > LISTED {
        text.push(format!("The {LISTED} largest changes follow; --json has all."));
    }
    text
}

fn table(rows: &[&Row], of: Option<&Comparable>) -> Table {
    let value = |value: &Value| Known::of(value, 1).map_or(NONE.into(), |known| significant(known.value));
    let metric = |row: &Row| of.and_then(|known| known.metric(&row.base.metric));
    let cells = |row: &&Row| {
        let base = &row.base;
        let place = of.zip(base.at).map(|(known, at)| known.place(&base.metric, at));
        let names =
            [base.program.clone(), base.manager.clone(), base.metric.clone(), place.unwrap_or_default()];
        names.into_iter().chain([value(&base.value), value(&row.new)]).chain(change(row)).collect()
    };
    let mut notes: Vec<String> = Vec::new();
    for (name, known) in rows.iter().filter_map(|row| Some((&row.base.metric, metric(row)?))) {
        let note = format!("{name}: {}.", known.about);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let text = ["program", "manager", "figure", "place"].map(Column::text);
    let numbers = ["base", "new", "new / base", "95 % interval"].map(Column::figures);
    let columns = text.into_iter().chain(numbers).collect();
    Table { columns, rows: rows.iter().map(cells).collect(), notes, ..Table::default() }
}

/// The ratio and its interval.
fn change(row: &Row) -> [String; 2] {
    match row.change {
        // Of a count that was none before.
        Some(Known { value, .. }) if value >= WIDEST.exp() => [NONE.into(), NONE.into()],
        Some(Known { value, basis: Basis::Exact, .. }) => [factor(value), "exact".into()],
        Some(Known { value, low, high, .. }) => {
            [factor(value), format!("{} to {}", factor(low), factor(high))]
        }
        None => [NONE.into(), NONE.into()],
    }
}
