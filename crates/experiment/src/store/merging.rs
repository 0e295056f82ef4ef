//! One file of the shards of an experiment. Rows go from file to file inside SQLite: of a million none is ever in memory.

use std::fs::File;
use std::path::Path;

use rusqlite::{Connection, params};

use super::error::StoreError;
use super::file::ExperimentFile;
use super::layout::ANONYMOUS_PEAK;
use super::{attached, description};
use crate::columns::stored;
use crate::experiment::Experiment;
use crate::shards::Part;

/// Rows of a shard that are not of its part: `?1` is the program, then the first and the last warm-up, repetitions of a
/// round, the first and the last repetition or round.
// Sentence: a statement of SQL.
const OUTSIDE: &str = "SELECT count(*) FROM shard.observation WHERE program <> ?1 OR CASE \
    WHEN phase IN ('profile', 'warmup') THEN repetition < ?2 OR repetition > ?3 \
    WHEN phase IN ('timed', 'alone', 'startup') THEN repetition / ?4 < ?5 OR repetition / ?4 > ?6 ELSE 1 END";
/// Cells of a shard that have more than one row.
const TWICE: &str = "SELECT count(*) FROM (SELECT 1 FROM shard.observation GROUP BY stack, phase, repetition \
    HAVING count(*) > 1)";

/// A file that shards are added to.
pub struct Merging {
    file: ExperimentFile,
    /// Position of the next shard's first row.
    next: i64,
}

/// Why a shard's rows were not taken; the file has none of them.
pub type NotTaken = String;

impl Merging {
    /// A new file without rows.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    pub fn create(path: &Path) -> Result<Merging, StoreError> {
        let file = ExperimentFile::create(path)?;
        // What is half merged is merged again, so nothing has to survive a crash before the end.
        let fast = "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;";
        file.connection.execute_batch(fast).map_err(|cause| file.error(cause))?;
        Ok(Merging { file, next: 0 })
    }

    /// Adds the rows of a shard, whose file is whole: their number, or why they were not taken. `turns` are the
    /// repetitions of a round of its program, `warmup` the warm-ups of a shard.
    ///
    /// # Errors
    /// One of the files cannot be read or written.
    pub fn add(
        &mut self,
        shard: &Path,
        part: &Part,
        turns: u32,
        warmup: u32,
    ) -> Result<Result<u64, NotTaken>, StoreError> {
        let connection = &self.file.connection;
        let error = |cause| StoreError::Sqlite { path: shard.into(), cause };
        connection.execute("ATTACH DATABASE ?1 AS shard", [shard.to_string_lossy()]).map_err(error)?;
        let added = match not_its_own(connection, part, turns, warmup) {
            Ok(None) => copy(connection, self.next).map(Ok),
            Ok(Some(why)) => Ok(Err(why)),
            Err(cause) => Err(cause),
        };
        let detached = connection.execute_batch("DETACH DATABASE shard");
        let added = added.map_err(error)?;
        detached.map_err(error)?;
        if let Ok(rows) = added {
            self.next += i64::try_from(rows).unwrap_or(i64::MAX);
        }
        Ok(added)
    }

    /// Writes what describes the whole, and has all of it on disk.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self, experiment: &Experiment) -> Result<u64, StoreError> {
        description::write(&self.file, experiment)?;
        // A report reads the rows of one program at a time.
        let index = "CREATE INDEX observation_of_program ON observation (program)";
        self.file.connection.execute_batch(index).map_err(|cause| self.file.error(cause))?;
        let path = self.file.path.clone();
        let rows = self.next;
        drop(self);
        let synced = File::open(&path).and_then(|file| file.sync_all());
        synced.map_err(|cause| StoreError::NotOnDisk { path, cause })?;
        Ok(u64::try_from(rows).unwrap_or(0))
    }
}

/// What is wrong with the rows of the attached shard.
fn not_its_own(
    connection: &Connection,
    part: &Part,
    turns: u32,
    warmup: u32,
) -> rusqlite::Result<Option<NotTaken>> {
    let last = |first: u32, count: u32| i64::from(first) + i64::from(count) - 1;
    let ranges = params![
        part.program,
        part.first_warmup,
        last(part.first_warmup, warmup),
        turns.max(1),
        part.first,
        last(part.first, part.repetitions)
    ];
    let outside: i64 = connection.query_row(OUTSIDE, ranges, |row| row.get(0))?;
    let twice: i64 = connection.query_row(TWICE, [], |row| row.get(0))?;
    Ok(match (outside, twice) {
        (0, 0) => None,
        (0, twice) => Some(format!("{twice} of its cells have more than one row")),
        (outside, _) => Some(format!("{outside} of its rows are of other shards")),
    })
}

/// Copies the attached shard's tables; gives the number of its rows.
fn copy(connection: &Connection, next: i64) -> rusqlite::Result<u64> {
    let names: Vec<&str> = stored().map(|(_, stored)| stored.name).collect();
    let (position, others) = names.split_first().unwrap_or((&"position", &[]));
    let others = others.join(", ");
    let rows = format!(
        "INSERT INTO main.observation ({position}, {others}) SELECT ?1 + row_number() OVER (ORDER BY {position}), {others} \
         FROM shard.observation"
    );
    let samples = "INSERT INTO main.memory_sample SELECT * FROM shard.memory_sample ORDER BY rowid";
    let marks = format!(
        "INSERT INTO main.memory_mark (program, stack, repetition, vm_hwm_kib, {ANONYMOUS_PEAK}) \
         SELECT program, stack, repetition, vm_hwm_kib, {ANONYMOUS_PEAK} FROM shard.memory_mark ORDER BY rowid"
    );
    let transaction = connection.unchecked_transaction()?;
    // Window functions count from 1.
    let count = transaction.execute(&rows, [next - 1])?;
    transaction.execute(samples, [])?;
    transaction.execute(&marks, [])?;
    attached::copy(&transaction)?;
    transaction.commit()?;
    Ok(count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{MemoryTrack, Observation, Phase};
    use crate::store::Store;
    use crate::testing::{experiment, row};

    /// A shard's file with rows of these repetitions.
    fn shard(path: &Path, repetitions: &[u32]) {
        let mut store = Store::create(path, &experiment(&["glibc"])).expect("creates");
        for (order, repetition) in (0..).zip(repetitions) {
            let figures = [("own".to_owned(), 0.5)].into();
            let row = Observation { order, figures, ..row("glibc", *repetition, 1.0, 9) };
            store.append(&row).expect("appends");
        }
        let (program, stack) = ("prog".to_owned(), "glibc".to_owned());
        let samples = vec![(0.5, 7)];
        let track =
            MemoryTrack { program, stack, repetition: 0, samples, vm_hwm_kib: 1, anonymous_peak_kib: 2 };
        store.append_track(&track).expect("appends");
    }

    fn part(first: u32, repetitions: u32) -> Part {
        Part { program: "prog".into(), first, repetitions, ..Part::default() }
    }

    #[test]
    fn rows_keep_their_figures_and_get_positions_one_after_the_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        shard(&at("a.db"), &[0, 1]);
        shard(&at("b.db"), &[2]);
        let mut merging = Merging::create(&at("all.db")).expect("creates");
        for (name, part, count) in [("b.db", part(2, 1), 1), ("a.db", part(0, 2), 2)] {
            assert_eq!(merging.add(&at(name), &part, 1, 0).expect("is added"), Ok(count));
        }
        let made = experiment(&["glibc"]);
        assert_eq!(merging.finish(&made).expect("is finished"), 3);
        let read = Store::read(&at("all.db")).expect("reads");
        let rows: Vec<(u32, u32)> = read.observations.iter().map(|row| (row.order, row.repetition)).collect();
        assert_eq!(rows, [(0, 2), (1, 0), (2, 1)]);
        let whole = Store::read(&at("a.db")).expect("reads");
        let expected = Observation { order: 1, ..whole.observations[0].clone() };
        assert_eq!((&read.observations[1], read.tracks.len()), (&expected, 2));
    }

    #[test]
    fn rows_of_others_and_cells_with_two_rows_are_not_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        shard(&at("a.db"), &[0, 1, 1]);
        let mut merging = Merging::create(&at("all.db")).expect("creates");
        let mut refused = |part: &Part, turns| {
            merging.add(&at("a.db"), part, turns, 1).expect("is read").expect_err("is refused")
        };
        assert_eq!(refused(&part(0, 1), 1), "2 of its rows are of other shards");
        assert_eq!(refused(&part(0, 2), 1), "1 of its cells have more than one row");
        assert_eq!(refused(&part(0, 1), 2), "1 of its cells have more than one row", "a round of two");
        let another = Part { program: "another".into(), ..part(0, 9) };
        assert_eq!(refused(&another, 1), "3 of its rows are of other shards");
        assert_eq!(merging.finish(&experiment(&["glibc"])).expect("is finished"), 0);
        assert!(Store::read(&at("all.db")).expect("reads").observations.is_empty());
    }

    #[test]
    fn a_warm_up_is_of_the_shard_that_has_its_number() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.db");
        let store = Store::create(&path, &experiment(&["glibc"])).expect("creates");
        store.append(&Observation { phase: Phase::Warmup, ..row("glibc", 3, 1.0, 9) }).expect("appends");
        drop(store);
        let mut merging = Merging::create(&folder.path().join("all.db")).expect("creates");
        let mut taken = |first_warmup| {
            merging.add(&path, &Part { first_warmup, ..part(0, 1) }, 1, 2).expect("is read").is_ok()
        };
        assert!(!taken(0) && !taken(4) && taken(2));
    }
}
