//! Tables from made-up rows with known answers.

use super::*;
use crate::experiment::Pairing;
use crate::observation::{Collections, Phase};
use crate::testing::{experiment, row, stack};

/// `fast` takes 0.8 of the baseline's CPU and twice its memory, `same` equals it.
fn three_stacks() -> Experiment {
    let mut made = experiment(&["glibc", "fast", "same"]);
    for repetition in 0..8 {
        let drift = 1.0 + 0.2 * f64::from(repetition);
        let jitter = |k: u32| 1.0 + 0.001 * f64::from((repetition * k) % 5);
        made.observations.push(row("glibc", repetition, drift * jitter(2), 1000));
        made.observations.push(row("fast", repetition, 0.8 * drift * jitter(3), 2000));
        made.observations.push(row("same", repetition, drift * jitter(7), 1000));
    }
    made
}

fn find<'a>(table: &'a ProgramTable, name: &str) -> &'a Row {
    table.rows.iter().find(|row| row.stack == name).expect("the stack has a row")
}

#[test]
fn pairing_takes_the_machines_drift_out_of_the_ratio() {
    let table = &compare(&three_stacks()).tables[0];
    let fast = find(table, "fast");
    let cpu = fast.figures[&Metric::Cpu].ratio.expect("pairs");
    assert!(cpu.differs && (cpu.ratio - 0.8).abs() < 0.002 && cpu.high - cpu.low < 0.01, "{cpu:?}");
    assert_eq!(fast.verdict, "20 % less CPU, 2.0x the memory");
    assert_eq!(find(table, "same").verdict, "no difference detected");
    assert_eq!(find(table, "glibc").verdict, "baseline");
    assert_eq!(table.rows[0].stack, "fast", "the cheapest comes first");
    assert!(fast.on_frontier && find(table, "glibc").on_frontier);
}

/// Before, requests a second were bare medians, whose order was another in the next measurement.
#[test]
fn what_a_load_reports_has_a_ratio_with_an_interval_to_the_baseline() {
    let mut made = three_stacks();
    for row in &mut made.observations {
        let noise = if row.stack == "same" && row.repetition % 2 == 0 { 1.3 } else { 0.9 };
        row.figures.insert("rate".into(), if row.stack == "fast" { 200.0 } else { 100.0 * noise });
    }
    let table = &compare(&made).tables[0];
    let ratio = |name: &str| find(table, name).load_ratios.get("rate").copied();
    let fast = ratio("fast").expect("pairs");
    assert!(fast.differs && (fast.ratio - 2.0 / 0.9).abs() < 1e-9 && fast.pairs == 8, "{fast:?}");
    let same = ratio("same").expect("pairs");
    assert!(!same.differs && same.low < 1.0 && same.high > 1.0, "{same:?}");
    assert_eq!((ratio("glibc"), find(table, "fast").load_figures["rate"]), (None, 200.0));
}

fn with_startups(mut made: Experiment, of: impl Fn(&str, u32) -> f64) -> Experiment {
    for repetition in 0..8 {
        for name in ["glibc", "fast", "same"] {
            let startup = row(name, repetition, of(name, repetition), 500);
            made.observations.push(Observation { phase: Phase::Startup, ..startup });
        }
    }
    made
}

#[test]
fn start_up_is_left_out_of_the_ratio() {
    let made = with_startups(three_stacks(), |name, _| if name == "fast" { 0.1 } else { 0.5 });
    // Repetition 0: (0.8 - 0.1) / (1.0 - 0.5), and so on: every pair changes.
    let table = &compare(&made).tables[0];
    let cpu = find(table, "fast").figures[&Metric::Cpu].ratio.expect("pairs");
    assert!(cpu.ratio > 0.9, "{cpu:?}");
    assert_eq!(find(table, "fast").startup_cpu_s, Some(0.1));
    assert!(table.notes.iter().any(|note| note.contains("Start-up takes up to")), "{:?}", table.notes);
}

#[test]
fn a_start_up_that_failed_under_one_manager_is_subtracted_under_none() {
    let mut made = with_startups(three_stacks(), |_, _| 0.5);
    for startup in
        made.observations.iter_mut().filter(|row| row.phase == Phase::Startup && row.stack == "fast")
    {
        startup.outcome = Outcome::NotStarted("no main".into());
    }
    let table = &compare(&made).tables[0];
    let cpu = find(table, "fast").figures[&Metric::Cpu].ratio.expect("pairs");
    assert!((cpu.ratio - 0.8).abs() < 0.002, "{cpu:?}");
    assert!(table.notes.iter().any(|note| note.contains("could not be separated")), "{:?}", table.notes);
}

#[test]
fn a_run_that_is_all_start_up_keeps_its_pairs() {
    let made = with_startups(three_stacks(), |_, _| 0.9);
    let table = &compare(&made).tables[0];
    assert!(find(table, "fast").figures[&Metric::Cpu].ratio.is_some_and(|cpu| cpu.pairs == 8));
    assert!(
        table.notes.iter().any(|note| note.contains("hardly more than its start-up")),
        "{:?}",
        table.notes
    );
}

#[test]
fn a_manager_that_fails_now_and_then_is_on_no_frontier() {
    let mut made = three_stacks();
    for observation in made.observations.iter_mut().filter(|row| row.stack == "fast" && row.repetition == 7) {
        observation.outcome = Outcome::Signal(6);
    }
    let table = &compare(&made).tables[0];
    let fast = find(table, "fast");
    assert!(
        !fast.on_frontier && fast.verdict.starts_with("failed: 1x killed by signal 6; else"),
        "{}",
        fast.verdict
    );
}

#[test]
fn wrong_output_is_marked_and_leaves_the_averages() {
    let mut made = three_stacks();
    for observation in made.observations.iter_mut().filter(|row| row.stack == "fast" && row.repetition == 3) {
        observation.output_digest = "other".into();
        observation.user_s = 1000.0;
    }
    judge_outputs(&mut made);
    let table = &compare(&made).tables[0];
    let fast = find(table, "fast");
    assert_eq!((fast.good, fast.marks.as_slice()), (7, &["1x wrong output".to_string()][..]));
    assert!(fast.figures[&Metric::Cpu].ratio.is_some_and(|cpu| (cpu.ratio - 0.8).abs() < 0.002));
}

#[test]
fn an_output_that_varies_under_the_baseline_is_no_test() {
    let mut made = three_stacks();
    for (index, observation) in made.observations.iter_mut().enumerate() {
        observation.output_digest = index.to_string();
    }
    judge_outputs(&mut made);
    let table = &compare(&made).tables[0];
    assert!(table.rows.iter().all(|row| row.good == 8));
    assert!(table.notes.iter().any(|note| note.contains("Outputs are not compared")), "{:?}", table.notes);
}

#[test]
fn another_version_of_the_program_does_not_empty_the_table() {
    let mut made = three_stacks();
    made.programs[0].expected_digest = Some("of another version".into());
    judge_outputs(&mut made);
    let table = &compare(&made).tables[0];
    assert!(table.rows.iter().all(|row| row.good == 8));
    assert!(table.notes.iter().any(|note| note.contains("another version")), "{:?}", table.notes);
}

#[test]
fn the_catalogs_digest_decides_when_the_baseline_disagrees_with_itself() {
    let mut made = three_stacks();
    made.programs[0].expected_digest = Some("d".into());
    for observation in made.observations.iter_mut().filter(|row| row.stack == "glibc" && row.repetition == 2)
    {
        observation.output_digest = "a slip".into();
    }
    judge_outputs(&mut made);
    let table = &compare(&made).tables[0];
    assert_eq!((find(table, "glibc").good, find(table, "same").good), (7, 8));
}

#[test]
fn a_stack_that_crashes_is_last_and_marked() {
    let mut made = three_stacks();
    for observation in made.observations.iter_mut().filter(|row| row.stack == "fast") {
        observation.outcome = Outcome::Signal(11);
    }
    let table = &compare(&made).tables[0];
    let last = table.rows.last().expect("rows");
    assert_eq!((last.stack.as_str(), last.verdict.as_str()), ("fast", "failed: 8x killed by signal 11"));
    assert!(last.figures.is_empty());
}

#[test]
fn few_repetitions_claim_nothing_and_state_so() {
    let mut made = three_stacks();
    made.observations.retain(|row| row.repetition < 5);
    let table = &compare(&made).tables[0];
    assert_eq!(find(table, "fast").verdict, "too few repetitions");
    assert!(table.notes.iter().any(|note| note.contains("Fewer than 6")), "{:?}", table.notes);
}

/// A run that is interrupted in its sixth round may have that round's runs alone, and not all of those at once.
#[test]
fn each_figure_is_judged_by_its_own_repetitions_and_the_note_names_those_with_too_few() {
    let mut made = paired_both_ways(0.8, 0.8);
    let is_made = |row: &Observation| row.repetition < 5 || row.phase == Phase::Alone || row.stack == "glibc";
    made.observations.retain(|row| row.repetition < 6 && is_made(row));
    let table = &compare(&made).tables[0];
    assert_eq!(find(table, "fast").verdict, "too few repetitions for CPU, 1.5x the memory");
    let few = "Fewer than 6 repetitions for CPU: brackets are ranges, and no difference is claimed";
    assert!(table.notes.iter().any(|note| note == few), "{:?}", table.notes);
}

#[test]
fn two_programs_have_a_geometric_mean() {
    let mut made = three_stacks();
    let mut second = made.programs[0].clone();
    second.name = "other".into();
    made.programs.push(second);
    made.stacks.extend(["glibc", "fast", "same"].map(|name| stack("other", name)));
    let doubled: Vec<Observation> = made
        .observations
        .iter()
        .map(|row| Observation {
            program: "other".into(),
            user_s: if row.stack == "fast" { row.user_s * 1.25 } else { row.user_s },
            system_s: if row.stack == "fast" { row.system_s * 1.25 } else { row.system_s },
            ..row.clone()
        })
        .collect();
    made.observations.extend(doubled);
    let overall = compare(&made).overall;
    assert_eq!(overall[0].stack, "fast");
    let cpu = overall[0].cpu.expect("pairs");
    assert!((cpu.ratio - 0.8f64.sqrt()).abs() < 0.002 && overall[0].programs == 2, "{cpu:?}");
}

#[test]
fn experiments_are_compared_where_they_overlap() {
    let a = three_stacks();
    let mut b = three_stacks();
    b.stacks.retain(|stack| stack.name != "same");
    for row in b.observations.iter_mut().filter(|row| row.stack == "fast") {
        row.peak_rss_kib = 3000;
    }
    let lines = across(&a, &b);
    assert_eq!(lines.len(), 4);
    let memory =
        lines.iter().find(|line| line.stack == "fast" && line.metric == Metric::PeakRss).expect("line");
    assert!(
        memory.ratio.is_some_and(|ratio| ratio.differs && (ratio.ratio - 1.5).abs() < 1e-6),
        "{memory:?}"
    );
    let cpu = lines.iter().find(|line| line.stack == "glibc" && line.metric == Metric::Cpu).expect("line");
    assert!(cpu.ratio.is_some_and(|ratio| !ratio.differs), "{cpu:?}");
}

#[test]
fn writes_after_free_refused_calls_unread_places_and_abandoned_collections_are_notes_of_the_table() {
    let mut made = three_stacks();
    for row in made.observations.iter_mut().filter(|row| row.stack == "fast" && row.repetition < 3) {
        row.written_after_free = Some(2);
        row.stderr_tail = "hello\nheaptoll: written after free: 1 byte at offset 56\n".into();
    }
    for row in made.observations.iter_mut().filter(|row| row.stack == "same") {
        row.written_after_free = Some(0);
        row.refused_calls = Some(u64::from(row.repetition == 1) * 5);
        let unread_places = u64::from(row.repetition == 1) | u64::from(row.repetition == 2) << 1;
        row.collections =
            Some(Collections { unread_places, abandon_causes: unread_places, ..Collections::default() });
    }
    let notes = &compare(&made).tables[0].notes;
    let one = |part: &str| {
        let found: Vec<&String> = notes.iter().filter(|note| note.contains(part)).collect();
        assert_eq!(found.len(), 1, "{part}: {notes:?}");
        found[0].clone()
    };
    let written = one("wrote to freed memory");
    assert!(written.starts_with("Under fast ") && written.contains("in 3 of 8 runs"), "{written}");
    assert!(written.ends_with("the first: 1 byte at offset 56"), "{written}");
    let refused = one("allocations failed");
    assert!(
        refused.starts_with("Under same ") && refused.contains("in 1 of 8 runs (at most 5)"),
        "{refused}"
    );
    let unread = one("cannot read");
    let places = "requests that io_uring has taken, requests that io_submit has taken, and may reclaim";
    assert!(unread.starts_with("Under same ") && unread.contains(places), "{unread}");
    let abandoned = one("abandoned");
    let causes = "abandoned: a thread did not stop in time, the system gave no memory for them";
    assert!(abandoned.starts_with("Under same ") && abandoned.ends_with(causes), "{abandoned}");
}

/// Glibc and another in lockstep, and by themselves at other ratios.
fn paired_both_ways(together: f64, alone: f64) -> Experiment {
    let mut made = experiment(&["glibc", "fast"]);
    made.settings.pairing = Pairing::Lockstep;
    for repetition in 0..8 {
        // In company a run takes longer, by a drift that all of a block share.
        let drift = 1.0 + f64::from(repetition);
        let jitter = 1.0 + 0.001 * f64::from(repetition % 3);
        for (stack, ratio) in [("glibc", 1.0), ("fast", together * jitter)] {
            made.observations.push(row(stack, repetition, drift * ratio, 9000));
        }
        for (stack, ratio, kib) in [("glibc", 1.0, 1000), ("fast", alone * jitter, 1500)] {
            let by_itself = row(stack, repetition, ratio, kib);
            made.observations.push(Observation { phase: Phase::Alone, ..by_itself });
        }
    }
    made
}

#[test]
fn cpu_is_of_the_runs_at_once_and_memory_and_elapsed_time_of_those_alone() {
    let compared = compare(&paired_both_ways(0.8, 0.8));
    let fast = find(&compared.tables[0], "fast");
    let ratio = |metric| fast.figures[&metric].ratio.unwrap().ratio;
    assert!(
        (ratio(Metric::Cpu) - 0.8).abs() < 0.01 && (ratio(Metric::PeakRss) - 1.5).abs() < 0.01,
        "{fast:?}"
    );
    assert!((ratio(Metric::Wall) - 0.8).abs() < 0.01);
    assert!(fast.figures[&Metric::Cpu].median > 2.0 * fast.figures[&Metric::Wall].median, "{fast:?}");
    assert_eq!((fast.good, fast.figures[&Metric::Cpu].ratio.unwrap().pairs), (8, 8));
    let notes = compared.tables[0].notes.join("\n");
    assert!(notes.contains("in lockstep") && !notes.contains("ratio is of separate runs"), "{notes}");
    let company = compared.tables[0].company.clone().unwrap();
    assert!(!company.ratio.differs && company.within < 0.01, "{company:?}");
    assert!(notes.contains("Sharing a core did not measurably change the CPU ratios"), "{notes}");
}

#[test]
fn the_stack_that_company_moves_most_is_named_and_judged_by_its_runs_alone() {
    let mut made = paired_both_ways(0.8, 0.9);
    // Another that it moves by less.
    made.stacks.push(crate::testing::stack("prog", "other"));
    let mut other: Vec<Observation> =
        made.observations.iter().filter(|row| row.stack == "fast").cloned().collect();
    for row in other.iter_mut().filter(|row| row.phase == Phase::Timed) {
        row.user_s *= 0.899 / 0.8;
        row.system_s *= 0.899 / 0.8;
    }
    made.observations.extend(other.into_iter().map(|row| Observation { stack: "other".into(), ..row }));
    let table = &compare(&made).tables[0];
    let company = table.company.clone().unwrap();
    assert_eq!(company.stack, "fast");
    assert!(company.ratio.differs && (company.ratio.ratio - 0.8 / 0.9).abs() < 0.01, "{company:?}");
    // Before, the note gave a shift that the table's ratio does not have.
    let of_fast = "fast's CPU ratio is of separate runs (0.90): sharing a core would give 0.80";
    assert!(table.notes.iter().any(|note| note == of_fast), "{:?}", table.notes);
    assert!(!table.notes.iter().any(|note| note.starts_with("Sharing a core")), "{:?}", table.notes);
    let ratio = |stack| find(table, stack).figures[&Metric::Cpu].ratio.unwrap().ratio;
    assert!((ratio("fast") - 0.9).abs() < 0.01 && (ratio("other") - 0.899).abs() < 0.01, "{table:?}");
    made.observations.retain(|row| row.phase != Phase::Alone || row.repetition < 3);
    assert!(compare(&made).tables[0].company.is_none(), "too few pairs");
    made.settings.pairing = crate::experiment::Pairing::Interleaved;
    assert!(compare(&made).tables[0].company.is_none(), "no company");
}

#[test]
fn a_stack_of_another_block_did_not_run_with_the_baseline() {
    let mut made = paired_both_ways(0.8, 1.1);
    made.stacks[1].block = 1;
    let table = &compare(&made).tables[0];
    let ratio = find(table, "fast").figures[&Metric::Cpu].ratio.unwrap().ratio;
    assert!((ratio - 1.1).abs() < 0.01 && table.company.is_none(), "{ratio}");
}

#[test]
fn a_manager_with_more_page_faults_in_company_is_named() {
    let mut made = paired_both_ways(0.8, 0.8);
    for row in made.observations.iter_mut().filter(|row| row.stack == "fast" && row.phase == Phase::Timed) {
        row.minor_faults = 600;
    }
    let notes = compare(&made).tables[0].notes.join("\n");
    assert!(notes.contains("fast takes 600 page faults in lockstep and 100 in separate runs"), "{notes}");
}

#[test]
fn blocks_in_lockstep_count_once_for_what_disturbed_them_and_runs_one_by_one() {
    let mut made = paired_both_ways(0.8, 0.8);
    for row in &mut made.observations {
        let other_work = if row.repetition < 3 { 0.5 } else { 0.0 };
        row.disturbance =
            Some(Disturbance { seconds: 2.0, other_work, throttled: Some(0.0), ..Disturbance::default() });
    }
    let found = |made: &Experiment| compare(made).tables[0].disturbance.expect("disturbance");
    let blocks = found(&made);
    assert_eq!((blocks.blocks, blocks.loaded, blocks.mean.seconds), (8, 3, 16.0));
    assert!((blocks.mean.other_work - 3.0 / 16.0).abs() < 1e-12, "{blocks:?}");
    made.settings.pairing = crate::experiment::Pairing::Interleaved;
    assert_eq!((found(&made).blocks, found(&made).loaded), (16, 6));
    made.observations.iter_mut().for_each(|row| row.disturbance = None);
    assert_eq!(compare(&made).tables[0].disturbance, None, "a file from before it was measured");
}

#[test]
fn involuntary_switches_are_those_of_a_second_of_cpu_time() {
    let mut made = paired_both_ways(0.8, 0.8);
    for row in &mut made.observations {
        let each_s = if row.phase == Phase::Alone { 7.0 } else { 100.0 };
        row.involuntary_switches = (each_s * row.cpu_s()).round() as u64;
    }
    let compared = compare(&made);
    let switches = |stack| find(&compared.tables[0], stack).involuntary_switches_per_cpu_s.expect("a rate");
    assert!((switches("glibc") - 100.0).abs() < 1.0 && (switches("fast") - 100.0).abs() < 1.0);
}

#[test]
fn ratios_in_lockstep_and_alone_that_contradict_each_other_are_noted() {
    let notes = compare(&paired_both_ways(0.8, 1.1)).tables[0].notes.join("\n");
    assert!(notes.contains("ratio is of separate runs (1.10): sharing a core would give 0.80"), "{notes}");
}

#[test]
fn a_stack_apart_is_compared_with_the_baselines_runs_alone() {
    let mut made = paired_both_ways(0.8, 1.1);
    made.stacks[1].apart = Some("it starts threads".into());
    made.observations.retain(|row| row.stack == "glibc" || row.phase == Phase::Alone);
    made.stacks.push(crate::testing::stack("prog", "third"));
    let third: Vec<Observation> =
        made.observations.iter().filter(|row| row.stack == "glibc").cloned().collect();
    made.observations.extend(third.into_iter().map(|row| Observation { stack: "third".into(), ..row }));
    let compared = compare(&made);
    let fast = find(&compared.tables[0], "fast").figures[&Metric::Cpu].ratio.unwrap();
    assert!((fast.ratio - 1.1).abs() < 0.01 && fast.pairs == 8, "{fast:?}");
    let notes = compared.tables[0].notes.join("\n");
    assert!(notes.contains("fast (it starts threads)"), "{notes}");
}

#[test]
fn a_stack_in_lockstep_is_compared_with_one_apart_by_runs_alone_of_both() {
    let mut made = paired_both_ways(0.8, 1.1);
    made.stacks.push(crate::experiment::StackInfo {
        apart: Some("threads".into()),
        ..crate::testing::stack("prog", "apart")
    });
    let alone: Vec<Observation> = made
        .observations
        .iter()
        .filter(|row| row.stack == "glibc" && row.phase == Phase::Alone)
        .cloned()
        .collect();
    made.observations.extend(alone.into_iter().map(|row| Observation { stack: "apart".into(), ..row }));
    let sides = crate::side::Sides::of(&made, "prog");
    let (fast, apart) = (sides.find("fast").unwrap(), sides.find("apart").unwrap());
    for ratio in fast.log_ratios(apart, Metric::Cpu, 8) {
        assert!((ratio.unwrap() - 1.1f64.ln()).abs() < 0.01, "{ratio:?}");
    }
}

#[test]
fn experiments_in_lockstep_and_not_are_compared_by_their_runs_alone() {
    let together = paired_both_ways(0.8, 1.1);
    let mut interleaved = together.clone();
    interleaved.settings.pairing = crate::experiment::Pairing::Interleaved;
    interleaved.observations.retain(|row| row.phase == Phase::Alone);
    interleaved.observations.iter_mut().for_each(|row| row.phase = Phase::Timed);
    for line in across(&together, &interleaved) {
        assert!((line.b_median / line.a_median - 1.0).abs() < 1e-9, "{line:?}");
    }
}
