//! The file gives back what was put in, or a clear error.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::layout::LAYOUT;
use super::*;
use crate::columns::stored;
use crate::disturbance::Disturbance;
use crate::observation::{
    ByOwner, Collections, ExactFigures, GeometryMisses, LocalityFigures, Outcome, Phase, ServeFigures,
};
use crate::testing::{experiment, row};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn what_is_stored_comes_back() {
    let folder = folder();
    let path = folder.path().join("e.db");
    let mut made = experiment(&["glibc", "x"]);
    let mut store = Store::create(&path, &made).expect("creates");
    for (index, outcome) in
        [Outcome::Ok, Outcome::Timeout(1.5), Outcome::NotStarted("no \"x\"".into())].into_iter().enumerate()
    {
        let serve =
            ServeFigures { load_figures: [("p99".to_string(), 1.25)].into(), ..ServeFigures::default() };
        let row = Observation {
            order: index as u32,
            outcome,
            serve: (index == 1).then_some(serve),
            heap_high_water_bytes: (index == 2).then_some(9),
            collections: (index == 0).then_some(Collections {
                count: 3,
                pause_total_ns: 5_000_000_000,
                pause_max_ns: 4,
                reclaimed_bytes: 1 << 40,
                processes: 2,
                unread_places: 3,
                abandon_causes: 5,
            }),
            collector_cpu_ns: (index == 0).then_some(6_000_000_000),
            used_high_bytes: (index == 1).then_some(4096),
            refused_calls: (index == 1).then_some(0),
            held_high_bytes: (index == 2).then_some(1),
            written_after_free: (index == 2).then_some(3),
            disturbance: (index > 0).then_some(Disturbance {
                seconds: 1.5,
                steal: 0.25,
                interrupts: 0.5,
                other_work: 0.75,
                throttled: (index == 1).then_some(0.125),
            }),
            figures: if index == 2 { [("pause_ms".to_string(), 1.25)].into() } else { BTreeMap::new() },
            phase: if index == 2 { Phase::Traced } else { Phase::Timed },
            exact: (index == 2).then_some(ExactFigures {
                instructions: ByOwner { program: 1 << 50, allocator: 2, collector: 3 },
                heap_high_water_bytes: Some(4096),
                whole: true,
                ..ExactFigures::default()
            }),
            locality: (index == 2).then(|| LocalityFigures {
                line_bytes: 64,
                caches: vec![GeometryMisses {
                    cache: "32K/8".into(),
                    misses: ByOwner { allocator: 7, ..ByOwner::default() },
                    wait_cycles: Some(14),
                }],
                ..LocalityFigures::default()
            }),
            ..row("glibc", index as u32, 0.1, 77)
        };
        store.append(&row).expect("appends");
        made.observations.push(row);
    }
    let track = MemoryTrack {
        program: "prog".into(),
        stack: "x".into(),
        repetition: 0,
        samples: vec![(0.0, 1), (0.5, 2)],
        vm_hwm_kib: 3,
        anonymous_peak_kib: 2,
    };
    store.append_track(&track).expect("appends");
    made.tracks.push(track);
    made.complete = true;
    store.describe(&made).expect("describes");
    drop(store);
    assert_eq!(Store::read(&path).expect("reads"), made);
    assert_eq!(Store::resume(&path).expect("resumes").1, made);
}

/// Columns that did not exist when the first version stored rows: those after `serve`.
fn added() -> impl Iterator<Item = &'static str> {
    stored().map(|(_, stored)| stored.name).skip_while(|name| *name != "serve").skip(1)
}

/// Older files have no views, and SQLite drops no column that one has.
fn without_views(store: &Store) {
    let drop =
        "DROP VIEW runs; DROP VIEW stacks; DROP VIEW programs; DROP VIEW settings; DROP VIEW memory_samples";
    store.file.connection.execute_batch(drop).expect("has views");
}

/// A file without this column of rows and those that came after it, with one row, is read, and continued with another.
fn goes_on_without(first: &str, before: Observation, after: Observation) {
    let folder = folder();
    let path = folder.path().join("e.db");
    let mut made = experiment(&["glibc"]);
    let store = Store::create(&path, &made).expect("creates");
    store.append(&before).expect("appends");
    without_views(&store);
    for column in added().skip_while(|column| *column != first) {
        let statement = format!("ALTER TABLE observation DROP COLUMN {column}");
        store.file.connection.execute_batch(&statement).expect("becomes an older file");
    }
    store
        .file
        .connection
        .execute_batch("DELETE FROM description WHERE key = 'exact_notes'")
        .expect("no older has it");
    drop(store);
    assert_eq!(Store::read(&path).expect("reads").observations, std::slice::from_ref(&before));
    let (store, _) = Store::resume(&path).expect("resumes");
    store.append(&after).expect("appends");
    made.observations.extend([before, after]);
    assert_eq!(Store::read(&path).expect("reads").observations, made.observations);
}

#[test]
fn a_file_from_before_traced_runs_is_read_and_gone_on_with() {
    let collections = Some(Collections { count: 5, ..Collections::default() });
    let before = Observation { collections, ..row("glibc", 0, 0.1, 77) };
    let exact = Some(ExactFigures { allocations: 9, ..ExactFigures::default() });
    let after = Observation { order: 1, phase: Phase::Traced, exact, ..row("glibc", 1, 0.1, 77) };
    goes_on_without("exact", before, after);
}

#[test]
fn counts_from_before_start_up_was_counted_are_read() {
    let folder = folder();
    let path = folder.path().join("e.db");
    let store = Store::create(&path, &experiment(&["glibc"])).expect("creates");
    let exact = Some(ExactFigures { startup: Some(ByOwner::default()), ..ExactFigures::default() });
    let caches =
        vec![GeometryMisses { cache: "32K/8".into(), misses: ByOwner::default(), wait_cycles: Some(14) }];
    let locality = Some(LocalityFigures { caches, ..LocalityFigures::default() });
    store.append(&Observation { exact, locality, ..row("glibc", 0, 0.1, 77) }).expect("appends");
    let older = "UPDATE observation SET exact = json_remove(exact, '$.startup'), \
                 locality = json_remove(locality, '$.caches[0].wait_cycles')";
    assert_eq!(store.file.connection.execute(older, []).expect("becomes an older file"), 1);
    let read = Store::read(&path).expect("reads").observations.remove(0);
    assert_eq!(read.exact, Some(ExactFigures::default()));
    assert_eq!(read.locality.expect("kept").caches[0].wait_cycles, None);
}

#[test]
fn a_file_from_before_layers_is_read_and_gone_on_with() {
    let locality = Some(LocalityFigures { line_bytes: 64, ..LocalityFigures::default() });
    let before = Observation { locality, ..row("glibc", 0, 0.1, 77) };
    let after = Observation { order: 1, used_high_bytes: Some(9), ..row("glibc", 1, 0.1, 77) };
    goes_on_without("collector_cpu_ns", before, after);
}

#[test]
fn a_file_from_before_program_figures_is_read_and_continued() {
    let before = Observation { written_after_free: Some(2), ..row("glibc", 0, 0.1, 77) };
    let figures = [("heap_kib".to_string(), 5.5)].into();
    let after = Observation { order: 1, figures, ..row("glibc", 1, 0.1, 77) };
    goes_on_without("figures", before, after);
}

#[test]
fn a_file_from_before_disturbance_was_measured_is_read_and_gone_on_with() {
    let disturbance =
        Disturbance { seconds: 1.5, steal: 0.25, throttled: Some(0.125), ..Disturbance::default() };
    let before = Observation { figures: [("heap_kib".to_string(), 5.5)].into(), ..row("glibc", 0, 0.1, 77) };
    let after = Observation { order: 1, disturbance: Some(disturbance), ..row("glibc", 1, 0.1, 77) };
    goes_on_without("span_s", before, after);
}

#[test]
fn a_file_from_before_disk_blocks_were_counted_is_read_and_gone_on_with() {
    let before = row("glibc", 0, 0.1, 77);
    let after = Observation { order: 1, disk_read_blocks: Some(8), ..row("glibc", 1, 0.1, 77) };
    goes_on_without("disk_read_blocks", before, after);
}

#[test]
fn a_file_of_any_earlier_set_of_columns_is_read_and_gone_on_with() {
    assert!(added().count() >= 14);
    for first in added() {
        goes_on_without(
            first,
            row("glibc", 0, 0.1, 77),
            Observation { order: 1, ..row("glibc", 1, 0.1, 77) },
        );
    }
    let required = stored().filter(|(column, _)| !column.optional).map(|(_, stored)| stored.name);
    for name in required {
        assert!(added().all(|added| added != name), "{name} is new and must be optional");
    }
}

#[test]
fn columns_have_the_order_and_the_types_that_they_had() {
    let tables = super::layout::tables();
    let observation = tables.lines().find(|line| line.contains("TABLE observation")).expect("the table");
    let first = "CREATE TABLE observation (position INTEGER PRIMARY KEY, repetition INTEGER NOT NULL, phase TEXT NOT NULL, \
         program TEXT NOT NULL, stack TEXT NOT NULL, outcome TEXT NOT NULL, user_s REAL NOT NULL, system_s REAL NOT NULL, \
         wall_s REAL NOT NULL, peak_rss_kib INTEGER NOT NULL, minor_faults INTEGER NOT NULL, \
         major_faults INTEGER NOT NULL, voluntary_switches INTEGER NOT NULL, involuntary_switches INTEGER NOT NULL, \
         output_bytes INTEGER NOT NULL, output_digest TEXT NOT NULL, heap_high_water_bytes INTEGER, \
         instructions INTEGER, cycles INTEGER, llc_misses INTEGER, dtlb_misses INTEGER, started_unix_s REAL NOT NULL, \
         load_average REAL NOT NULL, env_padding INTEGER NOT NULL, stderr_tail TEXT NOT NULL, \
         left_behind INTEGER NOT NULL, serve TEXT, collections TEXT, exact TEXT, locality TEXT, \
         collector_cpu_ns INTEGER, used_high_bytes INTEGER, refused_calls INTEGER, held_high_bytes INTEGER, \
         written_after_free INTEGER, figures TEXT, span_s REAL, steal REAL, interrupts REAL, other_work REAL, \
         throttled REAL";
    assert!(observation.starts_with(first), "{observation}");
}

#[test]
fn a_file_from_before_collections_is_read_and_gone_on_with() {
    let folder = folder();
    let path = folder.path().join("e.db");
    let mut made = experiment(&["glibc"]);
    let store = Store::create(&path, &made).expect("creates");
    without_views(&store);
    store
        .file
        .connection
        .execute_batch(
            &added()
                .map(|column| format!("ALTER TABLE observation DROP COLUMN {column};"))
                .chain(["ALTER TABLE memory_mark DROP COLUMN anonymous_peak_kib;".to_owned()])
                .collect::<String>(),
        )
        .and_then(|()| {
            store.file.connection.execute_batch("INSERT INTO memory_mark VALUES ('prog', 'glibc', 0, 3)")
        })
        .expect("becomes an older file");
    drop(store);
    let read = Store::read(&path).expect("reads");
    assert_eq!((read.tracks.len(), read.tracks[0].anonymous_peak_kib), (1, 0));
    let (store, _) = Store::resume(&path).expect("resumes");
    let collections = Some(Collections { count: 1, ..Collections::default() });
    let row = Observation { collections, ..row("glibc", 0, 0.1, 77) };
    store.append(&row).expect("appends");
    made.observations.push(row);
    assert_eq!(Store::read(&path).expect("reads").observations, made.observations);
}

#[test]
fn files_of_other_programs_are_distinguished() {
    let folder = folder();
    let text = folder.path().join("text.db");
    std::fs::write(&text, "this is not a database, it is a text of some length".repeat(40)).expect("writes");
    assert!(matches!(Store::read(&text), Err(StoreError::Foreign { .. })));

    let other = folder.path().join("other.db");
    let connection = Connection::open(&other).expect("opens");
    connection.execute_batch("CREATE TABLE t (x)").expect("makes a table");
    drop(connection);
    assert!(matches!(Store::read(&other), Err(StoreError::Foreign { .. })));

    assert!(matches!(Store::read(&folder.path().join("none.db")), Err(StoreError::Missing(_))));
    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").expect("writes");
    assert!(matches!(Store::read(&empty), Err(StoreError::Foreign { .. })));
}

#[test]
fn a_newer_layout_and_an_existing_file_are_refused() {
    let folder = folder();
    let path = folder.path().join("e.db");
    let made = experiment(&["glibc"]);
    let store = Store::create(&path, &made).expect("creates");
    assert!(matches!(Store::create(&path, &made), Err(StoreError::Exists(_))));
    store.file.connection.pragma_update(None, "user_version", LAYOUT + 1).expect("updates");
    drop(store);
    assert!(matches!(Store::read(&path), Err(StoreError::Newer { .. })));
}

/// Each value was written by itself, so that a full disk left new settings beside stacks of before.
#[test]
fn a_description_that_does_not_fit_on_the_disk_leaves_the_one_before() {
    let folder = folder();
    let path = folder.path().join("e.db");
    let before = experiment(&["glibc"]);
    let store = Store::create(&path, &before).expect("creates");
    let pages = "PRAGMA max_page_count = 1";
    let _: i64 = store.file.connection.query_row(pages, [], |row| row.get(0)).expect("limits");
    let mut after = Experiment { complete: true, baseline: "other".into(), ..before.clone() };
    after.refused.push(("prog".into(), "lea".into(), "x".repeat(100_000)));
    assert!(store.describe(&after).is_err());
    drop(store);
    assert_eq!(Store::read(&path).expect("reads"), before);
}

#[test]
fn damage_is_reported_and_never_panics() {
    let folder = folder();
    let path = folder.path().join("e.db");
    let store = Store::create(&path, &experiment(&["glibc"])).expect("creates");
    for index in 0..50 {
        store.append(&Observation { order: index, ..row("glibc", index, 0.1, 1) }).expect("appends");
    }
    drop(store);
    let whole = std::fs::read(&path).expect("reads");
    for cut in [100, 1000, whole.len() / 2, whole.len() - 4096] {
        std::fs::write(&path, &whole[..cut]).expect("writes");
        assert!(Store::read(&path).is_err(), "cut at {cut}");
    }
    let mut dirty = whole.clone();
    dirty[4096..].fill(0xa5);
    std::fs::write(&path, &dirty).expect("writes");
    assert!(Store::read(&path).is_err());
    std::fs::write(&path, &whole).expect("writes");
    Connection::open(&path)
        .expect("opens")
        .execute("UPDATE observation SET phase = 'nonsense' WHERE position = 3", [])
        .expect("updates");
    assert!(matches!(Store::read(&path), Err(StoreError::Damaged { .. })));
}

#[test]
fn an_unwritable_place_is_named() {
    let error = Store::create(Path::new("/proc/nowhere/e.db"), &experiment(&["glibc"])).err().expect("fails");
    assert!(error.to_string().contains("/proc/nowhere/e.db"), "{error}");
}

#[test]
fn a_folder_or_a_fifo_is_called_by_its_name_and_not_waited_for() {
    let folder = folder();
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    for (path, what) in [(folder.path(), "a folder"), (&fifo, "a FIFO")] {
        let error = Store::read(path).expect_err("it is refused").to_string();
        assert!(error.contains(what) && !error.contains("disk"), "{error}");
    }
}

#[test]
fn what_is_kept_with_an_experiment_comes_back_and_the_last_of_a_name_counts() {
    let folder = folder();
    let path = folder.path().join("e.db");
    let store = Store::create(&path, &experiment(&["glibc"])).expect("creates");
    assert_eq!(store.attached_bytes("marks").expect("is read"), None);
    store.attach_bytes("marks", b"lost").expect("is kept");
    store.attach_bytes("marks", &[0, 0xff, 0]).expect("is kept");
    store.attach_value("search", &vec![1.5, 2.0]).expect("is kept");
    drop(store);
    let (store, _) = Store::resume(&path).expect("resumes");
    assert_eq!(store.attached_bytes("marks").expect("is read"), Some(vec![0, 0xff, 0]));
    assert_eq!(store.attached_value("search").expect("is read"), Some(vec![1.5, 2.0]));
    let other = store.attached_value::<String>("search").expect_err("it is no text");
    assert!(matches!(other, StoreError::Damaged { .. }), "{other}");
}
