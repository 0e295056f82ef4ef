//! `heaptoll trace lifetimes`: how long the objects of a trace live, and whether generations would pay.

use std::path::Path;

use heaptoll_profiles::Profile;
use heaptoll_trace::{Memory, Sites};
use heaptoll_trace_analysis::feed::feed;
pub use heaptoll_trace_analysis::lifetimes::{By, LifetimeFigures as Figures};
use heaptoll_trace_analysis::lifetimes::{EACH_OBJECT, Lifetimes};
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_trace_analysis::subject::Subject;

pub use document::document;
use heaptoll_command::call_stacks::CallStacks;
use heaptoll_command::failure::Failure;
use heaptoll_command::trace_source;

mod document;
mod verdict;

/// What is requested of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifetimesRequest {
    /// What objects are grouped by.
    pub by: By,
    /// Frames of the program's own code that distinguish call stacks.
    pub frames: usize,
    /// Memory that the objects of the trace may take, bytes.
    pub memory_limit_bytes: u64,
    /// Whether the whole call stacks are summed up, where the trace has some.
    pub stacks: bool,
}

/// Reads a trace; `-` is standard input. Damage is a warning among the figures. The profile is there where it was
/// requested and the trace has call stacks.
///
/// # Errors
/// It is no trace, or cannot be read, or needs more memory; it has no call stacks to group by.
pub fn measure(trace: &Path, request: LifetimesRequest) -> Result<(Figures, Option<Profile>), Failure> {
    let memory = Memory { limit_bytes: request.memory_limit_bytes, each_object_bytes: EACH_OBJECT as u64 };
    let mut reader = trace_source::open(trace, memory)?;
    let has_sites = reader.header().sites;
    if request.by == By::Site && !has_sites {
        return Err(Failure::Usage(format!(
            "{} has no call stacks: record the program again with --sites",
            trace.display()
        )));
    }
    let mut lifetimes = Lifetimes::new(request.by);
    if request.by == By::Site
        && let Some(sites) = sites_beforehand(trace)
    {
        lifetimes.sites_alike(CallSites::new(&sites, request.frames).first_alike());
    }
    let mut stacks = CallStacks::new(request.stacks, &mut reader, memory);
    let tables = feed(reader, |batch| {
        lifetimes.batch(batch);
        stacks.batch(batch);
    })
    .map_err(trace_source::refused)?;
    let subject = Subject::new(&tables, lifetimes.time_ns());
    let sites = tables.sites.unwrap_or_default();
    let mut call_sites = CallSites::new(&sites, request.frames);
    let profile = stacks.finish(&tables.header, &sites, lifetimes.time_ns());
    Ok((lifetimes.figures(subject, has_sites.then_some(&mut call_sites)), profile))
}

/// The call stacks of a trace whose end can be read before its events; of a pipe it cannot.
fn sites_beforehand(trace: &Path) -> Option<Sites> {
    let is_file = std::fs::metadata(trace).is_ok_and(|facts| facts.is_file());
    // What is wrong with the file is found when its events are read.
    is_file.then(|| heaptoll_trace::tables(trace).ok()?.sites).flatten()
}
