//! The columns of an observation: the database, its SQL view, CSV and Parquet are all written from this list, so that they
//! cannot differ in a name, a unit or in what may be missing. JSON has the fields of [`Observation`] itself.
//!
//! A new figure is a field of [`Observation`] and, at the end of this list, a column.

use crate::cell::{Cell, CellError, ColumnType, Value, json};
use crate::disturbance::Disturbance;
use crate::experiment::Experiment;
use crate::observation::{Observation, Outcome};
use crate::varied::Varied;

/// One column. Most are both stored and exported; a figure that is stored as JSON is exported in columns of its parts.
pub struct Column {
    /// What it holds.
    pub kind: ColumnType,
    /// Whether a cell may be missing.
    pub optional: bool,
    /// Reads the cell from a row.
    pub get: fn(&Observation) -> Value,
    /// In the database.
    pub stored: Option<Stored>,
    /// Its name in CSV, Parquet and the view `runs`, which ends in the unit where there is one.
    pub exported: Option<&'static str>,
    /// What it is in SQL, of the stored columns; none where the database has not all that it is made of.
    pub sql: Option<&'static str>,
    /// Reads the cell from the row's stack instead, where `--vary` varies a setting of it.
    of_varied: Option<fn(&Varied) -> Value>,
}

impl Column {
    const fn in_sql(self, sql: &'static str) -> Column {
        Column { sql: Some(sql), ..self }
    }

    /// The cell of a row of this experiment.
    pub fn cell(&self, experiment: &Experiment, row: &Observation) -> Value {
        match self.of_varied {
            None => (self.get)(row),
            Some(of) => experiment.varied(&row.program, &row.stack).map_or(Value::Missing, of),
        }
    }
}

/// A column of the database.
pub struct Stored {
    /// Its name.
    pub name: &'static str,
    /// Puts the cell into a row whose columns before this one are already there.
    pub set: fn(&mut Observation, Value) -> Result<(), CellError>,
}

/// Columns of the database with their names in it, in its order.
pub fn stored() -> impl Iterator<Item = (&'static Column, &'static Stored)> {
    COLUMNS.iter().filter_map(|column| Some((column, column.stored.as_ref()?)))
}

/// Columns of CSV and Parquet with their names there, in their order.
pub fn exported() -> impl Iterator<Item = (&'static str, &'static Column)> {
    COLUMNS.iter().filter_map(|column| Some((column.exported?, column)))
}

const fn required(name: &'static str, kind: ColumnType, get: fn(&Observation) -> Value) -> Column {
    Column { kind, optional: false, get, stored: None, exported: Some(name), sql: None, of_varied: None }
}

const fn optional(name: &'static str, kind: ColumnType, get: fn(&Observation) -> Value) -> Column {
    Column { optional: true, ..required(name, kind, get) }
}

/// A column of a field's type that is neither stored nor exported yet; the field itself is not read.
const fn of_field<T: Cell>(_: fn(&Observation) -> &T, get: fn(&Observation) -> Value) -> Column {
    Column { optional: T::OPTIONAL, exported: None, ..required("", T::KIND, get) }
}

/// The kind of a part of a figure that a row may lack; the part itself is not read.
const fn kind_of_part<T: Cell>(_: fn(&Observation) -> Option<&T>) -> ColumnType {
    T::KIND
}

const fn varied(name: &'static str, kind: ColumnType, of: fn(&Varied) -> Value) -> Column {
    Column { of_varied: Some(of), ..optional(name, kind, |_| Value::Missing) }
}

/// A field that is stored under this name.
macro_rules! stored {
    ($name:literal, $($field:ident).+) => {
        Column {
            stored: Some(Stored {
                name: $name,
                set: |row, value| {
                    row.$($field).+ = Cell::of(value)?;
                    Ok(())
                },
            }),
            ..of_field(|row| &row.$($field).+, |row| row.$($field).+.value())
        }
    };
}

/// A field that is stored under this name, and exported under the same or under another with its unit.
macro_rules! figure {
    ($name:literal, $($field:ident).+) => { figure!($name, $name, $($field).+) };
    ($stored:literal, $exported:literal, $($field:ident).+) => {
        Column { exported: Some($exported), sql: Some($stored), ..stored!($stored, $($field).+) }
    };
}

/// A part of a figure that is stored as JSON, exported under this name.
macro_rules! part {
    ($exported:literal, $figure:ident, $($field:ident).+) => {
        optional(
            $exported,
            kind_of_part(|row| row.$figure.as_ref().map(|of| &of.$($field).+)),
            |row| row.$figure.as_ref().map_or(Value::Missing, |of| of.$($field).+.value()),
        )
        .in_sql(concat!("json_extract(", stringify!($figure), ", '$" $(, ".", stringify!($field))+, "')"))
    };
}

/// Instructions before `main`, by their cause; a run may be counted without them.
macro_rules! startup {
    ($owner:ident) => {
        optional(concat!(stringify!($owner), "_startup_instructions"), ColumnType::Integer, |row| {
            row.exact.and_then(|exact| exact.startup).map(|of| of.$owner).value()
        })
        .in_sql(concat!("json_extract(exact, '$.startup.", stringify!($owner), "')"))
    };
}

/// A field of the disturbance, likewise.
macro_rules! disturbance {
    ($stored:literal, $exported:literal, $field:ident) => {
        Column {
            stored: Some(Stored {
                name: $stored,
                set: |row, value| set_disturbance(row, value, |found| &mut found.$field),
            }),
            ..optional($exported, ColumnType::Real, |row| disturbance(row, |found| found.$field.value()))
                .in_sql($stored)
        }
    };
}

/// Every column, in the order in which they are written. New ones are optional and come last: files from before have
/// no such column, and are given it when more rows follow.
pub static COLUMNS: &[Column] = &[
    figure!("position", "order", order),
    figure!("repetition", repetition),
    figure!("phase", phase),
    figure!("program", program),
    figure!("stack", stack),
    stored!("outcome", outcome),
    required("outcome", ColumnType::Text, |o| Value::Text(outcome(&o.outcome).0.to_owned()))
        .in_sql("json_extract(outcome, '$.kind')"),
    optional("outcome_detail", ColumnType::Text, |o| outcome(&o.outcome).1.value())
        .in_sql("json_extract(outcome, '$.detail')"),
    figure!("user_s", user_s),
    figure!("system_s", system_s),
    figure!("wall_s", wall_s),
    figure!("peak_rss_kib", peak_rss_kib),
    figure!("minor_faults", minor_faults),
    figure!("major_faults", major_faults),
    figure!("voluntary_switches", voluntary_switches),
    figure!("involuntary_switches", involuntary_switches),
    figure!("output_bytes", output_bytes),
    figure!("output_digest", "output_digest_sha256", output_digest),
    figure!("heap_high_water_bytes", heap_high_water_bytes),
    figure!("instructions", counters.instructions),
    figure!("cycles", counters.cycles),
    figure!("llc_misses", counters.llc_misses),
    figure!("dtlb_misses", counters.dtlb_misses),
    figure!("started_unix_s", started_unix_s),
    figure!("load_average", load_average),
    figure!("env_padding", "env_padding_bytes", env_padding),
    // The database has these two the other way round than CSV.
    stored!("stderr_tail", stderr_tail),
    figure!("left_behind", "left_behind_processes", killed_orphans),
    required("stderr_tail", ColumnType::Text, |o| o.stderr_tail.value()).in_sql("stderr_tail"),
    stored!("serve", serve),
    part!("server_loaded_cpu_s", serve, loaded_cpu_s),
    part!("server_ready_s", serve, ready_s),
    part!("server_load_s", serve, load_s),
    optional("server_load_figures_json", ColumnType::Text, |o| {
        o.serve.as_ref().map_or(Value::Missing, |serve| json(&serve.load_figures))
    })
    .in_sql("serve -> '$.load_figures'"),
    part!("server_load_report", serve, load_report),
    stored!("collections", collections),
    part!("collections", collections, count),
    part!("pause_total_ns", collections, pause_total_ns),
    part!("pause_max_ns", collections, pause_max_ns),
    part!("reclaimed_bytes", collections, reclaimed_bytes),
    stored!("exact", exact),
    part!("program_instructions", exact, instructions.program),
    part!("allocator_instructions", exact, instructions.allocator),
    part!("collector_instructions", exact, instructions.collector),
    part!("program_loads", exact, loads.program),
    part!("allocator_loads", exact, loads.allocator),
    part!("collector_loads", exact, loads.collector),
    part!("program_stores", exact, stores.program),
    part!("allocator_stores", exact, stores.allocator),
    part!("collector_stores", exact, stores.collector),
    part!("allocation_calls", exact, allocations),
    part!("free_calls", exact, frees),
    part!("traced_heap_high_water_bytes", exact, heap_high_water_bytes),
    part!("traced_images", exact, images),
    optional("traced_whole", ColumnType::Integer, |o| o.exact.map(|exact| u64::from(exact.whole)).value())
        .in_sql("json_extract(exact, '$.whole')"),
    stored!("locality", locality),
    part!("program_references", locality, references.program),
    part!("allocator_references", locality, references.allocator),
    part!("collector_references", locality, references.collector),
    part!("cache_line_bytes", locality, line_bytes),
    part!("page_bytes", locality, page_bytes),
    part!("pages_touched", locality, pages_touched),
    part!("sampled_one_in", locality, sampled_one_in),
    optional("cache_misses_json", ColumnType::Text, |o| {
        o.locality.as_ref().map_or(Value::Missing, |locality| json(&locality.caches))
    })
    .in_sql("locality -> '$.caches'"),
    figure!("collector_cpu_ns", collector_cpu_ns),
    figure!("used_high_bytes", used_high_bytes),
    figure!("refused_calls", refused_calls),
    figure!("held_high_bytes", held_high_bytes),
    figure!("written_after_free", written_after_free),
    figure!("figures", "program_figures_json", figures),
    Column {
        stored: Some(Stored {
            name: "span_s",
            set: |row, value| {
                let of = |seconds| Disturbance { seconds, ..Disturbance::default() };
                row.disturbance = Option::of(value)?.map(of);
                Ok(())
            },
        }),
        ..optional("span_s", ColumnType::Real, |o| disturbance(o, |d| d.seconds.value())).in_sql("span_s")
    },
    disturbance!("steal", "steal_share", steal),
    disturbance!("interrupts", "interrupt_share", interrupts),
    disturbance!("other_work", "other_work_share", other_work),
    disturbance!("throttled", "throttled_share", throttled),
    optional("loaded", ColumnType::Integer, |o| {
        o.disturbance.and_then(|d| d.is_loaded()).map(u64::from).value()
    }),
    startup!(program),
    startup!(allocator),
    startup!(collector),
    figure!("disk_read_blocks", disk_read_blocks),
    varied("varied_manager", ColumnType::Text, |v| Value::Text(v.manager.clone())),
    varied("varied_setting", ColumnType::Text, |v| Value::Text(v.setting.clone())),
    varied("varied_at", ColumnType::Integer, |v| Value::Integer(v.at)),
];

fn disturbance(row: &Observation, get: impl Fn(&Disturbance) -> Value) -> Value {
    row.disturbance.as_ref().map_or(Value::Missing, get)
}

/// A disturbance of which a share is missing is none.
fn set_disturbance<T: Cell>(
    row: &mut Observation,
    value: Value,
    share: fn(&mut Disturbance) -> &mut T,
) -> Result<(), CellError> {
    if value == Value::Missing && !T::OPTIONAL {
        row.disturbance = None;
    } else if let Some(found) = &mut row.disturbance {
        *share(found) = T::of(value)?;
    }
    Ok(())
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
    use crate::observation::Phase;

    #[test]
    fn names_are_unique_and_agree_with_json() {
        let distinct = |names: Vec<&str>| {
            let count = names.len();
            assert_eq!(names.into_iter().collect::<std::collections::BTreeSet<_>>().len(), count);
        };
        distinct(stored().map(|(_, stored)| stored.name).collect());
        distinct(exported().map(|(name, _)| name).collect());
        for value in [
            Phase::Warmup,
            Phase::Timed,
            Phase::Alone,
            Phase::Startup,
            Phase::Profile,
            Phase::Traced,
            Phase::Search,
        ] {
            assert_eq!(serde_json::to_value(value).unwrap(), value.name());
        }
        for value in
            [Outcome::Ok, Outcome::Timeout(2.0), Outcome::WrongOutput, Outcome::NotStarted("x".into())]
        {
            assert_eq!(serde_json::to_value(&value).unwrap()["kind"], outcome(&value).0);
        }
    }
}
