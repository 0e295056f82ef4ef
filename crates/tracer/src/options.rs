//! What the tracer is asked to tell, as its command line says it.

use std::path::Path;

/// The folder of Valgrind's logs, in that of the rings: there is one of each process, and rings are looked for often.
pub(crate) const LOGS: &str = "logs";

/// What is to be told beside counters and routines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Every data reference.
    pub references: bool,
    /// Frames of a call site; 0 for none.
    pub sites: u32,
    /// Stores of heap pointers.
    pub pointers: bool,
    /// Whether randomness is pinned, so that runs repeat.
    pub pin: bool,
}

impl Default for Options {
    /// Counters and routines only, pinned.
    fn default() -> Options {
        Options { references: false, sites: 0, pointers: false, pin: true }
    }
}

impl Options {
    /// The tool's arguments before the program's own.
    pub(crate) fn arguments(&self, folder: &Path, consumer: u32) -> Vec<String> {
        let yes_no = |name: &str, value: bool| format!("--{name}={}", if value { "yes" } else { "no" });
        let folder = folder.display();
        let mut all: Vec<String> = vec![
            "--tool=heaptoll".into(),
            // What the user set for other tools is none of this one's.
            "--command-line-only=yes".into(),
            "-q".into(),
            "--vgdb=no".into(),
            "--trace-children=yes".into(),
            // Quiet leaves out which instruction it was.
            "--sigill-diagnostics=yes".into(),
            // Its own most, 500 at a time, ends programs that run natively.
            "--max-threads=4000".into(),
            format!("--log-file={folder}/{LOGS}/log.%p"),
            format!("--ring-dir={folder}"),
            format!("--consumer={consumer}"),
            yes_no("references", self.references),
            format!("--sites={}", self.sites),
            yes_no("pointers", self.pointers),
            yes_no("pin", self.pin),
        ];
        if self.sites > 0 {
            // Without, inlined code of a library has the name of the function that it was inlined into. Whose code it
            // is shows in the folders of its source.
            all.extend(["--read-inline-info=yes", "--fullpath-after="].map(String::from));
        }
        all.push("--".into());
        all
    }
}
