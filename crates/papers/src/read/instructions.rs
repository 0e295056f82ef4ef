//! Exact instruction counts: `heaptoll instructions`.
//!
//! Figures are those of the process image that executed most, as in the command's tables. A run that was not traced to
//! its end gives none: half of a count is no count.

use crate::definition::{Step, StepKind};
use serde::Deserialize;

use super::cell_writer::CellWriter;
use super::json::{ReadError, shaped};
use super::reading::{Absent, Reading};

#[derive(Deserialize)]
struct Document {
    programs: Vec<Program>,
}

#[derive(Deserialize)]
struct Program {
    program: String,
    managers: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    manager: String,
    problem: Option<String>,
    figures: Option<Figures>,
}

#[derive(Deserialize)]
struct Figures {
    owners: Owners,
    objects: u64,
    object_bytes: u64,
    collections: u64,
    tables: Tables,
    startup_instructions: Option<u64>,
    heap: Heap,
    by_size: BySize,
}

#[derive(Deserialize)]
struct Owners {
    program: Executed,
    allocator: Executed,
    collector: Executed,
}

#[derive(Deserialize)]
struct Executed {
    instructions: u64,
}

#[derive(Deserialize)]
struct Tables {
    instructions_per_malloc: Option<f64>,
    instructions_per_free: Option<f64>,
    instructions_per_realloc: Option<f64>,
    instructions_per_object: Option<f64>,
    percent_of_application: Option<f64>,
    percent_in_malloc: Option<f64>,
    percent_in_free: Option<f64>,
    percent_in_collector: Option<f64>,
}

#[derive(Deserialize)]
struct Heap {
    high_water_bytes: u64,
    pages_with_blocks_bytes: u64,
    most_live_bytes: u64,
    most_live_objects: u64,
    expansion: Option<f64>,
}

#[derive(Deserialize)]
struct BySize {
    free: Vec<Class>,
}

#[derive(Deserialize)]
struct Class {
    class: ClassName,
    calls: u64,
    cost: Executed,
}

#[derive(Deserialize)]
struct ClassName {
    kind: String,
}

/// Exact cells.
pub fn read(json: &serde_json::Value, step: &Step) -> Result<Reading, ReadError> {
    let document: Document = shaped(StepKind::Instructions, json)?;
    let mut cells = Vec::new();
    for Program { program, managers } in &document.programs {
        for row in managers {
            let Some(figures) = row.figures.as_ref().filter(|_| row.problem.is_none()) else { continue };
            let mut writer = CellWriter { step: &step.id, program, manager: &row.manager, cells: &mut cells };
            for (metric, value) in figures.metrics() {
                writer.exact(metric, value);
            }
        }
    }
    Ok(Reading { cells, absent: absent(document), pairing: Vec::new() })
}

impl Figures {
    fn metrics(&self) -> [(&'static str, Option<f64>); 20] {
        let Figures { tables, heap, owners, .. } = self;
        let of = |count: u64| Some(count as f64);
        let kib = |bytes: u64| Some(bytes as f64 / 1024.0);
        let all = owners.program.instructions + owners.allocator.instructions + owners.collector.instructions;
        let proper =
            owners.program.instructions.saturating_sub(self.startup_instructions.unwrap_or_default());
        [
            ("per_malloc", tables.instructions_per_malloc),
            ("per_free", tables.instructions_per_free),
            ("per_block_free", self.per_block_free()),
            ("per_realloc", tables.instructions_per_realloc),
            ("per_object", tables.instructions_per_object),
            ("percent_of_program", tables.percent_of_application),
            ("percent_malloc", tables.percent_in_malloc),
            ("percent_free", tables.percent_in_free),
            ("percent_collector", tables.percent_in_collector),
            ("instructions", of(all)),
            ("program_instructions", of(proper)),
            ("objects", of(self.objects)),
            ("bytes", of(self.object_bytes)),
            ("average_bytes", (self.objects > 0).then(|| self.object_bytes as f64 / self.objects as f64)),
            ("live_high_objects", of(heap.most_live_objects)),
            ("live_high_bytes", of(heap.most_live_bytes)),
            ("heap_high_kib", kib(heap.high_water_bytes)),
            ("heap_pages_kib", kib(heap.pages_with_blocks_bytes)),
            ("expansion", heap.expansion),
            ("collections", of(self.collections)),
        ]
    }

    /// Instructions of a free that was given a block: a free of null takes a few.
    fn per_block_free(&self) -> Option<f64> {
        let blocks = || self.by_size.free.iter().filter(|class| class.class.kind == "size");
        let calls: u64 = blocks().map(|class| class.calls).sum();
        let instructions: u64 = blocks().map(|class| class.cost.instructions).sum();
        (calls > 0).then(|| instructions as f64 / calls as f64)
    }
}

/// Runs without figures of the whole run.
fn absent(document: Document) -> Vec<Absent> {
    let rows = document.programs.into_iter().flat_map(|Program { program, managers }| {
        managers.into_iter().map(move |row| (program.clone(), row))
    });
    rows.filter_map(|(program, row)| Some((program, Some(row.manager), row.problem?))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_exact, instructions, step, value};
    use super::*;

    #[test]
    fn counts_are_those_of_the_tables() {
        let cells = read(&instructions(), &step(StepKind::Instructions)).expect("it is read").cells;
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

    #[test]
    fn the_programs_own_instructions_begin_at_main() {
        let json = instructions();
        let cells = read(&json, &step(StepKind::Instructions)).expect("it is read").cells;
        let figures = &json["programs"][0]["managers"][0]["figures"];
        let all = figures["owners"]["program"]["instructions"].as_f64().expect("a count");
        let before = figures["startup_instructions"].as_f64().expect("a count");
        assert_exact(&cells, "kingsley", "program_instructions", None, all - before);
    }

    #[test]
    fn half_a_run_has_no_counts() {
        let mut json = instructions();
        json["programs"][0]["managers"][1]["problem"] = "it was not traced to its end".into();
        let cells = read(&json, &step(StepKind::Instructions)).expect("it is read").cells;
        assert!(cells.iter().any(|cell| cell.manager == "kingsley"));
        assert!(cells.iter().all(|cell| cell.manager != "bw16"));
        let why = "it was not traced to its end".to_owned();
        assert_eq!(
            read(&json, &step(StepKind::Instructions)).expect("it is read").absent,
            [("cfrac".to_owned(), Some("bw16".to_owned()), why)]
        );
    }
}
