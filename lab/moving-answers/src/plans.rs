//! Names of the collectors under which a replay may run: MMTk's plans, and our own.

/// That which never collects: its heap has no limit.
pub const NO_COLLECTION: &str = "nogc";

/// Our own.
pub const OWN: [&str; 3] = ["mostlycopying", "counting", "treadmill"];

/// MMTk's.
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
