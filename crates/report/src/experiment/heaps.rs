//! Comparison at equal memory: collectors over the size of their heap, and the other stacks at their own.

use heaptoll_experiment::comparison::{Comparison, Costs, HeapCurve, HeapPoint, ProgramHeaps};
use heaptoll_units::{count, kib};

use super::heap_charts::{Plotted, charts};
use super::heap_text::lead;
use super::parts::name;
use super::varied::is_varied;
use crate::document::{Cell, Item, Part, Table, Tone};
use crate::format::{self, NONE, TOO_FEW, plural};

/// The heading of what a program's stacks cost at equal memory.
const TITLE: &str = "At equal memory";

/// What was found over heap sizes, in sentences: over all programs where there are several.
pub(super) fn summary(comparison: &Comparison) -> Vec<String> {
    let heaps = &comparison.heaps;
    match (&heaps.overall[..], &heaps.programs[..]) {
        ([], [one]) => lead(&one.curves, &comparison.baseline),
        ([], several) => several
            .iter()
            .flat_map(|program| {
                lead(&program.curves, &comparison.baseline)
                    .into_iter()
                    .map(|text| format!("{}: {text}", program.program))
            })
            .collect(),
        (overall, _) => lead(overall, &comparison.baseline),
    }
}

/// Whether a stack is a collector in a fixed heap, or has a varied setting: its verdict is one of a curve.
pub(super) fn is_limited(comparison: &Comparison, stack: &str) -> bool {
    let curves = comparison.heaps.programs.iter().flat_map(|program| &program.curves);
    curves.flat_map(|curve| &curve.heaps).any(|heap| heap.costs.stack == stack)
        || is_varied(comparison, stack)
}

/// The curves of one program; none where no heap was fixed.
pub(super) fn part(comparison: &Comparison, program: &str) -> Option<Part> {
    let found = comparison.heaps.programs.iter().find(|found| found.program == program)?;
    let smallest = found.curves.iter().filter_map(|curve| {
        let bytes = curve.smallest_bytes?;
        Some(format!("{} under {}", kib(bytes), curve.collector))
    });
    let mut text = lead(&found.curves, &comparison.baseline);
    text.push(format!("Smallest heap, KiB: {}.", smallest.collect::<Vec<_>>().join(", ")));
    let plotted = Plotted { curves: &found.curves, points: &found.points, baseline: &comparison.baseline };
    let items = charts(&plotted).into_iter().map(Item::Chart);
    let table = Item::Table(table(comparison, found));
    Some(Part { title: TITLE.into(), text, items: items.chain([table]).collect(), ..Part::default() })
}

/// A collector in a heap, or a stack at its own memory.
struct Row<'a> {
    costs: &'a Costs,
    limited: Option<(&'a HeapCurve, &'a HeapPoint)>,
    /// Where there is no ratio.
    words: &'static str,
}

/// Each collector in each heap, then the stacks at their own memory.
fn table(comparison: &Comparison, found: &ProgramHeaps) -> Table {
    let heaps = found.curves.iter().flat_map(|curve| curve.heaps.iter().map(move |heap| (curve, heap)));
    let heaps = heaps.map(|(curve, heap)| Row {
        costs: &heap.costs,
        limited: Some((curve, heap)),
        words: if heap.fits { TOO_FEW } else { "does not fit" },
    });
    let points = found.points.iter().map(|costs| Row {
        costs,
        limited: None,
        words: if costs.stack == comparison.baseline { "baseline" } else { TOO_FEW },
    });
    let factor = |row: &Row| {
        let Some((_, heap)) = row.limited else { return Cell::text("its own") };
        let marks = (!heap.fits).then(|| "does not fit each time".to_owned());
        Cell { marks: marks.into_iter().collect(), ..Cell::text(format!("{}x", heap.factor)) }
    };
    let bound = |row: &Row| match &row.costs.overhead {
        None if row.costs.is_least => Cell::text("1, the least"),
        // No stack is chosen to be compared with, so no side of 1 is the better one.
        bound => Cell::ratio(bound.as_ref(), NONE).toned(Tone::Same),
    };
    let missing = |row: &Row| if row.costs.cpu_s.is_some() { row.words } else { NONE };
    Table::of(heaps.chain(points))
        .text("at equal memory", |row| match row.limited {
            Some((curve, _)) => Cell::text(&curve.collector),
            None => name(&row.costs.stack, &comparison.baseline),
        })
        .figure("heap", factor)
        .figure("heap KiB", |row| row.limited.and_then(|(_, heap)| heap.heap_bytes).map(kib))
        .figure("CPU s", |row| row.costs.cpu_s.map(format::seconds))
        .figure("CPU ratio", |row| Cell::ratio(row.costs.cpu.as_ref(), row.words))
        .figure("RSS KiB", |row| row.costs.peak_rss_kib.map(count))
        .optional("memory ratio", |row| Cell::ratio(row.costs.peak_rss.as_ref(), missing(row)))
        .figure("overhead at least", bound)
        .notes(notes(comparison, found))
        .wide()
}

fn notes(comparison: &Comparison, found: &ProgramHeaps) -> Vec<String> {
    let mut notes = vec![
        "heap: in multiples of the smallest that lets the program complete under the collector; memory: the \
         peak RSS, which includes the program's own pages"
            .to_owned(),
    ];
    let bounds = comparison.lower_bounds.programs.iter().find(|bounds| bounds.program == found.program);
    notes.extend(bounds.and_then(|bounds| bounds.cpu.as_ref()).map(|cpu| {
        format!(
            "overhead at least: a lower bound (Cai et al. 2022), CPU divided by the cheapest stack's CPU \
             without its known memory-management cost, {} s under {}",
            format::seconds(cpu.baseline_s),
            cpu.baseline
        )
    }));
    notes
}

/// The means over programs at every factor; none with one program.
pub(super) fn overall(comparison: &Comparison) -> Option<Part> {
    let curves = &comparison.heaps.overall;
    if curves.is_empty() {
        return None;
    }
    let missing = |heap: &HeapPoint| if heap.fits { NONE } else { "does not fit" };
    let table = Table::of(curves.iter().flat_map(|curve| curve.heaps.iter().map(move |heap| (curve, heap))))
        .text("collector", |(curve, _)| curve.collector.clone())
        .figure("heap", |(_, heap)| format!("{}x", heap.factor))
        .figure("programs", |(_, heap)| heap.programs.to_string())
        .figure("CPU ratio", |(_, heap)| Cell::ratio(heap.costs.cpu.as_ref(), missing(heap)))
        .figure("memory ratio", |(_, heap)| Cell::ratio(heap.costs.peak_rss.as_ref(), missing(heap)))
        .figure("overhead at least", |(_, heap)| {
            Cell::ratio(heap.costs.overhead.as_ref(), NONE).toned(Tone::Same)
        })
        .note(format!(
            "heap: in multiples of each program's smallest; ratios are to {}, geometric means over programs",
            comparison.baseline
        ));
    let means: Vec<Costs> = comparison
        .overall
        .iter()
        .filter(|row| !is_limited(comparison, &row.stack))
        .map(|row| {
            let bounds = comparison.lower_bounds.overall.iter().find(|bound| bound.stack == row.stack);
            let overhead = bounds.and_then(|bound| bound.cpu);
            Costs { stack: row.stack.clone(), cpu: row.cpu, overhead, ..Costs::default() }
        })
        .collect();
    let plotted = Plotted { curves, points: &means, baseline: &comparison.baseline };
    let items = charts(&plotted).into_iter().map(Item::Chart);
    Some(Part {
        title: format!("overall: at equal memory, means over {}", plural(comparison.tables.len(), "program")),
        items: items.chain([Item::Table(table.wide())]).collect(),
        ..Part::default()
    })
}
