//! Files of every set of columns in the store's history, as SQL in `testdata/databases`, named by the commit that wrote
//! such files first. Each is read with the values that were written, not changed by reading, and continued.

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Connection};

use super::rows::sql_value;
use super::*;
use crate::columns::exported;
use crate::experiment::Pairing;
use crate::named::Named;
use crate::observation::{Outcome, Phase};
use crate::testing::{experiment, row};

/// Every file, the oldest first.
const FILES: [&str; 9] = [
    include_str!("../../testdata/databases/1-af54407b.sql"),
    include_str!("../../testdata/databases/2-76438d02.sql"),
    include_str!("../../testdata/databases/3-e7f6cf73.sql"),
    include_str!("../../testdata/databases/4-180a5843.sql"),
    include_str!("../../testdata/databases/5-18592695.sql"),
    include_str!("../../testdata/databases/6-c8807bb9.sql"),
    include_str!("../../testdata/databases/7-70c49933.sql"),
    include_str!("../../testdata/databases/8-522f35b7.sql"),
    include_str!("../../testdata/databases/9-26f56ee3.sql"),
];

/// The statements that every later version must run.
const STATEMENTS: &str = include_str!("../../../../docs/reference/sql-examples.sql");

/// The columns of the views: none may go, change its name or its place.
// Sentence: names of columns.
const COLUMNS: &str = "runs: run repetition phase program stack outcome outcome_detail cpu_s user_s system_s wall_s \
    peak_rss_kib minor_faults major_faults voluntary_switches involuntary_switches disk_read_blocks output_bytes \
    output_digest_sha256 heap_high_water_bytes used_high_bytes held_high_bytes refused_calls written_after_free \
    collector_cpu_ns collections pause_total_ns pause_max_ns reclaimed_bytes instructions cycles llc_misses \
    dtlb_misses program_instructions allocator_instructions collector_instructions started_unix_s load_average span_s \
    steal_share interrupt_share other_work_share throttled_share program_figures_json \
    env_padding_bytes left_behind_processes stderr_tail server_loaded_cpu_s server_ready_s server_load_s \
    server_load_figures_json server_load_report program_loads allocator_loads collector_loads program_stores \
    allocator_stores collector_stores allocation_calls free_calls traced_heap_high_water_bytes traced_images \
    traced_whole program_references allocator_references collector_references cache_line_bytes page_bytes \
    pages_touched sampled_one_in cache_misses_json program_startup_instructions allocator_startup_instructions \
    collector_startup_instructions\n\
    programs: program about command_json environment_json stdin is_server\n\
    stacks: program stack is_baseline version origin preload_json environment_json proof refused_because\n\
    settings: heaptoll_version begun_unix_s is_complete baseline repetitions warmup_repetitions seed_text timeout_s \
    pairing precision_share budget_s thp is_exact repeat_command_json machine_cpu machine_cores machine_memory_kib \
    machine_kernel\n\
    memory_samples: program stack repetition t_s rss_kib";

/// One file of the history, its number from 1.
fn written(folder: &Path, number: usize) -> std::path::PathBuf {
    let path = folder.join(format!("{number}.db"));
    let connection = Connection::open(&path).expect("opens");
    connection.execute_batch(FILES[number - 1]).expect("the SQL of the file");
    path
}

/// Checks all values against those that every file has from its number on.
fn check(number: usize, read: &Experiment) {
    let since = |first| number >= first;
    assert_eq!(
        (read.settings.seed, read.settings.timeout_s, read.settings.expect_status),
        (u64::MAX, 60.5, 3)
    );
    assert_eq!(read.settings.directory, if since(3) { "/home/user" } else { "" });
    let pairing = if since(7) { Pairing::Lockstep } else { Pairing::Interleaved };
    assert_eq!((read.settings.pairing, read.settings.named.clone()), (pairing, None::<Named>));
    assert_eq!((read.baseline.as_str(), read.created_unix_s), ("glibc", 1_763_717_436.5));
    assert!(read.refused_what_was_named() && !read.complete && read.own_cost == Some((0.001, -4)));
    assert_eq!(read.programs[0].command, ["prog", "it's"]);
    assert_eq!(read.programs[0].scratch, !since(7));
    assert!(!read.stacks[0].reports_statistics && read.stacks[1].reports_statistics);
    assert_eq!(read.exact_notes.len(), usize::from(number == 7 || number == 9));
    let track = &read.tracks[0];
    assert_eq!((track.vm_hwm_kib, track.anonymous_peak_kib), (3, if since(3) { 2 } else { 0 }));
    assert_eq!(track.samples, [(0.0, 1), (0.5, 2)]);

    let [warmup, of_glibc, of_lea] = read.observations.as_slice() else { panic!("three rows") };
    assert_eq!((warmup.phase, of_glibc.phase, of_lea.phase), (Phase::Warmup, Phase::Timed, Phase::Timed));
    assert_eq!((of_lea.order, of_lea.user_s, of_lea.peak_rss_kib), (2, 2.1, 1002));
    assert_eq!((&of_glibc.outcome, &of_lea.outcome), (&Outcome::Ok, &Outcome::Timeout(1.5)));
    assert_eq!((of_lea.stderr_tail.as_str(), of_lea.heap_high_water_bytes), ("it's an error", Some(4096)));
    assert_eq!(of_glibc.counters.instructions, Some(9_007_199_254_740_993), "not by way of a double");
    assert_eq!(of_glibc.serve.as_ref().map(|serve| serve.load_figures["p99"]), Some(1.25));
    let collections = of_lea.collections.map(|found| (found.count, found.processes));
    assert_eq!(collections, since(3).then_some((3, if since(6) { 2 } else { 0 })));
    assert_eq!(of_glibc.exact.map(|exact| exact.instructions.program), since(4).then_some(1 << 50));
    let startup = of_glibc.exact.and_then(|exact| exact.startup).is_some();
    assert_eq!(startup, number == 7 || number == 9);
    assert_eq!(
        of_glibc.locality.as_ref().map(|found| found.caches[0].misses.collector),
        since(4).then_some(3)
    );
    assert_eq!(of_lea.collector_cpu_ns, since(5).then_some(6_000_000_000));
    assert_eq!(of_lea.refused_calls, since(5).then_some(0));
    assert_eq!(of_lea.figures.get("pause_ms").copied(), since(6).then_some(1.25));
    let disturbance = of_lea.disturbance.map(|found| (found.other_work, found.throttled));
    assert_eq!(disturbance, since(8).then_some((0.75, Some(0.125))));
    assert_eq!(of_glibc.disk_read_blocks, since(9).then_some(0));
}

/// Runs every statement and counts the rows of each.
fn rows_of_statements(path: &Path) -> Vec<usize> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opens");
    let mut batch = Batch::new(&connection, STATEMENTS);
    let mut counts = Vec::new();
    while let Some(mut statement) = batch.next().expect("a statement") {
        let mut rows = statement.query([]).expect("runs");
        let mut count = 0;
        while rows.next().expect("a row").is_some() {
            count += 1;
        }
        counts.push(count);
    }
    counts
}

fn columns_of_views(path: &Path) -> String {
    let connection = Connection::open(path).expect("opens");
    let columns = |line: &str| {
        let view = line.split(':').next().expect("a name");
        let statement = connection.prepare(&format!("SELECT * FROM {view}")).expect("a view");
        format!("{view}: {}", statement.column_names().collect::<Vec<_>>().join(" "))
    };
    COLUMNS.lines().map(columns).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_file_of_each_version_is_read_unchanged_and_continued() {
    let folder = tempfile::tempdir().expect("a folder");
    for number in 1..=FILES.len() {
        let path = written(folder.path(), number);
        let before = std::fs::read(&path).expect("reads");
        check(number, &Store::read(&path).expect("reads"));
        assert_eq!(std::fs::read(&path).expect("reads"), before, "file {number} is not migrated by reading");

        let (store, resumed) = Store::resume(&path).expect("resumes");
        check(number, &resumed);
        let after = Observation { order: 3, disk_read_blocks: Some(8), ..row("lea", 1, 0.1, 77) };
        store.append(&after).expect("appends");
        store.describe(&resumed).expect("describes");
        drop(store);
        let mut read = Store::read(&path).expect("reads");
        assert_eq!(read.observations.pop(), Some(after));
        check(number, &read);
    }
}

#[test]
fn a_file_that_may_not_be_written_is_read_and_keeps_its_bytes() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = written(folder.path(), 1);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).expect("chmod");
    let before = std::fs::read(&path).expect("reads");
    check(1, &Store::read(&path).expect("reads"));
    assert_eq!(std::fs::read(&path).expect("reads"), before);
    assert_eq!(std::fs::read_dir(folder.path()).expect("lists").count(), 1, "no journal next to it");
}

#[test]
fn statements_run_on_a_new_file_and_on_one_of_each_version_that_was_continued() {
    let folder = tempfile::tempdir().expect("a folder");
    let fresh = folder.path().join("fresh.db");
    drop(Store::create(&fresh, &experiment(&["glibc"])).expect("creates"));
    assert_eq!(rows_of_statements(&fresh).len(), 10);
    assert_eq!(columns_of_views(&fresh), COLUMNS);
    for number in 1..=FILES.len() {
        let path = written(folder.path(), number);
        drop(Store::resume(&path).expect("resumes"));
        let disturbed = if number >= 8 { 2 } else { 0 };
        assert_eq!(rows_of_statements(&path), [1, 1, 3, 1, 2, 1, 3, 3, disturbed, 2], "file {number}");
        assert_eq!(columns_of_views(&path), COLUMNS);
    }
}

/// A figure that was declared for CSV alone was in no view.
#[test]
fn the_view_of_runs_has_each_cell_of_csv_that_the_file_has() {
    let folder = tempfile::tempdir().expect("a folder");
    for number in 1..=FILES.len() {
        let path = written(folder.path(), number);
        drop(Store::resume(&path).expect("resumes"));
        let read = Store::read(&path).expect("reads");
        let connection = Connection::open(&path).expect("opens");
        for (name, column) in exported() {
            // The detail of an outcome is a number in JSON; JSON within a cell is as the version of the file wrote it.
            let is_json = ["outcome_detail", "cache_misses_json"].contains(&name);
            let Some(sql) = column.sql.filter(|_| !is_json) else { continue };
            let shown = if sql == "position" { "run" } else { name };
            let mut select =
                connection.prepare(&format!("SELECT {shown} FROM runs ORDER BY run")).expect("has it");
            let cells = select.query_map([], |row| row.get(0)).expect("runs");
            let cells: Vec<rusqlite::types::Value> = cells.collect::<Result<_, _>>().expect("values");
            let expected: Vec<_> =
                read.observations.iter().map(|row| sql_value(column.cell(&read, row))).collect();
            assert_eq!(cells, expected, "{name} of file {number}");
        }
    }
    let lacking: Vec<&str> =
        exported().filter(|(_, column)| column.sql.is_none()).map(|(name, _)| name).collect();
    assert_eq!(lacking, ["loaded", "varied_manager", "varied_setting", "varied_at"]);
}

#[test]
fn a_later_layout_and_a_setting_that_is_not_known_name_the_version_that_is_needed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("e.db");
    let change =
        |sql: &str| Connection::open(&path).and_then(|file| file.execute_batch(sql)).expect("changes");
    drop(Store::create(&path, &experiment(&["glibc"])).expect("creates"));
    change(
        "UPDATE description SET value = json_set(value, '$.nap_s', 1) WHERE key = 'settings'; \
         UPDATE description SET value = '\"9.8.7\"' WHERE key = 'written_by'",
    );
    let error = Store::read(&path).expect_err("an unknown setting");
    assert!(matches!(&error, StoreError::UnknownSetting { setting, .. } if setting == "nap_s"), "{error}");
    assert!(error.to_string().contains("`nap_s`") && error.to_string().contains("9.8.7"), "{error}");
    change("PRAGMA user_version = 2");
    let error = Store::resume(&path).err().expect("a later layout");
    assert!(matches!(&error, StoreError::Newer { layout: 2, needed, .. } if needed == "9.8.7"), "{error}");
    // Files of before have the version that began them only.
    change("DELETE FROM description WHERE key = 'written_by'");
    let error = Store::read(&path).expect_err("a later layout").to_string();
    assert!(error.contains("written by 0") && error.contains("update heaptoll"), "{error}");
    change("DROP TABLE description");
    assert!(Store::read(&path).expect_err("a later layout").to_string().contains("a later version"));
}
