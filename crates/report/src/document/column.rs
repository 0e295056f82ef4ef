//! The columns of a table.

/// How a column is set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    /// Heading.
    pub title: String,
    /// Figures go to the right, text to the left.
    pub figures: bool,
    /// Lines that a cell may take on a terminal, what is beyond is cut; 0: no limit.
    pub lines: usize,
    /// Left out where a terminal is too narrow for a wide grid.
    pub optional: bool,
    /// Commands, paths or output: monospaced, with their line ends.
    pub code: bool,
}

impl Column {
    /// A column of text.
    pub fn text(title: &str) -> Column {
        Column { title: title.into(), ..Column::default() }
    }

    /// A column of call sites: long names. A terminal shows two lines of each.
    pub fn sites(title: &str) -> Column {
        Column { title: title.into(), lines: 2, ..Column::default() }
    }

    /// A column of figures.
    pub fn figures(title: &str) -> Column {
        Column { title: title.into(), figures: true, ..Column::default() }
    }

    /// A column of figures that a narrow terminal does without.
    pub fn optional(title: &str) -> Column {
        Column { optional: true, ..Column::figures(title) }
    }

    /// Columns of figures after one of text.
    pub fn headings<const N: usize>(titles: [&str; N]) -> [Column; N] {
        let mut columns = titles.map(Column::figures);
        columns.iter_mut().take(1).for_each(|name| name.figures = false);
        columns
    }

    /// A column of commands, paths or output.
    pub fn code(title: &str) -> Column {
        Column { code: true, ..Column::text(title) }
    }
}
