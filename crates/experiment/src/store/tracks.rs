//! Memory over time of watched runs in the file: samples, and the kernel's own marks.

use std::collections::HashMap;

use rusqlite::params;

use super::error::StoreError;
use super::file::ExperimentFile;
use super::layout::ANONYMOUS_PEAK;
use crate::observation::MemoryTrack;

/// Appends memory over time of one row.
///
/// # Errors
/// The file cannot be written.
pub(super) fn append(file: &mut ExperimentFile, track: &MemoryTrack) -> Result<(), StoreError> {
    let written = (|| {
        let transaction = file.connection.transaction()?;
        let n = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        for (t_s, rss_kib) in &track.samples {
            transaction.execute(
                "INSERT INTO memory_sample (program, stack, repetition, t_s, rss_kib) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![track.program, track.stack, track.repetition, t_s, n(*rss_kib)],
            )?;
        }
        transaction.execute(
            "INSERT INTO memory_mark (program, stack, repetition, vm_hwm_kib, anonymous_peak_kib) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
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
    written.map_err(|cause| file.error(cause))
}

/// Every track, in the order of its writing.
///
/// # Errors
/// The file cannot be read.
pub(super) fn read(file: &ExperimentFile) -> Result<Vec<MemoryTrack>, StoreError> {
    let anonymous = if file.has_column("memory_mark", ANONYMOUS_PEAK)? { ANONYMOUS_PEAK } else { "NULL" };
    let marks = format!(
        "SELECT program, stack, repetition, vm_hwm_kib, {anonymous} AS {ANONYMOUS_PEAK} FROM memory_mark ORDER BY rowid"
    );
    let read = || -> rusqlite::Result<Vec<MemoryTrack>> {
        let samples = samples(file)?;
        let mut marks = file.connection.prepare(&marks)?;
        let heads = marks.query_map([], |row| {
            let of = (row.get("program")?, row.get("stack")?, row.get("repetition")?);
            let samples = samples.get(&of).cloned().unwrap_or_default();
            let (program, stack, repetition) = of;
            Ok(MemoryTrack {
                program,
                stack,
                repetition,
                samples,
                vm_hwm_kib: row.get::<_, i64>("vm_hwm_kib")?.max(0) as u64,
                anonymous_peak_kib: row.get::<_, Option<i64>>(ANONYMOUS_PEAK)?.unwrap_or(0).max(0) as u64,
            })
        })?;
        heads.collect()
    };
    read().map_err(|cause| file.error(cause))
}

/// Seconds and KiB of each watched run: program, stack and repetition.
type Samples = HashMap<(String, String, u32), Vec<(f64, u64)>>;

/// All samples in one pass: the table has no index.
fn samples(file: &ExperimentFile) -> rusqlite::Result<Samples> {
    let mut all = Samples::new();
    let mut select = file
        .connection
        .prepare("SELECT program, stack, repetition, t_s, rss_kib FROM memory_sample ORDER BY rowid")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let of = (row.get("program")?, row.get("stack")?, row.get("repetition")?);
        all.entry(of).or_default().push((row.get("t_s")?, row.get::<_, i64>("rss_kib")?.max(0) as u64));
    }
    Ok(all)
}
