//! `heaptoll lab replay-graph` of one recording: collectors on the same trace, by the heap.

use crate::replay_graph::mmtk::ByAccessor;
use heaptoll_facts::{Comparative, FactWriter, Facts, Metric, Place, Value};

use super::figures::{GraphReplayFigures, PlanRow, Row};
use super::misses::Misses;
use super::request::HeapSize;
use crate::proximity::beginning;

/// Smallest heaps with what the search leaves open, and times with the command's intervals: over the first plan. The
/// program is the trace.
impl Comparative for GraphReplayFigures {
    const METRICS: &'static [Metric] = &[
        Metric::count("smallest_heap_kib", "the smallest heap that the trace fits into"),
        Metric::count("smallest_heap_ratio", "the same over the first collector's"),
        Metric::count("smallest_heap_over_live", "the same over the most requested bytes alive"),
        Metric::time("cpu_ratio", "CPU time over the first collector's, at multiples of the least heap")
            .at(Place::Heaps),
        Metric::time("mutator_ratio", "the same of allocation, barrier and replay").at(Place::Heaps),
        Metric::time("collector_share", "the collector's part of CPU time").at(Place::Heaps),
        Metric::count("copied_kib", "what was copied").at(Place::Heaps),
        Metric::time("longest_pause_us", "median of the longest pauses").at(Place::Heaps),
        Metric::time(
            "_misses_per_thousand",
            "misses of the program's accesses in the first and last cache and the TLB",
        )
        .of(&["first", "last", "tlb"])
        .at(Place::Heaps),
        Metric::time("cycles_per_access", "cycles of one of the program's accesses").at(Place::Heaps),
        Metric::time(
            "_cycles_ratio",
            "cycles after a collection over the middle, by portion as in `proximity`",
        )
        .of(&["first", "near", "second", "last"])
        .at(Place::Heaps),
        Metric::time("_emptied_ratio", "the same where caches are empty after each collection")
            .of(&["near", "second", "last"])
            .at(Place::Heaps),
    ];

    fn facts(&self) -> Facts {
        let mut facts = Facts { warnings: self.warnings.clone(), ..Facts::default() };
        let first = self.plans.first().and_then(bounds);
        for plan in &self.plans {
            if let Some(why) = &plan.refused {
                facts.lack(&self.trace, &plan.plan, why);
            }
            let mut writer = facts.of(&self.trace, &plan.plan);
            put_smallest(&mut writer, bounds(plan), first);
            put_over_live(&mut writer, bounds(plan), self.prepared.most_live_bytes as f64);
            for heap in &self.heaps {
                let at = match heap.size {
                    HeapSize::Times(times) => times,
                    HeapSize::Bytes(bytes) => bytes as f64,
                };
                let rows = heap.rows.iter().filter(|row| row.plan == plan.plan);
                rows.for_each(|row| put(&mut writer, at, row));
            }
        }
        facts
    }
}

/// The largest heap that is too small, and the smallest that is not, bytes.
fn bounds(plan: &PlanRow) -> Option<[f64; 2]> {
    let search = &plan.smallest.as_ref()?.search;
    Some([search.failed_at as f64, search.heap? as f64])
}

fn put_smallest(writer: &mut FactWriter<'_>, own: Option<[f64; 2]>, first: Option<[f64; 2]>) {
    let Some([failed_at, heap]) = own else { return };
    let kib = |bytes: f64| bytes / 1024.0;
    writer.put(
        "smallest_heap_kib",
        None,
        Value::Estimate { value: kib(heap), low: kib(failed_at), high: kib(heap) },
    );
    if let Some([first_failed_at, first_heap]) = first.filter(|first| first[0] > 0.0) {
        let value = Value::Estimate {
            value: heap / first_heap,
            low: failed_at / first_heap,
            high: heap / first_failed_at,
        };
        writer.put("smallest_heap_ratio", None, value);
    }
}

/// Over the most bytes that the program had requested and not freed at once: prompt reclamation needs no less.
fn put_over_live(writer: &mut FactWriter<'_>, own: Option<[f64; 2]>, live: f64) {
    let Some([failed_at, heap]) = own.filter(|_| live > 0.0) else { return };
    let value = Value::Estimate { value: heap / live, low: failed_at / live, high: heap / live };
    writer.put("smallest_heap_over_live", None, value);
}

fn put(writer: &mut FactWriter<'_>, at: f64, row: &Row) {
    writer.ratio("cpu_ratio", Some(at), row.cpu_ratio);
    writer.ratio("mutator_ratio", Some(at), row.mutator_ratio);
    if let Some(misses) = &row.misses {
        put_misses(writer, at, misses);
    }
    let Some(spent) = row.spent else { return };
    let mut single = |metric: &str, value: f64| writer.put(metric, Some(at), Value::Single(value));
    if spent.cpu_s > 0.0 {
        single("collector_share", spent.collector_cpu_s / spent.cpu_s);
    }
    single("copied_kib", spent.copied_bytes / 1024.0);
    single("longest_pause_us", spent.longest_pause_ns / 1000.0);
}

fn put_misses(writer: &mut FactWriter<'_>, at: f64, found: &Misses) {
    let each = |count: u64| Value::Single(1000.0 * count as f64 / found.accesses.max(1) as f64);
    let mut put = |metric: &str, counts: Option<&ByAccessor>| {
        if let Some(counts) = counts {
            writer.put(metric, Some(at), each(counts.program));
        }
    };
    put("first_misses_per_thousand", found.touched.misses.first());
    put("last_misses_per_thousand", found.touched.misses.last());
    put("tlb_misses_per_thousand", found.touched.tlb_misses.first());
    let cycles = found.touched_cycles as f64 / found.accesses.max(1) as f64;
    writer.put("cycles_per_access", Some(at), Value::Single(cycles));
    for portion in &found.requests.portions {
        let Some(name) = beginning(&portion.name) else { continue };
        writer.ratio(&format!("{name}_cycles_ratio"), Some(at), portion.touched);
        if name != "first" {
            writer.ratio(&format!("{name}_emptied_ratio"), Some(at), portion.emptied);
        }
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_facts::Fact;
    use heaptoll_facts::testing::{interval, number, one};

    use super::*;
    use crate::replay_graph::{Caches, Ending, Heap, HeapBase, Portion, Prepared, Requests, Smallest, Spent};
    use heaptoll_compare::smallest_heap::{Answer, End};

    fn plan(name: &str, failed_at: u64, heap: Option<u64>) -> PlanRow {
        let search = Answer {
            end: End::Found,
            heap,
            failed_at,
            sometimes_from: heap,
            failed_otherwise: vec![],
            tried: vec![],
        };
        PlanRow {
            plan: name.into(),
            collects: true,
            refused: None,
            smallest: Some(Smallest { over_least: None, search }),
        }
    }

    fn row(plan: &str, cpu_ratio: Option<f64>) -> Row {
        let spent = Spent {
            runs: 8,
            cpu_s: 2.0,
            mutator_cpu_s: 1.5,
            collector_cpu_s: 0.5,
            bookkeeping_s: 0.0,
            elapsed_s: 2.0,
            full_collections: 3.0,
            nursery_collections: 0.0,
            copied_bytes: 4096.0,
            median_pause_ns: 1000.0,
            longest_pause_ns: 9000.0,
            hidden: 0.0,
            most_hidden: 0.0,
            lost_edges: 0.0,
        };
        Row {
            plan: plan.into(),
            heap_bytes: Some(1 << 20),
            ending: Ending::Fits,
            failures: vec![],
            spent: Some(spent),
            cpu_ratio: cpu_ratio.map(|ratio| interval(ratio, 8)),
            mutator_ratio: None,
            checked: None,
            misses: None,
        }
    }

    fn misses() -> Misses {
        let of = |program| ByAccessor { program, ..ByAccessor::default() };
        let caches = |last| Caches {
            references: of(1000),
            misses: vec![of(100), of(last)],
            tlb_misses: vec![of(7), of(0)],
        };
        let portion = |name: &str, touched: f64, emptied: f64| Portion {
            name: name.into(),
            distance_accesses: 5,
            touched: Some(interval(touched, 10)),
            emptied: Some(interval(emptied, 10)),
        };
        Misses {
            accesses: 1000,
            collections: 9,
            touched: caches(2),
            touched_cycles: 2400,
            emptied: caches(50),
            emptied_cycles: 9000,
            requests: Requests {
                all: 90,
                interrupted: 9,
                before_first: 1,
                portions: vec![portion("first 1 %", 1.3, 3.0), portion("first 10 %", 1.02, 1.5)],
            },
        }
    }

    fn facts() -> Vec<Fact> {
        let found = GraphReplayFigures {
            trace: "lua".into(),
            prepared: Prepared { most_live_bytes: 87 << 10, ..Prepared::default() },
            base: HeapBase::Least,
            collector_threads: 1,
            runs: 8,
            seed: 1,
            checked: false,
            simulated: None,
            complete: true,
            least_heap_bytes: Some(100 << 10),
            plans: vec![
                plan("mmtk:marksweep", 99 << 10, Some(100 << 10)),
                plan("mmtk:semispace", 170 << 10, Some(174 << 10)),
                plan("mmtk:immix", 0, None),
            ],
            heaps: vec![
                Heap {
                    size: HeapSize::Times(2.0),
                    rows: vec![row("mmtk:marksweep", None), row("mmtk:semispace", Some(1.2))],
                },
                Heap {
                    size: HeapSize::Bytes(64 << 20),
                    rows: vec![Row { misses: Some(misses()), ..row("mmtk:semispace", None) }],
                },
            ],
            warnings: vec![],
        };
        heaptoll_facts::testing::measured(&found)
    }

    #[test]
    fn misses_are_of_the_program_and_requests_by_their_portion() {
        let facts: Vec<Fact> = facts().into_iter().filter(|fact| fact.manager == "mmtk:semispace").collect();
        let of = |metric: &str| number(one(&facts, metric, Some(f64::from(64 << 20))));
        let misses = ["first_misses_per_thousand", "last_misses_per_thousand", "tlb_misses_per_thousand"];
        assert_eq!(misses.map(of), [100.0, 2.0, 7.0]);
        assert_eq!(of("cycles_per_access"), 2.4);
        let ratios = ["first_cycles_ratio", "near_cycles_ratio", "near_emptied_ratio"];
        assert_eq!(ratios.map(of), [1.3, 1.02, 1.5]);
    }

    #[test]
    fn heaps_and_times_are_over_the_first_plan() {
        let facts = facts();
        let of =
            |plan: &str| -> Vec<Fact> { facts.iter().filter(|fact| fact.manager == plan).cloned().collect() };
        let semispace = of("mmtk:semispace");
        assert_eq!(
            *one(&semispace, "smallest_heap_ratio", None),
            Value::Estimate { value: 1.74, low: 1.7, high: 174.0 / 99.0 }
        );
        assert_eq!(number(one(&semispace, "smallest_heap_over_live", None)), 2.0);
        assert_eq!(number(one(&semispace, "cpu_ratio", Some(2.0))), 1.2);
        assert_eq!(number(one(&semispace, "collector_share", Some(2.0))), 0.25);
        assert_eq!(number(one(&semispace, "copied_kib", Some(2.0))), 4.0);
        assert!(of("mmtk:immix").is_empty(), "no heap was found");
        assert!(facts.iter().all(|fact| fact.program == "lua"));
    }
}
