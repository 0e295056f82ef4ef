//! Exact instruction counts: `heaptoll exact instructions`.
//!
//! Figures are those of the process image that executed most, as in the command's tables. A run that was not traced to
//! its end gives none: half of a count is no count.

use heaptoll_facts::{Comparative, Facts, Metric, metrics};
use heaptoll_instruction_counts::{Figures as ImageFigures, Group, RoutineFigures, SizeClass};

use super::figures::ExactInstructionsFigures;

/// The routine whose blocks are cleared.
const CLEARS: &str = "calloc";

/// A metric of a process image; none where the image does not have it.
type Of = fn(&ImageFigures) -> Option<f64>;

const ALL: [(Metric, Of); 28] = [
    (Metric::count("per_malloc", "instructions of a malloc"), |of| of.tables.instructions_per_malloc),
    (Metric::count("per_free", "instructions of a free"), |of| of.tables.instructions_per_free),
    (Metric::count("per_block_free", "instructions of a free that is not of null"), per_block_free),
    (Metric::count("per_realloc", "instructions of a realloc"), |of| of.tables.instructions_per_realloc),
    (Metric::count("per_object", "instructions of an object"), |of| of.tables.instructions_per_object),
    (Metric::count("per_plain_object", "the same, neither cleared nor resized"), per_plain_object),
    (Metric::count("percent_of_program", "allocator and collector over the program"), |of| {
        of.tables.percent_of_application
    }),
    (Metric::count("percent_malloc", "of all instructions"), |of| of.tables.percent_in_malloc),
    (Metric::count("percent_free", "of all instructions"), |of| of.tables.percent_in_free),
    (Metric::count("percent_collector", "of all instructions"), |of| of.tables.percent_in_collector),
    (Metric::count("instructions", "all"), |of| Some(of.amounts.instructions() as f64)),
    (Metric::count("program_instructions", "the program's own from main"), |of| {
        let all = of.amounts.owners.program.instructions;
        Some(all.saturating_sub(of.startup_instructions.unwrap_or_default()) as f64)
    }),
    (Metric::count("objects", "blocks that were allocated"), |of| Some(of.amounts.objects as f64)),
    (Metric::count("objects_and_resizes", "with calls that resize a block"), |of| {
        // As Detlefs, Dosser and Zorn count them.
        Some((of.amounts.objects + of.amounts.groups.resize.calls) as f64)
    }),
    (Metric::count("bytes", "requested"), |of| Some(of.amounts.object_bytes as f64)),
    (Metric::count("average_bytes", "of an object"), |of| {
        (of.amounts.objects > 0).then(|| of.amounts.object_bytes as f64 / of.amounts.objects as f64)
    }),
    (Metric::count("live_high_objects", "most live"), |of| Some(of.heap.most_live_objects as f64)),
    (Metric::count("live_high_bytes", "most live"), |of| Some(of.heap.most_live_bytes as f64)),
    (Metric::count("heap_high_kib", "most mapped"), |of| Some(of.heap.high_water_bytes as f64 / 1024.0)),
    (Metric::count("heap_pages_kib", "most pages with blocks"), |of| {
        Some(of.heap.pages_with_blocks_bytes as f64 / 1024.0)
    }),
    (Metric::count("expansion", "pages with blocks over most live bytes"), |of| of.heap.expansion),
    (Metric::count("collections", "of the collector"), |of| Some(of.amounts.collections as f64)),
    (Metric::count("percent_roots", "over the program"), |of| share(of, roots(of))),
    (Metric::count("percent_marking", "over the program"), |of| share(of, of.amounts.phases.mark)),
    (Metric::count("percent_sweeping", "over the program"), |of| share(of, of.amounts.phases.sweep)),
    (Metric::count("roots_per_collection", "instructions"), |of| each(of, roots(of))),
    (Metric::count("marking_per_collection", "instructions"), |of| each(of, of.amounts.phases.mark)),
    (Metric::count("sweeping_per_collection", "instructions"), |of| each(of, of.amounts.phases.sweep)),
];

/// Exact facts.
impl Comparative for ExactInstructionsFigures {
    const METRICS: &'static [Metric] = &metrics(&ALL);

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for one in &self.programs {
            facts.warnings.extend(one.warnings.iter().map(|text| format!("{}: {text}", one.program)));
            for row in &one.managers {
                if let Some(why) = &row.problem {
                    facts.lack(&one.program, &row.manager, why);
                    continue;
                }
                let mut writer = facts.of(&one.program, &row.manager);
                if let Some(figures) = &row.figures {
                    let known = ALL.iter().filter_map(|(metric, of)| Some((metric.id, of(figures)?)));
                    known.for_each(|(metric, value)| writer.exact(metric, None, value));
                }
            }
        }
        facts
    }
}

fn roots(figures: &ImageFigures) -> u64 {
    let phases = &figures.amounts.phases;
    phases.stop + phases.roots + phases.resume + phases.other
}

/// Of the program's instructions; none under a manager that announces no phases.
fn share(figures: &ImageFigures, part: u64) -> Option<f64> {
    let program = figures.amounts.owners.program.instructions.max(1);
    (figures.amounts.phases.total() > 0).then_some(100.0 * part as f64 / program as f64)
}

/// Of a collection; none under a manager that announces no phases.
fn each(figures: &ImageFigures, part: u64) -> Option<f64> {
    let collections = figures.amounts.collections.max(1);
    (figures.amounts.phases.total() > 0).then_some(part as f64 / collections as f64)
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
    use heaptoll_facts::testing::{assert_exact, measured, value};

    use super::*;

    /// A tiny cfrac under two managers, shortened: lists that are not read are empty.
    fn instructions() -> ExactInstructionsFigures {
        serde_json::from_str(include_str!("../../testdata/instructions.json")).expect("the command's JSON")
    }

    #[test]
    fn counts_are_those_of_the_tables() {
        let facts = measured(&instructions());
        let exact = |manager, metric, wanted| assert_exact(&facts, manager, metric, None, wanted);
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
        assert_eq!(value(&facts, "kingsley", "per_realloc", None), None, "cfrac resizes nothing");
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
        let facts = measured(&found);
        // 40 a malloc, and the 41 of a free of a block.
        assert_exact(&facts, "kingsley", "per_plain_object", None, 81.0);
        let figures = found.programs[0].managers[0].figures.as_mut().expect("figures");
        figures.routines.remove(0);
        let facts = measured(&found);
        assert_eq!(value(&facts, "kingsley", "per_plain_object", None), None, "all of it was cleared");
    }

    #[test]
    fn the_programs_own_instructions_begin_at_main() {
        let found = instructions();
        let facts = measured(&found);
        let figures = found.programs[0].managers[0].figures.as_ref().expect("figures");
        let all = figures.amounts.owners.program.instructions;
        let before = figures.startup_instructions.expect("a count");
        assert_exact(&facts, "kingsley", "program_instructions", None, (all - before) as f64);
    }

    #[test]
    fn half_a_run_has_no_counts() {
        let mut found = instructions();
        found.programs[0].managers[1].problem = Some("its trace is incomplete".into());
        let facts = measured(&found);
        assert!(facts.iter().any(|fact| fact.manager == "kingsley"));
        assert!(facts.iter().all(|fact| fact.manager != "bw16"));
        let why = "its trace is incomplete".to_owned();
        assert_eq!(found.facts().absent, [("cfrac".to_owned(), Some("bw16".to_owned()), why)]);
    }
}
