//! The profile itself, which is only read: a tree of calls, and the values of those that are stacks.

use crate::frame::Frame;
use crate::life::Lives;
use crate::measure::Measure;

/// The process that a profile is of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Subject {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Path of the executable.
    pub exe: String,
    /// Process number; 0 when unknown.
    pub pid: i32,
    /// Unix seconds at the beginning of the trace; 0 when unknown.
    pub started_unix_s: u64,
    /// What was measured, ns from the beginning of the trace: all of it, or between two times.
    pub from_ns: u64,
    /// See `from_ns`.
    pub to_ns: u64,
    /// When most bytes were alive, ns from the beginning of the trace.
    pub peak_ns: u64,
    /// Mean distance of the sample points of a sampled profile, bytes; none where every byte is counted.
    pub sampled_bytes: Option<u64>,
}

impl Subject {
    /// Name of the program without its folder; the executable's when there is no command.
    pub fn program(&self) -> &str {
        let path = self.command.first().map_or(self.exe.as_str(), String::as_str);
        path.rsplit('/').next().unwrap_or(path)
    }
}

/// A function called from another: a node of the tree of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    /// The caller: an index of [`Profile::calls`] that is smaller than this call's; none for the first function of a
    /// thread.
    pub caller: Option<u32>,
    /// The function: an index of [`Profile::frames`].
    pub frame: u32,
}

/// A call stack and its own values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stack<'a> {
    /// Its innermost call: an index of [`Profile::calls`]; none for what has no stack.
    pub call: Option<u32>,
    /// One value for each of [`Profile::measures`].
    pub values: &'a [u64],
}

/// Call stacks with values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// The process.
    pub subject: Subject,
    /// When objects lived, by stack; only where it was requested.
    pub lives: Option<Lives>,
    pub(crate) measures: Vec<Measure>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) calls: Vec<Call>,
    pub(crate) stacks: Vec<Option<u32>>,
    /// By stack, a value a measure.
    pub(crate) values: Vec<u64>,
}

impl Profile {
    /// What the values mean, in their order.
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// All functions at their positions, each once.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// All calls, callers first.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// All stacks, each call at most once, in the order in which they were added.
    pub fn stacks(&self) -> impl ExactSizeIterator<Item = Stack<'_>> + Clone {
        let each = self.measures.len();
        self.stacks
            .iter()
            .enumerate()
            .map(move |(at, &call)| Stack { call, values: &self.values[at * each..(at + 1) * each] })
    }

    /// The index of a measure among the values of a stack; none where it was not measured.
    pub fn column(&self, measure: Measure) -> Option<usize> {
        self.measures.iter().position(|&known| known == measure)
    }

    /// The sum of a measure over all stacks; 0 where it was not measured. Saturates.
    pub fn total(&self, measure: Measure) -> u64 {
        self.column(measure).map_or(0, |column| {
            self.stacks().fold(0_u64, |sum, stack| sum.saturating_add(stack.values[column]))
        })
    }

    /// Indices of the calls of a stack, innermost first.
    pub fn path(&self, call: Option<u32>) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(call, |&call| self.calls[call as usize].caller)
    }

    /// The frames of a stack, innermost first.
    pub fn frames_of(&self, call: Option<u32>) -> impl Iterator<Item = &Frame> + '_ {
        self.path(call).map(|call| &self.frames[self.calls[call as usize].frame as usize])
    }
}
