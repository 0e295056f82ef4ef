//! A table of a document: columns, and rows of texts.

/// Rows of formatted figures.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Above it; may be empty.
    pub caption: String,
    /// Headings, with their units; the first column is text on the left, the others by `Column`.
    pub columns: Vec<Column>,
    /// As many cells a row as columns.
    pub rows: Vec<Vec<String>>,
    /// Below it, sentences.
    pub notes: Vec<String>,
}

/// How a column is set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    /// Heading.
    pub title: String,
    /// Figures go to the right, text to the left.
    pub figures: bool,
    /// Lines that a cell may take on a terminal, what is beyond is cut; 0: no limit.
    pub lines: usize,
}

impl Column {
    /// A column of text.
    pub fn text(title: &str) -> Column {
        Column { title: title.into(), ..Column::default() }
    }

    /// A column of call sites: long names, of which a terminal shows two lines.
    pub fn sites(title: &str) -> Column {
        Column { title: title.into(), lines: 2, ..Column::default() }
    }

    /// A column of figures.
    pub fn figures(title: &str) -> Column {
        Column { title: title.into(), figures: true, ..Column::default() }
    }
}
