//! When objects lived: what viewers need that show the memory retained between two times of their user's choice.

/// Bytes of one stack that were allocated within one interval and freed within another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Life {
    /// The index of the stack among [`Profile::stacks`](crate::Profile::stacks).
    pub stack: u32,
    /// The interval in which they were allocated.
    pub born: u32,
    /// The interval in which they were freed; none while they are alive at the end.
    pub died: Option<u32>,
    /// Objects. Growth of an object has bytes alone.
    pub objects: u64,
    /// Requested bytes.
    pub bytes: u64,
}

/// All lives, grouped by intervals of equal length. Their bytes sum up to all bytes allocated; those that did not die,
/// to what is live at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lives {
    /// Length of an interval, ns. The first begins at 0 ns of the trace.
    pub interval_ns: u64,
    /// In the order of stacks and times.
    pub lives: Vec<Life>,
}
