//! The chunks of a file on their way to the output, of traces of every kind.
//!
//! A disk that is full (or an output that fails in another way) must not disturb the program: chunks are counted, each
//! new one is tried again, and what is lost is marked as a gap.

use std::io;

use serde::Serialize;

use crate::format::{self, ChunkHead, chunk};
use crate::header::{Ending, Gap};
use crate::output::{self, Output, RESERVE};
use crate::{TraceError, text};

/// Chunks of one file.
pub(crate) struct Chunks<W> {
    out: W,
    /// Chunks written.
    sequence: u64,
    /// Events of the chunks written.
    kept: u64,
    /// Events lost since the last chunk that could be written.
    lost: u64,
    /// Payloads of JSON chunks that are not yet written.
    pending: Vec<(u8, Vec<u8>)>,
    trouble: Option<TraceError>,
    /// The first error for which events were lost.
    loss: Option<TraceError>,
}

impl<W: Output> Chunks<W> {
    /// Begins a file with its first bytes and its header.
    ///
    /// # Errors
    /// The output does not take them, or the header is no JSON.
    pub(crate) fn new(mut out: W, file_head: &[u8], header: &impl Serialize) -> Result<Self, TraceError> {
        let payload = text::json("", header).map_err(|source| table(&out, "header", source))?;
        let mut first = file_head.to_vec();
        for (sequence, payload) in payload.iter().enumerate() {
            first.extend_from_slice(&ChunkHead::of(chunk::HEADER, sequence as u64, payload).bytes());
            first.extend_from_slice(payload);
        }
        out.add(&first).map_err(|source| TraceError::system("write", &out.name(), source))?;
        let sequence = payload.len() as u64;
        Ok(Chunks { out, sequence, kept: 0, lost: 0, pending: Vec::new(), trouble: None, loss: None })
    }

    /// Adds a chunk of events. After a refusal, the gap goes before the chunk, and only together with it: a chunk that
    /// does not fit leaves space for gaps, one a chunk.
    pub(crate) fn events(&mut self, payload: &[u8], events: u64) {
        let gap = if self.lost == 0 { Vec::new() } else { self.gap_of_loss() };
        let mut chunks: Vec<(u8, &[u8])> = gap.iter().map(|payload| (chunk::GAP, &payload[..])).collect();
        chunks.push((chunk::EVENTS, payload));
        if self.write(&chunks) {
            self.kept += events;
            self.lost = 0;
            self.trouble = None;
        } else {
            self.lost += events;
            if self.loss.is_none() {
                self.loss = self.trouble.as_ref().map(TraceError::copy);
            }
        }
    }

    fn gap_of_loss(&self) -> Vec<Vec<u8>> {
        let why = self.trouble.as_ref().map_or_else(String::new, reason);
        // A string and a number are always JSON.
        text::json("", &Gap { why, events: Some(self.lost) }).unwrap_or_default()
    }

    /// Adds a JSON chunk, which [`Chunks::write_pending`] writes.
    pub(crate) fn put(&mut self, kind: u8, name: &str, value: &impl Serialize) {
        match text::json(name, value) {
            Ok(payloads) => self.pending.extend(payloads.into_iter().map(|payload| (kind, payload))),
            Err(source) => self.trouble = Some(table(&self.out, name, source)),
        }
    }

    /// Writes JSON chunks; those that the output refuses stay pending.
    pub(crate) fn write_pending(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.into_iter();
        while let Some((kind, payload)) = rest.next() {
            if !self.write(&[(kind, &payload)]) {
                self.pending.push((kind, payload));
                self.pending.extend(rest);
                return;
            }
        }
        if self.lost == 0 && matches!(self.trouble, Some(TraceError::System { .. })) {
            self.trouble = None;
        }
    }

    fn write(&mut self, chunks: &[(u8, &[u8])]) -> bool {
        let length = chunks.iter().map(|(_, payload)| format::CHUNK_HEAD + payload.len()).sum();
        let mut bytes = Vec::with_capacity(length);
        for ((kind, payload), sequence) in chunks.iter().zip(self.sequence..) {
            bytes.extend_from_slice(&ChunkHead::of(*kind, sequence, payload).bytes());
            bytes.extend_from_slice(payload);
        }
        match self.out.add(&bytes) {
            Ok(()) => {
                self.sequence += chunks.len() as u64;
                true
            }
            Err(source) => {
                self.trouble = Some(TraceError::system("write", &self.out.name(), source));
                false
            }
        }
    }

    /// The last error of the output, if it has not taken chunks since.
    ///
    /// # Errors
    /// That.
    pub(crate) fn state(&self) -> Result<(), TraceError> {
        match &self.trouble {
            Some(error) => Err(error.copy()),
            None => Ok(()),
        }
    }

    /// Ends the file: a gap where something was refused, then the ending, into the space reserved for both.
    ///
    /// # Errors
    /// Even the ending could not be written.
    pub(crate) fn finish(mut self, ending: &Ending) -> Result<W, TraceError> {
        let mut ending = ending.clone();
        let bytes = self.last_chunks(&ending)?;
        let mut result = self.out.conclude(&bytes);
        if result.is_err() && bytes.len() > RESERVE {
            // Only the threads' numbers can be that long.
            ending.threads.clear();
            let bytes = self.last_chunks(&ending)?;
            result = self.out.conclude(&bytes);
        }
        match result {
            Ok(()) => Ok(self.out),
            Err(source) => Err(TraceError::system("write", &self.out.name(), source)),
        }
    }

    fn last_chunks(&self, ending: &Ending) -> Result<Vec<u8>, TraceError> {
        let mut bytes = Vec::new();
        let mut sequence = self.sequence;
        let mut put = |kind, payloads: Vec<Vec<u8>>| {
            for payload in payloads {
                bytes.extend_from_slice(&ChunkHead::of(kind, sequence, &payload).bytes());
                bytes.extend_from_slice(&payload);
                sequence += 1;
            }
        };
        // The reason is stated in the gap, which is what a reader sees.
        if let Some(error) = &self.trouble {
            let mut gap = Gap { why: reason(error), events: Some(self.lost) };
            if self.lost == 0 {
                gap.why += ": samples, sites or tables are missing";
            }
            put(chunk::GAP, text::json("", &gap).map_err(|source| table(&self.out, "gap", source))?);
        }
        put(chunk::ENDING, text::json("", ending).map_err(|source| table(&self.out, "ending", source))?);
        Ok(bytes)
    }
}

impl<W> Chunks<W> {
    /// Events of the chunks written.
    pub(crate) fn kept(&self) -> u64 {
        self.kept
    }

    /// Events lost since the last chunk that could be written.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// The first error of the output for which events were lost, even if it has taken chunks since.
    pub(crate) fn loss(&self) -> Option<&TraceError> {
        self.loss.as_ref()
    }

    /// The last error of the output; none once it takes chunks again.
    pub(crate) fn trouble(&self) -> Option<&TraceError> {
        self.trouble.as_ref()
    }
}

fn table(out: &impl Output, table: &str, source: serde_json::Error) -> TraceError {
    TraceError::Table { name: out.name(), table: table.to_string(), source }
}

/// The reason of a gap, as text.
fn reason(error: &TraceError) -> String {
    match error {
        TraceError::System { source, .. } if output::is_full(source) => "disk full".to_string(),
        TraceError::System { source, .. } => no_number(source),
        other => other.to_string(),
    }
}

fn no_number(error: &io::Error) -> String {
    format!("the file could not be written: {error}")
}
