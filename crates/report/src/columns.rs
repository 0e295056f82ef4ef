//! The columns of one observation as a flat table: CSV and Parquet are both written from this list, so that they
//! cannot differ in a name, a unit or in what may be missing.

use heaptoll_experiment::disturbance::Disturbance;
use heaptoll_experiment::observation::{ByOwner, ExactFigures, LocalityFigures, Observation, Outcome, Phase};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Signed 64-bit integer.
    Integer,
    /// 64-bit floating point.
    Real,
    /// UTF-8 text.
    Text,
}

/// One cell; `Missing` only in columns that are optional.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Not measured, or not a thing of this row.
    Missing,
    /// An integer.
    Integer(i64),
    /// A real.
    Real(f64),
    /// Text.
    Text(String),
}

/// One column.
pub struct Column {
    /// Its name, which ends in the unit where there is one.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnType,
    /// Whether a cell may be missing.
    pub optional: bool,
    /// Reads the cell from a row.
    pub get: fn(&Observation) -> Value,
}

const fn required(name: &'static str, kind: ColumnType, get: fn(&Observation) -> Value) -> Column {
    Column { name, kind, optional: false, get }
}

const fn optional(name: &'static str, kind: ColumnType, get: fn(&Observation) -> Value) -> Column {
    Column { name, kind, optional: true, get }
}

/// Every column, in the order in which they are written. New ones are added at the end.
pub static COLUMNS: &[Column] = &[
    required("order", ColumnType::Integer, |o| Value::Integer(o.order.into())),
    required("repetition", ColumnType::Integer, |o| Value::Integer(o.repetition.into())),
    required("phase", ColumnType::Text, |o| text(phase(o.phase))),
    required("program", ColumnType::Text, |o| text(&o.program)),
    required("stack", ColumnType::Text, |o| text(&o.stack)),
    required("outcome", ColumnType::Text, |o| text(outcome(&o.outcome).0)),
    optional("outcome_detail", ColumnType::Text, |o| {
        outcome(&o.outcome).1.map_or(Value::Missing, Value::Text)
    }),
    required("user_s", ColumnType::Real, |o| Value::Real(o.user_s)),
    required("system_s", ColumnType::Real, |o| Value::Real(o.system_s)),
    required("wall_s", ColumnType::Real, |o| Value::Real(o.wall_s)),
    required("peak_rss_kib", ColumnType::Integer, |o| integer(o.peak_rss_kib)),
    required("minor_faults", ColumnType::Integer, |o| integer(o.minor_faults)),
    required("major_faults", ColumnType::Integer, |o| integer(o.major_faults)),
    required("voluntary_switches", ColumnType::Integer, |o| integer(o.voluntary_switches)),
    required("involuntary_switches", ColumnType::Integer, |o| integer(o.involuntary_switches)),
    required("output_bytes", ColumnType::Integer, |o| integer(o.output_bytes)),
    required("output_digest_sha256", ColumnType::Text, |o| text(&o.output_digest)),
    optional("heap_high_water_bytes", ColumnType::Integer, |o| maybe(o.heap_high_water_bytes)),
    optional("instructions", ColumnType::Integer, |o| maybe(o.counters.instructions)),
    optional("cycles", ColumnType::Integer, |o| maybe(o.counters.cycles)),
    optional("llc_misses", ColumnType::Integer, |o| maybe(o.counters.llc_misses)),
    optional("dtlb_misses", ColumnType::Integer, |o| maybe(o.counters.dtlb_misses)),
    required("started_unix_s", ColumnType::Real, |o| Value::Real(o.started_unix_s)),
    required("load_average", ColumnType::Real, |o| Value::Real(o.load_average)),
    required("env_padding_bytes", ColumnType::Integer, |o| Value::Integer(o.env_padding.into())),
    required("left_behind_processes", ColumnType::Integer, |o| Value::Integer(o.killed_orphans.into())),
    required("stderr_tail", ColumnType::Text, |o| text(&o.stderr_tail)),
    optional("server_loaded_cpu_s", ColumnType::Real, |o| server(o, |s| Value::Real(s.loaded_cpu_s))),
    optional("server_ready_s", ColumnType::Real, |o| server(o, |s| Value::Real(s.ready_s))),
    optional("server_load_s", ColumnType::Real, |o| server(o, |s| Value::Real(s.load_s))),
    optional("server_load_figures_json", ColumnType::Text, |o| {
        // A map of text to numbers cannot fail to encode; were it to, the cell is missing and the row is not lost.
        server(o, |s| serde_json::to_string(&s.load_figures).map_or(Value::Missing, Value::Text))
    }),
    optional("server_load_report", ColumnType::Text, |o| server(o, |s| text(&s.load_report))),
    optional("collections", ColumnType::Integer, |o| maybe(o.collections.map(|c| c.count))),
    optional("pause_total_ns", ColumnType::Integer, |o| maybe(o.collections.map(|c| c.pause_total_ns))),
    optional("pause_max_ns", ColumnType::Integer, |o| maybe(o.collections.map(|c| c.pause_max_ns))),
    optional("reclaimed_bytes", ColumnType::Integer, |o| maybe(o.collections.map(|c| c.reclaimed_bytes))),
    optional("program_instructions", ColumnType::Integer, |o| exact(o, |e| e.instructions.program)),
    optional("allocator_instructions", ColumnType::Integer, |o| exact(o, |e| e.instructions.allocator)),
    optional("collector_instructions", ColumnType::Integer, |o| exact(o, |e| e.instructions.collector)),
    optional("program_loads", ColumnType::Integer, |o| exact(o, |e| e.loads.program)),
    optional("allocator_loads", ColumnType::Integer, |o| exact(o, |e| e.loads.allocator)),
    optional("collector_loads", ColumnType::Integer, |o| exact(o, |e| e.loads.collector)),
    optional("program_stores", ColumnType::Integer, |o| exact(o, |e| e.stores.program)),
    optional("allocator_stores", ColumnType::Integer, |o| exact(o, |e| e.stores.allocator)),
    optional("collector_stores", ColumnType::Integer, |o| exact(o, |e| e.stores.collector)),
    optional("allocation_calls", ColumnType::Integer, |o| exact(o, |e| e.allocations)),
    optional("free_calls", ColumnType::Integer, |o| exact(o, |e| e.frees)),
    optional("traced_heap_high_water_bytes", ColumnType::Integer, |o| {
        maybe(o.exact.and_then(|e| e.heap_high_water_bytes))
    }),
    optional("traced_images", ColumnType::Integer, |o| exact(o, |e| e.images.into())),
    optional("traced_whole", ColumnType::Integer, |o| exact(o, |e| e.whole.into())),
    optional("program_references", ColumnType::Integer, |o| locality(o, |l| integer(l.references.program))),
    optional("allocator_references", ColumnType::Integer, |o| {
        locality(o, |l| integer(l.references.allocator))
    }),
    optional("collector_references", ColumnType::Integer, |o| {
        locality(o, |l| integer(l.references.collector))
    }),
    optional("cache_line_bytes", ColumnType::Integer, |o| locality(o, |l| integer(l.line_bytes))),
    optional("page_bytes", ColumnType::Integer, |o| locality(o, |l| integer(l.page_bytes))),
    optional("pages_touched", ColumnType::Integer, |o| locality(o, |l| integer(l.pages_touched))),
    optional("sampled_one_in", ColumnType::Integer, |o| locality(o, |l| integer(l.sampled_one_in.into()))),
    optional("cache_misses_json", ColumnType::Text, |o| {
        // As with a load's figures: names and numbers encode.
        locality(o, |l| serde_json::to_string(&l.caches).map_or(Value::Missing, Value::Text))
    }),
    optional("collector_cpu_ns", ColumnType::Integer, |o| maybe(o.collector_cpu_ns)),
    optional("used_high_bytes", ColumnType::Integer, |o| maybe(o.used_high_bytes)),
    optional("refused_calls", ColumnType::Integer, |o| maybe(o.refused_calls)),
    optional("held_high_bytes", ColumnType::Integer, |o| maybe(o.held_high_bytes)),
    optional("written_after_free", ColumnType::Integer, |o| maybe(o.written_after_free)),
    optional("program_figures_json", ColumnType::Text, |o| match o.figures.is_empty() {
        true => Value::Missing,
        // As with a load's figures.
        false => serde_json::to_string(&o.figures).map_or(Value::Missing, Value::Text),
    }),
    optional("span_s", ColumnType::Real, |o| disturbance(o, |d| Some(d.seconds))),
    optional("steal_share", ColumnType::Real, |o| disturbance(o, |d| Some(d.steal))),
    optional("interrupt_share", ColumnType::Real, |o| disturbance(o, |d| Some(d.interrupts))),
    optional("other_work_share", ColumnType::Real, |o| disturbance(o, |d| Some(d.other_work))),
    optional("throttled_share", ColumnType::Real, |o| disturbance(o, |d| d.throttled)),
    optional("loaded", ColumnType::Integer, |o| {
        maybe(o.disturbance.and_then(|d| d.is_loaded()).map(u64::from))
    }),
    optional("program_startup_instructions", ColumnType::Integer, |o| startup(o, |s| s.program)),
    optional("allocator_startup_instructions", ColumnType::Integer, |o| startup(o, |s| s.allocator)),
    optional("collector_startup_instructions", ColumnType::Integer, |o| startup(o, |s| s.collector)),
];

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// Counts are far below 2^63; one that is not is pinned there.
fn integer(value: u64) -> Value {
    Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

fn maybe(value: Option<u64>) -> Value {
    value.map_or(Value::Missing, integer)
}

fn exact(row: &Observation, get: impl Fn(&ExactFigures) -> u64) -> Value {
    row.exact.as_ref().map_or(Value::Missing, |figures| integer(get(figures)))
}

fn startup(row: &Observation, get: impl Fn(&ByOwner) -> u64) -> Value {
    let startup = row.exact.as_ref().and_then(|exact| exact.startup.as_ref());
    startup.map_or(Value::Missing, |figures| integer(get(figures)))
}

fn locality(row: &Observation, get: impl Fn(&LocalityFigures) -> Value) -> Value {
    row.locality.as_ref().map_or(Value::Missing, get)
}

fn disturbance(row: &Observation, get: impl Fn(&Disturbance) -> Option<f64>) -> Value {
    row.disturbance.as_ref().and_then(get).map_or(Value::Missing, Value::Real)
}

fn server(
    row: &Observation,
    get: impl Fn(&heaptoll_experiment::observation::ServeFigures) -> Value,
) -> Value {
    row.serve.as_ref().map_or(Value::Missing, get)
}

/// The phase as JSON, CSV and Parquet name it.
pub fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup",
        Phase::Timed => "timed",
        Phase::Alone => "alone",
        Phase::Startup => "startup",
        Phase::Profile => "profile",
        Phase::Traced => "traced",
    }
}

/// The outcome as JSON, CSV and Parquet name it, and what goes with it.
fn outcome(outcome: &Outcome) -> (&'static str, Option<String>) {
    match outcome {
        Outcome::Ok => ("ok", None),
        Outcome::Exit(code) => ("exit", Some(code.to_string())),
        Outcome::Signal(number) => ("signal", Some(number.to_string())),
        Outcome::Timeout(limit) => ("timeout", Some(limit.to_string())),
        Outcome::Interrupted => ("interrupted", None),
        Outcome::NotStarted(why) => ("not_started", Some(why.clone())),
        Outcome::WrongOutput => ("wrong_output", None),
        Outcome::ServeFailed(why) => ("serve_failed", Some(why.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_the_kind_of_its_column() {
        let mut rows = crate::testing::experiment(crate::testing::Shape::Server).0.observations;
        rows.extend(crate::testing::experiment(crate::testing::Shape::Suite).0.observations);
        assert!(rows.iter().any(|row| row.exact.is_some() && row.locality.is_some()));
        let more = crate::testing::experiment(crate::testing::Shape::Troubled).0.observations;
        assert!(rows.len() > 10 && more.len() > 10);
        for row in rows.iter().chain(&more) {
            for column in COLUMNS {
                let fits = match (column.get)(row) {
                    Value::Missing => column.optional,
                    Value::Integer(_) => column.kind == ColumnType::Integer,
                    Value::Real(_) => column.kind == ColumnType::Real,
                    Value::Text(_) => column.kind == ColumnType::Text,
                };
                assert!(fits, "{}", column.name);
            }
        }
    }

    #[test]
    fn names_are_unique_and_agree_with_json() {
        let mut names: Vec<_> = COLUMNS.iter().map(|c| c.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COLUMNS.len());
        for value in
            [Phase::Warmup, Phase::Timed, Phase::Alone, Phase::Startup, Phase::Profile, Phase::Traced]
        {
            assert_eq!(serde_json::to_value(value).unwrap(), phase(value));
        }
        for value in
            [Outcome::Ok, Outcome::Timeout(2.0), Outcome::WrongOutput, Outcome::NotStarted("x".into())]
        {
            assert_eq!(serde_json::to_value(&value).unwrap()["kind"], outcome(&value).0);
        }
    }
}
