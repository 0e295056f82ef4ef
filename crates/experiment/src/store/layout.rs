//! The tables of an experiment file.

/// `HTOL` in ASCII: marks our files.
pub(super) const APPLICATION_ID: i64 = 0x4854_4f4c;
/// Layout of the tables below.
pub(super) const LAYOUT: i64 = 1;

/// The tables of a new file.
pub(super) const TABLES: &str = "
CREATE TABLE description (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE observation (
    position INTEGER PRIMARY KEY, repetition INTEGER NOT NULL, phase TEXT NOT NULL,
    program TEXT NOT NULL, stack TEXT NOT NULL, outcome TEXT NOT NULL,
    user_s REAL NOT NULL, system_s REAL NOT NULL, wall_s REAL NOT NULL, peak_rss_kib INTEGER NOT NULL,
    minor_faults INTEGER NOT NULL, major_faults INTEGER NOT NULL,
    voluntary_switches INTEGER NOT NULL, involuntary_switches INTEGER NOT NULL,
    output_bytes INTEGER NOT NULL, output_digest TEXT NOT NULL, heap_high_water_bytes INTEGER,
    instructions INTEGER, cycles INTEGER, llc_misses INTEGER, dtlb_misses INTEGER,
    started_unix_s REAL NOT NULL, load_average REAL NOT NULL, env_padding INTEGER NOT NULL,
    stderr_tail TEXT NOT NULL, left_behind INTEGER NOT NULL, serve TEXT, collections TEXT, exact TEXT, locality TEXT,
    collector_cpu_ns INTEGER, used_high_bytes INTEGER, refused_calls INTEGER, held_high_bytes INTEGER,
    written_after_free INTEGER, figures TEXT,
    span_s REAL, steal REAL, interrupts REAL, other_work REAL, throttled REAL);
CREATE TABLE memory_sample (
    program TEXT NOT NULL, stack TEXT NOT NULL, repetition INTEGER NOT NULL, t_s REAL NOT NULL, rss_kib INTEGER NOT NULL);
CREATE TABLE memory_mark (
    program TEXT NOT NULL, stack TEXT NOT NULL, repetition INTEGER NOT NULL, vm_hwm_kib INTEGER NOT NULL,
    anonymous_peak_kib INTEGER);
";

/// Columns that files of the same layout may lack, because they were begun before there were such figures. They come
/// last in their tables and may be null.
pub(super) const ADDED: [(&str, &str, &str); 15] = [
    ("observation", "collections", "TEXT"),
    ("observation", "exact", "TEXT"),
    ("observation", "locality", "TEXT"),
    ("observation", "collector_cpu_ns", "INTEGER"),
    ("observation", "used_high_bytes", "INTEGER"),
    ("observation", "refused_calls", "INTEGER"),
    ("observation", "held_high_bytes", "INTEGER"),
    ("observation", "written_after_free", "INTEGER"),
    ("observation", "figures", "TEXT"),
    ("observation", "span_s", "REAL"),
    ("observation", "steal", "REAL"),
    ("observation", "interrupts", "REAL"),
    ("observation", "other_work", "REAL"),
    ("observation", "throttled", "REAL"),
    ("memory_mark", "anonymous_peak_kib", "INTEGER"),
];
