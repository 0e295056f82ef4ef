//! The tables of simulated misses and of requests.

use heaptoll_replay::mmtk::{ByAccessor, Caches};
use heaptoll_report::document::{Column, Item, Section, Table};
use heaptoll_report::format::{NONE, interval};
use heaptoll_units::{figure, number, size_text};

use super::figures::{Figures, Heap};
use super::misses::{Misses, SimulatedMachine};
use super::sections::size_text as heap_text;

/// The misses of all plans in heaps of one size; nothing where none were simulated. The first explains the columns.
pub fn section(found: &Figures, heap: &Heap, is_first: bool) -> Option<Section> {
    let machine = found.simulated.as_ref()?;
    let rows: Vec<(&str, &Misses)> =
        heap.rows.iter().filter_map(|row| Some((row.plan.as_str(), row.misses.as_ref()?))).collect();
    let mut tables = vec![caches(machine, &rows)];
    if rows.iter().any(|(_, misses)| !misses.requests.portions.is_empty()) {
        tables.push(requests(&rows));
    }
    if !is_first {
        tables.iter_mut().for_each(|table| table.notes.clear());
    }
    (!rows.is_empty()).then(|| Section {
        title: format!("Simulated misses, heap of {}", heap_text(heap.size)),
        text: vec![],
        items: tables.into_iter().map(Item::Table).collect(),
    })
}

fn columns(titles: Vec<String>) -> Vec<Column> {
    std::iter::once(Column::text("plan")).chain(titles.iter().map(|title| Column::figures(title))).collect()
}

fn caches(machine: &SimulatedMachine, rows: &[(&str, &Misses)]) -> Table {
    let levels = &machine.machine.levels;
    let names: Vec<String> =
        levels.iter().map(|level| format!("misses of {}", size_text(level.bytes))).collect();
    let mut titles: Vec<String> = vec!["collections".into()];
    titles.extend(names);
    titles.extend(
        ["of the TLB", "of its second level", "cycles an access", "cycles, emptied"].map(String::from),
    );
    let row = |(plan, misses): &(&str, &Misses)| {
        let each = |count: u64| 1000.0 * count as f64 / misses.accesses.max(1) as f64;
        let of = |counts: &[ByAccessor]| -> Vec<String> {
            counts.iter().map(|level| figure(each(level.program))).collect()
        };
        let Caches { misses: of_levels, tlb_misses, .. } = &misses.touched;
        let mut cells = vec![(*plan).to_owned(), number(misses.collections)];
        cells.extend(of(of_levels));
        cells.extend(of(tlb_misses));
        cells.extend(
            [misses.touched_cycles, misses.emptied_cycles].map(|cycles| figure(each(cycles) / 1000.0)),
        );
        cells
    };
    Table {
        caption: "Misses of the program's loads and stores, of 1000".into(),
        columns: columns(titles),
        rows: rows.iter().map(row).collect(),
        notes: vec![
            "The trace has only accesses to objects. Collections load and store what they mark and copy. \
             Emptied: caches are empty after each collection, the worst that one can do to them. Cycles: one \
             an access plus its waiting, without prefetching or other work."
                .into(),
        ],
    }
}

fn requests(rows: &[(&str, &Misses)]) -> Table {
    let names: Vec<&str> = rows
        .iter()
        .map(|(_, misses)| &misses.requests.portions)
        .find(|portions| !portions.is_empty())
        .map(|portions| portions.iter().map(|portion| portion.name.as_str()).collect())
        .unwrap_or_default();
    let mut titles: Vec<String> = vec!["requests".into()];
    titles.extend(names.iter().flat_map(|name| [(*name).to_owned(), format!("{name}, emptied")]));
    let row = |(plan, misses): &(&str, &Misses)| {
        let requests = &misses.requests;
        let mut cells =
            vec![(*plan).to_owned(), number(requests.all - requests.interrupted - requests.before_first)];
        for name in &names {
            let portion = requests.portions.iter().find(|portion| portion.name == *name);
            let shown = |ratio: Option<_>| ratio.as_ref().map_or(NONE.into(), interval);
            cells.extend([
                shown(portion.and_then(|portion| portion.touched)),
                shown(portion.and_then(|portion| portion.emptied)),
            ]);
        }
        cells
    };
    Table {
        caption:
            "Requests by their place between two collections: cycles an access, ratio to the middle (20 \
                  to 80 %)"
                .into(),
        columns: columns(titles),
        rows: rows.iter().map(row).collect(),
        notes: vec![
            "Requests without a collection in them, by rank between two collections. Intervals are over ten \
             parts of the run; those for one plan are valid together."
                .into(),
        ],
    }
}
