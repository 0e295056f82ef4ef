//! The SQLite file of a history: a row a gate, and a row each program, side and metric of it.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Row, params};

use super::commit::Commit;
use super::error::HistoryError;
use crate::figures::{Figures, MetricFigures, MetricVerdict, Program};
use crate::values::{ends, unit_name};
use heaptoll_command::version::OURS;

/// `HTGH` in ASCII: marks our files.
const APPLICATION_ID: i64 = 0x4854_4748;
/// Layout of the tables below.
const LAYOUT: i64 = 1;
/// Another gate may be writing.
const PATIENCE: Duration = Duration::from_secs(10);
const TABLES: &str = "
CREATE TABLE gate (
    id INTEGER PRIMARY KEY, measured_unix_s REAL NOT NULL, heaptoll TEXT NOT NULL, cpu TEXT NOT NULL,
    libc TEXT NOT NULL, complete INTEGER NOT NULL);
CREATE TABLE figure (
    gate INTEGER NOT NULL REFERENCES gate (id), program TEXT NOT NULL, side TEXT NOT NULL, metric TEXT NOT NULL,
    unit TEXT NOT NULL, value REAL NOT NULL, low REAL, high REAL, ratio REAL, verdict TEXT NOT NULL,
    commit_hash TEXT, commit_unix_s INTEGER, dirty INTEGER);
";
const INSERT: &str =
    "INSERT INTO figure (gate, program, side, metric, unit, value, low, high, ratio, verdict, commit_hash,
    commit_unix_s, dirty) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
const SELECT: &str = "SELECT gate.measured_unix_s, gate.heaptoll, gate.cpu, figure.program, figure.side, figure.metric,
    figure.unit, figure.value, figure.low, figure.high, figure.ratio, figure.verdict, figure.commit_hash,
    figure.commit_unix_s, figure.dirty FROM figure JOIN gate ON gate.id = figure.gate ORDER BY gate.id, figure.rowid";

/// One figure of one side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HistoryRow {
    /// When the gate began, Unix seconds.
    pub measured_unix_s: f64,
    /// Version of heaptoll.
    pub heaptoll: String,
    /// Processor model: counts of instructions differ between models.
    pub cpu: String,
    /// The program.
    pub program: String,
    /// `base` or `new`.
    pub side: String,
    /// The metric's name.
    pub metric: String,
    /// Its unit: `count`, `bytes`, `s`.
    pub unit: String,
    /// The figure.
    pub value: f64,
    /// Lower end of the new build's interval, where it was measured.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The new build's figure over the base's.
    pub ratio: Option<f64>,
    /// `within`, `broken`, `undecided`, `not_gated`.
    pub verdict: String,
    /// The commit that the side was built of, where it is known.
    pub commit: Option<Commit>,
}

/// Whether rows can be added to a file, before time is spent on measuring. A new one is not made.
///
/// # Errors
/// It is another program's, or a later heaptoll's.
pub fn check(path: &Path) -> Result<(), HistoryError> {
    if path.exists() { open(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map(drop) } else { Ok(()) }
}

/// Adds a gate to a file, which is made where there is none; all of its rows, or none. `commits` are those of base and
/// new build of each program, in the order of the figures.
///
/// # Errors
/// The file is another program's or a later heaptoll's, or cannot be written.
pub fn append(path: &Path, figures: &Figures, commits: &[[Option<Commit>; 2]]) -> Result<(), HistoryError> {
    let file = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    let written = (|| {
        let transaction = file.unchecked_transaction()?;
        let machine = &figures.machine;
        transaction.execute(
            "INSERT INTO gate (measured_unix_s, heaptoll, cpu, libc, complete) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![figures.created_unix_s, OURS, machine.cpu, machine.libc, figures.complete],
        )?;
        let gate = transaction.last_insert_rowid();
        for (at, program) in figures.programs.iter().enumerate() {
            let [base, new] = commits.get(at).cloned().unwrap_or_default();
            insert(&transaction, gate, program, "base", base.as_ref(), |metric| metric.base)?;
            insert(&transaction, gate, program, "new", new.as_ref(), |metric| metric.new)?;
        }
        transaction.commit()
    })();
    written.map_err(|cause| HistoryError::Sqlite { path: path.to_owned(), cause })
}

fn insert(
    file: &Connection,
    gate: i64,
    program: &Program,
    side: &str,
    commit: Option<&Commit>,
    figure: fn(&MetricFigures) -> Option<f64>,
) -> rusqlite::Result<()> {
    let mut insert = file.prepare(INSERT)?;
    for metric in &program.metrics {
        let Some(value) = figure(metric).filter(|value| value.is_finite()) else { continue };
        let ends = ends(metric).filter(|_| side == "new");
        insert.execute(params![
            gate,
            program.name,
            side,
            metric.metric.name(),
            unit_name(metric.unit),
            value,
            ends.map(|ends| ends.0),
            ends.map(|ends| ends.1),
            metric.change.ratio().filter(|ratio| ratio.is_finite()),
            verdict(&metric.verdict),
            commit.map(|commit| &commit.hash),
            commit.and_then(|commit| commit.unix_s),
            commit.map(|commit| commit.dirty),
        ])?;
    }
    Ok(())
}

fn verdict(verdict: &MetricVerdict) -> &'static str {
    match verdict {
        MetricVerdict::Within => "within",
        MetricVerdict::Broken => "broken",
        MetricVerdict::Undecided { .. } => "undecided",
        MetricVerdict::NotGated { .. } => "not_gated",
    }
}

/// All rows, the earliest gate first.
///
/// # Errors
/// The file is missing, another program's, a later heaptoll's, or damaged.
pub fn read(path: &Path) -> Result<Vec<HistoryRow>, HistoryError> {
    if !path.exists() {
        return Err(HistoryError::Missing(path.to_owned()));
    }
    let file = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let rows: rusqlite::Result<Vec<HistoryRow>> = (|| {
        let mut select = file.prepare(SELECT)?;
        select.query_map([], row)?.collect()
    })();
    rows.map_err(|cause| HistoryError::Sqlite { path: path.to_owned(), cause })
}

fn row(row: &Row) -> rusqlite::Result<HistoryRow> {
    let hash: Option<String> = row.get(12)?;
    let commit = match hash {
        Some(hash) => Some(Commit {
            hash,
            unix_s: row.get(13)?,
            dirty: row.get::<_, Option<bool>>(14)?.unwrap_or(false),
        }),
        None => None,
    };
    Ok(HistoryRow {
        measured_unix_s: row.get(0)?,
        heaptoll: row.get(1)?,
        cpu: row.get(2)?,
        program: row.get(3)?,
        side: row.get(4)?,
        metric: row.get(5)?,
        unit: row.get(6)?,
        value: row.get(7)?,
        low: row.get(8)?,
        high: row.get(9)?,
        ratio: row.get(10)?,
        verdict: row.get(11)?,
        commit,
    })
}

/// Opens a file of this layout; makes its tables where it is empty and may be written.
fn open(path: &Path, flags: OpenFlags) -> Result<Connection, HistoryError> {
    let error = |cause| HistoryError::Sqlite { path: path.to_owned(), cause };
    let foreign = |reason: &str| HistoryError::Foreign { path: path.to_owned(), reason: reason.to_owned() };
    match std::fs::metadata(path) {
        Ok(about) if about.is_dir() => return Err(foreign("a folder; name a file in it")),
        // A FIFO would be waited for.
        Ok(about) if !about.is_file() => return Err(foreign("a device, a socket or a FIFO")),
        _ => {}
    }
    let file = Connection::open_with_flags(path, flags).map_err(error)?;
    file.busy_timeout(PATIENCE).map_err(error)?;
    let pragma = |name: &str| file.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let marks =
        pragma("application_id").and_then(|id| Ok((id, pragma("user_version")?, pragma("page_count")?)));
    match marks {
        Ok((APPLICATION_ID, LAYOUT, _)) => Ok(file),
        Ok((APPLICATION_ID, layout, _)) if layout > LAYOUT => {
            let needed =
                file.query_row("SELECT heaptoll FROM gate ORDER BY id DESC LIMIT 1", [], |row| row.get(0));
            let needed = needed.unwrap_or_else(|_| "a later version".to_owned());
            Err(HistoryError::Newer { path: path.to_owned(), layout, known: LAYOUT, needed })
        }
        Ok((0, 0, 0)) if flags.contains(OpenFlags::SQLITE_OPEN_READ_WRITE) => {
            begin(&file).map_err(error)?;
            Ok(file)
        }
        Ok(_) => Err(foreign("an SQLite file of another kind")),
        Err(cause) if cause.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            Err(foreign("not an SQLite file"))
        }
        Err(cause) => Err(error(cause)),
    }
}

/// Makes the tables, unless another gate has made them meanwhile.
fn begin(file: &Connection) -> rusqlite::Result<()> {
    let transaction = rusqlite::Transaction::new_unchecked(file, rusqlite::TransactionBehavior::Immediate)?;
    let layout: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if layout == 0 {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", LAYOUT)?;
    }
    transaction.commit()
}
