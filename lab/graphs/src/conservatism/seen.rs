//! What the second pass knows of a live object.

/// What is kept of a live object.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    /// Number of the event before which it is touched last; 0: never.
    pub used_until: u64,
    /// Clock of its free; `u64::MAX`: it is not freed.
    pub freed_bytes: u64,
    /// Clock of the first of the root points since which it was not reached.
    pub unreached_bytes: Option<u64>,
    /// It lived at a root point.
    pub was_at_point: bool,
    /// It was not reached at some root point, and was not touched since.
    pub was_unreached: bool,
    /// It was touched although it was not reached.
    pub is_hidden: bool,
    /// At the last root point: see [`super::marks`].
    pub marks: u8,
}
