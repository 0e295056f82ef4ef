//! The document of two results of one command: the figures that changed, and what they are.

use heaptoll_facts::{Basis, Known, Value, WIDEST};
use heaptoll_report::document::{Document, Section, Table};
use heaptoll_report::format::{NONE, plural};
use heaptoll_units::{factor, significant};

use super::figures::{DiffFactsFigures, Row};
use crate::comparative::Comparable;

/// Figures that the table lists at most.
const LISTED: usize = 40;

/// The document. `command` repeats it; `all` are those that there are.
pub fn document(figures: &DiffFactsFigures, command: &str, all: &[Comparable]) -> Document {
    let of = all.iter().find(|known| known.name == figures.command);
    let changed: Vec<&Row> = figures.rows.iter().filter(|row| row.has_changed()).collect();
    let table = table(&changed[..changed.len().min(LISTED)], of);
    let section =
        Section { text: text(figures, changed.len()), ..Section::new("What changed") }.with_all(table);
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

fn text(figures: &DiffFactsFigures, changed: usize) -> Vec<String> {
    let decided = |row: &&Row| {
        row.base.value == row.new || row.change.is_some_and(|change| change.basis != Basis::None)
    };
    let measured = |row: &Row| !matches!(row.new, Value::Exact(_));
    let open = figures.rows.len() - figures.rows.iter().filter(decided).count();
    let mut text = vec![format!("{changed} of {} changed.", plural(figures.rows.len(), "figure"))];
    if open > 0 {
        text.push(format!("Not decided, because they have no interval: {}.", plural(open, "figure")));
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

fn table(rows: &[&Row], of: Option<&Comparable>) -> Option<Table> {
    let value = |value: &Value| Known::of(value, 1).map_or(NONE.into(), |known| significant(known.value));
    let place = |row: &&Row| {
        let place = of.zip(row.base.at).map(|(known, at)| known.place(&row.base.metric, at));
        place.unwrap_or_default()
    };
    let notes = of.map(|known| known.notes(rows.iter().map(|row| &row.base)));
    Table::of(rows.iter().copied())
        .text("program", |row| row.base.program.clone())
        .text("manager", |row| row.base.manager.clone())
        .text("figure", |row| row.base.metric.clone())
        .text("place", place)
        .figure("base", |row| value(&row.base.value))
        .figure("new", |row| value(&row.new))
        .figure("new / base", |row| change(row)[0].clone())
        .figure("95 % interval", |row| change(row)[1].clone())
        .notes(notes.unwrap_or_default())
        .if_any()
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
