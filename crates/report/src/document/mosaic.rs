//! Many small parts of a whole as tiles, each with a colour and a level: the pages of a heap by the call site that holds
//! them.

/// A mosaic. Its tiles are drawn in rows as wide as the page; each has bands from the bottom: solid, pale and empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mosaic {
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// What solid, pale and empty mean.
    pub bands: [String; 3],
    /// What the colours mean: hues of their own, the others grey.
    pub keys: Vec<Key>,
    /// Name of the steps of tone, and each of them from the first to the last; empty for none.
    pub steps: (String, Vec<String>),
    /// In their order.
    pub tiles: Vec<Tile>,
}

/// What a hue means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// Its exact figure.
    pub figure: String,
}

/// Part of the whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tile {
    /// Index of its key; grey for none.
    pub key: Option<usize>,
    /// Index of its step of tone, if it has one.
    pub step: Option<usize>,
    /// Share that is solid, 0 to 1.
    pub solid: f64,
    /// Share that is pale, 0 to 1.
    pub pale: f64,
    /// Its exact figures, a line each.
    pub text: Vec<String>,
}
