//! A result as a document: sections of sentences, tables and charts. What analyses traces makes one of these, and it is
//! printed, put on an HTML page or both, the same way for all of them.
//!
//! Figures come formatted in tables and plain in charts. All text may come from a user's file and is made harmless
//! where it is shown, not here.

mod cell;
mod chart;
mod column;
mod flame;
mod flat;
mod mosaic;
mod table;

pub use cell::{Cell, Effect, Intervals, Link, Ratio, Region, Tone};
pub use chart::{Axis, Chart, Form, Role, Series};
pub use column::Column;
pub use flame::{Flame, FlameBase};
pub(crate) use flat::number;
pub use mosaic::{Key, Mosaic, Tile};
pub use table::{Columns, Layout, Table};

/// A whole result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// Headline.
    pub title: String,
    /// Under it, in one line: what was examined.
    pub subtitle: String,
    /// What makes the figures not the whole, or doubtful; shown first and in colour.
    pub warnings: Vec<String>,
    /// The findings, in order.
    pub sections: Vec<Section>,
    /// Name and value: machine, file, settings; shown last.
    pub facts: Vec<(String, String)>,
    /// The command that makes it again; empty for none.
    pub command: String,
    /// Names that have one colour and one symbol in every chart, table and legend of the page; the first is a
    /// baseline's, grey.
    pub palette: Vec<String>,
}

/// One finding.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// What it shows, in sentences.
    pub text: Vec<String>,
    /// Tables and charts, in order.
    pub items: Vec<Item>,
}

impl Section {
    /// One with a heading alone.
    pub fn new(title: impl Into<String>) -> Section {
        Section { title: title.into(), ..Section::default() }
    }

    /// The same with one more sentence.
    pub fn state(mut self, sentence: impl Into<String>) -> Section {
        self.text.push(sentence.into());
        self
    }

    /// The same with one more table or chart.
    pub fn with(self, item: impl Into<Item>) -> Section {
        self.with_all([item])
    }

    /// The same with more tables and charts.
    pub fn with_all<T: Into<Item>>(mut self, items: impl IntoIterator<Item = T>) -> Section {
        self.items.extend(items.into_iter().map(Into::into));
        self
    }
}

/// The anchor of the section at this place on the page.
pub(crate) fn section_id(at: usize) -> String {
    format!("section-{at}")
}

/// What a section holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Shown everywhere.
    Table(Table),
    /// Shown on the page; the terminal and Markdown have the tables.
    Chart(Chart),
    /// Shown on the page.
    Flame(Flame),
    /// Shown on the page.
    Mosaic(Mosaic),
    /// How many of a whole are of each kind.
    Tally(Vec<Share>),
    /// Commands that repeat what is shown; not on the terminal.
    Commands(Vec<String>),
    /// A part of a section.
    Part(Part),
    /// What makes figures above doubtful; in colour.
    Warnings(Vec<String>),
}

impl From<Table> for Item {
    fn from(table: Table) -> Item {
        Item::Table(table)
    }
}

impl<R> From<Columns<R>> for Item {
    fn from(columns: Columns<R>) -> Item {
        Item::Table(columns.table())
    }
}

impl From<Part> for Item {
    fn from(part: Part) -> Item {
        Item::Part(part)
    }
}

impl From<Chart> for Item {
    fn from(chart: Chart) -> Item {
        Item::Chart(chart)
    }
}

/// A part of a section, with a heading of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Part {
    /// Its anchor on the page: letters, digits and hyphens, unique in the document; empty for none.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What it shows, in sentences.
    pub text: Vec<String>,
    /// Its contents, in order.
    pub items: Vec<Item>,
    /// Other parts that bear on it.
    pub see: Vec<Link>,
    /// Unfolded on demand on the page and in Markdown, not on the terminal.
    pub folded: bool,
    /// The option of the command that unfolds it, which the terminal names; `--html` where only the page does; empty for
    /// none.
    pub option: String,
}

impl Part {
    /// One with a heading and contents.
    pub fn new<T: Into<Item>>(title: impl Into<String>, items: impl IntoIterator<Item = T>) -> Part {
        Part { title: title.into(), items: items.into_iter().map(Into::into).collect(), ..Part::default() }
    }

    /// The same with this text.
    pub fn text(self, text: Vec<String>) -> Part {
        Part { text, ..self }
    }

    /// The same, unfolded on demand where it `is_folded`, which this option changes; empty for none.
    pub fn folded(self, is_folded: bool, option: &str) -> Part {
        Part { folded: is_folded, option: option.into(), ..self }
    }
}

/// One kind of what is counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Share {
    /// What these are.
    pub name: String,
    /// How many.
    pub count: usize,
    /// Colour.
    pub tone: Tone,
}

/// `20 confirmed, 6 undecided`; kinds without a member are left out.
pub fn tally(shares: &[Share]) -> String {
    let some = shares.iter().filter(|share| share.count > 0);
    some.map(|share| format!("{} {}", share.count, share.name)).collect::<Vec<_>>().join(", ")
}
