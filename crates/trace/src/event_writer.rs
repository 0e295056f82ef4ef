//! The writer: counts, fills chunks and passes them to the output. It writes traces of every kind; an encoder knows the
//! events of one, and names their objects.
//!
//! While the output refuses chunks, the writer continues to count; [`EventWriter::flush`] and [`EventWriter::trouble`]
//! report it, and [`EventWriter::loss`] once the output takes chunks again.

use serde::Serialize;

use crate::TraceError;
use crate::chunks::Chunks;
use crate::file_head;
use crate::file_kind::FileKind;
use crate::format::{EVENTS_MAX, chunk};
use crate::header::{Ending, Exit, Gap, Header, Sample, Sites, SitesSoFar};
use crate::output::Output;
use crate::sites::WrittenSites;

/// Settings of a writer.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Level of zstd; 0 keeps columns as they are. Negative levels are faster.
    pub level: i32,
    /// Events of a chunk: what is lost at most when heaptoll dies without [`EventWriter::flush`]. At most 262,144.
    pub events_per_chunk: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { level: 1, events_per_chunk: 65_536 }
    }
}

/// Samples buffered before they are cut into chunks.
const SAMPLES_PER_CHUNK: usize = 4096;

/// Sums over the events so far, bytes requested.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    pub(crate) clock_bytes: u64,
    pub(crate) live_bytes: u64,
    pub(crate) max_live_bytes: u64,
}

/// Encodes the chunks of events of one kind of trace.
pub trait Encode {
    /// What the first bytes of the file show.
    const KIND: FileKind;

    /// An empty chunk of up to `limit` events.
    fn new(limit: u32, level: i32, header: &Header) -> Self;

    /// Events in the chunk.
    fn events(&self) -> u32;

    /// Events before the chunk.
    fn before(&self) -> u64;

    /// The chunk's payload; an empty chunk is begun.
    fn cut(&mut self, totals: &Totals) -> Vec<u8>;

    /// Time of the next event, ns from the beginning.
    fn now_ns(&self) -> u64;

    /// Adds what is known of the objects to the ending.
    fn complete(&self, _ending: &mut Ending) {}
}

/// Writes one trace.
pub struct EventWriter<W, E> {
    chunks: Chunks<W>,
    pub(crate) encoder: E,
    limit: u32,
    pub(crate) totals: Totals,
    samples: Vec<Sample>,
    written_sites: WrittenSites,
}

impl<W: Output, E: Encode> EventWriter<W, E> {
    /// Begins a trace.
    ///
    /// # Errors
    /// The output does not take the first chunk, or the header is no JSON.
    pub fn new(out: W, header: &Header, settings: &Settings) -> Result<Self, TraceError> {
        let limit = settings.events_per_chunk.clamp(1, EVENTS_MAX);
        Ok(EventWriter {
            chunks: Chunks::new(out, &file_head::of(E::KIND), header)?,
            encoder: E::new(limit, settings.level, header),
            limit,
            totals: Totals::default(),
            samples: Vec::new(),
            written_sites: WrittenSites::default(),
        })
    }

    /// Adds a sample of the process.
    pub fn sample(&mut self, sample: &Sample) {
        self.samples.push(*sample);
        if self.samples.len() >= SAMPLES_PER_CHUNK {
            self.put_samples();
        }
    }

    /// Marks events that were lost before they reached the writer, at this position.
    pub fn gap(&mut self, gap: &Gap) {
        // Events after the gap are in a chunk of their own.
        self.cut();
        self.chunks.put(chunk::GAP, "", gap);
        self.chunks.write_pending();
    }

    /// `exit` begins at this position; a second time counts for nothing.
    pub fn exit_begins(&mut self) {
        // Events after it are in a chunk of their own.
        self.cut();
        let exit = Exit { event: self.encoder.before(), time_ns: self.encoder.now_ns() };
        self.chunks.put(chunk::EXIT, "", &exit);
        self.chunks.write_pending();
    }

    /// All call stacks, in place of those that were written so far.
    pub fn sites(&mut self, sites: &Sites) {
        for part in self.written_sites.all(sites) {
            self.chunks.put(chunk::SITES, "", &part);
        }
    }

    /// Writes call stacks that were defined since the last call: a trace that is cut off has them.
    pub fn sites_so_far(&mut self, more: &SitesSoFar) {
        for part in self.written_sites.more(more) {
            self.chunks.put(chunk::SITES, "", &part);
        }
        self.chunks.write_pending();
    }

    /// A table of the caller under a name of at most 255 bytes; a later one of the same name replaces it.
    pub fn extra(&mut self, name: &str, json: &impl Serialize) {
        self.chunks.put(chunk::EXTRA, name, json);
    }

    /// Writes what is buffered as whole chunks: it then survives the end of this process.
    ///
    /// # Errors
    /// The output refuses more, since this or an earlier chunk. The writer may still be used: it tries again.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        self.cut();
        self.put_samples();
        self.chunks.write_pending();
        self.chunks.state()
    }

    /// The last error of the output; none once it takes chunks again.
    pub fn trouble(&self) -> Option<&TraceError> {
        self.chunks.trouble()
    }

    /// The first error of the output for which events were lost, even if it has taken chunks since.
    pub fn loss(&self) -> Option<&TraceError> {
        self.chunks.loss()
    }

    /// Events lost so far because the output refused chunks, and not yet marked by a gap.
    pub fn lost(&self) -> u64 {
        self.chunks.lost()
    }

    /// Events in the chunks that the output took: what a reader finds of those so far.
    pub fn written(&self) -> u64 {
        self.chunks.kept()
    }

    /// Events so far, which is the number of the next.
    #[inline]
    pub fn events(&self) -> u64 {
        self.encoder.before() + u64::from(self.encoder.events())
    }

    /// Sum of the requested bytes so far.
    #[inline]
    pub fn clock_bytes(&self) -> u64 {
        self.totals.clock_bytes
    }

    /// Requested bytes of live objects.
    pub fn live_bytes(&self) -> u64 {
        self.totals.live_bytes
    }

    /// Ends the trace. Members of `ending` that the writer knows are filled in by it.
    ///
    /// # Errors
    /// Even the last chunk, for which space was reserved, could not be written. Chunks lost before are no error here:
    /// they are a gap in the trace; [`EventWriter::flush`] reports them.
    pub fn finish(mut self, ending: &Ending) -> Result<W, TraceError> {
        // Its error is stated in a gap, which is what a reader sees.
        let _ = self.flush();
        let mut ending = ending.clone();
        self.encoder.complete(&mut ending);
        ending.events = self.chunks.kept();
        ending.max_live_bytes = self.totals.max_live_bytes;
        self.chunks.finish(&ending)
    }

    #[inline(always)]
    pub(crate) fn start_chunk_if_full(&mut self) {
        if self.encoder.events() >= self.limit {
            self.next_chunk();
        }
    }

    #[cold]
    fn next_chunk(&mut self) {
        self.cut();
        self.chunks.write_pending();
    }

    /// Ends the chunk of events, if there is one.
    fn cut(&mut self) {
        let events = u64::from(self.encoder.events());
        if events > 0 {
            let payload = self.encoder.cut(&self.totals);
            self.chunks.events(&payload, events);
        }
    }

    fn put_samples(&mut self) {
        if !self.samples.is_empty() {
            let samples = std::mem::take(&mut self.samples);
            self.chunks.put(chunk::SAMPLES, "", &samples);
        }
    }
}

impl<W, E> std::fmt::Debug for EventWriter<W, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("lost", &self.chunks.lost()).finish_non_exhaustive()
    }
}
