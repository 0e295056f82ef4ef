//! Rows of figures as Parquet, for DuckDB, Spark and pandas. Rows go out in groups, so that memory does not grow with
//! the file.

use std::io::Write;
use std::sync::Arc;

use heaptoll_experiment::cell::{ColumnType, Value};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::ReportError;
use crate::flat_table::{Column, FlatTable};

/// Rows of one group.
const GROUP_ROWS: u64 = 131_072;

/// Writes one Parquet file. What holds for all rows is in its key-value metadata (`heaptoll.machine` and so on).
pub fn write(table: FlatTable, out: impl Write + Send) -> Result<(), ReportError> {
    let write = || {
        let mut file = ParquetFile::new(out, table.row, &table.columns)?;
        for row in table.rows {
            file.row(row)?;
        }
        file.finish(table.about)
    };
    write().map(drop).map_err(refused)
}

/// The stream's own error, where it was that.
pub(crate) fn refused(error: ParquetError) -> ReportError {
    match error {
        ParquetError::External(source) => match source.downcast() {
            Ok(source) => ReportError::Stream { form: "Parquet", source: *source },
            Err(other) => ReportError::Encode { form: "Parquet", detail: other.to_string() },
        },
        other => ReportError::Encode { form: "Parquet", detail: other.to_string() },
    }
}

/// Cells of one column of the group that is being filled.
#[derive(Default)]
struct Cells {
    integers: Vec<i64>,
    reals: Vec<f64>,
    texts: Vec<ByteArray>,
    present: Vec<i16>,
}

impl Cells {
    fn push(&mut self, cell: Value) {
        self.present.push(i16::from(cell != Value::Missing));
        match cell {
            Value::Missing => {}
            Value::Integer(value) => self.integers.push(value),
            Value::Real(value) => self.reals.push(value),
            Value::Text(value) => self.texts.push(value.into_bytes().into()),
        }
    }
}

/// A Parquet file that is being written, row by row.
pub(crate) struct ParquetFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
    cells: Vec<Cells>,
    rows: u64,
}

impl<W: Write + Send> ParquetFile<W> {
    pub fn new(out: W, row: &str, columns: &[Column]) -> Result<ParquetFile<W>, ParquetError> {
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("heaptoll {}", env!("CARGO_PKG_VERSION")))
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?));
        for column in columns.iter().filter(|column| column.grows) {
            let path = ColumnPath::from(column.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let fields = columns.iter().map(|column| field(column).map(Arc::new)).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder(row).with_fields(fields).build()?;
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?;
        let cells = columns.iter().map(|_| Cells::default()).collect();
        Ok(ParquetFile { writer, columns: columns.to_vec(), cells, rows: 0 })
    }

    /// Adds a row, a cell a column.
    pub fn row(&mut self, row: impl IntoIterator<Item = Value>) -> Result<(), ParquetError> {
        self.cells.iter_mut().zip(row).for_each(|(cells, cell)| cells.push(cell));
        self.rows += 1;
        if self.rows.is_multiple_of(GROUP_ROWS) { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (column, cells) in self.columns.iter().zip(&mut self.cells) {
            let mut target = group
                .next_column()?
                .ok_or_else(|| ParquetError::General(format!("the schema lacks {}", column.name)))?;
            let Cells { integers, reals, texts, present } = cells;
            let levels = column.optional.then_some(present.as_slice());
            match column.kind {
                ColumnType::Integer => target.typed::<Int64Type>().write_batch(integers, levels, None)?,
                ColumnType::Real => target.typed::<DoubleType>().write_batch(reals, levels, None)?,
                ColumnType::Text => target.typed::<ByteArrayType>().write_batch(texts, levels, None)?,
            };
            target.close()?;
            integers.clear();
            reals.clear();
            texts.clear();
            present.clear();
        }
        group.close().map(drop)
    }

    /// Ends the file, with what holds for all rows; gives their number.
    pub fn finish(mut self, about: Vec<(&str, String)>) -> Result<u64, ParquetError> {
        if !self.rows.is_multiple_of(GROUP_ROWS) {
            self.write_group()?;
        }
        for (name, value) in about {
            self.writer.append_key_value_metadata(KeyValue::new(format!("heaptoll.{name}"), value));
        }
        self.writer.close()?;
        Ok(self.rows)
    }
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind {
        ColumnType::Integer => (Physical::INT64, None),
        ColumnType::Real => (Physical::DOUBLE, None),
        ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(column.name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;
    use crate::flat_table::tests::facts;
    use crate::testing::{Shape, experiment};

    fn read(table: FlatTable) -> SerializedFileReader<bytes::Bytes> {
        let mut bytes = Vec::new();
        write(table, &mut bytes).unwrap();
        SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap()
    }

    #[track_caller]
    fn reads_back<'a>(table: impl Fn() -> FlatTable<'a>) {
        let reader = read(table());
        let FlatTable { columns, rows, .. } = table();
        let mut read = reader.get_row_iter(None).unwrap();
        for cells in rows {
            let row = read.next().unwrap().unwrap();
            assert_eq!(row.len(), columns.len());
            for ((name, field), (cell, column)) in row.get_column_iter().zip(cells.into_iter().zip(&columns))
            {
                assert_eq!(name, column.name);
                let value = match field {
                    Field::Null => Value::Missing,
                    Field::Long(value) => Value::Integer(*value),
                    Field::Double(value) => Value::Real(*value),
                    Field::Str(value) => Value::Text(value.clone()),
                    other => panic!("{name}: {other:?}"),
                };
                assert_eq!(value, cell, "{name}");
            }
        }
        assert!(read.next().is_none());
    }

    #[test]
    fn reads_back_cell_by_cell() {
        for shape in [Shape::Server, Shape::Troubled] {
            let (experiment, _) = experiment(shape);
            reads_back(|| FlatTable::of_runs(&experiment));
        }
        let facts = facts();
        reads_back(|| FlatTable::of_facts("run", &facts));
    }

    #[test]
    fn carries_the_machine_and_states_what_may_be_missing() {
        let (experiment, _) = experiment(Shape::Single);
        let reader = read(FlatTable::of_runs(&experiment));
        let file = reader.metadata().file_metadata();
        let pairs = file.key_value_metadata().unwrap();
        let machine = pairs.iter().find(|pair| pair.key == "heaptoll.machine").unwrap();
        assert!(machine.value.as_deref().unwrap().contains(&experiment.machine.cpu));
        for (column, field) in FlatTable::of_runs(&experiment).columns.iter().zip(file.schema().get_fields())
        {
            assert_eq!(field.is_optional(), column.optional, "{}", column.name);
        }
    }

    #[test]
    fn an_experiment_without_rows_is_a_file_without_rows() {
        let (mut experiment, _) = experiment(Shape::Single);
        experiment.observations.clear();
        assert_eq!(read(FlatTable::of_runs(&experiment)).metadata().file_metadata().num_rows(), 0);
    }

    #[test]
    fn a_stream_that_refuses_is_an_error() {
        let (experiment, _) = experiment(Shape::Single);
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        assert!(matches!(
            write(FlatTable::of_runs(&experiment), full),
            Err(ReportError::Stream { form: "Parquet", .. })
        ));
    }
}
