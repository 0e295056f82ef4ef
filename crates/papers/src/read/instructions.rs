//! Exact instruction counts: `heaptoll exact instructions`.
//!
//! Figures are those of the process image that executed most, as in the command's tables. A run that was not traced to
//! its end gives none: half of a count is no count.

use heaptoll_experiments::instructions::Figures;
use heaptoll_instruction_counts::{Figures as ImageFigures, Group, RoutineFigures, SizeClass};

use super::cell_writer::CellWriter;
use super::reading::Reading;
use crate::definition::Step;

/// The routine whose blocks are cleared.
const CLEARS: &str = "calloc";

/// Exact cells.
pub fn reading(found: &Figures, step: &Step) -> Reading {
    let mut reading = Reading::default();
    for one in &found.programs {
        reading.warnings.extend(one.warnings.iter().map(|text| format!("{}: {text}", one.program)));
        for row in &one.managers {
            if let Some(why) = &row.problem {
                reading.absent.push((one.program.clone(), Some(row.manager.clone()), why.clone()));
                continue;
            }
            let mut writer = CellWriter {
                step: &step.id,
                program: &one.program,
                manager: &row.manager,
                cells: &mut reading.cells,
            };
            for (metric, value) in row.figures.iter().flat_map(metrics) {
                writer.exact(metric, value);
            }
        }
    }
    reading
}

fn metrics(figures: &ImageFigures) -> [(&'static str, Option<f64>); 28] {
    let ImageFigures { tables, heap, amounts, .. } = figures;
    let owners = &amounts.owners;
    let of = |count: u64| Some(count as f64);
    let kib = |bytes: u64| Some(bytes as f64 / 1024.0);
    let all = amounts.instructions();
    let phases = &amounts.phases;
    let roots = phases.stop + phases.roots + phases.resume + phases.other;
    // A manager that announces no phases has none of these figures.
    let announced = |value: f64| (phases.total() > 0).then_some(value);
    let share = |part: u64| announced(100.0 * part as f64 / owners.program.instructions.max(1) as f64);
    let each = |part: u64| announced(part as f64 / amounts.collections.max(1) as f64);
    let proper = owners.program.instructions.saturating_sub(figures.startup_instructions.unwrap_or_default());
    [
        ("per_malloc", tables.instructions_per_malloc),
        ("per_free", tables.instructions_per_free),
        ("per_block_free", per_block_free(figures)),
        ("per_realloc", tables.instructions_per_realloc),
        ("per_object", tables.instructions_per_object),
        ("per_plain_object", per_plain_object(figures)),
        ("percent_of_program", tables.percent_of_application),
        ("percent_malloc", tables.percent_in_malloc),
        ("percent_free", tables.percent_in_free),
        ("percent_collector", tables.percent_in_collector),
        ("instructions", of(all)),
        ("program_instructions", of(proper)),
        ("objects", of(amounts.objects)),
        ("objects_and_resizes", of(amounts.objects + amounts.groups.resize.calls)),
        ("bytes", of(amounts.object_bytes)),
        (
            "average_bytes",
            (amounts.objects > 0).then(|| amounts.object_bytes as f64 / amounts.objects as f64),
        ),
        ("live_high_objects", of(heap.most_live_objects)),
        ("live_high_bytes", of(heap.most_live_bytes)),
        ("heap_high_kib", kib(heap.high_water_bytes)),
        ("heap_pages_kib", kib(heap.pages_with_blocks_bytes)),
        ("expansion", heap.expansion),
        ("collections", of(amounts.collections)),
        ("percent_roots", share(roots)),
        ("percent_marking", share(phases.mark)),
        ("percent_sweeping", share(phases.sweep)),
        ("roots_per_collection", each(roots)),
        ("marking_per_collection", each(phases.mark)),
        ("sweeping_per_collection", each(phases.sweep)),
    ]
}

/// Instructions of a free that was given a block: a free of null takes a few.
fn per_block_free(figures: &ImageFigures) -> Option<f64> {
    let blocks = || figures.by_size.free.iter().filter(|class| matches!(class.class, SizeClass::Size { .. }));
    let calls: u64 = blocks().map(|class| class.calls).sum();
    let instructions: u64 = blocks().map(|class| class.cost.instructions).sum();
    (calls > 0).then(|| instructions as f64 / calls as f64)
}

/// Instructions of a block that is neither cleared nor resized: an average call that makes one, and an average free of a
/// block. What calloc clears and realloc copies is by the byte under every allocator.
fn per_plain_object(figures: &ImageFigures) -> Option<f64> {
    let plain = || {
        let makes = |one: &&RoutineFigures| one.group == Group::Allocate && one.routine != CLEARS;
        figures.routines.iter().filter(makes)
    };
    let calls: u64 = plain().map(|one| one.calls).sum();
    let instructions: u64 = plain().map(|one| one.cost.instructions).sum();
    Some(instructions as f64 / (calls > 0).then_some(calls)? as f64 + per_block_free(figures)?)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_exact, instructions, step, value};
    use super::*;
    use crate::definition::StepKind;

    #[test]
    fn counts_are_those_of_the_tables() {
        let cells = reading(&instructions(), &step(StepKind::Instructions)).cells;
        let exact = |manager, metric, wanted| assert_exact(&cells, manager, metric, None, wanted);
        exact("kingsley", "per_malloc", 40.50522004666064);
        exact("bw16", "per_object", 159.410361424801);
        exact("bw16", "percent_collector", 22.690778966451077);
        exact("kingsley", "objects", 333_043.0);
        exact("kingsley", "average_bytes", 9_107_076.0 / 333_043.0);
        exact("kingsley", "live_high_bytes", 82_060.0);
        exact("bw16", "heap_high_kib", 532.0);
        exact("bw16", "heap_pages_kib", 352.0);
        // A free of null takes 9 instructions of kingsley's, and is in per_free alone.
        exact("kingsley", "per_block_free", 41.0);
        exact("kingsley", "per_free", 40.76318903211385);
        assert_eq!(value(&cells, "kingsley", "per_realloc", None), None, "cfrac resizes nothing");
    }

    /// Clearing and copying were in the cost of an object, and a program that clears much refuted the paper.
    #[test]
    fn a_plain_object_is_neither_cleared_nor_copied() {
        let mut found = instructions();
        let figures = found.programs[0].managers[0].figures.as_mut().expect("figures");
        let routine = |name: &str, group: &str, calls: u64, instructions: u64| -> RoutineFigures {
            let cost = serde_json::json!({ "instructions": instructions, "loads": 0, "stores": 0 });
            let spread = serde_json::json!({ "mean": 0.0, "p50": 0, "p90": 0, "p99": 0, "max": 0 });
            let text = serde_json::json!({
                "routine": name, "group": group, "calls": calls, "failed_calls": 0, "null_calls": 0,
                "unknown_calls": 0, "abandoned_calls": 0, "abandoned_instructions": 0, "cost": cost,
                "collector_instructions": 0, "per_call": spread, "classes": [],
            });
            serde_json::from_value(text).expect("a routine")
        };
        figures.routines = vec![
            routine("malloc", "allocate", 10, 400),
            routine("calloc", "allocate", 10, 90_000),
            routine("realloc", "resize", 10, 90_000),
            routine("free", "free", 10, 90_000),
        ];
        let cells = reading(&found, &step(StepKind::Instructions)).cells;
        // 40 a malloc, and the 41 of a free of a block.
        assert_exact(&cells, "kingsley", "per_plain_object", None, 81.0);
        let figures = found.programs[0].managers[0].figures.as_mut().expect("figures");
        figures.routines.remove(0);
        let cells = reading(&found, &step(StepKind::Instructions)).cells;
        assert_eq!(value(&cells, "kingsley", "per_plain_object", None), None, "all of it was cleared");
    }

    #[test]
    fn the_programs_own_instructions_begin_at_main() {
        let found = instructions();
        let cells = reading(&found, &step(StepKind::Instructions)).cells;
        let figures = found.programs[0].managers[0].figures.as_ref().expect("figures");
        let all = figures.amounts.owners.program.instructions;
        let before = figures.startup_instructions.expect("a count");
        assert_exact(&cells, "kingsley", "program_instructions", None, (all - before) as f64);
    }

    #[test]
    fn half_a_run_has_no_counts() {
        let mut found = instructions();
        found.programs[0].managers[1].problem = Some("its trace is incomplete".into());
        let cells = reading(&found, &step(StepKind::Instructions)).cells;
        assert!(cells.iter().any(|cell| cell.manager == "kingsley"));
        assert!(cells.iter().all(|cell| cell.manager != "bw16"));
        let why = "its trace is incomplete".to_owned();
        assert_eq!(
            reading(&found, &step(StepKind::Instructions)).absent,
            [("cfrac".to_owned(), Some("bw16".to_owned()), why)]
        );
    }
}
