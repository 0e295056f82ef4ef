//! One SQLite file an experiment, appended after every invocation: whatever happens next, rows survive.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::disturbance::Disturbance;
use crate::experiment::Experiment;
use crate::observation::{Counters, MemoryTrack, Observation};

/// `HTOL` in ASCII: marks our files.
const APPLICATION_ID: i64 = 0x4854_4f4c;
/// Layout of the tables below.
const LAYOUT: i64 = 1;

const TABLES: &str = "
CREATE TABLE description (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE observation (
    position INTEGER PRIMARY KEY, repetition INTEGER NOT NULL, phase TEXT NOT NULL,
    program TEXT NOT NULL, stack TEXT NOT NULL, outcome TEXT NOT NULL,
    user_s REAL NOT NULL, system_s REAL NOT NULL, wall_s REAL NOT NULL, peak_rss_kib INTEGER NOT NULL,
    minor_faults INTEGER NOT NULL, major_faults INTEGER NOT NULL,
    voluntary_switches INTEGER NOT NULL, involuntary_switches INTEGER NOT NULL,
    output_bytes INTEGER NOT NULL, output_digest TEXT NOT NULL, heap_high_water_bytes INTEGER,
    instructions INTEGER, cycles INTEGER, llc_misses INTEGER, dtlb_misses INTEGER,
    started_unix_s REAL NOT NULL, load_average REAL NOT NULL, env_padding INTEGER NOT NULL,
    stderr_tail TEXT NOT NULL, left_behind INTEGER NOT NULL, serve TEXT, collections TEXT, exact TEXT, locality TEXT,
    collector_cpu_ns INTEGER, used_high_bytes INTEGER, refused_calls INTEGER, held_high_bytes INTEGER,
    written_after_free INTEGER, figures TEXT,
    span_s REAL, steal REAL, interrupts REAL, other_work REAL, throttled REAL);
CREATE TABLE memory_sample (
    program TEXT NOT NULL, stack TEXT NOT NULL, repetition INTEGER NOT NULL, t_s REAL NOT NULL, rss_kib INTEGER NOT NULL);
CREATE TABLE memory_mark (
    program TEXT NOT NULL, stack TEXT NOT NULL, repetition INTEGER NOT NULL, vm_hwm_kib INTEGER NOT NULL,
    anonymous_peak_kib INTEGER);
";

/// Columns that files of the same layout may lack, because they were begun before there were such figures. They come
/// last in their tables and may be null.
const ADDED: [(&str, &str, &str); 15] = [
    ("observation", "collections", "TEXT"),
    ("observation", "exact", "TEXT"),
    ("observation", "locality", "TEXT"),
    ("observation", "collector_cpu_ns", "INTEGER"),
    ("observation", "used_high_bytes", "INTEGER"),
    ("observation", "refused_calls", "INTEGER"),
    ("observation", "held_high_bytes", "INTEGER"),
    ("observation", "written_after_free", "INTEGER"),
    ("observation", "figures", "TEXT"),
    ("observation", "span_s", "REAL"),
    ("observation", "steal", "REAL"),
    ("observation", "interrupts", "REAL"),
    ("observation", "other_work", "REAL"),
    ("observation", "throttled", "REAL"),
    ("memory_mark", "anonymous_peak_kib", "INTEGER"),
];

/// A file that cannot be used, or cannot be written any more.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It exists already.
    #[error(
        "{0} exists already; give another name to --db (`heaptoll run` goes on with its own by --resume)"
    )]
    Exists(PathBuf),
    /// Another run appends to it.
    #[error("{0} is being written by another heaptoll run; wait for its end")]
    InUse(PathBuf),
    /// It does not exist.
    #[error(
        "{0} does not exist; experiments are written by `heaptoll run`, `delay` and `frequency` with `--db FILE`"
    )]
    Missing(PathBuf),
    /// Not a file of heaptoll's.
    #[error("{path} is not a heaptoll experiment ({reason})")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What was seen.
        reason: String,
    },
    /// Written by a newer heaptoll.
    #[error("{path} has layout {layout}, this heaptoll reads {LAYOUT}; update heaptoll")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its layout number.
        layout: i64,
    },
    /// Damaged content.
    #[error("{path} is damaged: {reason}; `sqlite3 {path} .recover` may save rows", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// SQLite's own failure: disk full, no permission, locked by another heaptoll.
    #[error("{path}: {advice} ({cause})", path = .path.display(), advice = advice(.cause))]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        cause: rusqlite::Error,
    },
}

fn advice(cause: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode;
    match cause.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
            "the disk is full or failing; rows so far are kept"
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            "cannot be opened for writing; check the folder and its permissions"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "is in use by another heaptoll",
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => "is no intact SQLite file",
        _ => "cannot be read or written",
    }
}

/// An open experiment file.
pub struct Store {
    path: PathBuf,
    connection: Connection,
    /// Held by the one heaptoll that appends. Declared last, since closing any descriptor of the file releases the
    /// locks of SQLite's own.
    writer: Option<File>,
}

impl Store {
    /// Makes a new file with the experiment's description and no rows.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    pub fn create(path: &Path, experiment: &Experiment) -> Result<Store, StoreError> {
        if path.exists() {
            return Err(StoreError::Exists(path.into()));
        }
        let mut store =
            Store::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        let made = (|| {
            store.connection.pragma_update(None, "application_id", APPLICATION_ID)?;
            store.connection.pragma_update(None, "user_version", LAYOUT)?;
            store.connection.execute_batch(TABLES)
        })();
        made.map_err(|cause| store.error(cause))?;
        store.describe(experiment)?;
        store.become_writer()?;
        Ok(store)
    }

    /// Opens an existing file for more rows and reads it.
    ///
    /// # Errors
    /// It is missing, foreign, newer, damaged or not writable.
    pub fn resume(path: &Path) -> Result<(Store, Experiment), StoreError> {
        let mut store = Store::open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        store.become_writer()?;
        store.add_columns()?;
        let experiment = store.load()?;
        Ok((store, experiment))
    }

    /// Reads an experiment.
    ///
    /// # Errors
    /// It is missing, foreign, newer or damaged.
    pub fn read(path: &Path) -> Result<Experiment, StoreError> {
        Store::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?.load()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Store, StoreError> {
        let error = |cause| StoreError::Sqlite { path: path.into(), cause };
        let connection = Connection::open_with_flags(path, flags).map_err(error)?;
        connection.busy_timeout(Duration::from_secs(2)).map_err(error)?;
        Ok(Store { path: path.into(), connection, writer: None })
    }

    fn open(path: &Path, flags: OpenFlags) -> Result<Store, StoreError> {
        let foreign = |reason: &str| StoreError::Foreign { path: path.into(), reason: reason.into() };
        match std::fs::metadata(path) {
            Err(_) => return Err(StoreError::Missing(path.into())),
            Ok(about) if about.is_dir() => return Err(foreign("a folder; name a file in it")),
            // A FIFO would be waited for.
            Ok(about) if !about.is_file() => return Err(foreign("a device, a socket or a FIFO")),
            Ok(_) => {}
        }
        let mut store = Store::connect(path, flags)?;
        // A writer that was killed may have left a journal, and undoing the half row needs to write.
        if flags.contains(OpenFlags::SQLITE_OPEN_READ_ONLY) && store.needs_recovery() {
            store = Store::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        }
        let pragma = |name: &str| store.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        match pragma("application_id") {
            Ok(APPLICATION_ID) => {}
            Ok(_) => return Err(foreign("an SQLite file of another program")),
            Err(cause) if cause.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
                return Err(foreign("not an SQLite file"));
            }
            Err(cause) => return Err(store.error(cause)),
        }
        match pragma("user_version").map_err(|cause| store.error(cause))? {
            LAYOUT => {}
            layout => return Err(StoreError::Newer { path: path.into(), layout }),
        }
        store.check_length()?;
        // SQLite reads what it needs and may never touch a damaged page; figures may not be served from such a file.
        let whole: String = store
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|cause| store.error(cause))?;
        if whole == "ok" { Ok(store) } else { Err(store.damaged(&whole)) }
    }

    /// Two experiments in one file would mix their rows.
    fn become_writer(&mut self) -> Result<(), StoreError> {
        let file = File::open(&self.path).and_then(|file| {
            file.try_lock()?;
            Ok(file)
        });
        match file {
            Ok(file) => self.writer = Some(file),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                return Err(StoreError::InUse(self.path.clone()));
            }
            // A file system without such locks: SQLite's own keep the file whole.
            Err(_) => {}
        }
        Ok(())
    }

    /// Gives an older file the columns that it lacks.
    fn add_columns(&self) -> Result<(), StoreError> {
        for (table, column, kind) in ADDED {
            if !self.has_column(table, column)? {
                self.connection
                    .execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column} {kind}"))
                    .map_err(|cause| self.error(cause))?;
            }
        }
        Ok(())
    }

    fn has_column(&self, table: &str, column: &str) -> Result<bool, StoreError> {
        self.connection.column_exists(None, table, column).map_err(|cause| self.error(cause))
    }

    /// Whether the file has a journal that a read-only connection cannot apply.
    fn needs_recovery(&self) -> bool {
        let version = self.connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0));
        version.err().and_then(|cause| cause.sqlite_error_code()) == Some(rusqlite::ErrorCode::ReadOnly)
    }

    /// SQLite reads zeroes where the last page is cut.
    fn check_length(&self) -> Result<(), StoreError> {
        let pragma = |name: &str| {
            self.connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                .map_err(|cause| self.error(cause))
        };
        let expected = u64::try_from(pragma("page_count")? * pragma("page_size")?).unwrap_or(0);
        let length = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        if length < expected {
            return Err(self.damaged(&format!("{} of its {expected} bytes are missing", expected - length)));
        }
        Ok(())
    }

    fn error(&self, cause: rusqlite::Error) -> StoreError {
        match cause.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseCorrupt) => self.damaged(&cause.to_string()),
            _ => StoreError::Sqlite { path: self.path.clone(), cause },
        }
    }

    fn damaged(&self, reason: &str) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), reason: reason.into() }
    }

    /// Writes everything but the rows: at the beginning, when a resume changes the settings, at the end.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn describe(&self, experiment: &Experiment) -> Result<(), StoreError> {
        self.put("heaptoll_version", &experiment.heaptoll_version)?;
        self.put("created_unix_s", &experiment.created_unix_s)?;
        self.put("settings", &experiment.settings)?;
        self.put("machine", &experiment.machine)?;
        self.put("baseline", &experiment.baseline)?;
        self.put("programs", &experiment.programs)?;
        self.put("stacks", &experiment.stacks)?;
        self.put("refused", &experiment.refused)?;
        self.put("exact_notes", &experiment.exact_notes)?;
        self.put("own_cost", &experiment.own_cost)?;
        self.put("complete", &experiment.complete)
    }

    fn put<T: Serialize>(&self, key: &str, value: &T) -> Result<(), StoreError> {
        let text = serde_json::to_string(value).map_err(|error| self.damaged(&error.to_string()))?;
        self.connection
            .execute("INSERT OR REPLACE INTO description VALUES (?1, ?2)", params![key, text])
            .map(drop)
            .map_err(|cause| self.error(cause))
    }

    fn get<T: DeserializeOwned>(&self, key: &str) -> Result<T, StoreError> {
        self.find(key)?.ok_or_else(|| self.damaged(&format!("no `{key}`")))
    }

    /// What an older file may lack.
    fn find<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StoreError> {
        let text: Option<String> = self
            .connection
            .query_row("SELECT value FROM description WHERE key = ?1", [key], |row| row.get(0))
            .optional()
            .map_err(|cause| self.error(cause))?;
        maybe(text).map_err(|error| self.damaged(&format!("`{key}`: {error}")))
    }

    /// Appends one row; on disk when this returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&self, row: &Observation) -> Result<(), StoreError> {
        let json = |value: &dyn erased::Json| value.json().map_err(|error| self.damaged(&error));
        // Plain text for those who query the file: `phase = 'timed'`.
        let (phase, outcome) = (json(&row.phase)?.replace('"', ""), json(&row.outcome)?);
        let serve = row.serve.as_ref().map(|serve| json(serve)).transpose()?;
        let collections = row.collections.as_ref().map(|collections| json(collections)).transpose()?;
        let exact = row.exact.as_ref().map(|exact| json(exact)).transpose()?;
        let locality = row.locality.as_ref().map(|locality| json(locality)).transpose()?;
        let own = (!row.figures.is_empty()).then(|| json(&row.figures)).transpose()?;
        let disturbance = row.disturbance;
        // SQLite's integers are signed; figures beyond 2^63 do not occur.
        let n = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.connection
            .execute(
                "INSERT INTO observation VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,\
                 ?20,?21,?22,?23,?24,?25,?26,?27,?28,?29,?30,?31,?32,?33,?34,?35,?36,?37,?38,?39,?40,?41)",
                params![
                    row.order,
                    row.repetition,
                    phase,
                    row.program,
                    row.stack,
                    outcome,
                    row.user_s,
                    row.system_s,
                    row.wall_s,
                    n(row.peak_rss_kib),
                    n(row.minor_faults),
                    n(row.major_faults),
                    n(row.voluntary_switches),
                    n(row.involuntary_switches),
                    n(row.output_bytes),
                    row.output_digest,
                    row.heap_high_water_bytes.map(n),
                    row.counters.instructions.map(n),
                    row.counters.cycles.map(n),
                    row.counters.llc_misses.map(n),
                    row.counters.dtlb_misses.map(n),
                    row.started_unix_s,
                    row.load_average,
                    row.env_padding,
                    row.stderr_tail,
                    row.killed_orphans,
                    serve,
                    collections,
                    exact,
                    locality,
                    row.collector_cpu_ns.map(n),
                    row.used_high_bytes.map(n),
                    row.refused_calls.map(n),
                    row.held_high_bytes.map(n),
                    row.written_after_free.map(n),
                    own,
                    disturbance.map(|one| one.seconds),
                    disturbance.map(|one| one.steal),
                    disturbance.map(|one| one.interrupts),
                    disturbance.map(|one| one.other_work),
                    disturbance.and_then(|one| one.throttled),
                ],
            )
            .map(drop)
            .map_err(|cause| self.error(cause))
    }

    /// Appends rows that belong together, all or none of them.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append_all<'a>(&self, rows: impl IntoIterator<Item = &'a Observation>) -> Result<(), StoreError> {
        let transaction = self.connection.unchecked_transaction().map_err(|cause| self.error(cause))?;
        for row in rows {
            self.append(row)?;
        }
        transaction.commit().map_err(|cause| self.error(cause))
    }

    /// Appends memory over time of one row.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append_track(&mut self, track: &MemoryTrack) -> Result<(), StoreError> {
        let written = (|| {
            let transaction = self.connection.transaction()?;
            let n = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
            for (t_s, rss_kib) in &track.samples {
                transaction.execute(
                    "INSERT INTO memory_sample VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![track.program, track.stack, track.repetition, t_s, n(*rss_kib)],
                )?;
            }
            transaction.execute(
                "INSERT INTO memory_mark VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    track.program,
                    track.stack,
                    track.repetition,
                    n(track.vm_hwm_kib),
                    n(track.anonymous_peak_kib)
                ],
            )?;
            transaction.commit()
        })();
        written.map_err(|cause| self.error(cause))
    }

    fn load(&self) -> Result<Experiment, StoreError> {
        Ok(Experiment {
            heaptoll_version: self.get("heaptoll_version")?,
            created_unix_s: self.get("created_unix_s")?,
            settings: self.get("settings")?,
            machine: self.get("machine")?,
            baseline: self.get("baseline")?,
            programs: self.get("programs")?,
            stacks: self.get("stacks")?,
            refused: self.get("refused")?,
            exact_notes: self.find("exact_notes")?.unwrap_or_default(),
            own_cost: self.get("own_cost")?,
            complete: self.get("complete")?,
            observations: self.observations()?,
            tracks: self.tracks()?,
        })
    }

    fn observations(&self) -> Result<Vec<Observation>, StoreError> {
        // The columns after `serve`, of which an older file has the first so many.
        let mut last = 26;
        for (_, column, _) in ADDED.iter().filter(|(table, ..)| *table == "observation") {
            last += usize::from(self.has_column("observation", column)?);
        }
        let read = || -> rusqlite::Result<Vec<RawRow>> {
            let mut statement = self.connection.prepare("SELECT * FROM observation ORDER BY position")?;
            let rows = statement.query_map([], |row| {
                let n = |index: usize| row.get::<_, i64>(index).map(|value| value.max(0) as u64);
                let some = |index: usize| {
                    let value = if index > last { None } else { row.get::<_, Option<i64>>(index)? };
                    Ok::<_, rusqlite::Error>(value.map(|value| value.max(0) as u64))
                };
                let later = |index: usize| if index > last { Ok(None) } else { row.get(index) };
                let real =
                    |index: usize| if index > last { Ok(None) } else { row.get::<_, Option<f64>>(index) };
                let disturbance = match (real(36)?, real(37)?, real(38)?, real(39)?) {
                    (Some(seconds), Some(steal), Some(interrupts), Some(other_work)) => {
                        Some(Disturbance { seconds, steal, interrupts, other_work, throttled: real(40)? })
                    }
                    _ => None,
                };
                let observation = Observation {
                    order: row.get(0)?,
                    repetition: row.get(1)?,
                    // Both are put in below, where a value that does not parse can be reported as damage.
                    phase: crate::observation::Phase::Timed,
                    outcome: crate::observation::Outcome::Ok,
                    program: row.get(3)?,
                    stack: row.get(4)?,
                    user_s: row.get(6)?,
                    system_s: row.get(7)?,
                    wall_s: row.get(8)?,
                    peak_rss_kib: n(9)?,
                    minor_faults: n(10)?,
                    major_faults: n(11)?,
                    voluntary_switches: n(12)?,
                    involuntary_switches: n(13)?,
                    output_bytes: n(14)?,
                    output_digest: row.get(15)?,
                    heap_high_water_bytes: some(16)?,
                    collections: None,
                    collector_cpu_ns: some(30)?,
                    used_high_bytes: some(31)?,
                    refused_calls: some(32)?,
                    held_high_bytes: some(33)?,
                    written_after_free: some(34)?,
                    figures: BTreeMap::new(),
                    counters: Counters {
                        instructions: some(17)?,
                        cycles: some(18)?,
                        llc_misses: some(19)?,
                        dtlb_misses: some(20)?,
                    },
                    started_unix_s: row.get(21)?,
                    load_average: row.get(22)?,
                    env_padding: row.get(23)?,
                    stderr_tail: row.get(24)?,
                    killed_orphans: row.get(25)?,
                    serve: None,
                    exact: None,
                    locality: None,
                    disturbance,
                };
                let figures = [row.get(26)?, later(27)?, later(28)?, later(29)?, later(35)?];
                Ok((observation, [row.get(2)?, row.get(5)?], figures))
            })?;
            rows.collect()
        };
        let rows = read().map_err(|cause| self.error(cause))?;
        let damaged = |error: serde_json::Error| self.damaged(&format!("a row: {error}"));
        rows.into_iter()
            .map(|(mut row, [phase, outcome], [serve, collections, exact, locality, own])| {
                row.phase = serde_json::from_value(phase.into()).map_err(damaged)?;
                row.outcome = serde_json::from_str(&outcome).map_err(damaged)?;
                row.serve = maybe(serve).map_err(damaged)?;
                row.collections = maybe(collections).map_err(damaged)?;
                row.exact = maybe(exact).map_err(damaged)?;
                row.locality = maybe(locality).map_err(damaged)?;
                row.figures = maybe(own).map_err(damaged)?.unwrap_or_default();
                Ok(row)
            })
            .collect()
    }

    fn tracks(&self) -> Result<Vec<MemoryTrack>, StoreError> {
        let has_anonymous = self.has_column("memory_mark", "anonymous_peak_kib")?;
        let read = || -> rusqlite::Result<Vec<MemoryTrack>> {
            let mut marks = self.connection.prepare("SELECT * FROM memory_mark ORDER BY rowid")?;
            let mut samples = self.connection.prepare(
                "SELECT t_s, rss_kib FROM memory_sample WHERE program = ?1 AND stack = ?2 AND repetition = ?3 ORDER BY rowid",
            )?;
            let heads = marks.query_map([], |row| {
                Ok(MemoryTrack {
                    program: row.get(0)?,
                    stack: row.get(1)?,
                    repetition: row.get(2)?,
                    samples: Vec::new(),
                    vm_hwm_kib: row.get::<_, i64>(3)?.max(0) as u64,
                    anonymous_peak_kib: if has_anonymous {
                        row.get::<_, Option<i64>>(4)?.unwrap_or(0).max(0) as u64
                    } else {
                        0
                    },
                })
            })?;
            heads
                .map(|track| {
                    let mut track = track?;
                    track.samples = samples
                        .query_map(params![track.program, track.stack, track.repetition], |row| {
                            Ok((row.get(0)?, row.get::<_, i64>(1)?.max(0) as u64))
                        })?
                        .collect::<rusqlite::Result<_>>()?;
                    Ok(track)
                })
                .collect()
        };
        read().map_err(|cause| self.error(cause))
    }
}

/// A row whose phase and outcome, and whose figures of some kinds of runs, are still JSON.
type RawRow = (Observation, [String; 2], [Option<String>; 5]);

fn maybe<T: DeserializeOwned>(text: Option<String>) -> serde_json::Result<Option<T>> {
    text.map(|text| serde_json::from_str(&text)).transpose()
}

/// A serialisable value by reference, so that one closure serves several types.
mod erased {
    /// JSON text of a value.
    pub trait Json {
        /// Serialises, or returns why not.
        fn json(&self) -> Result<String, String>;
    }

    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> Result<String, String> {
            serde_json::to_string(self).map_err(|error| error.to_string())
        }
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "store_fuzz.rs"]
mod fuzz;
