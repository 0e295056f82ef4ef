//! The cell of a table: a text, or a value with its interval, its ratio to a baseline, the published value, a drawing.

use heaptoll_statistics::Interval;

use crate::format::{self, NONE};

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

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::text(text)
    }
}

/// A dash for what is not known.
impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Cell {
        cell.map_or_else(|| Cell::text(NONE), Into::into)
    }
}

/// Of a cell of text alone.
impl PartialEq<&str> for Cell {
    fn eq(&self, text: &&str) -> bool {
        *self == Cell::text(*text)
    }
}
