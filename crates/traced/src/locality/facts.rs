//! Simulated caches and memories: `heaptoll exact locality`.
//!
//! A run whose end was not simulated gives no facts.

use heaptoll_facts::{Comparative, FactWriter, Facts, Metric, Place};
use heaptoll_locality::study::{Point, Row, TIGHT};

use super::figures::{ExactLocalityFigures, Program};

mod causes;

/// Exact facts. Studies derive the rate, and what is without first touches.
impl Comparative for ExactLocalityFigures {
    const METRICS: &'static [Metric] = &[
        Metric::count("page_faults", "at KiB of memory").at(Place::Kib),
        Metric::count("capacity_faults", "page faults without first touches, at KiB of memory")
            .at(Place::Kib),
        Metric::count("capacity_fault_rate", "the same of a million references").at(Place::Kib),
        Metric::count("tight_faults", "page faults at a share of the pages used under the first manager")
            .at(Place::PageShare),
        Metric::count("tight_capacity_faults", "the same without first touches").at(Place::PageShare),
        Metric::count("miss_percent", "at KiB of a direct-mapped cache").at(Place::Kib),
        Metric::count("conflict_ratio", "its misses over a fully associative one's").at(Place::Kib),
        Metric::count("references", "all"),
        Metric::count("lines_touched", "different ones"),
        Metric::count("pages_touched", "different ones"),
        Metric::count("touched_kib", "of these pages"),
        Metric::count(
            "_misses",
            "with placement, in 1000 references, by cause, at KiB of a direct-mapped cache",
        )
        .of(&causes::CAUSES)
        .at(Place::Kib),
        Metric::count("_more_percent", "the cause's part of what the manager misses more than the first")
            .of(&causes::CAUSES)
            .at(Place::Kib),
    ];

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for program in &self.programs {
            let first = First::of(program, &self.baseline);
            for row in &program.study.rows {
                match &row.about.cut_short {
                    Some(why) => facts.lack(&program.program, &row.about.manager, why),
                    None => {
                        let mut writer = facts.of(&program.program, &row.about.manager);
                        put(&mut writer, row, program.study.page_bytes, &first);
                    }
                }
            }
        }
        facts
    }
}

/// What others are compared with.
struct First<'a> {
    /// The whole run of the manager that the command puts first. Without it, or with half of it, tight memories are parts of
    /// something else.
    row: Option<&'a Row>,
    /// Shares of the pages that the first row touches, and as many pages.
    tight: Vec<(f64, u64)>,
}

impl First<'_> {
    fn of<'a>(program: &'a Program, baseline: &str) -> First<'a> {
        let first = program.study.rows.first();
        let is_whole = |row: &&Row| row.about.manager == baseline && row.about.cut_short.is_none();
        let parts = |row: &Row| {
            let part =
                |(part, of): (u64, u64)| (part as f64 / of as f64, (row.pages_touched * part / of).max(1));
            TIGHT.map(part).into_iter().chain([(1.0, row.pages_touched)]).collect()
        };
        First { row: first.filter(is_whole), tight: first.map(parts).unwrap_or_default() }
    }
}

fn put(writer: &mut FactWriter, row: &Row, page_bytes: u64, first: &First) {
    let references = row.references.total();
    writer.exact("references", None, references as f64);
    writer.exact("lines_touched", None, row.lines_touched as f64);
    writer.exact("pages_touched", None, row.pages_touched as f64);
    writer.exact("touched_kib", None, (row.pages_touched * page_bytes) as f64 / 1024.0);
    // The requested ones; the others are the tight ones, and all that the first manager touches.
    let is_requested = |memory: &&Point| {
        let part = first.tight.iter().any(|(_, entries)| memory.entries == *entries);
        !part || memory.bytes.is_power_of_two()
    };
    for memory in row.memories_at.iter().filter(is_requested) {
        writer.exact("page_faults", Some(memory.bytes as f64 / 1024.0), memory.misses as f64);
    }
    for (share, entries) in first.tight.iter().filter(|_| first.row.is_some()) {
        if let Some(memory) = row.memories_at.iter().find(|memory| memory.entries == *entries) {
            writer.exact("tight_faults", Some(*share), memory.misses as f64);
        }
    }
    for cache in row.associative.iter().filter(|cache| cache.ways == 1 && references > 0) {
        let (at, misses) = (Some(cache.bytes as f64 / 1024.0), cache.misses.total() as f64);
        writer.exact("miss_percent", at, 100.0 * misses / references as f64);
        let whole = row.fully_associative.iter().find(|point| point.bytes == cache.bytes);
        if let Some(whole) = whole.filter(|point| point.misses > 0) {
            writer.exact("conflict_ratio", at, misses / whole.misses as f64);
        }
    }
    causes::write(writer, row, first.row);
}

#[cfg(test)]
mod tests {
    use heaptoll_facts::testing::{assert_exact, measured, value};

    use super::*;

    /// A tiny cfrac under two managers, shortened: lists that are not read are empty.
    pub fn locality() -> ExactLocalityFigures {
        serde_json::from_str(include_str!("../../testdata/locality.json")).expect("the command's JSON")
    }

    #[test]
    fn faults_and_misses_are_at_their_sizes() {
        let facts = measured(&locality());
        let exact = |manager, metric, at, wanted| assert_exact(&facts, manager, metric, at, wanted);
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
        row.fully_associative =
            vec![Point { bytes: 16 << 10, entries: 512, misses: 197_022, ..row.memories_at[0] }];
        let facts = measured(&found);
        assert_exact(&facts, "kingsley", "conflict_ratio", Some(16.0), 2.0);
        assert_eq!(value(&facts, "bw16", "conflict_ratio", Some(16.0)), None, "nothing to compare with");
    }

    #[test]
    fn tight_memories_are_parts_of_what_the_first_manager_touches() {
        let facts = measured(&locality());
        // 29, 59, 88 and all of kingsley's 118 pages, for both: in the last it has each page once.
        assert_exact(&facts, "kingsley", "tight_faults", Some(1.0), 118.0);
        for (at, kingsley, bw16) in [(0.25, 465.0, 27_901.0), (0.5, 152.0, 11_602.0), (0.75, 120.0, 3842.0)] {
            assert_exact(&facts, "kingsley", "tight_faults", Some(at), kingsley);
            assert_exact(&facts, "bw16", "tight_faults", Some(at), bw16);
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
        let facts = measured(&found);
        assert!(facts.iter().any(|fact| fact.metric == "page_faults" && fact.at == Some(3072.0)));
        assert!(
            facts.iter().all(|fact| fact.metric != "page_faults" || fact.at != Some(116.0)),
            "a tight one"
        );
    }

    /// They were then parts of what another manager touches, or of what half a run does.
    #[test]
    fn without_the_first_managers_whole_run_there_are_no_tight_memories() {
        let metrics = |found: &ExactLocalityFigures| {
            let facts = measured(found);
            let count = |metric: &str| facts.iter().filter(|fact| fact.metric == metric).count();
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
        let facts = measured(&found);
        assert!(!facts.is_empty() && facts.iter().all(|fact| fact.manager == "kingsley"));
        assert_eq!(found.facts().absent[0].2, "memory ran out");
    }
}
