//! The tables of a replay of a trace with pointers.

use heaptoll_report::document::{Column, Item, Section, Table};
use heaptoll_report::format::{self, NONE, count, interval, mib_from_bytes, milliseconds, ratio, seconds};
use heaptoll_units::{bytes, part};

use super::figures::{Ending, Figures, Heap, PlanRow, Row, Spent};
use super::plans::rest_of_heap;
use super::request::{HeapBase, HeapSize};

fn columns(text: &str, figures: &[&str]) -> Vec<Column> {
    std::iter::once(Column::text(text)).chain(figures.iter().map(|title| Column::figures(title))).collect()
}

/// The smallest heap of each plan; nothing where none was searched.
pub fn smallest(found: &Figures) -> Option<Section> {
    let row = |row: &PlanRow| {
        let smallest = row.smallest.as_ref()?;
        let at_most = if smallest.search.failed_otherwise.is_empty() { "" } else { "at most " };
        let heap = smallest.search.heap.map(|heap| format!("{at_most}{}", bytes(heap as f64)));
        let failed = Some(smallest.search.failed_at).filter(|heap| *heap > 0);
        let over_live =
            row.smallest_bytes().map(|heap| heap as f64 / found.prepared.most_live_bytes.max(1) as f64);
        Some(vec![
            row.plan.clone(),
            heap.unwrap_or_else(|| "none found".into()),
            smallest.over_least.map_or(NONE.into(), ratio),
            over_live.map_or(NONE.into(), ratio),
            failed.map_or(NONE.into(), |heap| bytes(heap as f64)),
            count(smallest.search.tried.len() as f64),
        ])
    };
    let rows: Vec<Vec<String>> = found.plans.iter().filter_map(row).collect();
    let table = Table {
        caption: String::new(),
        columns: columns("plan", &["smallest", "vs least", "/ live", "too small", "heaps tried"]),
        rows,
        notes: vec![
            "Vs least: ratio to the least of these plans. / live: divided by the most bytes that the program \
             had not freed, as requested. A heap is what MMTk counts as pages in use: objects, what is lost \
             between them, and what a plan reserves to copy into."
                .into(),
        ],
    };
    (!table.rows.is_empty()).then(|| Section {
        title: "Smallest heaps".into(),
        text: vec![],
        items: vec![Item::Table(table)],
    })
}

/// A heap as requested: `1.5x`, `16.0 MiB`.
pub fn size_text(size: HeapSize) -> String {
    match size {
        HeapSize::Bytes(size) => bytes(size as f64),
        HeapSize::Times(times) => format!("{times}x"),
    }
}

/// The same as a heading has it.
fn heading(found: &Figures, size: HeapSize) -> String {
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
pub fn heap(found: &Figures, heap: &Heap, is_first: bool) -> Option<Section> {
    let mut tables = [time(found, heap), collections(found, heap)];
    if !is_first {
        tables.iter_mut().for_each(|table| table.notes.clear());
    }
    let without = found.plans.first().filter(|first| {
        let is_measured = |row: &Row| row.plan == first.plan && row.spent.is_some();
        !heap.rows.iter().any(is_measured)
    });
    (!heap.rows.is_empty()).then(|| Section {
        title: heading(found, heap.size),
        text: without
            .map(|first| format!("No ratios: they are to {}, which has no figures here.", first.plan))
            .into_iter()
            .chain(detectable(heap))
            .collect(),
        items: tables.map(Item::Table).into(),
    })
}

fn time(found: &Figures, heap: &Heap) -> Table {
    let row = |row: &Row| {
        let spent =
            |cell: fn(&Spent) -> f64| row.spent.as_ref().map_or(NONE.into(), |spent| seconds(cell(spent)));
        let is_first = found.plans.first().is_some_and(|first| first.plan == row.plan);
        let ratio = |ratio: Option<_>| match ratio {
            Some(found) => interval(&found),
            None if is_first && row.spent.is_some() => "1".into(),
            None => NONE.into(),
        };
        vec![
            row.plan.clone(),
            row.heap_bytes.map_or("no limit".into(), |heap| bytes(heap as f64)),
            spent(|spent| spent.cpu_s),
            ratio(row.cpu_ratio),
            spent(|spent| spent.mutator_cpu_s),
            ratio(row.mutator_ratio),
            spent(|spent| spent.collector_cpu_s),
            verdict(row, is_first),
        ]
    };
    let mut columns =
        columns("plan", &["heap", "CPU s", "CPU ratio", "mutator s", "mutator ratio", "collector s"]);
    columns.push(Column::text("verdict"));
    Table {
        caption: "CPU".into(),
        columns,
        rows: heap.rows.iter().map(row).collect(),
        notes: vec![
            "Mutator: allocation, stores through the plan's barrier, and the replay's own work, which is the \
             same under each plan. The program's other work is not replayed, so a real program would have \
             smaller ratios. Collector: without the replay's table, which stands in place of stacks and \
             static data. Compare plans only with each other, not with malloc and free."
                .into(),
        ],
    }
}

/// The smallest difference of CPU that these runs could have shown of each plan.
fn detectable(heap: &Heap) -> Option<String> {
    let ratios = heap.rows.iter().filter_map(|row| Some((row.plan.as_str(), row.cpu_ratio?)));
    let found = format::detectable_in_words(format::detectable(ratios)?);
    Some(format!("Smallest detectable CPU difference: {found}."))
}

fn collections(found: &Figures, heap: &Heap) -> Table {
    let row = |row: &Row| {
        let spent = |cell: &dyn Fn(&Spent) -> String| row.spent.as_ref().map_or(NONE.into(), cell);
        let pause = |cell: fn(&Spent) -> f64| {
            spent(&|spent| {
                let collects = spent.full_collections + spent.nursery_collections > 0.0;
                if collects { milliseconds(cell(spent) / 1e9) } else { NONE.into() }
            })
        };
        let mut cells = vec![
            row.plan.clone(),
            spent(&|spent| count(spent.full_collections)),
            spent(&|spent| count(spent.nursery_collections)),
            spent(&|spent| mib_from_bytes(spent.copied_bytes)),
            pause(|spent| spent.median_pause_ns),
            pause(|spent| spent.longest_pause_ns),
            spent(&|spent| count(spent.hidden)),
            spent(&|spent| count(spent.lost_edges)),
        ];
        if found.checked {
            cells.push(row.checked.as_ref().map_or(NONE.into(), |checked| {
                if checked.collections == 0 {
                    NONE.into()
                } else {
                    part(checked.beyond_bytes, checked.reached_bytes)
                }
            }));
        }
        cells
    };
    let mut titles =
        vec!["full", "partial", "copied MiB", "median pause ms", "longest ms", "hidden", "lost edges"];
    let mut notes = vec![
        "Partial: collections of a nursery. own:counting has no nursery; there it means reconciliations of \
         its zero count table."
            .to_owned(),
        "Hidden: objects, over all collections, that roots do not reach and that the program still touches; \
         they are kept. Lost edges: stores of pointers to objects that were collected after their last \
         touch."
            .to_owned(),
    ];
    if found.checked {
        titles.push("beyond reach");
        notes.push(
            "Beyond reach: bytes in the heap after a collection that the trace does not reach, divided by \
             those that it reaches. Means are over all collections of the run with checks."
                .to_owned(),
        );
    }
    let columns = columns("plan", &titles);
    Table { caption: "Collections".into(), columns, rows: heap.rows.iter().map(row).collect(), notes }
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
