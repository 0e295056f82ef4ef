//! What a preflight found out: where every process of the run gets its memory.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::effects::Watched;

/// Evidence that the stack serves the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// The objects to preload in measured runs, in order. Usually those requested; longer when the program links an
    /// allocator itself and glibc (or libstdc++ for `operator new`) has to be preloaded to get in front of it.
    pub preload: Vec<PathBuf>,
    /// The allocator that made most blocks without heaptoll, where glibc is proved and the program links another.
    #[serde(default)]
    pub linked: Option<PathBuf>,
    /// The proof in one sentence, for a table or a log.
    pub sentence: String,
    /// What the reader must know besides: processes that the stack does not reach, functions it lacks.
    pub warnings: Vec<String>,
    /// Programs that hold much memory that malloc did not give, each in a sentence: no manager changes it.
    #[serde(default)]
    pub elsewhere: Vec<String>,
    /// Every program image that the run started, in order of `exec`.
    pub processes: Vec<ProcessProof>,
    /// Calls that gave or resized a block, `operator new` included, over all processes.
    pub malloc_calls: u64,
    /// Calls that gave a block back, `operator delete` included, over all processes.
    pub free_calls: u64,
    /// Whether every `exec` was seen by ptrace. Without it a process that never reported is not known about.
    pub ptrace: bool,
    /// The most memory that is no file's that all processes of the run held at once, bytes, as sampled.
    #[serde(default)]
    pub together_bytes: u64,
    /// What the run did beyond its own memory, in order; `None` when it was not watched, because that was not requested
    /// or ptrace and seccomp are not permitted.
    #[serde(default)]
    pub watched: Option<Watched>,
    /// Whether the program came to its own end within the limit; otherwise the proof rests on its beginning.
    pub finished: bool,
    /// How the proof run ended, in words: `exit status 0`, `killed by signal 11`, `stopped after 0.5 s`.
    pub outcome: String,
    /// Wall time of the proof run, seconds.
    pub seconds: f64,
}

/// One program image (one `exec`) of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessProof {
    /// The file executed.
    pub exe: PathBuf,
    /// Process id; forked children that never `exec` are counted with the image they were forked from.
    pub pid: i32,
    /// The layers that calls of this image pass, the program's first, as the layers reported.
    #[serde(default)]
    pub layers: Vec<PathBuf>,
    /// The object whose `malloc` serves the calls of this image; `None` when it never reported.
    pub malloc_bound_to: Option<PathBuf>,
    /// The object whose `operator new` it would use; `None` when nothing in the process has one.
    pub new_bound_to: Option<PathBuf>,
    /// Calls that gave or resized a block.
    pub malloc_calls: u64,
    /// Calls that gave a block back.
    pub free_calls: u64,
    /// Bytes that its calls requested, all together.
    #[serde(default)]
    pub requested_bytes: u64,
    /// The most that one of its processes held in memory that is no file's, bytes; 0 where that is not known.
    #[serde(default)]
    pub anonymous_bytes: u64,
    /// CPU time of the image under the tracer, seconds; `None` without ptrace.
    pub cpu_s: Option<f64>,
    /// Why the stack does not reach it, in words; `None` when it does.
    pub unreached: Option<String>,
}

/// What a shared object offers as a manager, read from its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ManagerFacts {
    /// The file, symbolic links resolved.
    pub path: PathBuf,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// Version as far as the file name shows it (`libmimalloc.so.2.0` gives `2.0`).
    pub version: Option<String>,
    /// Members of the malloc family that it exports.
    pub exports: Vec<String>,
    /// Members that it lacks: calls to them fall through to the next object, usually glibc.
    pub missing: Vec<String>,
    /// Number of `operator new` and `operator delete` variants exported, of 20.
    pub operators: u32,
    /// Whether it exports `heaptoll_control_v1` of `include/heaptoll.h`.
    pub control: bool,
    /// `DT_NEEDED`: objects it loads in turn.
    pub needed: Vec<String>,
}

/// What a command is, read from its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramFacts {
    /// The file that the command names, after the search in `PATH`.
    pub path: PathBuf,
    /// The interpreters from `#!` lines, the last of them the binary that runs; empty for a binary.
    pub interpreters: Vec<PathBuf>,
    /// The ELF file that is executed in the end.
    pub binary: PathBuf,
    /// Its dynamic loader.
    pub loader: PathBuf,
    /// Members of the malloc family that the binary exports itself: they win over any preloaded object.
    pub own_exports: Vec<String>,
    /// Names in its symbol table that betray an allocator inside (`je_malloc`, a local `malloc`...).
    pub hidden_allocator: Vec<String>,
    /// Functions of glibc's about its own heap that the binary refers to (`malloc_trim`).
    pub own_heap_calls: Vec<String>,
    /// `DT_NEEDED` of the binary.
    pub needed: Vec<String>,
}
