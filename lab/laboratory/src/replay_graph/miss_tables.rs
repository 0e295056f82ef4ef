//! The tables of simulated misses and of requests.

use crate::replay_graph::mmtk::ByAccessor;
use heaptoll_report::document::{Column, Section, Table};
use heaptoll_report::format::interval;
use heaptoll_units::{figure, number, size_text};

use super::figures::{GraphReplayFigures, Heap};
use super::misses::{Misses, SimulatedMachine};
use super::sections::size_text as heap_text;

/// The misses of all plans in heaps of one size; nothing where none were simulated. The first explains the columns.
pub fn section(found: &GraphReplayFigures, heap: &Heap, is_first: bool) -> Option<Section> {
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
    let title = format!("Simulated misses, heap of {}", heap_text(heap.size));
    (!rows.is_empty()).then(|| Section::new(title).with_all(tables))
}

fn caches(machine: &SimulatedMachine, rows: &[(&str, &Misses)]) -> Table {
    let each = |misses: &Misses, count: u64| 1000.0 * count as f64 / misses.accesses.max(1) as f64;
    let of = |misses: &Misses, level: Option<&ByAccessor>| Some(figure(each(misses, level?.program)));
    let cycles = |misses: &Misses, cycles: u64| figure(each(misses, cycles) / 1000.0);
    Table::of(rows)
        .caption("Misses of the program's loads and stores, of 1000")
        .text("plan", |(plan, _)| *plan)
        .figure("collections", |(_, misses)| number(misses.collections))
        .each(
            machine.machine.levels.iter().enumerate(),
            |(_, level)| Column::figures(&format!("misses of {}", size_text(level.bytes))),
            |(_, misses), (at, _)| of(misses, misses.touched.misses.get(*at)),
        )
        .figure("of the TLB", |(_, misses)| of(misses, misses.touched.tlb_misses.first()))
        .figure("of its second level", |(_, misses)| of(misses, misses.touched.tlb_misses.get(1)))
        .figure("cycles an access", |(_, misses)| cycles(misses, misses.touched_cycles))
        .figure("cycles, emptied", |(_, misses)| cycles(misses, misses.emptied_cycles))
        .note(
            "The trace has only accesses to objects. Collections load and store what they mark and copy. \
             Emptied: caches are empty after each collection, the worst that one can do to them. Cycles: one \
             an access plus its waiting, without prefetching or other work.",
        )
        .table()
}

fn requests(rows: &[(&str, &Misses)]) -> Table {
    let names: Vec<&str> = rows
        .iter()
        .map(|(_, misses)| &misses.requests.portions)
        .find(|portions| !portions.is_empty())
        .map(|portions| portions.iter().map(|portion| portion.name.as_str()).collect())
        .unwrap_or_default();
    let requests = |misses: &Misses| {
        let requests = &misses.requests;
        number(requests.all - requests.interrupted - requests.before_first)
    };
    let cell = |misses: &Misses, name: &str, is_emptied: bool| {
        let portion = misses.requests.portions.iter().find(|portion| portion.name == name)?;
        let ratio = if is_emptied { portion.emptied } else { portion.touched };
        ratio.as_ref().map(interval)
    };
    let portions = names.iter().flat_map(|name| [(*name, false), (*name, true)]);
    let title = |name: &str, is_emptied| match is_emptied {
        true => Column::figures(&format!("{name}, emptied")),
        false => Column::figures(name),
    };
    Table::of(rows)
        .caption(
            "Requests by their place between two collections: cycles an access, ratio to the middle (20 \
                  to 80 %)",
        )
        .text("plan", |(plan, _)| *plan)
        .figure("requests", |(_, misses)| requests(misses))
        .each(
            portions,
            |(name, is_emptied)| title(name, *is_emptied),
            |(_, misses), (name, is_emptied)| cell(misses, name, *is_emptied),
        )
        .note(
            "Requests without a collection in them, by rank between two collections. Intervals are over ten \
             parts of the run; those for one plan are valid together.",
        )
        .table()
}
