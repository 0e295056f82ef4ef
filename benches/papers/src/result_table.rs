//! A table with its verdict and notes, and its forms: for the terminal, for documents, for programs.

use std::io::Write;
use std::path::{Path, PathBuf};

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_FULL_CONDENSED};
use comfy_table::{CellAlignment, Table};
use serde_json::{Map, Value, json};

use crate::Error;

/// Version of the JSON form.
const SCHEMA: &str = "heaptoll.papers/1";

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A figure and how many decimals of it are shown; JSON and CSV have all of them.
    Figure(f64, usize),
    /// Not measured, not known or not applicable.
    None,
}

impl Cell {
    /// A figure that may be missing.
    pub fn maybe(value: Option<f64>, decimals: usize) -> Cell {
        value.map_or(Cell::None, |value| Cell::Figure(value, decimals))
    }

    fn shown(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Figure(value, decimals) => format!("{value:.decimals$}"),
            Cell::None => "-".into(),
        }
    }

    fn value(&self) -> Value {
        match self {
            Cell::Text(text) => json!(text),
            Cell::Figure(value, _) => json!(value),
            Cell::None => Value::Null,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.into())
    }
}

/// A column: its key in JSON and CSV, with the unit in it, and its head for readers.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Key.
    pub key: &'static str,
    /// Head; without one the column is in JSON and CSV only.
    pub head: Option<&'static str>,
}

/// Short for a column.
pub const fn column(key: &'static str, head: &'static str) -> Column {
    Column { key, head: Some(head) }
}

/// Short for a column that is not shown.
pub const fn data(key: &'static str) -> Column {
    Column { key, head: None }
}

/// A table and the sentences around it.
#[derive(Debug, Clone)]
pub struct ResultTable {
    /// The command that makes it.
    pub command: &'static str,
    /// One line above it.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each of as many cells.
    pub rows: Vec<Vec<Cell>>,
    /// The conclusion from the figures.
    pub verdict: Vec<String>,
    /// Notes on the figures.
    pub notes: Vec<String>,
    /// The machine it was made on, in a line.
    pub machine: String,
}

impl ResultTable {
    fn table(&self, preset: comfy_table::TableStyle) -> Table {
        let mut table = Table::new();
        table.load_style(preset);
        table.set_header(self.columns.iter().filter_map(|column| column.head));
        let shown: Vec<usize> = (0..self.columns.len()).filter(|n| self.columns[*n].head.is_some()).collect();
        for row in &self.rows {
            table.add_row(shown.iter().filter_map(|number| row.get(*number)).map(Cell::shown));
        }
        for (column, number) in table.column_iter_mut().zip(&shown) {
            if self.rows.iter().any(|row| matches!(row.get(*number), Some(Cell::Figure(..)))) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    /// For a terminal.
    pub fn terminal(&self) -> String {
        let mut text = format!("{}\n{}\n", self.title, self.table(UTF8_FULL_CONDENSED));
        for (head, sentences) in [("Verdict", &self.verdict), ("Notes", &self.notes)] {
            if !sentences.is_empty() {
                text += &format!("\n{head}\n");
                for sentence in sentences {
                    text += &format!("  - {sentence}\n");
                }
            }
        }
        text
    }

    /// For a document, between lines that a later run finds again.
    pub fn markdown(&self) -> String {
        let (begin, end) = markers(self.command);
        let mut text = format!("{begin}\n\n{}\n\n{}\n", self.title, self.table(ASCII_MARKDOWN));
        for sentences in [&self.verdict, &self.notes] {
            if !sentences.is_empty() {
                text += "\n";
                for sentence in sentences {
                    text += &format!("- {sentence}\n");
                }
            }
        }
        text + &format!("\nMeasured on {}.\n\n{end}\n", self.machine)
    }

    /// Puts the Markdown form in place of the block of the same command in a document.
    fn insert(&self, document: &Path) -> Result<(), Error> {
        let (before, after) = around_block(self.command, document)?;
        let whole = format!("{before}{}{after}", self.markdown().trim_end());
        std::fs::write(document, whole).map_err(Error::file("write", document))
    }

    fn json(&self) -> String {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let cells = self.columns.iter().zip(row);
                Value::Object(
                    cells.map(|(column, cell)| (column.key.to_owned(), cell.value())).collect::<Map<_, _>>(),
                )
            })
            .collect();
        let document = json!({
            "schema": SCHEMA,
            "command": self.command,
            "title": self.title,
            "machine": self.machine,
            "rows": rows,
            "verdict": self.verdict,
            "notes": self.notes,
        });
        format!("{document:#}\n")
    }

    fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let lines = std::iter::once(self.columns.iter().map(|column| column.key.to_owned()).collect()).chain(
            self.rows.iter().map(|row| {
                let cell = |cell: &Cell| match cell {
                    Cell::Text(text) => text.clone(),
                    Cell::Figure(value, _) => value.to_string(),
                    Cell::None => String::new(),
                };
                row.iter().map(cell).collect::<Vec<String>>()
            }),
        );
        for line in lines {
            // Writing to memory cannot fail, and all lines have as many cells as there are columns.
            let _ = writer.write_record(&line);
        }
        writer.into_inner().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

/// The lines around a command's block.
fn markers(command: &str) -> (String, String) {
    (
        format!("<!-- made by: heaptoll-papers {command} -->"),
        format!("<!-- end of: heaptoll-papers {command} -->"),
    )
}

/// The text before and after a command's block in a document.
fn around_block(command: &str, document: &Path) -> Result<(String, String), Error> {
    let text = std::fs::read_to_string(document).map_err(Error::file("read", document))?;
    let (begin, end) = markers(command);
    let found = text
        .split_once(begin.as_str())
        .and_then(|(before, rest)| Some((before.to_owned(), rest.split_once(end.as_str())?.1.to_owned())));
    found.ok_or_else(|| Error::NoBlock { path: document.to_path_buf(), begin, end })
}

/// Outputs of a table in addition to the terminal.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Outputs {
    /// Write the table as JSON; - for standard output in place of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the table as CSV; - for standard output in place of the table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Put the table into a document, in place of the last one; - prints it in place of the table
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

impl Outputs {
    /// Checks that the blocks of these commands exist and that files can be written, before anything is measured.
    ///
    /// # Errors
    /// The document cannot be read, or has no such block; a file cannot be opened for writing.
    pub fn check(&self, commands: &[&str]) -> Result<(), Error> {
        for path in [&self.json, &self.csv].into_iter().flatten().filter(|path| *path != Path::new("-")) {
            std::fs::File::options()
                .append(true)
                .create(true)
                .open(path)
                .map_err(Error::file("write", path))?;
        }
        let document = self.markdown.as_deref().filter(|path| *path != Path::new("-"));
        let Some(document) = document else { return Ok(()) };
        commands.iter().try_for_each(|command| around_block(command, document).map(drop))
    }

    /// Writes all requested files, and the table when standard output is not taken.
    ///
    /// # Errors
    /// The first file that cannot be written; the table is printed before.
    pub fn write(&self, result_table: &ResultTable) -> Result<(), Error> {
        let stdout = Path::new("-");
        let print = |text: &str| {
            std::io::stdout().lock().write_all(text.as_bytes()).map_err(Error::file("write to", stdout))
        };
        let taken =
            [&self.json, &self.csv, &self.markdown].iter().any(|path| path.as_deref() == Some(stdout));
        if !taken {
            print(&result_table.terminal())?;
        }
        for (path, text) in
            [(&self.json, ResultTable::json as fn(&ResultTable) -> String), (&self.csv, ResultTable::csv)]
        {
            match path.as_deref() {
                None => {}
                Some(path) if path == stdout => print(&text(result_table))?,
                Some(path) => std::fs::write(path, text(result_table)).map_err(Error::file("write", path))?,
            }
        }
        match self.markdown.as_deref() {
            None => Ok(()),
            Some(path) if path == stdout => print(&result_table.markdown()),
            Some(path) => result_table.insert(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result_table() -> ResultTable {
        ResultTable {
            command: "trial",
            title: "A trial".into(),
            columns: vec![
                column("program", "program"),
                column("cost_s", "cost, s"),
                column("lock", "lock"),
                data("calls"),
            ],
            rows: vec![
                vec!["a, b".into(), Cell::Figure(1.0 / 3.0, 2), Cell::None, Cell::Figure(12345.0, 0)],
                vec!["c".into(), Cell::maybe(None, 0), Cell::maybe(Some(7.0), 0), Cell::None],
            ],
            verdict: vec!["It holds.".into()],
            notes: vec![],
            machine: "a machine".into(),
        }
    }

    #[test]
    fn every_form_has_every_figure() {
        let result_table = result_table();
        let shown = result_table.terminal();
        assert!(
            ["A trial", "cost, s", "0.33", " - ", "It holds."].iter().all(|part| shown.contains(part)),
            "{shown}"
        );
        assert_eq!(
            result_table.csv(),
            "program,cost_s,lock,calls\n\"a, b\",0.3333333333333333,,12345\nc,,7,\n"
        );
        assert!(!shown.contains("12345") && !result_table.markdown().contains("calls"), "{shown}");
        let read: Value = serde_json::from_str(&result_table.json()).expect("JSON");
        assert_eq!(read["schema"], SCHEMA);
        assert_eq!(read["rows"][0]["cost_s"], json!(1.0 / 3.0));
        assert_eq!(read["rows"][0]["lock"], Value::Null);
        assert_eq!(read["verdict"][0], "It holds.");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_before_measuring_and_an_old_one_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let nowhere = Outputs { json: Some(folder.path().join("none/x.json")), ..Outputs::default() };
        assert!(nowhere.check(&[]).is_err());
        let old = folder.path().join("old.csv");
        std::fs::write(&old, "kept").expect("writes");
        Outputs { csv: Some(old.clone()), ..Outputs::default() }.check(&[]).expect("can be written");
        assert_eq!(std::fs::read_to_string(&old).expect("reads"), "kept");
    }

    #[test]
    fn a_documents_block_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("doc.md");
        let text = "# Head\n<!-- made by: heaptoll-papers trial -->\noutdated\n<!-- end of: heaptoll-papers trial -->\ntail\n";
        std::fs::write(&path, text).expect("writes");
        for _ in 0..2 {
            result_table().insert(&path).expect("a block");
            let now = std::fs::read_to_string(&path).expect("reads");
            assert!(now.starts_with("# Head\n<!-- made by") && now.ends_with("trial -->\ntail\n"), "{now}");
            assert!(now.contains("| a, b ") && !now.contains("outdated"), "{now}");
            assert_eq!(now.matches("A trial").count(), 1);
        }
        std::fs::write(&path, "no block\n").expect("writes");
        assert!(matches!(result_table().insert(&path), Err(Error::NoBlock { .. })));
    }
}
