//! `heaptoll lab conservatism`: what conservative finding of roots and pointers keeps of a program's heap.

use std::fs::File;
use std::io;
use std::path::Path;

pub use heaptoll_graphs::conservatism::ConservatismFigures as Figures;
use heaptoll_graphs::conservatism::{Conservatism, Lives};
use heaptoll_trace::Memory;
use heaptoll_trace::graph::{Batch, Reader};
use heaptoll_trace_analysis::graph::EACH_OBJECT;
use heaptoll_units::{number, objects};
use thiserror::Error;

pub use document::document;
use heaptoll_command::failure::Failure;
use heaptoll_command::trace_source;

mod document;
mod sections;

/// There is no space for the first pass's table.
#[derive(Debug, Error)]
#[error(
    "cannot keep the last touches of {objects} objects in a temporary file: {source}; set TMPDIR to a folder with more space"
)]
struct Scratch {
    objects: usize,
    source: io::Error,
}

/// Reads a trace with pointers twice. Damage is a warning among the figures.
///
/// # Errors
/// It is no file, no trace with pointers, or cannot be read; it needs more memory; there is no space for temporary files.
pub fn measure(trace: &Path, memory_limit_bytes: u64) -> Result<Figures, Failure> {
    if trace_source::is_stream(trace) {
        return Err(Failure::Usage(format!(
            "{} cannot be read twice: give a file, because conservatism reads the trace twice",
            trace.display()
        )));
    }
    if !trace_source::is_graph(trace) && heaptoll_trace::Reader::open(trace).is_ok() {
        return Err(Failure::Usage(format!(
            "{} is a trace without pointers: record one with `heaptoll record --graph -o FILE -- PROGRAM`",
            trace.display()
        )));
    }
    let memory = Memory { limit_bytes: memory_limit_bytes, each_object_bytes: EACH_OBJECT };
    let lives = first_pass(trace_source::open_graph(trace, memory)?)?;
    second_pass(trace_source::open_graph(trace, memory)?, &lives)
}

fn first_pass(mut reader: Reader<File>) -> Result<Lives, Failure> {
    let (mut lives, mut batch) = (Lives::default(), Batch::default());
    while reader.read(&mut batch).map_err(trace_source::refused)? {
        lives
            .events(&batch.events)
            .map_err(|source| Failure::Trouble(Box::new(Scratch { objects: lives.count(), source })))?;
    }
    Ok(lives)
}

fn second_pass(mut reader: Reader<File>, lives: &Lives) -> Result<Figures, Failure> {
    let (mut pass, mut batch) = (Conservatism::new(lives), Batch::default());
    while reader.read(&mut batch).map_err(trace_source::refused)? {
        pass.events(&batch.events, batch.next_event, batch.after_gap);
    }
    let tables = reader.into_tables();
    let figures = pass.figures();
    let mut warnings = tables.incomplete();
    let is_damaged = !(tables.warnings.is_empty() && tables.gaps.is_empty());
    if figures.left_out > 0 {
        warnings.push(format!(
            "{} root points have no figures: they are incomplete, or come after missing events",
            number(figures.left_out)
        ));
    }
    if figures.ends.unknown > 0 {
        warnings.push(format!(
            "the end of {} is not in the trace: they count as used until then",
            objects(figures.ends.unknown)
        ));
    }
    Ok(Figures {
        command: tables.header.command,
        manager: tables.header.manager,
        is_damaged,
        ended: tables.ending.map(|ending| ending.how),
        warnings,
        ..figures
    })
}
