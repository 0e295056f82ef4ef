//! The description of a trace: where it was recorded, and how it ended. Unknown members are ignored by older
//! readers through serde; missing ones get a default.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The recorded process and its settings; the first chunk of the file, JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Program and arguments of this process image.
    pub command: Vec<String>,
    /// Path of the executable.
    pub exe: String,
    /// Folder in which it was started.
    pub directory: String,
    /// Process number, and its parent's; 0 where it is not known: a process of another namespace that had ended.
    pub pid: i32,
    /// See `pid`.
    pub parent_pid: i32,
    /// Unix seconds at the beginning.
    pub started_unix_s: u64,
    /// Manager recorded over: a name (`glibc`) or path, and its version.
    pub manager: String,
    /// See `manager`.
    pub manager_version: String,
    /// Whether its manager is a collector: then frees may have done nothing.
    pub collector: bool,
    /// Version of heaptoll that recorded it.
    pub recorder: String,
    /// Whether call stacks were recorded.
    pub sites: bool,
    /// Whether every event has a latency.
    pub latency: bool,
    /// Whether every event has a time of its own; otherwise stamps are those of batches.
    pub event_time: bool,
    /// CPU, kernel, C library: name and value.
    pub machine: Vec<(String, String)>,
    /// Of a trace with pointers: what was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphSettings>,
    /// Of a trace that was made of another tool's recording: which, and what that has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
}

/// Another tool's recording that a trace was made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Imported {
    /// The tool, its version and that of its format.
    pub from: String,
    /// What the format lacks and what stands in its place, a sentence's part each.
    pub lacks: Vec<String>,
}

/// What a trace with pointers holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphSettings {
    /// Bytes of a page of memory.
    pub page_bytes: u64,
    /// Bytes allocated from one root point to the next, at first; 0 where there are none.
    pub roots_every_bytes: u64,
    /// Whether every load and store of the program is there.
    pub references: bool,
}

/// How the recording ended; in the last chunk. A file without it was cut off.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ending {
    /// As text: `exited with status 0`, `killed by signal 9`, `replaced itself by exec`, `recorder stopped`...
    pub how: String,
    /// Exit status, where known.
    pub status: Option<i32>,
    /// ns from the beginning.
    pub time_ns: u64,
    /// The process's own peak resident set when it was last sampled (`VmHWM`), KiB, where known: it may have had more
    /// later. What `wait` states includes its children's.
    pub peak_rss_kib: Option<u64>,
    /// User and system CPU of the process and of children that it waited for, s, where known. The layer's share is
    /// included.
    pub cpu_s: Option<f64>,
    /// Threads: their kernel numbers by index.
    pub threads: Vec<i32>,
    /// Largest number of slots in use at once: a reader's table needs no more.
    pub slots: u32,
    /// Events in the whole file, counted by the writer.
    pub events: u64,
    /// Largest sum of requested bytes of live objects, bytes.
    pub max_live_bytes: u64,
    /// Peak size of the heap, bytes, where known: its mappings, or brk segment and large blocks.
    pub peak_heap_bytes: Option<u64>,
}

impl Ending {
    /// Whether the program, or its recording, ended before the program would have: by a signal, or cut short.
    pub fn is_early(&self) -> bool {
        self.how.starts_with("killed") || self.how.starts_with("not traced")
    }
}

/// A sample of the process, taken from outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// ns from the beginning.
    pub time_ns: u64,
    /// Resident set, KiB.
    pub rss_kib: u64,
    /// Anonymous part of it, KiB.
    pub anon_kib: u64,
    /// Address space of mappings in which the heap has had blocks, KiB; 0 where not sampled.
    pub heap_kib: u64,
}

/// When `exit` began: what follows are the program's handlers and destructors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Exit {
    /// Number of the first event after it.
    pub event: u64,
    /// ns from the beginning; 0 where the trace has no times.
    pub time_ns: u64,
}

/// A hole: events that could not be kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gap {
    /// Why, as text: `disk full`, `chunk 17 is damaged`...
    pub why: String,
    /// Events lost, where known.
    pub events: Option<u64>,
}

/// A call stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Site {
    /// Frames, innermost first: indices into [`Sites::frames`].
    pub frames: Vec<u32>,
}

/// One address in the program's code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Frame {
    /// Path of the object it lies in; empty when unknown.
    pub object: String,
    /// Offset in the object as its ELF addresses count, or the absolute address when the object is unknown. A return
    /// address.
    pub offset: u64,
    /// Function, demangled; empty when there is no symbol.
    pub function: String,
    /// `file:line`; empty when there is no debug information.
    pub line: String,
}

/// Call stacks that were defined while a program runs, as continuation of those before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SitesSoFar {
    /// Number of the first of these sites.
    pub first_site: usize,
    /// Number of the first of these frames.
    pub first_frame: usize,
    /// The sites, whose frames are numbers in the whole table, and the frames.
    pub sites: Sites,
}

/// All call stacks of a trace. Site 0 is "not recorded" and has no frames.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sites {
    /// By site number.
    pub sites: Vec<Site>,
    /// By frame number.
    pub frames: Vec<Frame>,
}
