//! Simulated caches and memories: `heaptoll locality`.
//!
//! A run whose end was not simulated gives no cells.

use crate::definition::{Step, StepKind};
use serde::Deserialize;

use super::cell_writer::CellWriter;
use super::json::{ReadError, shaped};
use super::reading::{Absent, Reading};

/// Memories in parts of what the program touches under the first manager: [`heaptoll_locality::study::TIGHT`].
use heaptoll_locality::study::TIGHT;

#[derive(Deserialize)]
struct Document {
    baseline: String,
    programs: Vec<Program>,
}

#[derive(Deserialize)]
struct Program {
    program: String,
    page_bytes: u64,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    manager: String,
    cut_short: Option<String>,
    references: Split,
    lines_touched: u64,
    pages_touched: u64,
    associative: Vec<Associative>,
    memories_at: Vec<Point>,
}

#[derive(Deserialize)]
struct Split {
    program: u64,
    allocator: u64,
    collector: u64,
    system: u64,
}

impl Split {
    fn all(&self) -> u64 {
        self.program + self.allocator + self.collector + self.system
    }
}

#[derive(Deserialize)]
struct Associative {
    ways: u32,
    bytes: u64,
    misses: Split,
}

#[derive(Deserialize)]
struct Point {
    entries: u64,
    bytes: u64,
    misses: u64,
}

/// Exact cells.
pub fn read(json: &serde_json::Value, step: &Step) -> Result<Reading, ReadError> {
    let document: Document = shaped(StepKind::Locality, json)?;
    let mut cells = Vec::new();
    for Program { program, page_bytes, rows } in &document.programs {
        // The command's first row is the manager that others are compared with; memories are parts of what it touches.
        let first = rows.first();
        let parts =
            |touched: u64| TIGHT.map(|(part, of)| (part as f64 / of as f64, (touched * part / of).max(1)));
        let tight = first.map(|row| parts(row.pages_touched));
        // Without the manager that the step puts first, or with half of its run, they are parts of something else.
        let whole = first.is_some_and(|row| row.manager == document.baseline && row.cut_short.is_none());
        for row in rows.iter().filter(|row| row.cut_short.is_none()) {
            let mut writer = CellWriter { step: &step.id, program, manager: &row.manager, cells: &mut cells };
            let references = row.references.all();
            writer.exact("references", Some(references as f64));
            writer.exact("lines_touched", Some(row.lines_touched as f64));
            writer.exact("pages_touched", Some(row.pages_touched as f64));
            writer.exact("touched_kib", Some((row.pages_touched * page_bytes) as f64 / 1024.0));
            // The requested ones; the others are the tight ones, and all that the first manager touches.
            let is_requested = |memory: &&Point| {
                let part = tight
                    .is_some_and(|tight| tight.iter().any(|(_, entries)| memory.entries == *entries))
                    || first.is_some_and(|row| memory.entries == row.pages_touched);
                !part || memory.bytes.is_power_of_two()
            };
            for memory in row.memories_at.iter().filter(is_requested) {
                writer.exact_at("page_faults", memory.bytes as f64 / 1024.0, memory.misses as f64);
            }
            for (share, entries) in tight.into_iter().flatten().filter(|_| whole) {
                if let Some(memory) = row.memories_at.iter().find(|memory| memory.entries == entries) {
                    writer.exact_at("tight_faults", share, memory.misses as f64);
                }
            }
            for cache in row.associative.iter().filter(|cache| cache.ways == 1 && references > 0) {
                let percent = 100.0 * cache.misses.all() as f64 / references as f64;
                writer.exact_at("miss_percent", cache.bytes as f64 / 1024.0, percent);
            }
        }
    }
    Ok(Reading { cells, absent: absent(document), pairing: Vec::new() })
}

/// Runs that were not simulated to their end.
fn absent(document: Document) -> Vec<Absent> {
    let rows = document
        .programs
        .into_iter()
        .flat_map(|Program { program, rows, .. }| rows.into_iter().map(move |row| (program.clone(), row)));
    rows.filter_map(|(program, row)| Some((program, Some(row.manager), row.cut_short?))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_exact, locality, step};
    use super::*;

    #[test]
    fn faults_and_misses_are_at_their_sizes() {
        let cells = read(&locality(), &step(StepKind::Locality)).expect("it is read").cells;
        let exact = |manager, metric, at, wanted| assert_exact(&cells, manager, metric, at, wanted);
        exact("kingsley", "references", None, 39_909_417.0);
        exact("bw16", "pages_touched", None, 182.0);
        exact("kingsley", "page_faults", Some(128.0), 394.0);
        exact("bw16", "page_faults", Some(65_536.0), 182.0);
        // 394044 misses of all accessors in 39909417 references; caches of two ways are not requested.
        exact("kingsley", "miss_percent", Some(16.0), 100.0 * 394_044.0 / 39_909_417.0);
        exact("bw16", "miss_percent", Some(64.0), 100.0 * 997_382.0 / 47_127_617.0);
    }

    #[test]
    fn tight_memories_are_parts_of_what_the_first_manager_touches() {
        let cells = read(&locality(), &step(StepKind::Locality)).expect("it is read").cells;
        // 29, 59 and 88 of kingsley's 118 pages, for both.
        for (at, kingsley, bw16) in [(0.25, 465.0, 27_901.0), (0.5, 152.0, 11_602.0), (0.75, 120.0, 3842.0)] {
            assert_exact(&cells, "kingsley", "tight_faults", Some(at), kingsley);
            assert_exact(&cells, "bw16", "tight_faults", Some(at), bw16);
        }
    }

    /// Only powers of two were read, whatever memories a user's study requested.
    #[test]
    fn a_requested_memory_of_any_size_is_read() {
        let mut json = locality();
        for row in json["programs"][0]["rows"].as_array_mut().expect("rows") {
            let point = row["memories_at"].as_array_mut().expect("memories").iter_mut();
            let point = point.into_iter().find(|point| point["bytes"] == 2 << 20).expect("2 MiB");
            (point["bytes"], point["entries"]) = ((3 << 20).into(), 768.into());
        }
        let cells = read(&json, &step(StepKind::Locality)).expect("it is read").cells;
        assert!(cells.iter().any(|cell| cell.metric == "page_faults" && cell.at == Some(3072.0)));
        assert!(
            cells.iter().all(|cell| cell.metric != "page_faults" || cell.at != Some(116.0)),
            "a tight one"
        );
    }

    /// They were then parts of what another manager touches, or of what half a run does.
    #[test]
    fn without_the_first_managers_whole_run_there_are_no_tight_memories() {
        let metrics = |json: &serde_json::Value| {
            let cells = read(json, &step(StepKind::Locality)).expect("it is read").cells;
            let count = |metric: &str| cells.iter().filter(|cell| cell.metric == metric).count();
            (count("tight_faults"), count("references"))
        };
        assert_eq!(metrics(&locality()), (6, 2));
        let mut gone = locality();
        gone["programs"][0]["rows"].as_array_mut().expect("rows").remove(0);
        assert_eq!(metrics(&gone), (0, 1));
        let mut half = locality();
        half["programs"][0]["rows"][0]["cut_short"] = "memory ran out".into();
        assert_eq!(metrics(&half), (0, 1));
    }

    #[test]
    fn half_a_run_has_no_faults() {
        let mut json = locality();
        json["programs"][0]["rows"][1]["cut_short"] = "memory ran out".into();
        let cells = read(&json, &step(StepKind::Locality)).expect("it is read").cells;
        assert!(!cells.is_empty() && cells.iter().all(|cell| cell.manager == "kingsley"));
        assert_eq!(read(&json, &step(StepKind::Locality)).expect("it is read").absent[0].2, "memory ran out");
    }
}
