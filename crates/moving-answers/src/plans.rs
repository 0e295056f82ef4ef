//! Names of the plans: collectors of MMTk under which a replay may run.

/// That which never collects: its heap has no limit.
pub const NO_COLLECTION: &str = "nogc";

/// All of them.
pub const NAMES: [&str; 9] = [
    NO_COLLECTION,
    "semispace",
    "gencopy",
    "genimmix",
    "immix",
    "immix,moving=off",
    "stickyimmix",
    "markcompact",
    "marksweep",
];
