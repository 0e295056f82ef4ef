//! The papers' tables, as CSV: `studies/published`, part of the program, so that an installed heaptoll has them too.

use std::sync::LazyLock;

use csv::StringRecord;
use serde::de::DeserializeOwned;

/// A table as it was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// File's name in `studies/published`.
    pub name: &'static str,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// Its lines, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    fn read(name: &'static str, text: &str) -> Table {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let texts = |record: &StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
        let columns = reader.headers().map(texts).unwrap_or_default();
        // The files are part of the program; a test counts their lines.
        let rows = reader.records().filter_map(|record| record.ok().map(|record| texts(&record))).collect();
        Table { name, columns, rows }
    }

    /// Place of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }
}

macro_rules! tables {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../studies/published/", $name)))),*]
    };
}

const TEXTS: &[(&str, &str)] = tables![
    "boehm-myths-tables.csv",
    "detlefs1994-table10-heap-expansion.csv",
    "detlefs1994-table2-programs.csv",
    "detlefs1994-table4-instructions-per-malloc.csv",
    "detlefs1994-table5-instructions-per-free.csv",
    "detlefs1994-table6-instructions-per-object.csv",
    "detlefs1994-table7-percent-allocation-instructions.csv",
    "detlefs1994-table8-execution-seconds.csv",
    "detlefs1994-table9-max-heap-kilobytes.csv",
    "mimalloc2019-rss.csv",
    "mimalloc2019-time.csv",
    "sareen2022-delay.csv",
    "sareen2022-frequency.csv",
    "sareen2022-headline-results.csv",
    "sareen2022-minheap.csv",
    "sareen2022-proximity.csv",
    "zorn1992-table2-programs.csv",
    "zorn1992-table3-cpu-seconds.csv",
    "zorn1992-table4-memory-kilobytes.csv",
    "zorn1992-table5-relative-cpu-domain-allocators.csv",
    "zorn1992-table6-relative-memory-domain-allocators.csv",
];

static TABLES: LazyLock<Vec<Table>> =
    LazyLock::new(|| TEXTS.iter().map(|(name, text)| Table::read(name, text)).collect());

/// Every table.
pub fn all() -> &'static [Table] {
    &TABLES
}

/// The table of a file in `studies/published`.
pub fn table(file: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == file)
}

/// The lines of a table as a type whose fields are its columns in their order; none where there is no such file.
pub(crate) fn rows<T: DeserializeOwned>(file: &str) -> impl Iterator<Item = T> {
    let lines = table(file).into_iter().flat_map(|table| &table.rows);
    lines.filter_map(|line| StringRecord::from(line.as_slice()).deserialize(None).ok())
}

/// Whether a manager of ours is some version of the paper's.
pub(crate) fn is_version_of(papers: &str, ours: &str) -> bool {
    let base = ours.split(',').next().unwrap_or(ours);
    let name =
        base.strip_prefix("debian-").unwrap_or(base).trim_end_matches(|last: char| last.is_ascii_digit());
    // gperftools is what became of the first TCMalloc; today's is another program.
    name.eq_ignore_ascii_case(papers)
}

/// Whether each line of a table was read, and there are some: for the tests of what reads it.
pub fn are_all<T>(file: &str, read: impl Iterator<Item = T>) -> bool {
    table(file).is_some_and(|table| !table.rows.is_empty() && table.rows.len() == read.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_every_file_is_read_whole() {
        for ((name, text), table) in TEXTS.iter().zip(all()) {
            assert_eq!(table.rows.len() + 1, text.lines().count(), "{name}");
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{name}");
        }
    }

    #[test]
    fn every_file_of_the_folder_is_part_of_the_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/published");
        let files = std::fs::read_dir(folder).expect("the folder of published values");
        let csv = files
            .filter_map(|file| file.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(".csv"));
        for name in csv {
            assert!(
                table(&name).is_some(),
                "{name} is in studies/published, and not in the list of tables here"
            );
        }
    }

    #[test]
    fn commas_within_quotes_are_text() {
        let boehm = table("boehm-myths-tables.csv").expect("it is there");
        assert_eq!(boehm.rows[0][0], "reverse 1000 x 40 byte elements, 2000 times");
        assert_eq!(boehm.column("elapsed_seconds"), Some(4));
    }
}
