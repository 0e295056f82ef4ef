//! A table with one text a cell: where there is one line a cell, each part of it has a column.

use super::cell::Cell;
use super::column::Column;
use super::table::{Layout, Table};
use crate::format::NONE;

/// Tables with more columns of values than this get a row a value: no terminal is as wide.
const ACROSS: usize = 3;

/// What the cells of a column of values have besides ours.
#[derive(Clone, Copy)]
struct Parts {
    published: bool,
    ratio: bool,
}

impl Table {
    /// The same with one text a cell: published values and ratios in columns of their own, or, of many columns, a row
    /// a value. Notes explain numbers in brackets.
    pub(crate) fn flat(&self) -> Table {
        let parts = self.parts();
        let is_list = self.layout == Layout::Parts
            && self.columns.len() > ACROSS + 1
            && (parts.published || parts.ratio || self.is_ranged());
        let mut reasons: Vec<String> = Vec::new();
        let (columns, rows) = if is_list { self.list(parts, &mut reasons) } else { self.wide(&mut reasons) };
        let reasons = reasons.iter().enumerate().map(|(at, why)| format!("[{}] {why}", at + 1));
        let notes = reasons.chain(self.notes.iter().cloned()).collect();
        Table { caption: self.caption.clone(), columns, rows, notes, ..Table::default() }
    }

    fn parts(&self) -> Parts {
        let cells = || self.rows.iter().flatten();
        Parts {
            published: cells().any(|cell| !cell.published.is_empty()),
            ratio: cells().any(|cell| cell.ratio.is_some()),
        }
    }

    fn is_ranged(&self) -> bool {
        self.rows.iter().flatten().any(|cell| !cell.range.is_empty())
    }

    /// Parts of the cells of one column.
    fn parts_at(&self, at: usize) -> Parts {
        let cells = || self.rows.iter().filter_map(|row| row.get(at));
        Parts {
            published: cells().any(|cell| !cell.published.is_empty()),
            ratio: cells().any(|cell| cell.ratio.is_some()),
        }
    }

    fn ratio_heading(&self) -> String {
        if self.baseline.is_empty() { "Ratio".into() } else { format!("Ratio to {}", self.baseline) }
    }

    /// A column for each part of each column.
    fn wide(&self, reasons: &mut Vec<String>) -> (Vec<Column>, Vec<Vec<Cell>>) {
        let parts: Vec<Parts> = (0..self.columns.len()).map(|at| self.parts_at(at)).collect();
        let mut columns = Vec::new();
        for (column, parts) in self.columns.iter().zip(&parts) {
            let of = |what: &str| match (parts.published, column.title.is_empty()) {
                (false, _) => column.title.clone(),
                (true, true) => what.to_owned(),
                (true, false) => format!("{}: {}", column.title, what.to_lowercase()),
            };
            columns.extend(parts.published.then(|| Column::figures(&of("Paper"))));
            columns.push(Column { title: of("Today"), ..column.clone() });
            columns.extend(parts.ratio.then(|| Column::figures(&self.ratio_heading())));
        }
        let row = |row: &Vec<Cell>, reasons: &mut Vec<String>| {
            let cells = row.iter().zip(&parts).enumerate();
            cells.flat_map(|(at, (cell, parts))| cell.values(*parts, at > 0, reasons)).collect()
        };
        (columns, self.rows.iter().map(|cells| row(cells, reasons)).collect())
    }

    /// A row for each value: the row's name, the column's and the parts.
    fn list(&self, parts: Parts, reasons: &mut Vec<String>) -> (Vec<Column>, Vec<Vec<Cell>>) {
        let corner = self.columns.first().map_or("", |column| column.title.as_str());
        let mut columns = vec![Column::text(corner), Column::text("")];
        columns.extend(parts.published.then(|| Column::figures("Paper")));
        columns.push(Column::figures("Today"));
        columns.extend(parts.ratio.then(|| Column::figures(&self.ratio_heading())));
        let mut rows = Vec::new();
        for row in &self.rows {
            let Some((name, cells)) = row.split_first() else { continue };
            let shown =
                cells.iter().zip(self.columns.iter().skip(1)).filter(|(cell, _)| **cell != Cell::default());
            for (place, (cell, column)) in shown.enumerate() {
                let name = if place == 0 { name.text.as_str() } else { "" };
                let values = cell.values(parts, true, reasons);
                rows.push([name, &column.title].map(Cell::text).into_iter().chain(values).collect());
            }
        }
        (columns, rows)
    }
}

impl Cell {
    /// The published value, ours with its interval, and the ratio. A number in brackets leads to why there is none of
    /// ours; without a reason a value is a dash, and a name nothing.
    fn values(&self, parts: Parts, is_value: bool, reasons: &mut Vec<String>) -> Vec<Cell> {
        let ours = if !self.text.is_empty() {
            with(&self.text, &self.range)
        } else if !self.missing.is_empty() {
            format!("{NONE} [{}]", number(&self.missing, reasons))
        } else if is_value && (parts.published || parts.ratio) {
            NONE.to_owned()
        } else {
            String::new()
        };
        let ratio = self.ratio.as_ref().map_or_else(String::new, |ratio| with(&ratio.text, &ratio.range));
        let mut values: Vec<Cell> =
            parts.published.then(|| Cell::text(&self.published)).into_iter().collect();
        values.push(Cell::text(ours).toned(self.tone));
        values.extend(parts.ratio.then(|| Cell::text(ratio)));
        values
    }
}

/// The number of a reason, from 1; a new one is added.
pub(crate) fn number(why: &str, reasons: &mut Vec<String>) -> usize {
    let known = reasons.iter().position(|known| known == why);
    known.unwrap_or_else(|| {
        reasons.push(why.to_owned());
        reasons.len() - 1
    }) + 1
}

fn with(text: &str, range: &str) -> String {
    if range.is_empty() { text.to_owned() } else { format!("{text} {range}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Ratio, Tone};

    fn value(text: &str, published: &str) -> Cell {
        Cell { published: published.into(), ..Cell::text(text) }
    }

    fn table(values: &[(&str, Cell)]) -> Table {
        Table::of(["gawk"])
            .text("program", |name| *name)
            .each(values, |(name, _)| Column::figures(name), |_, (_, cell)| cell.clone())
            .parts("")
    }

    fn titles(table: &Table) -> Vec<&str> {
        table.columns.iter().map(|column| column.title.as_str()).collect()
    }

    #[test]
    fn many_columns_become_a_row_a_value_and_reasons_are_notes() {
        let missing = Cell { missing: "not installed".into(), ..Cell::default() };
        let values =
            [("a", value("1.5", "1.4")), ("b", Cell::default()), ("c", missing.clone()), ("d", missing)];
        let flat = table(&values).flat();
        assert_eq!(titles(&flat), ["program", "", "Paper", "Today"]);
        assert_eq!(flat.rows, [["gawk", "a", "1.4", "1.5"], ["", "c", "", "– [1]"], ["", "d", "", "– [1]"]]);
        assert_eq!(flat.notes, ["[1] not installed"]);
    }

    #[test]
    fn few_columns_have_published_values_and_ratios_next_to_ours() {
        let ratio = Ratio { text: "1.2".into(), range: "(1.1–1.3)".into(), tone: Tone::More };
        let with_ratio = Cell { ratio: Some(ratio), ..Cell::text("2") };
        let mut table = table(&[("time", value("1.5", "1.4")), ("space", with_ratio)]);
        table.baseline = "bump".into();
        let flat = table.flat();
        assert_eq!(titles(&flat), ["program", "time: paper", "time: today", "space", "Ratio to bump"]);
        assert_eq!(flat.rows, [["gawk", "1.4", "1.5", "2", "1.2 (1.1–1.3)"]]);
    }

    #[test]
    fn columns_of_words_stay_what_they_are() {
        let words = [("a", "x"), ("b", ""), ("c", "y"), ("d", "z")];
        let flat = table(&words.map(|(name, word)| (name, Cell::text(word)))).flat();
        assert_eq!(flat.rows, [["gawk", "x", "", "y", "z"]]);
    }
}
