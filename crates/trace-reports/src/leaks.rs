//! `heaptoll leaks`: what a program never frees, and what of it is lost, idle, or growing over the whole run.

use std::path::Path;

use heaptoll_callsites::WholeFrame;
use heaptoll_trace::graph::Batch;
use heaptoll_trace::{Memory, Tables};
use heaptoll_trace_analysis::feed::feed;
use heaptoll_trace_analysis::graph::EACH_OBJECT as EACH_OF_GRAPH;
pub use heaptoll_trace_analysis::leaks::LeakFigures as Figures;
use heaptoll_trace_analysis::leaks::{By, EACH_OBJECT, Found, GraphLeaks, NeverFreedOf};
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_trace_analysis::subject::Subject;

pub use document::document;
pub use fault::{Fault, Verdict};
use heaptoll_command::failure::Failure;
use heaptoll_command::trace_source;
pub use suppressions::Suppressions;

mod document;
mod fault;
pub mod images;
mod sections;
mod sentence;
mod suppressions;

/// What is requested of a trace.
#[derive(Debug, Clone, Default)]
pub struct LeaksRequest {
    /// Frames of the program's own code that distinguish call stacks.
    pub frames: usize,
    /// Memory that the objects of the trace may take, bytes.
    pub memory_limit_bytes: u64,
    /// Call stacks that are left out.
    pub suppressions: Suppressions,
}

/// Reads a trace, with pointers or without; `-` is standard input, a plain one. Damage is a warning among the figures.
///
/// # Errors
/// It is no trace, or cannot be read, or needs more memory.
pub fn measure(trace: &Path, request: &LeaksRequest) -> Result<Figures, Failure> {
    if trace_source::is_graph(trace) { of_graph(trace, request) } else { of_plain(trace, request) }
}

/// A trace without pointers.
fn of_plain(trace: &Path, request: &LeaksRequest) -> Result<Figures, Failure> {
    let memory = Memory { limit_bytes: request.memory_limit_bytes, each_object_bytes: EACH_OBJECT as u64 };
    let reader = trace_source::open(trace, memory)?;
    let mut leaks = NeverFreedOf::default();
    let mut time_ns = 0;
    let tables = feed(reader, |batch| {
        match batch.after_exit {
            true => leaks.events_after_exit(&batch.events),
            false => leaks.events(&batch.events),
        }
        time_ns = batch.events.last().map_or(time_ns, |event| event.time_ns);
    })
    .map_err(trace_source::refused)?;
    let ended_ns = tables.exit.map(|exit| exit.time_ns).or(tables.ending.as_ref().map(|end| end.time_ns));
    Ok(by_site(leaks.finish(ended_ns.unwrap_or(time_ns)), tables, time_ns, request))
}

fn of_graph(trace: &Path, request: &LeaksRequest) -> Result<Figures, Failure> {
    let memory = Memory { limit_bytes: request.memory_limit_bytes, each_object_bytes: EACH_OF_GRAPH };
    let mut reader = trace_source::open_graph(trace, memory)?;
    let (mut leaks, mut batch) = (GraphLeaks::default(), Batch::default());
    while reader.read(&mut batch).map_err(trace_source::refused)? {
        match batch.after_exit {
            true => leaks.events_after_exit(&batch.events),
            false => leaks.events(&batch.events, batch.time_ns, batch.after_gap),
        }
    }
    let tables = reader.into_tables();
    let ended_ns = tables.exit.map_or(0, |exit| exit.time_ns);
    Ok(by_site(leaks.finish(ended_ns), tables, 0, request))
}

/// The events end at `last_ns`.
fn by_site(found: Found, tables: Tables, last_ns: u64, request: &LeaksRequest) -> Figures {
    let subject = Subject::new(&tables, last_ns);
    let header = tables.header;
    let sites = tables.sites.unwrap_or_default();
    let mut call_sites = CallSites::new(&sites, request.frames);
    let suppress = |stack: &[WholeFrame]| request.suppressions.matches(stack);
    let by = By { call_sites: header.sites.then_some(&mut call_sites), suppress: &suppress };
    Figures { subject, pointers: header.graph.is_some(), ..found.figures(by) }
}
