//! What the tracer shall record, as its command line.

use std::path::Path;
use std::sync::Arc;

/// The folder of Valgrind's logs, in that of the rings: each process has one, and the rings' folder is scanned often.
pub(crate) const LOGS: &str = "logs";
/// The file of names of routines, there too: each process image reads it when it begins.
pub(crate) const SYMBOLS: &str = "symbols";

/// What is recorded besides counters and routines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Every data reference.
    pub references: bool,
    /// Frames of a call site; 0 for none.
    pub sites: u32,
    /// Instructions of each function.
    pub functions: bool,
    /// Stores of heap pointers.
    pub pointers: bool,
    /// What the words hold to which stores write, and root points.
    pub graph: bool,
    /// Bytes allocated between root points; 0: chosen as the program runs.
    pub roots_every_bytes: u32,
    /// Requests that the program marks: the events layer has to be preloaded, for without it the marks call nothing.
    pub requests: bool,
    /// Whether randomness is pinned, so that runs repeat.
    pub pin: bool,
    /// Pages by which the brk segment begins higher and mappings end lower than usual: other addresses, for finding
    /// what depends on them. At most 4095.
    pub shift_pages: u32,
    /// End of the path of the only object whose routines are recorded; any object's where it is empty. A program may have
    /// routines of C++ of its own, over malloc.
    pub only_in: Arc<str>,
    /// Names of routines besides those of C and C++: lines of `crate::allocator_symbols::Table::lines`. Empty for
    /// none.
    pub symbols: Arc<str>,
}

impl Default for Options {
    /// Counters and routines only, pinned.
    fn default() -> Options {
        Options {
            references: false,
            sites: 0,
            functions: false,
            pointers: false,
            graph: false,
            roots_every_bytes: 0,
            requests: false,
            pin: true,
            shift_pages: 0,
            only_in: "".into(),
            symbols: "".into(),
        }
    }
}

impl Options {
    /// The tool's arguments before the program's own.
    pub(crate) fn arguments(&self, folder: &Path, consumer: u32) -> Vec<String> {
        let yes_no = |name: &str, value: bool| format!("--{name}={}", if value { "yes" } else { "no" });
        let folder = folder.display();
        let mut all: Vec<String> = vec![
            "--tool=heaptoll".into(),
            // Options that the user set for other tools do not apply to this one.
            "--command-line-only=yes".into(),
            "-q".into(),
            "--vgdb=no".into(),
            "--trace-children=yes".into(),
            // `-q` leaves out which instruction it was.
            "--sigill-diagnostics=yes".into(),
            // Valgrind's default of 500 threads at once ends programs that run natively.
            "--max-threads=4000".into(),
            format!("--log-file={folder}/{LOGS}/log.%p"),
            format!("--ring-dir={folder}"),
            format!("--consumer={consumer}"),
            yes_no("references", self.references),
            yes_no("functions", self.functions),
            format!("--sites={}", self.sites),
            yes_no("pointers", self.pointers),
            yes_no("pin", self.pin),
        ];
        if self.graph {
            all.extend([yes_no("graph", true), format!("--roots-every={}", self.roots_every_bytes)]);
        }
        if self.shift_pages > 0 {
            all.push(format!("--shift={}", self.shift_pages));
        }
        if !self.only_in.is_empty() {
            all.push(format!("--only-in={}", self.only_in));
        }
        if !self.symbols.is_empty() {
            all.push(format!("--symbols={folder}/{LOGS}/{SYMBOLS}"));
        }
        if self.sites > 0 {
            // Without it, inlined code of a library has the name of the function into which it was inlined. The folders
            // of its source show whose code it is.
            all.extend(["--read-inline-info=yes", "--fullpath-after="].map(String::from));
        }
        all.push("--".into());
        all
    }
}
