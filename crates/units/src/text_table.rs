//! Tables of text: columns side by side, two spaces apart, narrowed to a width by lines that are broken between words.

mod wrap;

use unicode_width::UnicodeWidthStr;

pub use wrap::wrapped;

/// Spaces between two columns.
const GAP: usize = 2;

/// What stands in a place of a table.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// Its text; line ends are kept.
    pub text: String,
    /// What makes a terminal show it in a colour, or bold; empty for neither.
    pub code: &'static str,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell { text: text.into(), code: "" }
    }
}

impl Cell {
    /// A line of it as the terminal gets it.
    pub fn shown(&self, line: &str) -> String {
        match self.code.is_empty() || line.is_empty() {
            true => line.to_owned(),
            false => format!("{}{line}\u{1b}[0m", self.code),
        }
    }
}

/// How a column is laid out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Column {
    /// Figures stand under each other on the right.
    pub right: bool,
    /// No line of it is broken, however narrow the table.
    pub whole: bool,
    /// Characters that it takes at most.
    pub most: Option<usize>,
}

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    head: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
    columns: Vec<Column>,
    is_markdown: bool,
}

impl Table {
    /// An empty table with these headings, or without any.
    pub fn new<T: Into<Cell>>(headings: impl IntoIterator<Item = T>) -> Table {
        let head: Vec<Cell> = headings.into_iter().map(Into::into).collect();
        Table { columns: vec![Column::default(); head.len()], head, ..Table::default() }
    }

    /// It prints itself in Markdown if so.
    pub fn in_markdown(self, is_markdown: bool) -> Table {
        Table { is_markdown, ..self }
    }

    /// Adds a row.
    pub fn row<T: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let row: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        self.columns.resize(self.columns.len().max(row.len()), Column::default());
        self.rows.push(row);
    }

    /// The columns so far, to be laid out.
    pub fn columns(&mut self) -> &mut [Column] {
        &mut self.columns
    }

    /// Columns in these places are figures.
    pub fn figures(&mut self, places: impl IntoIterator<Item = usize>) {
        for place in places {
            self.columns[place].right = true;
        }
    }

    /// Characters that the longest line of each column takes.
    pub fn widths(&self) -> Vec<usize> {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let widest = |at: usize| {
            let lines = all().filter_map(|row| row.get(at)).flat_map(|cell| cell.text.split('\n'));
            lines.map(UnicodeWidthStr::width).max().unwrap_or(0)
        };
        (0..self.columns.len()).map(widest).collect()
    }

    /// The lines of the table, at most `width` wide where words and whole columns allow it, with a line of `rule` under
    /// the headings.
    pub fn lines(&self, width: Option<usize>, rule: char) -> Vec<String> {
        // The rule reaches one space beyond the last column.
        let widths = self.fitted(width.map(|width| width.saturating_sub(1)));
        let mut lines = Vec::new();
        if !self.head.is_empty() {
            self.add(&self.head, &widths, &mut lines);
            let long = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1) + 1;
            lines.push(rule.to_string().repeat(long));
        }
        self.rows.iter().for_each(|row| self.add(row, &widths, &mut lines));
        lines
    }

    /// The table in Markdown, its columns under each other.
    pub fn markdown(&self) -> String {
        // Some readers take three dashes at least for a line under the headings.
        let widths: Vec<usize> = self.widths().into_iter().map(|width| width.max(3)).collect();
        let line = |row: &[Cell]| {
            let cells = widths.iter().enumerate().map(|(at, width)| {
                let text = row.get(at).map_or("", |cell| &cell.text);
                let space = " ".repeat(width.saturating_sub(text.width()));
                if self.columns[at].right { format!("{space}{text}") } else { format!("{text}{space}") }
            });
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let rules: Vec<Cell> = widths.iter().map(|width| "-".repeat(*width).into()).collect();
        line(&self.head) + &line(&rules) + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }

    /// The width of each column: narrow ones have what they need, and the widest share what is left.
    fn fitted(&self, width: Option<usize>) -> Vec<usize> {
        let mut widths = self.widths();
        for (width, column) in widths.iter_mut().zip(&self.columns) {
            *width = (*width).min(column.most.unwrap_or(usize::MAX));
        }
        let Some(whole) = width else { return widths };
        let fixed = |at: &usize| self.columns[*at].whole;
        let gaps = GAP * widths.len().saturating_sub(1);
        let taken: usize = (0..widths.len()).filter(fixed).map(|at| widths[at]).sum();
        let mut left = whole.saturating_sub(gaps + taken);
        let mut flexible: Vec<usize> = (0..widths.len()).filter(|at| !fixed(at)).collect();
        flexible.sort_by_key(|&at| widths[at]);
        for (done, &at) in flexible.iter().enumerate() {
            let share = left / (flexible.len() - done);
            widths[at] = widths[at].min(share.max(1));
            left = left.saturating_sub(widths[at]);
        }
        widths
    }

    fn add(&self, row: &[Cell], widths: &[usize], lines: &mut Vec<String>) {
        let cells: Vec<Vec<String>> =
            row.iter().zip(widths).map(|(cell, width)| wrapped(&cell.text, *width)).collect();
        for number in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = String::new();
            for (at, cell) in cells.iter().enumerate() {
                let text = cell.get(number).map_or("", String::as_str);
                let space = " ".repeat(widths[at].saturating_sub(text.width()));
                let shown = row[at].shown(text);
                line += &if self.columns[at].right { space + &shown } else { shown + &space };
                line += &" ".repeat(GAP);
            }
            lines.push(line.trim_end().to_owned());
        }
    }
}

/// For programs that print a table once.
impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.is_markdown {
            true => f.write_str(self.markdown().trim_end()),
            false => f.write_str(&self.lines(None, '─').join("\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["name", "bytes", "what it is"]);
        table.row(["a", "1,200", "the first of all"]);
        table.row([Cell { text: "bé\nc".into(), code: "\u{1b}[1m" }, "7".into(), "".into()]);
        table.figures([1]);
        table
    }

    #[test]
    fn columns_stand_side_by_side_and_figures_on_the_right() {
        let lines = [
            "name  bytes  what it is",
            "──────────────────────────────",
            "a     1,200  the first of all",
            "\u{1b}[1mbé\u{1b}[0m        7",
            "\u{1b}[1mc\u{1b}[0m",
        ];
        assert_eq!(table().lines(None, '─'), lines);
        assert_eq!(table().to_string(), lines.join("\n"));
        assert_eq!(table().lines(Some(31), '─'), lines, "it fits");
    }

    #[test]
    fn the_widest_column_is_narrowed_and_a_whole_one_is_not() {
        let narrow = table().lines(Some(24), '-');
        assert_eq!(narrow[2..4], ["a     1,200  the first", "             of all"]);
        assert!(narrow.iter().all(|line| line.len() <= 24 + 8), "{narrow:?}");
        let mut whole = table();
        whole.columns()[2].whole = true;
        assert!(whole.lines(Some(24), '-').iter().any(|line| line.ends_with("the first of all")));
        let mut limited = table();
        limited.columns()[2].most = Some(5);
        let lines = ["a     1,200  the", "             first", "             of", "             all"];
        assert_eq!(limited.lines(None, '-')[3..7], lines);
    }

    #[test]
    fn no_width_is_too_small_and_wide_characters_count_twice() {
        for width in 0..40 {
            assert!(!table().lines(Some(width), '-').is_empty(), "{width}");
        }
        let mut wide = Table::new(["日本", "x"]);
        wide.row(["a", "b"]);
        assert_eq!(wide.lines(None, '-')[2], "a     b");
        assert!(Table::new([""; 0]).lines(Some(80), '-').is_empty());
    }

    #[test]
    fn markdown_has_a_line_under_the_headings_and_keeps_short_rows() {
        let mut table = Table::new(["x", "m"]);
        table.row(["long"]);
        let text = "| x    | m   |\n| ---- | --- |\n| long |     |";
        assert_eq!(table.in_markdown(true).to_string(), text);
    }
}
