//! A table whose cells have parts: a value with its interval, its ratio to a baseline, the published value, a drawing.
//! The page shows the parts of a cell together; where there is one line a cell, each part has a column.

use super::table::{Column, Table};
use heaptoll_statistics::Interval;

use crate::format::{self, NONE};

/// Grids with more columns of values than this become tables with a row a value: no terminal is as wide.
const ACROSS: usize = 3;

/// Rows of cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grid {
    /// Above it; may be empty.
    pub caption: String,
    /// Headings; the first is that of the rows' names.
    pub columns: Vec<Column>,
    /// As many cells a row as columns.
    pub rows: Vec<Vec<Cell>>,
    /// What ratios are to; empty where there are none.
    pub baseline: String,
    /// The drawings of a column share one scale; otherwise each has its own.
    pub one_scale: bool,
    /// Its columns stay columns however many they are; where a terminal has no place for them, intervals go under their
    /// ratios, then optional columns are left out.
    pub wide: bool,
    /// Below it, sentences.
    pub notes: Vec<String>,
}

/// A cell: a text, or a value with what belongs to it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    /// The text, or our value; empty for none.
    pub text: String,
    /// After it: its interval in brackets, or a place; empty for none.
    pub range: String,
    /// What may be claimed of it.
    pub tone: Tone,
    /// Our value to that of the baseline.
    pub ratio: Option<Ratio>,
    /// Published; empty for none.
    pub published: String,
    /// Why there is no value of ours; empty where there is one, or nothing to explain.
    pub missing: String,
    /// Drawn on the page.
    pub intervals: Option<Intervals>,
    /// Parts of the document that the cell leads to; the text itself is the link of one without a text.
    pub links: Vec<Link>,
    /// What went wrong with it: below it on the page; an exclamation mark on the terminal, where warnings explain it.
    pub marks: Vec<String>,
    /// A word after it, on the page.
    pub tag: String,
}

impl Cell {
    /// A cell of text alone.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// The same in another tone.
    pub fn toned(self, tone: Tone) -> Cell {
        Cell { tone, ..self }
    }

    /// A ratio with its interval, which decides the tone; `words` stand in where there is none.
    pub fn ratio(interval: Option<&Interval>, words: &str) -> Cell {
        let Some(interval) = interval else { return Cell::text(words).toned(Tone::Dim) };
        let text = format::interval(interval);
        let (text, range) = text.split_once(' ').unwrap_or((&text, ""));
        let tone = match interval.differs {
            false => Tone::Dim,
            true if interval.ratio < 1.0 => Tone::Less,
            true => Tone::More,
        };
        Cell { range: range.into(), tone, ..Cell::text(text) }
    }
}

/// A reference to a part of the same document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Link {
    /// Its anchor.
    pub id: String,
    /// What is shown.
    pub text: String,
}

/// A ratio to a baseline.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ratio {
    /// `1.21`.
    pub text: String,
    /// `(1.15–1.27)`.
    pub range: String,
    /// What may be claimed.
    pub tone: Tone,
}

/// What may be claimed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// Less for certain; or it agrees.
    Less,
    /// More for certain; or it contradicts.
    More,
    /// Neither.
    #[default]
    Same,
    /// Nothing is claimed, or nothing is there.
    Dim,
    /// What others are compared with.
    Strong,
}

/// Comparisons, drawn on one scale.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Intervals {
    /// Where they support a claim.
    pub region: Region,
    /// Each comparison.
    pub effects: Vec<Effect>,
}

/// Where effects support a claim.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Region {
    /// Above this.
    pub above: Option<f64>,
    /// Below this.
    pub below: Option<f64>,
    /// With both ends: outside of them rather than between (it depends).
    pub outside: bool,
    /// Effects are no ratios (slopes, shares): drawn on an even scale.
    pub even: bool,
}

/// One comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effect {
    /// What over what.
    pub words: String,
    /// `1.62`.
    pub text: String,
    /// `(1.31–1.99)`; empty for counts.
    pub range: String,
    /// What the interval is over: `6 programs`, `10 pairs`, `counted`.
    pub basis: String,
    /// Drawn.
    pub value: f64,
    /// Drawn; none where nothing can be claimed.
    pub ends: Option<(f64, f64)>,
}

/// What the cells of a column of values have besides ours.
#[derive(Clone, Copy)]
struct Parts {
    published: bool,
    ratio: bool,
}

impl Grid {
    /// The same with one text a cell: published values and ratios in columns of their own, or, of many columns, a row
    /// a value. Notes explain numbers in brackets.
    pub(crate) fn flat(&self) -> Table {
        let parts = self.parts();
        let is_list = !self.wide
            && self.columns.len() > ACROSS + 1
            && (parts.published || parts.ratio || self.is_ranged());
        let mut reasons: Vec<String> = Vec::new();
        let (columns, rows) = if is_list { self.list(parts, &mut reasons) } else { self.wide(&mut reasons) };
        let reasons = reasons.iter().enumerate().map(|(at, why)| format!("[{}] {why}", at + 1));
        let notes = reasons.chain(self.notes.iter().cloned()).collect();
        Table { caption: self.caption.clone(), columns, rows, notes }
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
    fn wide(&self, reasons: &mut Vec<String>) -> (Vec<Column>, Vec<Vec<String>>) {
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
    fn list(&self, parts: Parts, reasons: &mut Vec<String>) -> (Vec<Column>, Vec<Vec<String>>) {
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
                let name = if place == 0 { name.text.clone() } else { String::new() };
                let values = cell.values(parts, true, reasons);
                rows.push([name, column.title.clone()].into_iter().chain(values).collect());
            }
        }
        (columns, rows)
    }
}

impl Cell {
    /// The published value, ours with its interval, and the ratio. A number in brackets leads to why there is none of
    /// ours; without a reason a value is a dash, and a name nothing.
    fn values(&self, parts: Parts, is_value: bool, reasons: &mut Vec<String>) -> Vec<String> {
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
        let mut values: Vec<String> = parts.published.then(|| self.published.clone()).into_iter().collect();
        values.push(ours);
        values.extend(parts.ratio.then_some(ratio));
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

    fn value(text: &str, published: &str) -> Cell {
        Cell { published: published.into(), ..Cell::text(text) }
    }

    fn grid(names: &[&str], cells: Vec<Cell>) -> Grid {
        let columns =
            std::iter::once(Column::text("program")).chain(names.iter().map(|name| Column::figures(name)));
        let row = std::iter::once(Cell::text("gawk")).chain(cells);
        Grid { columns: columns.collect(), rows: vec![row.collect()], ..Grid::default() }
    }

    fn titles(table: &Table) -> Vec<&str> {
        table.columns.iter().map(|column| column.title.as_str()).collect()
    }

    #[test]
    fn many_columns_become_a_row_a_value_and_reasons_are_notes() {
        let missing = Cell { missing: "not installed".into(), ..Cell::default() };
        let cells = vec![value("1.5", "1.4"), Cell::default(), missing.clone(), missing];
        let flat = grid(&["a", "b", "c", "d"], cells).flat();
        assert_eq!(titles(&flat), ["program", "", "Paper", "Today"]);
        assert_eq!(flat.rows, [["gawk", "a", "1.4", "1.5"], ["", "c", "", "– [1]"], ["", "d", "", "– [1]"]]);
        assert_eq!(flat.notes, ["[1] not installed"]);
    }

    #[test]
    fn few_columns_have_published_values_and_ratios_next_to_ours() {
        let ratio = Ratio { text: "1.2".into(), range: "(1.1–1.3)".into(), tone: Tone::More };
        let cells = vec![value("1.5", "1.4"), Cell { ratio: Some(ratio), ..Cell::text("2") }];
        let mut grid = grid(&["time", "space"], cells);
        grid.baseline = "bump".into();
        let flat = grid.flat();
        assert_eq!(titles(&flat), ["program", "time: paper", "time: today", "space", "Ratio to bump"]);
        assert_eq!(flat.rows, [["gawk", "1.4", "1.5", "2", "1.2 (1.1–1.3)"]]);
    }

    #[test]
    fn columns_of_words_stay_what_they_are() {
        let flat = grid(&["a", "b", "c", "d"], ["x", "", "y", "z"].map(Cell::text).into()).flat();
        assert_eq!(flat.rows, [["gawk", "x", "", "y", "z"]]);
    }
}
