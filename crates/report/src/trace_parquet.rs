//! A trace as Parquet, one row an event, for DuckDB, Spark and pandas; call stacks are a second file.
//!
//! Rows go out in groups, so memory does not grow with the trace but for a table of live objects.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heaptoll_trace::{Batch, Event, EventKind, Reader, Sites, TraceError};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use thiserror::Error;

use crate::{ReportError, files};

/// Rows of one group.
const GROUP_ROWS: usize = 131_072;

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

/// How a column is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Numbers that grow from row to row.
    Growing,
    /// Numbers.
    Number,
    /// Words.
    Words,
}

/// A column and whether it may be missing in a row.
struct Column {
    name: &'static str,
    form: Form,
    optional: bool,
}

const fn column(name: &'static str, form: Form, optional: bool) -> Column {
    Column { name, form, optional }
}

/// The columns of events; docs/reference/trace-parquet.md defines them.
const EVENTS: [Column; 16] = [
    column("event", Form::Growing, false),
    column("kind", Form::Words, false),
    column("thread", Form::Number, false),
    column("object", Form::Number, true),
    column("slot", Form::Number, true),
    column("size", Form::Number, true),
    column("usable", Form::Number, true),
    column("align", Form::Number, true),
    column("moved", Form::Number, true),
    column("size_freed", Form::Number, true),
    column("clock_bytes", Form::Growing, false),
    column("time_ns", Form::Growing, false),
    column("age_bytes", Form::Number, true),
    column("age_ns", Form::Number, true),
    column("site", Form::Number, true),
    column("latency_ns", Form::Number, true),
];

/// The columns of call stacks.
const SITES: [Column; 6] = [
    column("site", Form::Number, false),
    column("depth", Form::Number, false),
    column("object", Form::Words, true),
    column("offset", Form::Number, false),
    column("function", Form::Words, true),
    column("line", Form::Words, true),
];

/// A live object's facts.
#[derive(Debug, Clone, Copy, Default)]
struct Object {
    number: u64,
    size: u64,
    clock_bytes: u64,
    time_ns: u64,
}

/// Cells of a row group, by column.
struct Cells {
    numbers: Vec<Vec<i64>>,
    texts: Vec<Vec<ByteArray>>,
    present: Vec<Vec<i16>>,
    rows: usize,
}

impl Cells {
    fn new(columns: &[Column]) -> Cells {
        let lists = columns.len();
        Cells {
            numbers: vec![Vec::new(); lists],
            texts: vec![Vec::new(); lists],
            present: vec![Vec::new(); lists],
            rows: 0,
        }
    }

    fn number(&mut self, at: usize, value: u64) {
        // Nothing in a trace reaches 2^63; larger values of a damaged file are cut to it.
        self.numbers[at].push(i64::try_from(value).unwrap_or(i64::MAX));
        self.present[at].push(1);
    }

    fn maybe(&mut self, at: usize, value: Option<u64>) {
        match value {
            Some(value) => self.number(at, value),
            None => self.present[at].push(0),
        }
    }

    fn text(&mut self, at: usize, value: ByteArray) {
        self.texts[at].push(value);
        self.present[at].push(1);
    }

    fn maybe_text(&mut self, at: usize, value: &str) {
        if value.is_empty() {
            self.present[at].push(0);
        } else {
            self.text(at, value.as_bytes().to_vec().into());
        }
    }
}

/// A Parquet file that is being written.
struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: &'static [Column],
    cells: Cells,
    rows: u64,
}

impl<W: Write + Send> Table<W> {
    fn new(out: W, name: &str, columns: &'static [Column]) -> Result<Table<W>, ParquetError> {
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("heaptoll {}", env!("CARGO_PKG_VERSION")))
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?));
        for column in columns.iter().filter(|column| column.form == Form::Growing) {
            let path = ColumnPath::from(column.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let fields = columns.iter().map(|column| field(column).map(Arc::new)).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder(name).with_fields(fields).build()?;
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?;
        Ok(Table { writer, columns, cells: Cells::new(columns), rows: 0 })
    }

    /// Ends a row.
    fn row(&mut self) -> Result<(), ParquetError> {
        self.cells.rows += 1;
        self.rows += 1;
        if self.cells.rows == GROUP_ROWS { self.group() } else { Ok(()) }
    }

    fn group(&mut self) -> Result<(), ParquetError> {
        if self.cells.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for (at, column) in self.columns.iter().enumerate() {
            let mut target = group
                .next_column()?
                .ok_or_else(|| ParquetError::General(format!("the schema lacks {}", column.name)))?;
            let levels = column.optional.then_some(self.cells.present[at].as_slice());
            if column.form == Form::Words {
                target.typed::<ByteArrayType>().write_batch(&self.cells.texts[at], levels, None)?;
            } else {
                target.typed::<Int64Type>().write_batch(&self.cells.numbers[at], levels, None)?;
            }
            target.close()?;
            self.cells.texts[at].clear();
            self.cells.numbers[at].clear();
            self.cells.present[at].clear();
        }
        group.close()?;
        self.cells.rows = 0;
        Ok(())
    }

    /// Ends the file, with facts about the whole of it; gives its rows.
    fn finish(mut self, facts: Vec<(&str, String)>) -> Result<u64, ParquetError> {
        self.group()?;
        for (name, value) in facts {
            self.writer.append_key_value_metadata(KeyValue::new(format!("heaptoll.{name}"), value));
        }
        self.writer.close()?;
        Ok(self.rows)
    }
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.form {
        Form::Words => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Form::Growing | Form::Number => (Physical::INT64, None),
    };
    let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(column.name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
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
    let mut table = Table::new(out, "event", &EVENTS).map_err(refused)?;
    let mut rows = Rows { sites: reader.header().sites, latency: reader.header().latency, ..Rows::default() };
    let mut batch = Batch::default();
    while reader.read(&mut batch)? {
        if batch.after_gap {
            // Numbers and clock go on after the gap.
            rows.event = rows.event.max(batch.first_event);
            rows.clock_bytes = rows.clock_bytes.max(batch.chunk_clock_bytes);
        }
        for event in &batch.events {
            rows.put(event, &mut table.cells);
            table.row().map_err(refused)?;
        }
    }
    let json = |value: Result<String, serde_json::Error>| value.unwrap_or_default();
    let tables = reader.tables();
    let facts = vec![
        ("header", json(serde_json::to_string(&tables.header))),
        ("ending", json(serde_json::to_string(&tables.ending))),
        ("gaps", json(serde_json::to_string(&tables.gaps))),
        ("warnings", json(serde_json::to_string(&tables.warnings))),
    ];
    Ok(table.finish(facts).map_err(refused)?)
}

/// Writes call stacks, one row a frame; gives how many.
///
/// # Errors
/// The stream refuses.
pub fn write_sites(sites: &Sites, out: impl Write + Send) -> Result<u64, ReportError> {
    let write = || -> Result<u64, ParquetError> {
        let mut table = Table::new(out, "frame", &SITES)?;
        for (site, stack) in sites.sites.iter().enumerate() {
            for (depth, frame) in stack.frames.iter().enumerate() {
                let Some(frame) = sites.frames.get(*frame as usize) else { continue };
                let cells = &mut table.cells;
                cells.number(0, site as u64);
                cells.number(1, depth as u64);
                cells.maybe_text(2, &frame.object);
                cells.number(3, frame.offset);
                cells.maybe_text(4, &frame.function);
                cells.maybe_text(5, &frame.line);
                table.row()?;
            }
        }
        table.finish(Vec::new())
    };
    write().map_err(refused)
}

/// The stream's own error, where it was that.
fn refused(error: ParquetError) -> ReportError {
    match error {
        ParquetError::External(source) => match source.downcast() {
            Ok(source) => ReportError::Stream { form: "Parquet", source: *source },
            Err(other) => ReportError::Encode { form: "Parquet", detail: other.to_string() },
        },
        other => ReportError::Encode { form: "Parquet", detail: other.to_string() },
    }
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
    fn put(&mut self, event: &Event, cells: &mut Cells) {
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
        cells.number(0, self.event);
        cells.text(1, ByteArray::from(name(event.kind)));
        cells.number(2, u64::from(event.thread));
        cells.maybe(3, names.then_some(object.number));
        cells.maybe(4, names.then_some(u64::from(event.slot)));
        cells.maybe(5, (makes || fails).then_some(event.size));
        cells.maybe(6, (makes && event.usable > 0).then_some(event.usable));
        cells.maybe(7, (makes && event.align_log2 > 0).then_some(1 << event.align_log2.min(62)));
        cells.maybe(8, resizes.then_some(u64::from(event.moved)));
        cells.maybe(9, (dies || resizes).then_some(before.size));
        cells.number(10, self.clock_bytes);
        cells.number(11, event.time_ns);
        cells.maybe(12, dies.then_some(self.clock_bytes.saturating_sub(before.clock_bytes)));
        cells.maybe(13, dies.then_some(event.time_ns.saturating_sub(before.time_ns)));
        cells.maybe(14, (self.sites && (makes || fails)).then_some(u64::from(event.site)));
        cells.maybe(15, self.latency.then_some(u64::from(event.latency_ns)));
        self.event += 1;
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
