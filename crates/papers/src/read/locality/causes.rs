//! Misses of direct-mapped caches by their cause: where the manager puts objects, what it does to the cache, and what its
//! allocator, its marking and its sweeping miss themselves.
//!
//! Only of runs in which the program was simulated alone as well (`--placement`), without which placement is not known.

use heaptoll_locality::forest::Associative;
use heaptoll_locality::study::Row;

use super::super::cell_writer::CellWriter;

/// Causes, and those in which marking and sweeping are together.
const CAUSES: [&str; 6] = ["placement", "pollution", "allocator", "marking", "sweeping", "collecting"];

/// Writes the cells of a row; shares of what it misses more than `first`.
pub fn write(writer: &mut CellWriter, row: &Row, first: Option<&Row>) {
    let Some(alone) = &row.alone else { return };
    for cache in alone.associative.iter().filter(|cache| cache.ways == 1) {
        let Some(parts) = parts(row, cache.sets) else { continue };
        let at = cache.bytes as f64 / 1024.0;
        for (cause, misses) in CAUSES.into_iter().zip(parts) {
            let per_thousand = misses * 1000.0 / row.rate_references.max(1) as f64;
            writer.exact_at(&format!("{cause}_misses"), at, per_thousand);
        }
        let Some(before) = first.filter(|first| first.about.manager != row.about.manager) else { continue };
        let Some(before) = self::parts(before, cache.sets) else { continue };
        let more: Vec<f64> = parts.iter().zip(before).map(|(now, before)| now - before).collect();
        // Marking and sweeping together are the last, and count once.
        let all: f64 = more[..CAUSES.len() - 1].iter().sum();
        if all > 0.0 {
            for (cause, more) in CAUSES.into_iter().zip(more) {
                writer.exact_at(&format!("{cause}_more_percent"), at, 100.0 * more / all);
            }
        }
    }
}

/// Misses by cause in the direct-mapped cache of so many lines.
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
