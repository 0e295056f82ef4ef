//! Comparison at equal memory: collectors over the size of their heap, and the other stacks at their own.

use heaptoll_experiment::comparison::{Comparison, Costs, HeapCurve, HeapPoint};
use heaptoll_experiment::heap_curves::mean_costs;
use heaptoll_units::{count, kib};

use super::heap_charts::charts;
use super::heap_text::lead;
use super::parts::name;
use super::varied::is_varied;
use crate::document::{Cell, Item, Part, Table, Tone};
use crate::format::{self, NONE, TOO_FEW, plural};

/// What was found over heap sizes, in sentences: over all programs where there are several.
pub(super) fn summary(comparison: &Comparison) -> Vec<String> {
    let curves = match (&comparison.heaps.overall[..], &comparison.heaps.programs[..]) {
        ([], [one]) => &one.curves[..],
        (overall, _) => overall,
    };
    lead(curves, &comparison.baseline)
}

/// Whether a stack is a collector in a fixed heap, or has a varied setting: its verdict is one of a curve.
pub(super) fn is_limited(comparison: &Comparison, stack: &str) -> bool {
    let curves = comparison.heaps.programs.iter().flat_map(|program| &program.curves);
    curves.flat_map(|curve| &curve.heaps).any(|heap| heap.costs.stack == stack)
        || is_varied(comparison, stack)
}

/// The curves of one program, or of the means without one; none where no heap was fixed.
pub(super) fn part(comparison: &Comparison, program: Option<&str>) -> Option<Part> {
    let (curves, others) = match program {
        None => (&comparison.heaps.overall, means(comparison)),
        Some(program) => {
            let found = comparison.heaps.programs.iter().find(|found| found.program == program)?;
            (&found.curves, found.points.clone())
        }
    };
    if curves.is_empty() {
        return None;
    }
    let mut text = lead(curves, &comparison.baseline);
    let smallest =
        |curve: &HeapCurve| Some(format!("{} under {}", kib(curve.smallest_bytes?), curve.collector));
    let smallest: Vec<String> = curves.iter().filter_map(smallest).collect();
    text.extend((!smallest.is_empty()).then(|| format!("Smallest heap, KiB: {}.", smallest.join(", "))));
    let what = program.unwrap_or("geometric mean over programs");
    let mut items = charts(what, curves, &others, &comparison.baseline);
    items.push(Item::Table(table(comparison, program, curves, &others)));
    let title = match program {
        Some(_) => "At equal memory".into(),
        None => {
            format!("overall: at equal memory, means over {}", plural(comparison.tables.len(), "program"))
        }
    };
    Some(Part::new(title, items).text(text))
}

/// What stacks at their own memory cost on average over programs.
fn means(comparison: &Comparison) -> Vec<Costs> {
    let own = comparison.overall.iter().filter(|row| !is_limited(comparison, &row.stack));
    own.map(|row| mean_costs(comparison, &row.stack)).collect()
}

/// A collector in a heap, or a stack at its own memory.
struct Row<'a> {
    costs: &'a Costs,
    limited: Option<(&'a HeapCurve, &'a HeapPoint)>,
    /// Where there is no ratio.
    words: &'static str,
}

/// Each collector in each heap, then the stacks at their own memory.
fn table(comparison: &Comparison, program: Option<&str>, curves: &[HeapCurve], others: &[Costs]) -> Table {
    let heaps = curves.iter().flat_map(|curve| curve.heaps.iter().map(move |heap| (curve, heap)));
    let heaps = heaps.map(|(curve, heap)| Row {
        costs: &heap.costs,
        limited: Some((curve, heap)),
        words: if heap.fits { TOO_FEW } else { "does not fit" },
    });
    let others = others.iter().map(|costs| Row {
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
    let ran = |row: &Row| program.is_none() || row.costs.cpu_s.is_some();
    let missing = |row: &Row| if ran(row) { row.words } else { NONE };
    let table = Table::of(heaps.chain(others))
        .text("at equal memory", |row| match row.limited {
            Some((curve, _)) => Cell::text(&curve.collector),
            None => name(&row.costs.stack, &comparison.baseline),
        })
        .figure("heap", factor);
    let table = match program {
        None => table.figure("programs", |row| row.limited.map(|(_, heap)| heap.programs.to_string())),
        Some(_) => table
            .figure("heap KiB", |row| row.limited?.1.heap_bytes.map(kib))
            .figure("CPU s", |row| row.costs.cpu_s.map(format::seconds)),
    };
    table
        .figure("CPU ratio", |row| Cell::ratio(row.costs.cpu.as_ref(), row.words))
        .when(program.is_some(), |table| table.figure("RSS KiB", |row| row.costs.peak_rss_kib.map(count)))
        .optional("memory ratio", |row| Cell::ratio(row.costs.peak_rss.as_ref(), missing(row)))
        .figure("overhead at least", bound)
        .notes(notes(comparison, program))
        .wide()
}

fn notes(comparison: &Comparison, program: Option<&str>) -> Vec<String> {
    let Some(program) = program else {
        return vec![format!(
            "heap: in multiples of each program's smallest; ratios are to {}, geometric means over programs",
            comparison.baseline
        )];
    };
    let mut notes = vec![
        "heap: in multiples of the smallest that lets the program complete under the collector; memory: the \
         peak RSS, which includes the program's own pages"
            .to_owned(),
    ];
    let bounds = comparison.lower_bounds.programs.iter().find(|bounds| bounds.program == program);
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
