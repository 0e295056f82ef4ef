//! Simulated caches and memories: `heaptoll exact locality`.
//!
//! A run whose end was not simulated gives no cells.

use heaptoll_experiments::locality::Figures;
use heaptoll_locality::study::{Row, TIGHT};

mod causes;

use super::cell_writer::CellWriter;
use super::reading::{Absent, Reading};
use crate::definition::Step;

/// Exact cells.
pub fn reading(found: &Figures, step: &Step) -> Reading {
    let mut cells = Vec::new();
    for program in &found.programs {
        let rows = &program.study.rows;
        // The command's first row is the manager that others are compared with; memories are parts of what it touches.
        let first = rows.first();
        let parts = |touched: u64| {
            let part = |(part, of): (u64, u64)| (part as f64 / of as f64, (touched * part / of).max(1));
            TIGHT.map(part).into_iter().chain([(1.0, touched)]).collect::<Vec<_>>()
        };
        let tight = first.map(|row| parts(row.pages_touched)).unwrap_or_default();
        // Without the manager that the step puts first, or with half of its run, they are parts of something else.
        let whole =
            first.is_some_and(|row| row.about.manager == found.baseline && row.about.cut_short.is_none());
        let first_row: Option<&Row> = first.filter(|_| whole);
        for row in rows.iter().filter(|row| row.about.cut_short.is_none()) {
            let mut writer = CellWriter {
                step: &step.id,
                program: &program.program,
                manager: &row.about.manager,
                cells: &mut cells,
            };
            let references = row.references.total();
            writer.exact("references", Some(references as f64));
            writer.exact("lines_touched", Some(row.lines_touched as f64));
            writer.exact("pages_touched", Some(row.pages_touched as f64));
            writer.exact("touched_kib", Some((row.pages_touched * program.study.page_bytes) as f64 / 1024.0));
            // The requested ones; the others are the tight ones, and all that the first manager touches.
            let is_requested = |memory: &&heaptoll_locality::study::Point| {
                let part = tight.iter().any(|(_, entries)| memory.entries == *entries);
                !part || memory.bytes.is_power_of_two()
            };
            for memory in row.memories_at.iter().filter(is_requested) {
                writer.exact_at("page_faults", memory.bytes as f64 / 1024.0, memory.misses as f64);
            }
            for (share, entries) in tight.iter().filter(|_| whole) {
                if let Some(memory) = row.memories_at.iter().find(|memory| memory.entries == *entries) {
                    writer.exact_at("tight_faults", *share, memory.misses as f64);
                }
            }
            for cache in row.associative.iter().filter(|cache| cache.ways == 1 && references > 0) {
                let percent = 100.0 * cache.misses.total() as f64 / references as f64;
                writer.exact_at("miss_percent", cache.bytes as f64 / 1024.0, percent);
                let whole = row.fully_associative.iter().find(|point| point.bytes == cache.bytes);
                if let Some(whole) = whole.filter(|point| point.misses > 0) {
                    let ratio = cache.misses.total() as f64 / whole.misses as f64;
                    writer.exact_at("conflict_ratio", cache.bytes as f64 / 1024.0, ratio);
                }
            }
            causes::write(&mut writer, row, first_row);
        }
    }
    Reading { cells, absent: absent(found), ..Reading::default() }
}

/// Runs that were not simulated to their end.
fn absent(found: &Figures) -> Vec<Absent> {
    let rows = found
        .programs
        .iter()
        .flat_map(|program| program.study.rows.iter().map(move |row| (&program.program, &row.about)));
    rows.filter_map(|(program, run)| {
        Some((program.clone(), Some(run.manager.clone()), run.cut_short.clone()?))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_exact, locality, step, value};
    use super::*;
    use crate::definition::StepKind;

    #[test]
    fn faults_and_misses_are_at_their_sizes() {
        let cells = reading(&locality(), &step(StepKind::Locality)).cells;
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
    fn conflicts_are_misses_that_a_cache_of_the_same_size_without_sets_has_not() {
        let mut found = locality();
        let row = &mut found.programs[0].study.rows[0];
        row.fully_associative = vec![heaptoll_locality::study::Point {
            bytes: 16 << 10,
            entries: 512,
            misses: 197_022,
            ..row.memories_at[0]
        }];
        let cells = reading(&found, &step(StepKind::Locality)).cells;
        assert_exact(&cells, "kingsley", "conflict_ratio", Some(16.0), 2.0);
        assert_eq!(value(&cells, "bw16", "conflict_ratio", Some(16.0)), None, "nothing to compare with");
    }

    #[test]
    fn tight_memories_are_parts_of_what_the_first_manager_touches() {
        let cells = reading(&locality(), &step(StepKind::Locality)).cells;
        // 29, 59, 88 and all of kingsley's 118 pages, for both: in the last it has each page once.
        assert_exact(&cells, "kingsley", "tight_faults", Some(1.0), 118.0);
        for (at, kingsley, bw16) in [(0.25, 465.0, 27_901.0), (0.5, 152.0, 11_602.0), (0.75, 120.0, 3842.0)] {
            assert_exact(&cells, "kingsley", "tight_faults", Some(at), kingsley);
            assert_exact(&cells, "bw16", "tight_faults", Some(at), bw16);
        }
    }

    /// Only powers of two were read, whatever memories a user's study requested.
    #[test]
    fn a_requested_memory_of_any_size_is_read() {
        let mut found = locality();
        for row in &mut found.programs[0].study.rows {
            let point = row.memories_at.iter_mut().find(|point| point.bytes == 2 << 20).expect("2 MiB");
            (point.bytes, point.entries) = (3 << 20, 768);
        }
        let cells = reading(&found, &step(StepKind::Locality)).cells;
        assert!(cells.iter().any(|cell| cell.metric == "page_faults" && cell.at == Some(3072.0)));
        assert!(
            cells.iter().all(|cell| cell.metric != "page_faults" || cell.at != Some(116.0)),
            "a tight one"
        );
    }

    /// They were then parts of what another manager touches, or of what half a run does.
    #[test]
    fn without_the_first_managers_whole_run_there_are_no_tight_memories() {
        let metrics = |found: &Figures| {
            let cells = reading(found, &step(StepKind::Locality)).cells;
            let count = |metric: &str| cells.iter().filter(|cell| cell.metric == metric).count();
            (count("tight_faults"), count("references"))
        };
        assert_eq!(metrics(&locality()), (8, 2));
        let mut gone = locality();
        gone.programs[0].study.rows.remove(0);
        assert_eq!(metrics(&gone), (0, 1));
        let mut half = locality();
        half.programs[0].study.rows[0].about.cut_short = Some("memory ran out".into());
        assert_eq!(metrics(&half), (0, 1));
    }

    #[test]
    fn half_a_run_has_no_faults() {
        let mut found = locality();
        found.programs[0].study.rows[1].about.cut_short = Some("memory ran out".into());
        let cells = reading(&found, &step(StepKind::Locality)).cells;
        assert!(!cells.is_empty() && cells.iter().all(|cell| cell.manager == "kingsley"));
        assert_eq!(reading(&found, &step(StepKind::Locality)).absent[0].2, "memory ran out");
    }
}
