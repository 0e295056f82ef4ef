//! Rows of observations in the file: figures of every run in columns of their own, those of some kinds of runs as JSON.

use std::collections::BTreeMap;

use rusqlite::types::FromSql;
use rusqlite::{Row, params};
use serde::de::DeserializeOwned;

use super::error::StoreError;
use super::file::ExperimentFile;
use super::layout::ADDED;
use crate::disturbance::Disturbance;
use crate::observation::{Counters, Observation, Outcome, Phase};

/// The last column of files from before any was added.
const LAST_OF_OLDEST: usize = 26;

/// Appends one row; on disk when this returns.
///
/// # Errors
/// The file cannot be written.
pub(super) fn append(file: &ExperimentFile, row: &Observation) -> Result<(), StoreError> {
    // Plain text for those who query the file: `phase = 'timed'`.
    let (phase, outcome) = (file.json(&row.phase)?.replace('"', ""), file.json(&row.outcome)?);
    let serve = row.serve.as_ref().map(|serve| file.json(serve)).transpose()?;
    let collections = row.collections.as_ref().map(|collections| file.json(collections)).transpose()?;
    let exact = row.exact.as_ref().map(|exact| file.json(exact)).transpose()?;
    let locality = row.locality.as_ref().map(|locality| file.json(locality)).transpose()?;
    let own = (!row.figures.is_empty()).then(|| file.json(&row.figures)).transpose()?;
    let disturbance = row.disturbance;
    // SQLite's integers are signed; figures beyond 2^63 do not occur.
    let n = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    file.connection
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
        .map_err(|cause| file.error(cause))
}

/// Every row, in the order of the runs.
///
/// # Errors
/// The file cannot be read, or a value does not parse.
pub(super) fn read(file: &ExperimentFile) -> Result<Vec<Observation>, StoreError> {
    let mut last = LAST_OF_OLDEST;
    for (_, column, _) in ADDED.iter().filter(|(table, ..)| *table == "observation") {
        last += usize::from(file.has_column("observation", column)?);
    }
    let read = || -> rusqlite::Result<Vec<RawRow>> {
        let mut statement = file.connection.prepare("SELECT * FROM observation ORDER BY position")?;
        let rows = statement.query_map([], |row| RawRow::of(&Cells { row, last }))?;
        rows.collect()
    };
    let rows = read().map_err(|cause| file.error(cause))?;
    let damaged = |error: serde_json::Error| file.damaged(&format!("a row: {error}"));
    rows.into_iter().map(|row| row.parsed().map_err(damaged)).collect()
}

/// The cells of a row, of which a file from before some columns has none there.
struct Cells<'a> {
    row: &'a Row<'a>,
    /// The last column that the file has.
    last: usize,
}

impl Cells<'_> {
    fn count(&self, index: usize) -> rusqlite::Result<u64> {
        self.row.get::<_, i64>(index).map(|value| value.max(0) as u64)
    }

    fn optional<T: FromSql>(&self, index: usize) -> rusqlite::Result<Option<T>> {
        if index > self.last { Ok(None) } else { self.row.get(index) }
    }

    fn optional_count(&self, index: usize) -> rusqlite::Result<Option<u64>> {
        Ok(self.optional::<i64>(index)?.map(|value| value.max(0) as u64))
    }

    fn counters(&self) -> rusqlite::Result<Counters> {
        Ok(Counters {
            instructions: self.optional_count(17)?,
            cycles: self.optional_count(18)?,
            llc_misses: self.optional_count(19)?,
            dtlb_misses: self.optional_count(20)?,
        })
    }

    fn disturbance(&self) -> rusqlite::Result<Option<Disturbance>> {
        let real = |index| self.optional::<f64>(index);
        Ok(match (real(36)?, real(37)?, real(38)?, real(39)?) {
            (Some(seconds), Some(steal), Some(interrupts), Some(other_work)) => {
                Some(Disturbance { seconds, steal, interrupts, other_work, throttled: real(40)? })
            }
            _ => None,
        })
    }
}

/// A row whose phase and outcome, and whose figures of some kinds of runs, are still JSON.
struct RawRow {
    row: Observation,
    phase: String,
    outcome: String,
    serve: Option<String>,
    collections: Option<String>,
    exact: Option<String>,
    locality: Option<String>,
    figures: Option<String>,
}

impl RawRow {
    fn of(cells: &Cells) -> rusqlite::Result<RawRow> {
        let row = cells.row;
        let observation = Observation {
            order: row.get(0)?,
            repetition: row.get(1)?,
            // What is JSON is put in by `parsed`, where a value that does not parse can be reported as damage.
            phase: Phase::Timed,
            outcome: Outcome::Ok,
            program: row.get(3)?,
            stack: row.get(4)?,
            user_s: row.get(6)?,
            system_s: row.get(7)?,
            wall_s: row.get(8)?,
            peak_rss_kib: cells.count(9)?,
            minor_faults: cells.count(10)?,
            major_faults: cells.count(11)?,
            voluntary_switches: cells.count(12)?,
            involuntary_switches: cells.count(13)?,
            output_bytes: cells.count(14)?,
            output_digest: row.get(15)?,
            heap_high_water_bytes: cells.optional_count(16)?,
            collections: None,
            collector_cpu_ns: cells.optional_count(30)?,
            used_high_bytes: cells.optional_count(31)?,
            refused_calls: cells.optional_count(32)?,
            held_high_bytes: cells.optional_count(33)?,
            written_after_free: cells.optional_count(34)?,
            figures: BTreeMap::new(),
            counters: cells.counters()?,
            started_unix_s: row.get(21)?,
            load_average: row.get(22)?,
            env_padding: row.get(23)?,
            stderr_tail: row.get(24)?,
            killed_orphans: row.get(25)?,
            serve: None,
            exact: None,
            locality: None,
            disturbance: cells.disturbance()?,
        };
        Ok(RawRow {
            row: observation,
            phase: row.get(2)?,
            outcome: row.get(5)?,
            serve: row.get(26)?,
            collections: cells.optional(27)?,
            exact: cells.optional(28)?,
            locality: cells.optional(29)?,
            figures: cells.optional(35)?,
        })
    }

    fn parsed(self) -> serde_json::Result<Observation> {
        Ok(Observation {
            phase: serde_json::from_value(self.phase.into())?,
            outcome: serde_json::from_str(&self.outcome)?,
            serve: parse(self.serve)?,
            collections: parse(self.collections)?,
            exact: parse(self.exact)?,
            locality: parse(self.locality)?,
            figures: parse(self.figures)?.unwrap_or_default(),
            ..self.row
        })
    }
}

fn parse<T: DeserializeOwned>(text: Option<String>) -> serde_json::Result<Option<T>> {
    text.map(|text| serde_json::from_str(&text)).transpose()
}
