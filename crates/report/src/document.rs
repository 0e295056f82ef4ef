//! A result as a document: sections of sentences, tables and charts. What analyses traces makes one of these, and it is
//! printed, put on an HTML page or both, the same way for all of them.
//!
//! Figures come formatted in tables and plain in charts. All text may come from a user's file and is made harmless
//! where it is shown, not here.

mod grid;
mod table;

pub(crate) use grid::number;
pub use grid::{Cell, Effect, Grid, Intervals, Link, Ratio, Region, Tone};
pub use table::{Column, Table};

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

/// What a section holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Shown everywhere.
    Table(Table),
    /// Shown on the page; the terminal and Markdown have the tables.
    Chart(Chart),
    /// A table whose cells have parts; shown everywhere.
    Grid(Grid),
    /// How many of a whole are of each kind.
    Tally(Vec<Share>),
    /// Commands that repeat what is shown; not on the terminal.
    Commands(Vec<String>),
    /// A part of a section.
    Part(Part),
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
pub(crate) fn tally(shares: &[Share]) -> String {
    let some = shares.iter().filter(|share| share.count > 0);
    some.map(|share| format!("{} {}", share.count, share.name)).collect::<Vec<_>>().join(", ")
}

/// Curves, steps, stacked areas or bars.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// Form.
    pub form: Form,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// In the order of the legend; of stacked areas, from the bottom.
    pub series: Vec<Series>,
}

/// Form of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Straight lines between points.
    Lines,
    /// A value holds until the next point.
    Steps,
    /// Lines on top of each other, filled.
    Stacked,
    /// A bar a point.
    Bars,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Axis {
    /// Label with unit.
    pub title: String,
    /// Logarithmic; points at 0 or below are left out.
    pub log: bool,
    /// Names of the places 0, 1, 2... of bars; empty for numbers.
    pub names: Vec<String>,
}

/// One curve.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
    /// Of lines and bars: lower and upper end of each point's interval, as many as points; empty for none.
    pub band: Vec<(f64, f64)>,
    /// Published values that ours are compared with, drawn next to them.
    pub published: Vec<(f64, f64)>,
}
