//! A trace as Parquet, one row an event, for DuckDB, Spark and pandas; call stacks are a second file.
//!
//! Rows go out in groups, so memory does not grow with the trace but for a table of live objects.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use heaptoll_experiment::cell::ColumnType::{Integer, Text};
use heaptoll_experiment::cell::{Cell, Value};
use heaptoll_trace::{Batch, Event, EventKind, Reader, Sites, TraceError};
use parquet::errors::ParquetError;
use thiserror::Error;

use crate::flat_table::{Column, json};
use crate::parquet::{ParquetFile, refused};
use crate::{ReportError, files};

/// A trace that could not be exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// It cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The file cannot be written.
    #[error(transparent)]
    Report(#[from] ReportError),
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// Events.
    pub rows: u64,
    /// Rows of the file of call stacks; none when the trace has none.
    pub site_rows: Option<u64>,
}

/// The columns of events; docs/reference/trace-parquet.md defines them.
const EVENTS: [Column; 16] = [
    Column::growing("event"),
    Column::required("kind", Text),
    Column::required("thread", Integer),
    Column::optional("object", Integer),
    Column::optional("slot", Integer),
    Column::optional("size", Integer),
    Column::optional("usable", Integer),
    Column::optional("align", Integer),
    Column::optional("moved", Integer),
    Column::optional("size_freed", Integer),
    Column::growing("clock_bytes"),
    Column::growing("time_ns"),
    Column::optional("age_bytes", Integer),
    Column::optional("age_ns", Integer),
    Column::optional("site", Integer),
    Column::optional("latency_ns", Integer),
];

/// The columns of call stacks.
const SITES: [Column; 6] = [
    Column::required("site", Integer),
    Column::required("depth", Integer),
    Column::optional("object", Text),
    Column::required("offset", Integer),
    Column::optional("function", Text),
    Column::optional("line", Text),
];

/// A live object's facts.
#[derive(Debug, Clone, Copy, Default)]
struct Object {
    number: u64,
    size: u64,
    clock_bytes: u64,
    time_ns: u64,
}

/// Where the call stacks of a trace go when its events go to `path`: `x.sites.parquet` next to `x.parquet`.
pub fn sites_path(path: &Path) -> PathBuf {
    path.with_extension("sites.parquet")
}

/// Writes a whole trace to `path`, and its call stacks, where it has some, to [`sites_path`]. A file is written whole
/// or not at all.
///
/// # Errors
/// The trace cannot be read, a file cannot be written. Damage is no error: `reader` reports it afterwards.
pub fn export<R: Read + Send>(reader: &mut Reader<R>, path: &Path) -> Result<Exported, ExportError> {
    let mut failed = None;
    let mut rows = 0;
    let written = files::write_atomically(path, |out| match write_events(reader, out) {
        Ok(count) => {
            rows = count;
            Ok(())
        }
        Err(ExportError::Report(error)) => Err(error),
        Err(ExportError::Trace(error)) => {
            let detail = error.to_string();
            failed = Some(error);
            Err(ReportError::Encode { form: "Parquet", detail })
        }
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    written?;
    let mut site_rows = None;
    if let Some(sites) = reader.tables().sites.as_ref().filter(|sites| !sites.sites.is_empty()) {
        files::write_atomically(&sites_path(path), |out| {
            site_rows = Some(write_sites(sites, out)?);
            Ok(())
        })?;
    }
    Ok(Exported { rows, site_rows })
}

/// Writes the events of a trace; gives how many.
///
/// # Errors
/// The trace cannot be read, the stream refuses.
pub fn write_events<R: Read>(reader: &mut Reader<R>, out: impl Write + Send) -> Result<u64, ExportError> {
    let mut file = ParquetFile::new(out, "event", &EVENTS).map_err(refused)?;
    let mut rows = Rows { sites: reader.header().sites, latency: reader.header().latency, ..Rows::default() };
    let mut batch = Batch::default();
    while reader.read(&mut batch)? {
        if batch.after_gap {
            // Numbers and clock go on after the gap.
            rows.event = rows.event.max(batch.first_event);
            rows.clock_bytes = rows.clock_bytes.max(batch.chunk_clock_bytes);
        }
        for event in &batch.events {
            file.row(rows.next(event)).map_err(refused)?;
        }
    }
    let tables = reader.tables();
    let facts = vec![
        ("header", json(&tables.header)),
        ("ending", json(&tables.ending)),
        ("gaps", json(&tables.gaps)),
        ("warnings", json(&tables.warnings)),
    ];
    Ok(file.finish(facts).map_err(refused)?)
}

/// Writes call stacks, one row a frame; gives how many.
///
/// # Errors
/// The stream refuses.
pub fn write_sites(sites: &Sites, out: impl Write + Send) -> Result<u64, ReportError> {
    let write = || -> Result<u64, ParquetError> {
        let mut file = ParquetFile::new(out, "frame", &SITES)?;
        let text = |text: &String| if text.is_empty() { Value::Missing } else { text.value() };
        for (site, stack) in sites.sites.iter().enumerate() {
            for (depth, frame) in stack.frames.iter().enumerate() {
                let Some(frame) = sites.frames.get(*frame as usize) else { continue };
                file.row([
                    (site as u64).value(),
                    (depth as u64).value(),
                    text(&frame.object),
                    frame.offset.value(),
                    text(&frame.function),
                    text(&frame.line),
                ])?;
            }
        }
        file.finish(Vec::new())
    };
    write().map_err(refused)
}

/// Events as rows.
#[derive(Debug, Default)]
struct Rows {
    sites: bool,
    latency: bool,
    event: u64,
    clock_bytes: u64,
    /// Objects so far.
    born: u64,
    objects: Vec<Object>,
}

impl Rows {
    fn next(&mut self, event: &Event) -> [Value; EVENTS.len()] {
        let slot = event.slot as usize;
        let allocates = event.kind.allocates();
        let resizes = event.kind == EventKind::Realloc;
        let fails = event.kind == EventKind::Failed;
        let names = allocates || resizes || event.kind.frees();
        if allocates && slot >= self.objects.len() {
            self.objects.resize(slot + 1, Object::default());
        }
        let before =
            if names { self.objects.get(slot).copied().unwrap_or_default() } else { Object::default() };
        let mut object = before;
        if allocates {
            self.clock_bytes = self.clock_bytes.saturating_add(event.size);
            object = Object {
                number: self.born,
                size: event.size,
                clock_bytes: self.clock_bytes,
                time_ns: event.time_ns,
            };
            self.born += 1;
        } else if resizes {
            self.clock_bytes = self.clock_bytes.saturating_add(event.size.saturating_sub(before.size));
            object.size = event.size;
        }
        if let Some(place) = self.objects.get_mut(slot).filter(|_| allocates || resizes) {
            *place = object;
        }
        let dies = event.kind.frees();
        let makes = allocates || resizes;
        let number = self.event;
        self.event += 1;
        [
            number.value(),
            Value::Text(name(event.kind).to_owned()),
            u64::from(event.thread).value(),
            names.then_some(object.number).value(),
            names.then_some(u64::from(event.slot)).value(),
            (makes || fails).then_some(event.size).value(),
            (makes && event.usable > 0).then_some(event.usable).value(),
            (makes && event.align_log2 > 0).then_some(1u64 << event.align_log2.min(62)).value(),
            resizes.then_some(u64::from(event.moved)).value(),
            (dies || resizes).then_some(before.size).value(),
            self.clock_bytes.value(),
            event.time_ns.value(),
            dies.then_some(self.clock_bytes.saturating_sub(before.clock_bytes)).value(),
            dies.then_some(event.time_ns.saturating_sub(before.time_ns)).value(),
            (self.sites && (makes || fails)).then_some(u64::from(event.site)).value(),
            self.latency.then_some(u64::from(event.latency_ns)).value(),
        ]
    }
}

/// A kind as the column has it.
fn name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Malloc => "malloc",
        EventKind::Calloc => "calloc",
        EventKind::Aligned => "aligned",
        EventKind::New => "new",
        EventKind::Realloc => "realloc",
        EventKind::Free => "free",
        EventKind::Delete => "delete",
        EventKind::ReallocFree => "realloc_free",
        EventKind::Failed => "failed",
        EventKind::Foreign => "foreign",
        EventKind::Lost => "lost",
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::{Allocation, Ending, Frame, Header, Settings, Site, Writer};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row};

    use super::*;

    fn call(kind: EventKind, size: u64) -> Allocation {
        Allocation { kind, thread: 1, size, usable: size + 8, align_log2: 0, site: 1, latency_ns: 30 }
    }

    fn sites() -> Sites {
        let frame = |offset, function: &str| Frame {
            object: "/bin/x".into(),
            offset,
            function: function.into(),
            line: String::new(),
        };
        Sites {
            sites: vec![Site::default(), Site { frames: vec![0, 1] }],
            frames: vec![frame(16, "inner"), frame(32, "")],
        }
    }

    fn trace(events: u64, full: bool) -> Vec<u8> {
        let header = Header { exe: "/bin/x".into(), sites: full, latency: full, ..Header::default() };
        let mut writer = Writer::new(Vec::new(), &header, &Settings::default()).unwrap();
        writer.stamp(1000);
        let first = writer.allocate(&call(EventKind::Malloc, 100)).unwrap();
        writer.stamp(1500);
        writer.resize(first, &call(EventKind::Realloc, 160), true).unwrap();
        writer.note(EventKind::Failed, &call(EventKind::Failed, 1 << 50)).unwrap();
        let aligned = Allocation { align_log2: 6, ..call(EventKind::Aligned, 40) };
        let second = writer.allocate(&aligned).unwrap();
        writer.stamp(2000);
        writer.free(first, EventKind::Free, 0, 9).unwrap();
        writer.note(EventKind::Foreign, &call(EventKind::Foreign, 0)).unwrap();
        for _ in 0..events {
            let slot = writer.allocate(&call(EventKind::New, 24)).unwrap();
            writer.free(slot, EventKind::Delete, 0, 5).unwrap();
        }
        writer.free(second, EventKind::Free, 0, 7).unwrap();
        if full {
            writer.sites(&sites());
        }
        writer.finish(&Ending { how: "exited with status 0".into(), ..Ending::default() }).unwrap()
    }

    fn rows(bytes: Vec<u8>) -> Vec<Row> {
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
    }

    fn cell(row: &Row, column: &str) -> Option<i64> {
        match row.get_column_iter().find(|(name, _)| *name == column).unwrap().1 {
            Field::Null => None,
            Field::Long(value) => Some(*value),
            other => panic!("{column}: {other:?}"),
        }
    }

    fn text(row: &Row, column: &str) -> Option<String> {
        match row.get_column_iter().find(|(name, _)| *name == column).unwrap().1 {
            Field::Null => None,
            Field::Str(value) => Some(value.clone()),
            other => panic!("{column}: {other:?}"),
        }
    }

    #[test]
    fn every_column_records_what_happened() {
        let bytes = trace(0, true);
        let mut out = Vec::new();
        let count = write_events(&mut Reader::new(&bytes[..]).unwrap(), &mut out).unwrap();
        let rows = rows(out);
        assert_eq!((count, rows.len()), (7, 7));
        let column = |name: &str| rows.iter().map(|row| cell(row, name)).collect::<Vec<_>>();
        let kinds: Vec<String> = rows.iter().map(|row| text(row, "kind").unwrap()).collect();
        assert_eq!(kinds, ["malloc", "realloc", "failed", "aligned", "free", "foreign", "free"]);
        assert_eq!(column("event"), (0..7).map(Some).collect::<Vec<_>>());
        assert_eq!(column("object"), [Some(0), Some(0), None, Some(1), Some(0), None, Some(1)]);
        assert_eq!(column("size"), [Some(100), Some(160), Some(1 << 50), Some(40), None, None, None]);
        assert_eq!(column("size_freed"), [None, Some(100), None, None, Some(160), None, Some(40)]);
        assert_eq!(column("usable"), [Some(108), Some(168), None, Some(48), None, None, None]);
        assert_eq!(column("align"), [None, None, None, Some(64), None, None, None]);
        assert_eq!(column("moved"), [None, Some(1), None, None, None, None, None]);
        assert_eq!(column("clock_bytes"), [100, 160, 160, 200, 200, 200, 200].map(Some));
        assert_eq!(column("time_ns"), [1000, 1500, 1500, 1500, 2000, 2000, 2000].map(Some));
        assert_eq!(column("age_bytes"), [None, None, None, None, Some(100), None, Some(0)]);
        assert_eq!(column("age_ns"), [None, None, None, None, Some(1000), None, Some(500)]);
        assert_eq!(column("site"), [Some(1), Some(1), Some(1), Some(1), None, None, None]);
        assert_eq!(column("latency_ns"), [30, 30, 30, 30, 9, 30, 7].map(Some));
        assert_eq!(column("thread"), [1, 1, 1, 1, 0, 1, 0].map(Some));
        assert_eq!(column("slot"), [Some(0), Some(0), None, Some(1), Some(0), None, Some(1)]);
    }

    #[test]
    fn long_traces_are_several_groups() {
        let bytes = trace(200_000, false);
        let mut out = Vec::new();
        let count = write_events(&mut Reader::new(&bytes[..]).unwrap(), &mut out).unwrap();
        assert_eq!(count, 400_007);
        let reader = SerializedFileReader::new(bytes::Bytes::from(out)).unwrap();
        let file = reader.metadata().file_metadata();
        assert_eq!(file.num_rows(), 400_007);
        assert_eq!(reader.num_row_groups(), 4);
        let pairs = file.key_value_metadata().unwrap();
        let ending = pairs.iter().find(|pair| pair.key == "heaptoll.ending").unwrap();
        assert!(ending.value.as_deref().unwrap().contains("exited with status 0"));
    }

    #[test]
    fn stacks_go_to_a_file_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        let bytes = trace(3, true);
        let exported = export(&mut Reader::new(&bytes[..]).unwrap(), &path).unwrap();
        assert_eq!(exported, Exported { rows: 13, site_rows: Some(2) });
        let rows = rows(std::fs::read(folder.path().join("x.sites.parquet")).unwrap());
        assert_eq!(rows.iter().map(|row| cell(row, "offset")).collect::<Vec<_>>(), [Some(16), Some(32)]);
        assert_eq!(text(&rows[0], "function").as_deref(), Some("inner"));
        assert_eq!(text(&rows[1], "function"), None);
        let exported =
            export(&mut Reader::new(&trace(0, false)[..]).unwrap(), &folder.path().join("y.parquet"));
        assert_eq!(exported.unwrap().site_rows, None);
        assert!(!folder.path().join("y.sites.parquet").exists());
    }

    #[test]
    fn a_stream_that_refuses_is_an_error() {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let bytes = trace(200_000, false);
        let error = write_events(&mut Reader::new(&bytes[..]).unwrap(), full).unwrap_err();
        assert!(matches!(error, ExportError::Report(ReportError::Stream { .. })), "{error:?}");
    }
}
