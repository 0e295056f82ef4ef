//! A trace made ready: read once, and kept in a temporary folder for all replays.

use std::path::PathBuf;

use crate::replay_graph::mmtk::{Answered, Mmtk, Prepared};
use heaptoll_replay::error::ReplayError;
use heaptoll_report::format::printable_lines;
use heaptoll_scratch::Scratch;
use heaptoll_trace::Memory;

use super::error::GraphReplayError;
use super::memory;
use super::request::GraphReplayRequest;
use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;
use heaptoll_command::trace_source;
use heaptoll_trace_reports::replay::trace_file;

/// What replays read.
pub struct Ready {
    /// What the trace holds.
    pub prepared: Prepared,
    /// The file; it goes with its folder.
    pub file: PathBuf,
    _folder: Scratch,
}

/// Reads the trace.
///
/// # Errors
/// It is no trace with pointers, or has too many objects; the program that replays is missing; Ctrl-C.
pub fn ready(request: &GraphReplayRequest, mmtk: &Mmtk, messages: &dyn Messages) -> Result<Ready, Failure> {
    trace_file::several_times(&request.trace)?;
    // Before a process is started: what is no such trace has a reason of its own.
    drop(trace_source::open_graph(&request.trace, Memory::default())?);
    let progress = messages.progress(None);
    progress.set_text("reading the trace");
    let folder = Scratch::make().map_err(|source| {
        let what = "make a temporary folder";
        Failure::Trouble(Box::new(ReplayError::System { what, source }))
    })?;
    let file = folder.path().join("ready");
    let answered = mmtk.prepare(&request.trace, &file, request.memory_limit_bytes);
    match answered.map_err(|error| Failure::Refused(Box::new(error)))? {
        Answered::Done(prepared) => {
            memory::can_read(&request.trace, std::fs::metadata(&file).map_or(0, |file| file.len()))?;
            Ok(Ready { prepared, file, _folder: folder })
        }
        Answered::Interrupted => Err(Failure::Interrupted),
        Answered::Failed(why) => Err(Failure::Refused(Box::new(GraphReplayError::NotReady {
            trace: request.trace.display().to_string(),
            why: printable_lines(&why),
        }))),
    }
}
