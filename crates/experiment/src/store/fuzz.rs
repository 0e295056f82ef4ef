//! Damaged experiments, in their bytes and in the values of their tables: read or refused, never a panic. A failure
//! names the seed.

use heaptoll_testing::damage::Dice;
use rusqlite::Connection;
use rusqlite::types::Value;

use super::*;
use crate::testing::{experiment, row};

/// A file with a few rows.
fn whole(folder: &Path) -> Vec<u8> {
    let path = folder.join("whole.db");
    let made = experiment(&["glibc", "x"]);
    let store = Store::create(&path, &made).expect("creates");
    for position in 0..6 {
        let stack = if position % 2 == 0 { "glibc" } else { "x" };
        store
            .append(&Observation { order: position, ..row(stack, position / 2, 1.0, 1000) })
            .expect("appends");
    }
    drop(store);
    std::fs::read(path).expect("reads")
}

/// Values that a column does not expect.
fn value(dice: &mut Dice) -> Value {
    match dice.below(6) {
        0 => Value::Null,
        1 => Value::Integer([-1, i64::MAX, i64::MIN, 0][dice.below(4)]),
        2 => Value::Real([f64::NAN, f64::INFINITY, -1e308, 1e-320][dice.below(4)]),
        3 => Value::Text("\u{202e}<script>\0".repeat(1 << dice.below(10))),
        4 => Value::Text(heaptoll_testing::damage::text(dice, "{\n\"exited\": 0,\n\"signal\": [1, 2]\n}")),
        _ => Value::Blob(vec![0xFF; dice.below(100)]),
    }
}

/// Puts such values into some cells. Those that the table itself refuses stay as they are.
fn change_cells(dice: &mut Dice, path: &Path) {
    let connection = Connection::open(path).expect("opens");
    for _ in 0..=dice.below(4) {
        let (table, key) = [("observation", "position"), ("description", "rowid")][dice.below(2)];
        let names: Vec<String> = connection
            .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))
            .and_then(|mut found| found.query_map([], |row| row.get(0))?.collect())
            .expect("columns");
        let column = &names[dice.below(names.len())];
        let change = format!("UPDATE {table} SET {column} = ?1 WHERE {key} = {}", dice.below(8));
        let _ = connection.execute(&change, [value(dice)]);
    }
}

fn fuzz(seeds: std::ops::Range<u64>) {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = whole(folder.path());
    let path = folder.path().join("damaged.db");
    let (mut read, mut refused) = (0, 0);
    for seed in seeds {
        let mut dice = Dice::new(seed);
        if dice.below(2) == 0 {
            std::fs::write(&path, heaptoll_testing::damage::bytes(&mut dice, &whole)).expect("written");
        } else {
            std::fs::write(&path, &whole).expect("written");
            change_cells(&mut dice, &path);
        }
        let opened = std::panic::catch_unwind(|| (Store::read(&path), Store::resume(&path).map(|_| ())));
        let (of_reading, _) = opened.unwrap_or_else(|_| panic!("seed {seed}: panicked, see above"));
        match of_reading {
            Ok(_) => read += 1,
            Err(error) => {
                assert!(!error.to_string().is_empty(), "seed {seed}");
                refused += 1;
            }
        }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}

#[test]
fn damaged_experiments_are_read_or_refused() {
    fuzz(0..60);
}

#[test]
#[ignore = "slow: five thousand damaged experiments"]
fn many_damaged_experiments_are_read_or_refused() {
    fuzz(1_000..6_000);
}
