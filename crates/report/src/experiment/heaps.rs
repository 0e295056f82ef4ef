//! Comparison at equal memory: collectors over the size of their heap, and the other stacks at their own.

use heaptoll_experiment::comparison::{Comparison, Costs, HeapCurve, HeapPoint, ProgramHeaps};
use heaptoll_units::{count, kib};

use super::heap_charts::{Plotted, charts};
use super::heap_text::lead;
use super::parts::name;
use crate::document::{Cell, Column, Grid, Item, Part, Tone};
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

/// Whether a stack is a collector in a fixed heap, whose verdict is one of a curve.
pub(super) fn is_limited(comparison: &Comparison, stack: &str) -> bool {
    let curves = comparison.heaps.programs.iter().flat_map(|program| &program.curves);
    curves.flat_map(|curve| &curve.heaps).any(|heap| heap.costs.stack == stack)
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
    let grid = Item::Grid(grid(comparison, found));
    Some(Part { title: TITLE.into(), text, items: items.chain([grid]).collect(), ..Part::default() })
}

/// Each collector in each heap, then the stacks at their own memory.
fn grid(comparison: &Comparison, found: &ProgramHeaps) -> Grid {
    let heaps = found.curves.iter().flat_map(|curve| curve.heaps.iter().map(move |heap| (curve, heap)));
    let mut rows: Vec<Vec<Cell>> = heaps.map(|(curve, heap)| limited(curve, heap)).collect();
    let points = found.points.iter().map(|costs| {
        let heading = [name(&costs.stack, &comparison.baseline), Cell::text("its own"), Cell::text(NONE)];
        let words = if costs.stack == comparison.baseline { "baseline" } else { TOO_FEW };
        heading.into_iter().chain(figures(costs, words)).collect()
    });
    rows.extend(points);
    Grid {
        columns: vec![
            Column::text("at equal memory"),
            Column::figures("heap"),
            Column::figures("heap KiB"),
            Column::figures("CPU s"),
            Column::figures("CPU ratio"),
            Column::figures("RSS KiB"),
            Column::optional("memory ratio"),
            Column::figures("overhead at least"),
        ],
        rows,
        wide: true,
        notes: notes(comparison, found),
        ..Grid::default()
    }
}

fn limited(curve: &HeapCurve, heap: &HeapPoint) -> Vec<Cell> {
    let heading = [
        Cell::text(&curve.collector),
        Cell::text(format!("{}x", heap.factor)),
        Cell::text(heap.heap_bytes.map_or(NONE.to_owned(), kib)),
    ];
    let words = if heap.fits { TOO_FEW } else { "does not fit" };
    let mut cells: Vec<Cell> = heading.into_iter().chain(figures(&heap.costs, words)).collect();
    if !heap.fits {
        cells[1].marks = vec!["does not fit each time".into()];
    }
    cells
}

/// CPU, memory and the bound; `words` where there is no ratio.
fn figures(costs: &Costs, words: &str) -> Vec<Cell> {
    let bound = match &costs.overhead {
        Some(bound) => Cell::ratio(Some(bound), NONE),
        None if costs.is_least => Cell::text("1, the least"),
        None => Cell::text(NONE),
    };
    vec![
        Cell::text(costs.cpu_s.map_or(NONE.to_owned(), format::seconds)),
        Cell::ratio(costs.cpu.as_ref(), words),
        Cell::text(costs.peak_rss_kib.map_or(NONE.to_owned(), count)),
        Cell::ratio(costs.peak_rss.as_ref(), if costs.cpu_s.is_some() { words } else { NONE }),
        // No stack is chosen to be compared with, so no side of 1 is the better one.
        bound.toned(Tone::Same),
    ]
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
    let row = |curve: &HeapCurve, heap: &HeapPoint| {
        let missing = if heap.fits { NONE } else { "does not fit" };
        let bound = heap.costs.overhead.as_ref();
        vec![
            Cell::text(&curve.collector),
            Cell::text(format!("{}x", heap.factor)),
            Cell::text(heap.programs.to_string()),
            Cell::ratio(heap.costs.cpu.as_ref(), missing),
            Cell::ratio(heap.costs.peak_rss.as_ref(), missing),
            Cell::ratio(bound, NONE).toned(Tone::Same),
        ]
    };
    let rows = curves.iter().flat_map(|curve| curve.heaps.iter().map(move |heap| row(curve, heap)));
    let grid = Grid {
        columns: vec![
            Column::text("collector"),
            Column::figures("heap"),
            Column::figures("programs"),
            Column::figures("CPU ratio"),
            Column::figures("memory ratio"),
            Column::figures("overhead at least"),
        ],
        rows: rows.collect(),
        wide: true,
        notes: vec![format!(
            "heap: in multiples of each program's smallest; ratios are to {}, geometric means over programs",
            comparison.baseline
        )],
        ..Grid::default()
    };
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
        items: items.chain([Item::Grid(grid)]).collect(),
        ..Part::default()
    })
}
