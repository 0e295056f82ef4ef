//! Rows of figures as CSV, for spreadsheets and for R.

use std::io::Write;

use heaptoll_experiment::cell::Value;

use crate::ReportError;
use crate::flat_table::FlatTable;

/// Writes a header line and a line a row. What was not measured is an empty cell; units are in the names of the columns.
pub fn write(table: FlatTable, out: impl Write) -> Result<(), ReportError> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(table.columns.iter().map(|column| column.name)).map_err(failed)?;
    for row in table.rows {
        let cells = row.into_iter().map(|cell| match cell {
            Value::Missing => String::new(),
            Value::Integer(value) => value.to_string(),
            // Shortest text that reads back as the same number.
            Value::Real(value) => value.to_string(),
            Value::Text(value) => no_formula(value),
        });
        writer.write_record(cells).map_err(failed)?;
    }
    writer.flush().map_err(|source| ReportError::Stream { form: "CSV", source })
}

/// A text that a spreadsheet does not take for a formula: one that begins like it gets an apostrophe in front. A program's
/// name or its standard error comes from others.
fn no_formula(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text }
}

fn failed(error: csv::Error) -> ReportError {
    let detail = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(source) => ReportError::Stream { form: "CSV", source },
        _ => ReportError::Encode { form: "CSV", detail },
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::columns::exported;
    use heaptoll_experiment::varied::Varied;

    use super::*;
    use crate::testing::{Shape, experiment};

    #[test]
    fn reads_back_as_the_same_rows() {
        let (experiment, _) = experiment(Shape::Troubled);
        let mut bytes = Vec::new();
        write(FlatTable::of_runs(&experiment), &mut bytes).unwrap();
        let mut reader = csv::Reader::from_reader(&bytes[..]);
        let header = reader.headers().unwrap().clone();
        assert!(header.iter().eq(exported().map(|(name, _)| name)));
        let at = |name| header.iter().position(|h| h == name).unwrap();
        let mut lines = 0;
        for (record, row) in reader.records().zip(&experiment.observations) {
            let record = record.unwrap();
            assert_eq!(record[at("program")], row.program);
            assert_eq!(record[at("stderr_tail")], row.stderr_tail);
            assert_eq!(record[at("user_s")].parse::<f64>().unwrap(), row.user_s);
            assert_eq!(record[at("instructions")].parse::<u64>().ok(), row.counters.instructions);
            lines += 1;
        }
        assert_eq!(lines, experiment.observations.len());
    }

    #[test]
    fn facts_have_a_line_a_value() {
        let facts = crate::flat_table::tests::facts();
        let mut bytes = Vec::new();
        write(FlatTable::of_facts("run", &facts), &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "program,manager,metric,at,basis,repetition,value,low,high");
        assert_eq!(lines[2], "cfrac,lea,cpu_s,,sample,1,,,");
        assert_eq!(
            lines[4..6],
            ["cfrac,lea,misses,65536,exact,,7,,", "cfrac,lea,cpu_ratio,,estimate,,1.5,1.25,2"]
        );
        assert_eq!(lines.len(), 8);
    }

    #[test]
    fn a_varied_setting_has_columns_which_are_empty_in_rows_of_other_stacks() {
        let (mut experiment, _) = experiment(Shape::Single);
        let (manager, setting) = ("jemalloc".to_owned(), "dirty_decay_ms".to_owned());
        for stack in experiment.stacks.iter_mut().filter(|stack| stack.name == "snmalloc") {
            let (manager, setting) = (manager.clone(), setting.clone());
            stack.varied = Some(Varied { manager, setting, value: "-1".into(), at: -1 });
        }
        let mut bytes = Vec::new();
        write(FlatTable::of_runs(&experiment), &mut bytes).unwrap();
        let mut reader = csv::Reader::from_reader(&bytes[..]);
        let header = reader.headers().unwrap().clone();
        let mut counts = [0, 0];
        for record in reader.records().map(Result::unwrap) {
            let of = |name: &str| header.iter().zip(&record).find(|(title, _)| *title == name).unwrap().1;
            let is_varied = of("stack") == "snmalloc";
            let expected = if is_varied { [&manager[..], &setting[..], "-1"] } else { [""; 3] };
            assert_eq!(["varied_manager", "varied_setting", "varied_at"].map(of), expected);
            counts[usize::from(is_varied)] += 1;
        }
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    }

    #[test]
    fn a_text_that_begins_like_a_formula_is_none() {
        for text in ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(no_formula(text.into()), format!("'{text}"));
        }
        for text in ["", "gawk", "a=b", " =1"] {
            assert_eq!(no_formula(text.into()), text);
        }
    }

    #[test]
    fn a_stream_that_refuses_is_an_error() {
        let (experiment, _) = experiment(Shape::Single);
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        assert!(matches!(
            write(FlatTable::of_runs(&experiment), full),
            Err(ReportError::Stream { form: "CSV", .. })
        ));
    }
}
