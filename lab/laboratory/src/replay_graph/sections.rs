//! The tables of a replay of a trace with pointers.

use heaptoll_report::document::{Section, Table};
use heaptoll_report::format::{self, count, interval, mib_from_bytes, milliseconds, ratio, seconds};
use heaptoll_statistics::Interval;
use heaptoll_units::{bytes, part};

use super::figures::{Ending, GraphReplayFigures, Heap, PlanRow, Row, Smallest, Spent};
use super::plans::rest_of_heap;
use super::request::{HeapBase, HeapSize};

/// The smallest heap of each plan; nothing where none was searched.
pub fn smallest(found: &GraphReplayFigures) -> Option<Section> {
    let heap = |smallest: &Smallest| {
        let at_most = if smallest.search.failed_otherwise.is_empty() { "" } else { "at most " };
        let heap = smallest.search.heap.map(|heap| format!("{at_most}{}", bytes(heap as f64)));
        heap.unwrap_or_else(|| "none found".into())
    };
    let over_live = |row: &PlanRow| {
        row.smallest_bytes().map(|heap| ratio(heap as f64 / found.prepared.most_live_bytes.max(1) as f64))
    };
    let table = Table::of(found.plans.iter().filter_map(|row| Some((row, row.smallest.as_ref()?))))
        .text("plan", |(row, _)| row.plan.clone())
        .figure("smallest", |(_, smallest)| heap(smallest))
        .figure("vs least", |(_, smallest)| smallest.over_least.map(ratio))
        .figure("/ live", |(row, _)| over_live(row))
        .figure("too small", |(_, smallest)| {
            Some(smallest.search.failed_at).filter(|heap| *heap > 0).map(|heap| bytes(heap as f64))
        })
        .figure("heaps tried", |(_, smallest)| count(smallest.search.tried.len() as f64))
        .note(
            "Vs least: ratio to the least of these plans. / live: divided by the most bytes that the program \
             had not freed, as requested. A heap is what MMTk counts as pages in use: objects, what is lost \
             between them, and what a plan reserves to copy into.",
        );
    Some(Section::new("Smallest heaps").with(table.if_any()?))
}

/// A heap as requested: `1.5x`, `16.0 MiB`.
pub fn size_text(size: HeapSize) -> String {
    match size {
        HeapSize::Bytes(size) => bytes(size as f64),
        HeapSize::Times(times) => format!("{times}x"),
    }
}

/// The same as a heading has it.
fn heading(found: &GraphReplayFigures, size: HeapSize) -> String {
    match (size, found.base) {
        (HeapSize::Bytes(_), _) => format!("In a heap of {}", size_text(size)),
        (HeapSize::Times(times), HeapBase::Own) => format!("In {times} times each plan's smallest heap"),
        (HeapSize::Times(times), HeapBase::Least) => match found.least_heap_bytes {
            Some(least) => format!("In {times} times the smallest heap: {}", bytes(times * least as f64)),
            None => format!("In {times} times the smallest heap"),
        },
    }
}

/// All plans in heaps of one size; nothing where none was run. The first explains the columns.
pub fn heap(found: &GraphReplayFigures, heap: &Heap, is_first: bool) -> Option<Section> {
    let mut tables = [time(found, heap), collections(found, heap)];
    if !is_first {
        tables.iter_mut().for_each(|table| table.notes.clear());
    }
    let without = found.plans.first().filter(|first| {
        let is_measured = |row: &Row| row.plan == first.plan && row.spent.is_some();
        !heap.rows.iter().any(is_measured)
    });
    let without =
        without.map(|first| format!("No ratios: they are to {}, which has no figures here.", first.plan));
    let text = without.into_iter().chain(detectable(heap)).collect();
    let section = Section { text, ..Section::new(heading(found, heap.size)) };
    (!heap.rows.is_empty()).then(|| section.with_all(tables))
}

fn time(found: &GraphReplayFigures, heap: &Heap) -> Table {
    let spent = |row: &Row, of: fn(&Spent) -> f64| row.spent.as_ref().map(|spent| seconds(of(spent)));
    let is_first = |row: &Row| found.plans.first().is_some_and(|first| first.plan == row.plan);
    let ratio = |row: &Row, ratio: Option<Interval>| match ratio {
        Some(found) => Some(interval(&found)),
        None => (is_first(row) && row.spent.is_some()).then(|| "1".to_owned()),
    };
    Table::of(&heap.rows)
        .caption("CPU")
        .text("plan", |row| row.plan.clone())
        .figure("heap", |row| row.heap_bytes.map_or("no limit".into(), |heap| bytes(heap as f64)))
        .figure("CPU s", |row| spent(row, |spent| spent.cpu_s))
        .figure("CPU ratio", |row| ratio(row, row.cpu_ratio))
        .figure("mutator s", |row| spent(row, |spent| spent.mutator_cpu_s))
        .figure("mutator ratio", |row| ratio(row, row.mutator_ratio))
        .figure("collector s", |row| spent(row, |spent| spent.collector_cpu_s))
        .text("verdict", |row| verdict(row, is_first(row)))
        .note(
            "Mutator: allocation, stores through the plan's barrier, and the replay's own work, which is the \
             same under each plan. The program's other work is not replayed, so a real program would have \
             smaller ratios. Collector: without the replay's table, which stands in place of stacks and \
             static data. Compare plans only with each other, not with malloc and free.",
        )
        .table()
}

/// The smallest difference of CPU that these runs could have shown of each plan.
fn detectable(heap: &Heap) -> Option<String> {
    let ratios = heap.rows.iter().filter_map(|row| Some((row.plan.as_str(), row.cpu_ratio?)));
    let found = format::detectable_in_words(format::detectable(ratios)?);
    Some(format!("Smallest detectable CPU difference: {found}."))
}

fn collections(found: &GraphReplayFigures, heap: &Heap) -> Table {
    let spent = |row: &Row, cell: fn(&Spent) -> String| row.spent.as_ref().map(cell);
    let pause = |row: &Row, of: fn(&Spent) -> f64| {
        let collects = |spent: &&Spent| spent.full_collections + spent.nursery_collections > 0.0;
        row.spent.as_ref().filter(collects).map(|spent| milliseconds(of(spent) / 1e9))
    };
    let beyond = |row: &Row| {
        let checked = row.checked.as_ref().filter(|checked| checked.collections > 0);
        checked.map(|checked| part(checked.beyond_bytes, checked.reached_bytes))
    };
    Table::of(&heap.rows)
        .caption("Collections")
        .text("plan", |row| row.plan.clone())
        .figure("full", |row| spent(row, |spent| count(spent.full_collections)))
        .figure("partial", |row| spent(row, |spent| count(spent.nursery_collections)))
        .figure("copied MiB", |row| spent(row, |spent| mib_from_bytes(spent.copied_bytes)))
        .figure("median pause ms", |row| pause(row, |spent| spent.median_pause_ns))
        .figure("longest ms", |row| pause(row, |spent| spent.longest_pause_ns))
        .figure("hidden", |row| spent(row, |spent| count(spent.hidden)))
        .figure("lost edges", |row| spent(row, |spent| count(spent.lost_edges)))
        .note(
            "Partial: collections of a nursery. own:counting has no nursery; there it means reconciliations of \
             its zero count table.",
        )
        .note(
            "Hidden: objects, over all collections, that roots do not reach and that the program still touches; \
             they are kept. Lost edges: stores of pointers to objects that were collected after their last \
             touch.",
        )
        .when(found.checked, |table| {
            table.figure("beyond reach", |row| beyond(row)).note(
                "Beyond reach: bytes in the heap after a collection that the trace does not reach, divided by \
                 those that it reaches. Means are over all collections of the run with checks.",
            )
        })
        .table()
}

/// What the runs of a plan show, in words.
fn verdict(row: &Row, is_first: bool) -> String {
    if let Some(wrong) = row.wrong() {
        return wrong.verdict().into();
    }
    match row.ending {
        Ending::DoesNotFit { live_bytes, present_bytes, .. } => {
            return format!(
                "does not fit: {} live, {} in the heap; {}",
                bytes(live_bytes as f64),
                bytes(present_bytes as f64),
                rest_of_heap(&row.plan)
            );
        }
        Ending::Unknown if row.failures.is_empty() => return "not run".into(),
        Ending::Unknown => return "failed".into(),
        Ending::Fits => {}
    }
    let Some(ratio) = row.cpu_ratio else { return if is_first { "baseline".into() } else { "fits".into() } };
    heaptoll_report::format::verdict(&[(Some(ratio), "CPU")])
}
