//! One row an observation as Parquet, for DuckDB, Spark and pandas; the columns are those of
//! [`heaptoll_experiment::columns`].

use std::io::Write;
use std::sync::Arc;

use heaptoll_experiment::cell::{ColumnType, Value};
use heaptoll_experiment::columns::{Column, exported};
use heaptoll_experiment::experiment::Experiment;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::ReportError;

/// Rows of one row group: large enough for any experiment of one machine, small enough to be read in parts.
const GROUP_ROWS: usize = 65_536;

/// Writes one Parquet file. The machine, the settings, the baseline and the version of heaptoll are in the file's
/// key-value metadata (`heaptoll.machine` and so on, JSON), since no figure means anything without them.
pub fn write(experiment: &Experiment, mut out: impl Write) -> Result<(), ReportError> {
    // Whole in memory first: an observation is a few hundred bytes, and so an error of the encoder and one of the
    // disk stay apart.
    let bytes = encode(experiment)
        .map_err(|error| ReportError::Encode { form: "Parquet", detail: error.to_string() })?;
    out.write_all(&bytes)
        .and_then(|()| out.flush())
        .map_err(|source| ReportError::Stream { form: "Parquet", source })
}

fn encode(experiment: &Experiment) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_created_by(format!("heaptoll {}", experiment.heaptoll_version))
        .set_key_value_metadata(Some(metadata(experiment)?))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema()?), Arc::new(properties))?;
    for rows in experiment.observations.chunks(GROUP_ROWS) {
        let mut group = writer.next_row_group()?;
        for (name, column) in exported() {
            let cells: Vec<Value> = rows.iter().map(|row| column.cell(experiment, row)).collect();
            let mut target = group
                .next_column()?
                .ok_or_else(|| ParquetError::General(format!("the schema lacks {name}")))?;
            let present: Vec<i16> = cells.iter().map(|cell| i16::from(*cell != Value::Missing)).collect();
            let levels = column.optional.then_some(present.as_slice());
            match column.kind {
                ColumnType::Integer => {
                    let values: Vec<i64> = cells.iter().filter_map(integer).collect();
                    target.typed::<Int64Type>().write_batch(&values, levels, None)?;
                }
                ColumnType::Real => {
                    let values: Vec<f64> = cells.iter().filter_map(real).collect();
                    target.typed::<DoubleType>().write_batch(&values, levels, None)?;
                }
                ColumnType::Text => {
                    let values: Vec<ByteArray> = cells.into_iter().filter_map(text).collect();
                    target.typed::<ByteArrayType>().write_batch(&values, levels, None)?;
                }
            }
            target.close()?;
        }
        group.close()?;
    }
    writer.into_inner()
}

fn schema() -> Result<Type, ParquetError> {
    let fields =
        exported().map(|(name, column)| field(name, column).map(Arc::new)).collect::<Result<_, _>>()?;
    Type::group_type_builder("observation").with_fields(fields).build()
}

fn field(name: &str, column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind {
        ColumnType::Integer => (Physical::INT64, None),
        ColumnType::Real => (Physical::DOUBLE, None),
        ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
}

fn metadata(experiment: &Experiment) -> Result<Vec<KeyValue>, ParquetError> {
    let failed = |error: serde_json::Error| ParquetError::General(error.to_string());
    let pair = |key: &str, value: String| KeyValue::new(format!("heaptoll.{key}"), value);
    Ok(vec![
        pair("version", experiment.heaptoll_version.clone()),
        pair("baseline", experiment.baseline.clone()),
        pair("machine", serde_json::to_string(&experiment.machine).map_err(failed)?),
        pair("settings", serde_json::to_string(&experiment.settings).map_err(failed)?),
    ])
}

fn integer(cell: &Value) -> Option<i64> {
    if let Value::Integer(value) = cell { Some(*value) } else { None }
}

fn real(cell: &Value) -> Option<f64> {
    if let Value::Real(value) = cell { Some(*value) } else { None }
}

fn text(cell: Value) -> Option<ByteArray> {
    if let Value::Text(value) = cell { Some(ByteArray::from(value.into_bytes())) } else { None }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;
    use crate::testing::{Shape, experiment};

    fn read(experiment: &Experiment) -> SerializedFileReader<bytes::Bytes> {
        let mut bytes = Vec::new();
        write(experiment, &mut bytes).unwrap();
        SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap()
    }

    #[test]
    fn reads_back_cell_by_cell() {
        for shape in [Shape::Server, Shape::Troubled] {
            let (experiment, _) = experiment(shape);
            let reader = read(&experiment);
            let mut rows = 0;
            for (row, observation) in reader.get_row_iter(None).unwrap().zip(&experiment.observations) {
                let row = row.unwrap();
                assert_eq!(row.len(), exported().count());
                for ((name, field), (expected, column)) in row.get_column_iter().zip(exported()) {
                    assert_eq!(name, expected);
                    let value = match field {
                        Field::Null => Value::Missing,
                        Field::Long(value) => Value::Integer(*value),
                        Field::Double(value) => Value::Real(*value),
                        Field::Str(value) => Value::Text(value.clone()),
                        other => panic!("{name}: {other:?}"),
                    };
                    assert_eq!(value, column.cell(&experiment, observation), "{name}");
                }
                rows += 1;
            }
            assert_eq!(rows, experiment.observations.len());
        }
    }

    #[test]
    fn every_cell_has_the_kind_of_its_column() {
        let mut rows = experiment(Shape::Server).0.observations;
        rows.extend(experiment(Shape::Suite).0.observations);
        assert!(rows.iter().any(|row| row.exact.is_some() && row.locality.is_some()));
        let more = experiment(Shape::Troubled).0.observations;
        assert!(rows.len() > 10 && more.len() > 10);
        for row in rows.iter().chain(&more) {
            for (name, column) in exported() {
                let fits = match (column.get)(row) {
                    Value::Missing => column.optional,
                    Value::Integer(_) => column.kind == ColumnType::Integer,
                    Value::Real(_) => column.kind == ColumnType::Real,
                    Value::Text(_) => column.kind == ColumnType::Text,
                };
                assert!(fits, "{name}");
            }
        }
    }

    #[test]
    fn carries_the_machine_and_states_what_may_be_missing() {
        let (experiment, _) = experiment(Shape::Single);
        let reader = read(&experiment);
        let file = reader.metadata().file_metadata();
        let pairs = file.key_value_metadata().unwrap();
        let machine = pairs.iter().find(|pair| pair.key == "heaptoll.machine").unwrap();
        assert!(machine.value.as_deref().unwrap().contains(&experiment.machine.cpu));
        for ((name, column), field) in exported().zip(file.schema().get_fields()) {
            assert_eq!(field.is_optional(), column.optional, "{name}");
        }
    }

    #[test]
    fn an_experiment_without_rows_is_a_file_without_rows() {
        let (mut experiment, _) = experiment(Shape::Single);
        experiment.observations.clear();
        assert_eq!(read(&experiment).metadata().file_metadata().num_rows(), 0);
    }

    #[test]
    fn a_stream_that_refuses_is_an_error() {
        let (experiment, _) = experiment(Shape::Single);
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        assert!(matches!(write(&experiment, full), Err(ReportError::Stream { form: "Parquet", .. })));
    }
}
