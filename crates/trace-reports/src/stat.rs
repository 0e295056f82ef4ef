//! `heaptoll trace stat`: counts, sizes and rates of a trace.

use std::path::Path;

use heaptoll_profiles::Profile;
use heaptoll_trace::{Memory, Reader};
use heaptoll_trace_analysis::feed::feed;
use heaptoll_trace_analysis::stacks::CallSites;
pub use heaptoll_trace_analysis::stat::StatFigures as Figures;
use heaptoll_trace_analysis::stat::{EACH_OBJECT, Stat};
use heaptoll_trace_analysis::subject::Subject;

pub use document::document;
use heaptoll_command::call_stacks::CallStacks;
use heaptoll_command::failure::Failure;
use heaptoll_command::trace_source::{self, Opened, Source};
pub use request::StatRequest;

mod document;
pub mod graph;
mod request;
mod sections;

/// Sums up a trace; `-` is standard input. Damage is a warning among the figures. The profile is there where it was
/// requested and the trace has call stacks.
///
/// # Errors
/// It is no trace, or cannot be read, or needs more memory.
pub fn measure(trace: &Path, request: StatRequest) -> Result<(Figures, Option<Profile>), Failure> {
    of_reader(trace_source::open(trace, memory(request))?, request)
}

/// The figures of a trace of either kind.
pub enum OfEitherKind {
    /// Of one without pointers, with its profile where that was requested.
    Plain(Box<Figures>, Option<Box<Profile>>),
    /// Of one with pointers.
    Graph(Box<graph::Figures>),
}

/// Sums up a trace of either kind; `-` is standard input.
///
/// # Errors
/// See [`measure`].
pub fn of_either_kind(trace: &Path, request: StatRequest) -> Result<OfEitherKind, Failure> {
    Ok(match trace_source::of_either_kind(trace)? {
        Opened::Graph(reader) => OfEitherKind::Graph(Box::new(graph::measure(*reader, request)?)),
        Opened::Plain(mut reader) => {
            reader.limit(memory(request));
            let (figures, profile) = of_reader(*reader, request)?;
            OfEitherKind::Plain(Box::new(figures), profile.map(Box::new))
        }
    })
}

fn memory(request: StatRequest) -> Memory {
    Memory { limit_bytes: request.memory_limit_bytes, each_object_bytes: EACH_OBJECT as u64 }
}

fn of_reader(
    mut reader: Reader<Source>,
    request: StatRequest,
) -> Result<(Figures, Option<Profile>), Failure> {
    let mut stat = Stat::new(reader.header().latency, reader.header().sites);
    let mut stacks = CallStacks::new(request.stacks, &mut reader, memory(request));
    let tables = feed(reader, |batch| {
        if batch.after_exit {
            stat.exit_begins();
        }
        stat.events(&batch.events);
        stacks.batch(batch);
    })
    .map_err(trace_source::refused)?;
    let subject = Subject::new(&tables, stat.time_ns());
    let sites = tables.sites.unwrap_or_default();
    let mut call_sites = CallSites::new(&sites, request.frames);
    let profile = stacks.finish(&tables.header, &sites, stat.time_ns());
    Ok((stat.figures(subject, &tables.samples, &mut call_sites), profile))
}
