//! When objects can be reached no more, from the same traced run: its records become a trace with pointers in a temporary
//! file next to the oracle's, which is read when the last uses are known.

use std::path::{Path, PathBuf};

use heaptoll_callsites::Sum;
use heaptoll_graph_record::Recorder as GraphRecorder;
use heaptoll_graphs::unreachable::{NoPoints, Unreachability, Use};
use heaptoll_oracle::{Recorder, Recording, RootPoints, Unreachable};
use heaptoll_reftrace::{Event, Owner, Reference, Sink};
use heaptoll_trace::graph::{Batch, Reader, Writer};
use heaptoll_trace::{Ending, Header, Memory, Settings, TraceError, TraceFile};
use heaptoll_units::whole_bytes;

use heaptoll_runs::preparation::pairing::Machine;

/// Bytes that the recorders and the manager need for an object besides its own.
const EACH_OBJECT: u64 = 300;

/// The trace with pointers, under way.
pub struct Graph {
    recorder: GraphRecorder<TraceFile>,
    file: TemporaryFile,
    /// Number of the first object of `main`.
    first: u64,
    has_begun: bool,
    /// Memory that the program, of which nothing is freed, and the recorders may take.
    limit_bytes: u64,
}

/// A file that is removed in the end.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // It may not have been made.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Graph {
    /// Begins a trace next to the oracle's `file`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(file: &Path) -> Result<Graph, TraceError> {
        let mut path = file.as_os_str().to_owned();
        path.push(".graph");
        let file = TemporaryFile(path.into());
        let writer =
            Writer::new(TraceFile::create(&file.0, true)?, &Header::default(), &Settings::default())?;
        Ok(Graph {
            recorder: GraphRecorder::new(writer, false).keeping(),
            file,
            first: 0,
            has_begun: false,
            limit_bytes: Machine::now().available_bytes / 2,
        })
    }

    /// Sets the points of unreachability of a recording of the same run.
    ///
    /// # Errors
    /// Why there are none.
    pub fn complete(self, recording: &mut Recording) -> Result<Unreachable, String> {
        let Graph { recorder, file, first, .. } = self;
        let (_, _, refused) = recorder.finish(&Ending::default()).map_err(|error| error.to_string())?;
        if let Some(error) = refused {
            return Err(format!("the pointers of the run could not be kept: {error}"));
        }
        let points = points(&file.0, first, recording)?;
        Ok(recording.set_unreachable(&points))
    }
}

fn points(file: &Path, first: u64, recording: &Recording) -> Result<RootPoints, String> {
    let in_words = |error: TraceError| error.to_string();
    let uses: Vec<Use> =
        recording.objects.iter().map(|object| Use { size: object.size, last: object.last_use }).collect();
    let mut reader = Reader::open(file).map_err(in_words)?;
    // How much a run may take was limited while it was recorded.
    reader.limit(Memory { limit_bytes: u64::MAX, each_object_bytes: 0 });
    let (mut found, mut batch) = (Unreachability::new(first, &uses), Batch::default());
    while reader.read(&mut batch).map_err(in_words)? {
        found.events(&batch.events, batch.after_gap);
    }
    let points = found.points().map_err(|why| match why {
        NoPoints::Cut => "the pointers of the run are incomplete; record it again".to_owned(),
        NoPoints::Differs(allocation) => {
            format!(
                "allocation {allocation} has another size among the pointers of the run, or is missing there"
            )
        }
    })?;
    let hidden = Sum { objects: points.hidden_objects, bytes: points.hidden_bytes };
    Ok(RootPoints { at: points.at, unreachable: points.unreachable, hidden })
}

/// The sink for a process image: allocations and last uses, and the pointers where they are recorded.
#[derive(Default)]
pub struct Both {
    /// Allocations and last uses.
    pub oracle: Recorder,
    /// Pointers.
    pub graph: Option<Graph>,
}

impl Sink for Both {
    #[inline]
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        self.oracle.references(owner, references);
        if let Some(graph) = &mut self.graph {
            graph.recorder.references(owner, references);
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        self.oracle.event(event);
        let Some(graph) = &mut self.graph else { return };
        if matches!(event, Event::Main { .. }) && !graph.has_begun {
            (graph.first, graph.has_begun) = (graph.recorder.counts().objects, true);
        }
        graph.recorder.event(event);
    }

    fn full(&self) -> Option<String> {
        let full = self.oracle.full();
        let Some(graph) = self.graph.as_ref().filter(|_| full.is_none()) else { return full };
        let counts = graph.recorder.counts();
        let needs_bytes = counts.bytes.saturating_add(EACH_OBJECT.saturating_mul(counts.objects));
        (needs_bytes > graph.limit_bytes).then(|| {
            format!(
                "nothing is freed while reachability is recorded, and the program allocates more than half \
                 of the available memory ({}); give it less to do, or leave out --graph",
                whole_bytes(graph.limit_bytes)
            )
        })
    }
}
