//! What the proof run of a manager on a program found besides the proof.

use std::path::PathBuf;

use heaptoll_preflight::Watched;

/// The findings.
#[derive(Debug, Clone, Default)]
pub struct ProofRun {
    /// Wall time, s.
    pub seconds: f64,
    /// Whether the program came to its own end.
    pub finished: bool,
    /// The allocator that the program uses without heaptoll, where glibc took its place.
    pub linked: Option<PathBuf>,
    /// Programs whose memory is mostly not malloc's, each in a sentence.
    pub elsewhere: Vec<String>,
    /// What the run did beyond its own memory; `None` when it was not watched.
    pub watched: Option<Watched>,
    /// It is another stack's run, which serves for this one too.
    pub copied: bool,
    /// The most that its processes held at once in memory that is no file's, bytes.
    pub anonymous_bytes: u64,
}
