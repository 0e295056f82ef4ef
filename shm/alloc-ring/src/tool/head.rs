//! What the next group of a ring is, without its contents: by which events of several rings are put in order.

/// What the next group is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// Not written yet.
    Nothing,
    /// An event without a number, or a note.
    Plain,
    /// An event with this number.
    Numbered(u64),
}
