//! Which experiments there are to make up, and the programs and stacks in them.

/// Which experiment to make up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One program, five stacks, nothing wrong.
    Single,
    /// Twelve programs, seven stacks, hardware counters.
    Suite,
    /// A server with load figures.
    Server,
    /// Interrupted, with crashes, wrong outputs, refusals, warnings, a stack without a good row and hostile names.
    Troubled,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Shape; 4] = [Shape::Single, Shape::Suite, Shape::Server, Shape::Troubled];
}

/// A program name that a page or a terminal must not take at its word.
pub const HOSTILE: &str = "<script>document.title='owned'</script>\u{1b}[31m\u{202e}\u{fffd}\"'&`${1}";

/// Name, CPU seconds and peak MiB under glibc.
pub const PROGRAMS: [(&str, &str, f64, f64); 12] = [
    ("cfrac", "factors an integer by continued fractions over reference-counted numbers", 3.70, 2.9),
    ("espresso", "minimises a two-level logic function", 4.07, 2.3),
    ("gawk", "counts words and joins fields of a generated log", 1.54, 13.7),
    ("perl", "builds and sorts hashes of arrays", 1.62, 136.8),
    ("make", "reads 4000 generated rules and prints what it would do", 1.80, 203.0),
    ("python3", "parses JSON and builds dictionaries with PYTHONMALLOC=malloc", 1.31, 66.0),
    ("lua", "grows tables of closures and strings", 1.73, 55.0),
    ("sqlite3", "inserts, indexes and joins in memory", 2.53, 44.0),
    ("ghostscript", "renders a generated document of 40 pages", 0.89, 31.0),
    ("xalan", "transforms generated XML in four threads", 2.11, 88.0),
    ("reverse", "Boehm's list reversal, 1000 elements of 40 bytes", 1.02, 2.1),
    ("redis", "a server under redis-benchmark", 1.40, 9.8),
];

/// Name, factor of CPU, factor of memory, MiB on top.
pub const STACKS: [(&str, f64, f64, f64); 7] = [
    ("glibc", 1.0, 1.0, 0.0),
    ("mimalloc3", 0.90, 1.02, 3.1),
    ("jemalloc", 0.935, 0.96, 1.6),
    ("snmalloc", 0.92, 1.0, 0.6),
    ("tcmalloc", 0.921, 1.01, 4.6),
    ("rpmalloc", 0.965, 1.22, 1.1),
    ("./libmine.so", 1.24, 1.4, 0.2),
];

/// The name of program `p`.
pub fn name_of(shape: Shape, p: usize) -> &'static str {
    match (shape, p) {
        (Shape::Troubled, 4) => HOSTILE,
        _ => PROGRAMS[p].0,
    }
}
