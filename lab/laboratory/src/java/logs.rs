//! The logs of collections that a run left in its scratch folder, one of each virtual machine that it started.

use std::path::{Path, PathBuf};

use crate::java::gc_log::{GcLog, GcLogError};
use heaptoll_stats_page::{SlotRecord, WriterKind};
use thiserror::Error;

/// What the names of logs begin and end with, as the descriptions have it (`managers`).
const LOG: (&str, &str) = ("heaptoll-gc-", ".log");

/// The log of one virtual machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaLog {
    /// Its process number.
    pub pid: u32,
    /// What it holds.
    pub log: GcLog,
}

/// A log that cannot be read.
#[derive(Debug, Error)]
pub enum JavaLogError {
    /// The system refuses.
    #[error("cannot read the log of collections {}: {cause}; is the temporary folder full?", path.display())]
    Unreadable {
        /// The file, or its folder.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// It is no log.
    #[error("{}: {cause}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: GcLogError,
    },
}

/// The logs in a folder, in order of process numbers. None where no virtual machine ran, or none was given the options;
/// one that ended before its heap was made leaves an empty file, which counts as none.
///
/// # Errors
/// A log that is none.
pub fn logs(folder: &Path) -> Result<Vec<JavaLog>, JavaLogError> {
    let unreadable = |path: &Path| {
        let path = path.to_path_buf();
        move |cause| JavaLogError::Unreadable { path, cause }
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable(folder))? {
        let path = entry.map_err(unreadable(folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let digits = name.strip_prefix(LOG.0).and_then(|rest| rest.strip_suffix(LOG.1));
        let Some(pid) = digits.and_then(|digits| digits.parse().ok()) else { continue };
        let bytes = std::fs::read(&path).map_err(unreadable(&path))?;
        match GcLog::read(&bytes) {
            Ok(log) => found.push(JavaLog { pid, log }),
            Err(GcLogError::Empty) => {}
            Err(cause) => return Err(JavaLogError::Log { path, cause }),
        }
    }
    found.sort_by_key(|log| log.pid);
    Ok(found)
}

/// The logs as slots of a statistics page, so that they are read as those of other collectors are. What a log does not
/// have is 0: the processor time of collectors that work while the program runs is in the program's.
pub fn slots(logs: &[JavaLog]) -> Vec<SlotRecord> {
    let slot = |JavaLog { pid, log }: &JavaLog| {
        let lengths = || log.pauses.iter().map(|pause| pause.end_ns - pause.start_ns);
        SlotRecord {
            kind: WriterKind::Manager,
            pid: i32::try_from(*pid).unwrap_or(0),
            writer: log.collector.map_or("java", |collector| super::collectors::name(collector)).into(),
            mapped_high_bytes: log.capacity_bytes,
            used_high_bytes: log.used_high_bytes(),
            collections: log.collections,
            pause_total_ns: lengths().fold(0, u64::saturating_add),
            pause_max_ns: lengths().max().unwrap_or(0),
            collected_bytes: log.reclaimed_bytes(),
            ..SlotRecord::default()
        }
    };
    logs.iter().map(slot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_a_folder_become_slots() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        write(
            "heaptoll-gc-12.log",
            "[1ns][info][gc] Using G1\n[9000000ns][info][gc] GC(0) Pause Young (Normal) 30M->10M(64M) 2.000ms\n",
        );
        write("heaptoll-gc-7.log", "[1ns][info][gc] Using G1\n");
        write("heaptoll-gc-9.log", "");
        write("other.log", "not of us");
        let found = logs(folder.path()).expect("logs");
        assert_eq!(found.iter().map(|log| log.pid).collect::<Vec<_>>(), [7, 12]);
        let slots = slots(&found);
        let of: Vec<_> =
            slots.iter().map(|slot| (slot.collections, slot.pause_max_ns, slot.collected_bytes)).collect();
        assert_eq!(of, [(0, 0, 0), (1, 2_000_000, 20 << 20)]);
        assert_eq!((slots[1].writer.as_str(), slots[1].mapped_high_bytes), ("jvm-g1", 64 << 20));
        write("heaptoll-gc-8.log", "garbage\n");
        let damaged = logs(folder.path()).expect_err("a damaged log").to_string();
        assert!(damaged.contains("heaptoll-gc-8.log") && damaged.contains("line 1"), "{damaged}");
    }
}
