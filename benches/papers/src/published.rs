//! The papers' tables, read from `studies/published`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Error;

/// A figure of every manager on every program, as published.
#[derive(Debug, Clone)]
pub struct Published {
    values: BTreeMap<(String, String), f64>,
}

/// The tables of Detlefs, Dosser and Zorn 1994 that hold a figure for each program and manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Table IV: instructions per malloc.
    Malloc,
    /// Table V: instructions per free.
    Free,
    /// Table X: largest heap over most live bytes.
    Expansion,
}

impl Table {
    fn file(self) -> &'static str {
        match self {
            Table::Malloc => "detlefs1994-table4-instructions-per-malloc.csv",
            Table::Free => "detlefs1994-table5-instructions-per-free.csv",
            Table::Expansion => "detlefs1994-table10-heap-expansion.csv",
        }
    }
}

/// A line of one of these tables: the last column's name is the figure's.
#[derive(Deserialize)]
struct PublishedRow(String, String, f64);

impl Published {
    /// Reads a table from the folder of published tables.
    ///
    /// # Errors
    /// [`Error::Published`].
    pub fn read(folder: &Path, table: Table) -> Result<Published, Error> {
        let path = folder.join(table.file());
        let mut values = BTreeMap::new();
        for line in lines(&path)? {
            let PublishedRow(program, manager, value) = line?;
            if !(value.is_finite() && value > 0.0) {
                return Err(wrong(&path, format!("{value} for {program} and {manager} is no figure")));
            }
            if values.insert((program.clone(), manager.clone()), value).is_some() {
                return Err(wrong(&path, format!("two figures for {program} and {manager}")));
            }
        }
        Ok(Published { values })
    }

    /// The figure of a manager on a program, both by the paper's names.
    pub fn value(&self, program: &str, manager: &str) -> Option<f64> {
        self.values.get(&(program.to_owned(), manager.to_owned())).copied()
    }
}

/// Most live bytes by program: Table II's "Maximum bytes", which it gives in thousands.
///
/// # Errors
/// [`Error::Published`].
pub fn max_live_bytes(folder: &Path) -> Result<BTreeMap<String, f64>, Error> {
    #[derive(Deserialize)]
    struct Program {
        program: String,
        max_bytes_1e3: f64,
    }
    let path = folder.join("detlefs1994-table2-programs.csv");
    lines::<Program>(&path)?
        .map(|line| line.map(|program| (program.program, program.max_bytes_1e3 * 1000.0)))
        .collect()
}

fn wrong(path: &Path, reason: String) -> Error {
    Error::Published { path: path.to_path_buf(), reason }
}

fn lines<T: serde::de::DeserializeOwned>(
    path: &Path,
) -> Result<impl Iterator<Item = Result<T, Error>>, Error> {
    let reader = csv::Reader::from_path(path).map_err(|error| wrong(path, error.to_string()))?;
    let path = path.to_path_buf();
    Ok(reader.into_deserialize().map(move |line| line.map_err(|error| wrong(&path, error.to_string()))))
}

/// The default folder of the tables: in the tree it was built from.
pub fn default_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/published")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAMS: [&str; 11] =
        ["sis", "geodesy", "ild", "perl", "xfig", "ghost", "make", "espresso", "ptc", "gawk", "cfrac"];
    const MANAGERS: [&str; 5] = ["ultrix", "boehm_weiser_2.6", "gnu_prime", "g++", "quickfit"];

    /// The averages are those that the paper prints below its columns, rounded as it rounds them.
    #[test]
    fn tables_are_complete_and_average_as_printed() {
        let printed = [
            (Table::Malloc, [52.0, 611.0, 92.0, 65.0, 64.0], 0.5),
            (Table::Free, [18.0, 2.0, 81.0, 8.0, 41.0], 0.5),
            (Table::Expansion, [1.96, 5.50, 1.56, 1.46, 1.82], 0.005),
        ];
        for (table, averages, half) in printed {
            let published = Published::read(&default_folder(), table).expect("a published table");
            assert_eq!(published.values.len(), PROGRAMS.len() * MANAGERS.len());
            for (manager, average) in MANAGERS.into_iter().zip(averages) {
                let sum: f64 =
                    PROGRAMS.iter().map(|program| published.value(program, manager).expect("a figure")).sum();
                let mean = sum / PROGRAMS.len() as f64;
                assert!((mean - average).abs() <= half * 1.1, "{table:?} {manager}: {mean} is not {average}");
            }
        }
    }

    #[test]
    fn live_bytes_are_there_for_every_program() {
        let live = max_live_bytes(&default_folder()).expect("Table II");
        assert_eq!(live.len(), PROGRAMS.len());
        assert_eq!(live["cfrac"], 21_400.0);
        // Table X is Table IX over this one; Table IX has 48 KiB for cfrac under G++.
        let expansion = Published::read(&default_folder(), Table::Expansion).expect("Table X");
        assert!(
            (expansion.value("cfrac", "g++").expect("a figure") - 48.0 * 1024.0 / live["cfrac"]).abs() < 0.01
        );
    }

    #[test]
    fn a_damaged_table_is_named_in_the_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(Table::Free.file());
        for text in ["a,b,c\nx,y\n", "a,b,c\nx,y,much\n", "a,b,c\nx,y,0\n", "a,b,c\nx,y,1\nx,y,2\n"] {
            std::fs::write(&path, text).expect("writes");
            let error = Published::read(folder.path(), Table::Free).expect_err(text).to_string();
            assert!(error.contains("table5"), "{error}");
        }
        assert!(Published::read(folder.path(), Table::Malloc).is_err());
    }
}
