//! The tables of an experiment file.

use crate::cell::ColumnType;
use crate::columns::{exported, stored};

/// `HTOL` in ASCII: marks our files.
pub(super) const APPLICATION_ID: i64 = 0x4854_4f4c;
/// Layout of the tables below.
pub(super) const LAYOUT: i64 = 1;

/// The column of `memory_mark` that files of the same layout may lack.
pub(super) const ANONYMOUS_PEAK: &str = "anonymous_peak_kib";

/// Key of the version of heaptoll that wrote the file last.
pub(super) const WRITTEN_BY: &str = "written_by";

/// The columns that `runs` had first, in the order that readers rely on.
// Sentence: names of columns.
const FIRST_OF_RUNS: &str = "run repetition phase program stack outcome outcome_detail cpu_s user_s system_s wall_s peak_rss_kib minor_faults \
    major_faults voluntary_switches involuntary_switches disk_read_blocks output_bytes output_digest_sha256 \
    heap_high_water_bytes used_high_bytes held_high_bytes refused_calls written_after_free collector_cpu_ns collections \
    pause_total_ns pause_max_ns reclaimed_bytes instructions cycles llc_misses dtlb_misses program_instructions \
    allocator_instructions collector_instructions started_unix_s load_average span_s steal_share interrupt_share \
    other_work_share throttled_share program_figures_json";

/// Views for readers, whose columns never change; replaced in a file that is opened for more rows.
pub(super) fn views() -> String {
    let of_rows = exported().filter_map(|(name, column)| Some((name, column.sql?)));
    // The position has a name of its own there.
    let of_rows = of_rows.filter(|(_, sql)| *sql != "position");
    let mut runs: Vec<(&str, &str)> =
        [("run", "position"), ("cpu_s", "user_s + system_s")].into_iter().chain(of_rows).collect();
    runs.sort_by_key(|(name, _)| {
        FIRST_OF_RUNS.split(' ').position(|first| first == *name).unwrap_or(usize::MAX)
    });
    let runs: Vec<String> = runs.into_iter().map(|(name, sql)| format!("{sql} AS {name}")).collect();
    include_str!("views.sql").replace("{runs}", &runs.join(", "))
}

/// Phases of the first files are JSON; readers find plain text.
pub(super) const PLAIN_PHASES: &str =
    "UPDATE observation SET phase = trim(phase, '\"') WHERE phase LIKE '\"%';";

/// The tables of a new file.
pub(super) fn tables() -> String {
    let columns: Vec<String> = stored()
        .enumerate()
        .map(|(position, (column, stored))| {
            let constraint = match (position, column.optional) {
                (0, _) => " PRIMARY KEY",
                (_, false) => " NOT NULL",
                (_, true) => "",
            };
            format!("{} {}{constraint}", stored.name, sql_type(column.kind))
        })
        .collect();
    format!(
        "
CREATE TABLE description (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE observation ({});
CREATE TABLE memory_sample (
    program TEXT NOT NULL, stack TEXT NOT NULL, repetition INTEGER NOT NULL, t_s REAL NOT NULL, rss_kib INTEGER NOT NULL);
CREATE TABLE memory_mark (
    program TEXT NOT NULL, stack TEXT NOT NULL, repetition INTEGER NOT NULL, vm_hwm_kib INTEGER NOT NULL,
    {ANONYMOUS_PEAK} INTEGER);
",
        columns.join(", ")
    )
}

/// Columns that files of the same layout may lack, because they were begun before there were such figures: table,
/// name and type. They may be null.
pub(super) fn optional_columns() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    stored()
        .filter(|(column, _)| column.optional)
        .map(|(column, stored)| ("observation", stored.name, sql_type(column.kind)))
        .chain([("memory_mark", ANONYMOUS_PEAK, "INTEGER")])
}

fn sql_type(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Integer => "INTEGER",
        ColumnType::Real => "REAL",
        ColumnType::Text => "TEXT",
    }
}
