//! How a run differs from the recorded one.

/// The first allocation that is not as it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Its allocation index.
    pub allocation: u64,
    /// What differs.
    pub what: What,
}

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The requested bytes.
    Size {
        /// In the recorded run.
        recorded: u64,
        /// Now.
        now: u64,
    },
    /// The code that it is called from: the recorded site, by its index.
    Site(u32),
    /// It is a `realloc` of an object in one run only, or of one of another size.
    Resize,
    /// The recorded run had allocated for the last time.
    End,
    /// The file cannot be read, or contains what no recording contains.
    File,
}
