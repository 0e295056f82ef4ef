//! Names of the plans: collectors under which a replay may run, of MMTk and the last three of our own.

/// That which never collects: its heap has no limit.
pub const NO_COLLECTION: &str = "nogc";

/// Those of our own.
pub const OWN: [&str; 3] = ["mostlycopying", "counting", "treadmill"];

/// All of them.
pub const NAMES: [&str; 12] = [
    NO_COLLECTION,
    "semispace",
    "gencopy",
    "genimmix",
    "immix",
    "immix,moving=off",
    "stickyimmix",
    "markcompact",
    "marksweep",
    "mostlycopying",
    "counting",
    "treadmill",
];
