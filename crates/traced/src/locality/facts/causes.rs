//! Misses of direct-mapped caches by their cause: where the manager puts objects, what it does to the cache, and what its
//! allocator, its marking and its sweeping miss themselves.
//!
//! Only of runs in which the program was simulated alone as well (`--placement`), without which placement is not known.

use heaptoll_facts::FactWriter;
use heaptoll_locality::forest::Associative;
use heaptoll_locality::study::Row;

/// Causes, and those in which marking and sweeping are together.
pub const CAUSES: [&str; 6] = ["placement", "pollution", "allocator", "marking", "sweeping", "collecting"];

/// Writes the facts of a row; shares of what it misses more than `first`.
pub fn write(writer: &mut FactWriter, row: &Row, first: Option<&Row>) {
    let Some(alone) = &row.alone else { return };
    for cache in alone.associative.iter().filter(|cache| cache.ways == 1) {
        let Some(parts) = parts(row, cache.sets) else { continue };
        let at = Some(cache.bytes as f64 / 1024.0);
        for (cause, misses) in CAUSES.into_iter().zip(parts) {
            let per_thousand = misses * 1000.0 / row.rate_references.max(1) as f64;
            writer.exact(&format!("{cause}_misses"), at, per_thousand);
        }
        let Some(before) = first.filter(|first| first.about.manager != row.about.manager) else { continue };
        let Some(before) = self::parts(before, cache.sets) else { continue };
        let more: Vec<f64> = parts.iter().zip(before).map(|(now, before)| now - before).collect();
        // Marking and sweeping together are the last, and count once.
        let all: f64 = more[..CAUSES.len() - 1].iter().sum();
        if all > 0.0 {
            for (cause, more) in CAUSES.into_iter().zip(more) {
                writer.exact(&format!("{cause}_more_percent"), at, 100.0 * more / all);
            }
        }
    }
}

/// Misses by cause in the direct-mapped cache of `sets` lines.
fn parts(row: &Row, sets: u64) -> Option<[f64; CAUSES.len()]> {
    let direct = |caches: &[Associative]| {
        caches.iter().find(|cache| cache.ways == 1 && cache.sets == sets).map(|cache| cache.misses)
    };
    let (mixed, alone) =
        (direct(&row.associative)?, direct(&row.alone.as_ref()?.associative)?.total() as f64);
    let (marking, sweeping) = (mixed.collector as f64, mixed.sweeper as f64);
    let pollution = (mixed.program + mixed.system) as f64 - alone;
    Some([alone, pollution, mixed.allocator as f64, marking, sweeping, marking + sweeping])
}

#[cfg(test)]
mod tests {
    use heaptoll_locality::forest::Associative;
    use heaptoll_locality::simulation::Split;
    use heaptoll_locality::study::Alone;

    use heaptoll_facts::testing::{assert_exact, measured, value};

    use super::super::tests::locality;

    fn direct(misses: Split<u64>) -> Vec<Associative> {
        vec![Associative { sets: 512, ways: 1, bytes: 16 << 10, misses }]
    }

    #[test]
    fn misses_divide_by_cause_and_what_is_more_sums_to_all() {
        let mut found = locality();
        let alone = [100, 150];
        let mixed = [
            Split { program: 120, allocator: 30, collector: 0, system: 10, sweeper: 0 },
            Split { program: 190, allocator: 20, collector: 60, system: 10, sweeper: 120 },
        ];
        for (at, row) in found.programs[0].study.rows.iter_mut().enumerate() {
            row.rate_references = 1000;
            row.associative = direct(mixed[at]);
            let associative = direct(Split { program: alone[at], ..Split::default() });
            row.alone = Some(Alone { associative, memories: Vec::new(), machine: Vec::new() });
        }
        let facts = measured(&found);
        let exact = |manager, metric, wanted| assert_exact(&facts, manager, metric, Some(16.0), wanted);
        exact("kingsley", "placement_misses", 100.0);
        exact("kingsley", "pollution_misses", 30.0);
        exact("bw16", "marking_misses", 60.0);
        exact("bw16", "sweeping_misses", 120.0);
        // 400 misses where kingsley has 160.
        exact("bw16", "placement_more_percent", 100.0 * 50.0 / 240.0);
        exact("bw16", "pollution_more_percent", 100.0 * 20.0 / 240.0);
        exact("bw16", "allocator_more_percent", 100.0 * -10.0 / 240.0);
        exact("bw16", "collecting_more_percent", 75.0);
        assert_eq!(value(&facts, "kingsley", "collecting_more_percent", Some(16.0)), None);
    }
}
