//! Tables of exact counts from made-up rows.

use super::*;
use crate::compare::{compare, judge_outputs};
use crate::observation::{ByOwner, Observation, Outcome};
use crate::testing::{experiment, row};

fn counts(program: u64, allocator: u64) -> ByOwner {
    ByOwner { program, allocator, collector: 0 }
}

/// A traced run with these instructions of program and malloc, the start-up's 1 million among the program's, and misses
/// in a cache that one waits 200 cycles for.
fn traced(stack: &str, program: u64, allocator: u64, misses: u64) -> Observation {
    Observation {
        phase: Phase::Traced,
        exact: Some(ExactFigures {
            instructions: counts(program, allocator),
            allocations: 10,
            images: 1,
            whole: true,
            startup: Some(counts(1_000_000, 0)),
            ..ExactFigures::default()
        }),
        locality: Some(LocalityFigures {
            caches: vec![GeometryMisses {
                cache: "32M/16".into(),
                misses: counts(misses, 0),
                wait_cycles: Some(200),
            }],
            pages_touched: 100 + misses,
            ..LocalityFigures::default()
        }),
        // The tracer prints something of its own.
        output_digest: "traced".into(),
        ..row(stack, 0, 30.0, 90_000)
    }
}

/// `lean` takes .8 of the baseline's CPU time.
fn measured(stacks: &[&str]) -> Experiment {
    let mut made = experiment(stacks);
    for repetition in 0..8 {
        for stack in stacks {
            let cpu = if *stack == "lean" { 0.8 } else { 1.0 + 0.001 * f64::from(repetition % 3) };
            made.observations.push(row(stack, repetition, cpu, 1000));
        }
    }
    made
}

fn of<'a>(table: &'a ExactTable, stack: &str) -> &'a ExactRow {
    table.rows.iter().find(|row| row.stack == stack).expect("a row")
}

fn table_of(mut made: Experiment) -> ExactTable {
    judge_outputs(&mut made);
    compare(&made).tables.remove(0).exact.expect("counted")
}

#[test]
fn counts_are_shown_with_the_measured_ratio() {
    let mut made = measured(&["glibc", "lean"]);
    for row in &mut made.observations {
        row.output_digest = "traced".into();
    }
    made.observations.push(traced("glibc", 100_000_000, 20_000_000, 10_000));
    made.observations.push(traced("lean", 100_000_000, 8_000_000, 2_000));
    let table = table_of(made);
    assert!(table.notes.is_empty() && !table.less_startup, "{table:?}");
    assert_eq!(table.rows[0].stack, "glibc");
    assert_eq!(table.rows[0].instructions, Counted { count: 120_000_000, ratio: None });
    let lean = of(&table, "lean");
    assert_eq!(lean.instructions, Counted { count: 108_000_000, ratio: Some(0.9) });
    assert_eq!(lean.misses[0].misses, Counted { count: 2000, ratio: Some(0.2) });
    assert_eq!(lean.pages.and_then(|pages| pages.ratio), Some(2100.0 / 10_100.0));
    assert_eq!(lean.faults, Some(Counted { count: 100, ratio: Some(1.0) }));
    assert!(lean.cpu.is_some_and(|cpu| cpu.differs));
    assert!(
        lean.words.contains("memory makes up the rest (0.20 times glibc's misses of 32M/16)"),
        "{}",
        lean.words
    );
}

#[test]
fn start_up_is_taken_off_instructions_where_it_is_off_cpu_time() {
    let mut made = measured(&["glibc", "lean"]);
    for repetition in 0..8 {
        for stack in ["glibc", "lean"] {
            made.observations.push(Observation { phase: Phase::Startup, ..row(stack, repetition, 0.1, 500) });
        }
    }
    made.observations.push(traced("glibc", 11_000_000, 0, 10));
    made.observations.push(traced("lean", 6_000_000, 0, 10));
    for row in &mut made.observations {
        row.output_digest = "same".into();
    }
    let table = table_of(made);
    assert!(table.less_startup);
    assert_eq!(of(&table, "lean").instructions.ratio, Some(0.5));
    assert!(
        table.notes[0].starts_with("lean: the program itself executes 50.00 % fewer"),
        "{:?}",
        table.notes
    );
}

/// An experiment that was continued on another machine has caches of two.
#[test]
fn misses_of_two_machines_are_not_compared() {
    let mut made = measured(&["glibc", "lean"]);
    made.observations.iter_mut().for_each(|row| row.output_digest = "traced".into());
    made.observations.push(traced("glibc", 100_000_000, 0, 10_000));
    let mut other = traced("lean", 100_000_000, 0, 2_000);
    other.locality.iter_mut().for_each(|locality| locality.caches[0].cache = "8M/16".into());
    made.observations.push(other);
    let table = table_of(made);
    assert!(of(&table, "lean").misses.is_empty(), "{table:?}");
    assert!(of(&table, "lean").words.contains("neither misses"), "{table:?}");
}

#[test]
fn an_output_that_is_another_under_the_tracer_marks_no_measured_run() {
    let mut made = measured(&["glibc", "lean"]);
    made.observations.push(traced("glibc", 10_000_000, 0, 10));
    made.observations.push(traced("lean", 10_000_000, 0, 10));
    judge_outputs(&mut made);
    let comparison = compare(&made);
    let table = &comparison.tables[0];
    assert!(table.rows.iter().all(|row| row.marks.is_empty() && row.good == 8), "{table:?}");
    assert!(table.notes.iter().all(|note| !note.contains("output")), "{:?}", table.notes);
    let exact = table.exact.as_ref().expect("notes");
    assert!(exact.rows.is_empty() && exact.notes.len() == 2, "{exact:?}");
    assert!(exact.notes[0].contains("failed: wrong output"), "{exact:?}");
}

#[test]
fn what_was_left_out_is_stated_once_for_all_stacks_with_the_same_reason() {
    let mut made = measured(&["glibc", "lean", "other"]);
    for stack in ["lean", "other"] {
        made.exact_notes.push(("prog".into(), stack.into(), "not counted: it does not run".into()));
    }
    made.exact_notes.push(("elsewhere".into(), "lean".into(), "of another program".into()));
    let table = table_of(made.clone());
    assert_eq!(table.notes, ["lean, other: not counted: it does not run"]);
    made.exact_notes.push(("prog".into(), String::new(), "of all".into()));
    assert_eq!(table_of(made.clone()).notes[1], "of all");
    // A run that was ended early counts for nothing.
    let mut torn = traced("glibc", 10, 0, 1);
    torn.outcome = Outcome::Timeout(1.0);
    made.observations.push(torn);
    assert!(table_of(made).rows.is_empty());
    assert!(compare(&measured(&["glibc", "lean"])).tables[0].exact.is_none());
}
