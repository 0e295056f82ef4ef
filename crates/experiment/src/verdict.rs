//! Verdicts and warnings as text. A difference is stated only when its interval excludes 1.

use std::collections::BTreeMap;

use crate::comparison::{Figure, Metric, Row};
use crate::experiment::{Experiment, Pairing};
use crate::heap_limit::HeapLimit;
use crate::observation::{Collections, Observation, Outcome, Phase};
use crate::side::Startup;
use heaptoll_statistics::{FEWEST_PAIRS, Interval, claim, median};
use heaptoll_stats_page::{AbandonCause, UnreadPlaces};
use heaptoll_units::and_list;

/// Start-up above this share of a run's CPU is worth a sentence.
const STARTUP_SHARE: f64 = 0.05;
/// Runs below this many CPU seconds are mostly noise.
const SHORT_S: f64 = 0.05;
/// `VmHWM` and `ru_maxrss` may differ by what the last sample missed; more than this share is worth a sentence.
const MEMORY_TOLERANCE: f64 = 0.05;

/// Linux counts resident pages by CPU, file and anonymous ones apart, and adds up every 32 pages, so its marks differ
/// by up to this many KiB a CPU.
const LAG_KIB: u64 = 256;

/// What a row is judged by, each by its own pairs, as claims name it.
const NOUNS: [(Metric, &str); 3] =
    [(Metric::Cpu, "CPU"), (Metric::PeakRss, "memory"), (Metric::Wall, "elapsed time")];

/// The verdict of one row; `too_small` is the heap that was fixed, where what failed did not fit in it.
pub fn text(
    is_baseline: bool,
    figures: &BTreeMap<Metric, Figure>,
    marks: &[String],
    too_small: Option<&HeapLimit>,
) -> String {
    let failed = too_small.map_or("failed".to_owned(), HeapLimit::failure);
    if figures.is_empty() {
        return if marks.is_empty() {
            "not measured".into()
        } else {
            format!("{failed}: {}", marks.join(", "))
        };
    }
    if is_baseline {
        return "baseline".into();
    }
    let ratio = |(metric, noun)| Some((figures.get(&metric)?.ratio, noun));
    let mut ratios: Vec<_> = [NOUNS[0], NOUNS[1]].into_iter().filter_map(ratio).collect();
    if ratios.iter().all(|(ratio, noun)| ratio.and_then(|ratio| claim(&ratio, noun)).is_none()) {
        // A server or a threaded program can be faster without using less CPU.
        ratios.extend(ratio(NOUNS[2]));
    }
    let words = heaptoll_statistics::verdict(&ratios);
    // A reader of the verdict alone must not choose a manager that fails now and then.
    if marks.is_empty() { words } else { format!("{failed}: {}; else {words}", marks.join(", ")) }
}

/// The verdict of a ratio between two experiments.
pub fn across(metric: Metric, ratio: Option<Interval>) -> String {
    let noun = NOUNS.into_iter().find(|(of, _)| *of == metric).map_or("CPU", |(_, noun)| noun);
    heaptoll_statistics::verdict(&[(ratio, noun)])
}

/// Sentences on one program's table.
pub struct Notes {
    /// Those that change how its figures are read.
    pub doubts: Vec<String>,
    /// Those that only tell how it came about.
    pub asides: Vec<String>,
}

/// The sentences on one program's table.
pub fn notes(
    experiment: &Experiment,
    program: &str,
    rows: &[Row],
    baseline_digests: &[String],
    startup: Startup,
) -> Notes {
    let timed =
        || experiment.observations.iter().filter(|row| row.program == program && row.phase.is_compared());
    let info = experiment.program(program);
    let server = info.is_some_and(|info| info.serve.is_some());
    let mut doubts = reported_notes(experiment, program);
    let expected = info.and_then(|info| info.expected_digest.as_ref());
    doubts.extend(output_note(expected, baseline_digests).filter(|_| !server).map(str::to_owned));
    doubts.extend(few_note(rows));
    doubts.extend(memory_check(experiment, program));
    let mut asides = pairing_notes(experiment, program);
    match startup {
        Startup::Apart => asides.extend(startup_note(rows, startup)),
        _ => doubts.extend(startup_note(rows, startup)),
    }
    let cpu: Vec<f64> = timed().filter(|row| row.outcome.is_ok()).map(|row| row.cpu_s()).collect();
    if !cpu.is_empty() && median(&cpu) < SHORT_S && !server {
        doubts.push(format!(
            "A run takes only {:.0} ms of CPU. To detect small differences, give it more work or many \
             repetitions",
            1000.0 * median(&cpu)
        ));
    }
    let left: u32 = timed().map(|row| row.killed_orphans).sum();
    if left > 0 {
        doubts.push(format!(
            "{left} processes outlived their program and were killed. Their later work is not measured"
        ));
    }
    Notes { doubts, asides }
}

/// With what outputs are compared, where it is not the expected one.
fn output_note(expected: Option<&String>, baseline_digests: &[String]) -> Option<&'static str> {
    match (expected, baseline_digests) {
        (None, [_, _, ..]) => {
            Some("Outputs are not compared, because under the baseline itself they differ from run to run")
        }
        (Some(expected), [only]) if only != expected => Some(
            "The output is not the one that the catalog expects (another version of the program?). Outputs \
             are compared with the baseline's",
        ),
        _ => None,
    }
}

/// Names what no row has enough pairs of: in an interrupted lockstep run that may be CPU time alone.
fn few_note(rows: &[Row]) -> Option<String> {
    let most = |metric| {
        rows.iter().filter_map(|row: &Row| row.figures.get(&metric)?.ratio).max_by_key(|ratio| ratio.pairs)
    };
    let shown: Vec<_> = NOUNS.into_iter().filter_map(|(metric, noun)| Some((most(metric)?, noun))).collect();
    let few: Vec<String> = shown
        .iter()
        .filter(|(ratio, _)| !ratio.has_enough_pairs())
        .map(|(_, noun)| (*noun).to_owned())
        .collect();
    let of = if few.len() == shown.len() { String::new() } else { format!(" for {}", and_list(&few)) };
    (!few.is_empty()).then(|| {
        format!(
            "Fewer than {FEWEST_PAIRS} repetitions{of}: brackets are ranges, and no difference is claimed"
        )
    })
}

/// How the runs were paired, where lockstep was requested.
fn pairing_notes(experiment: &Experiment, program: &str) -> Vec<String> {
    let lockstep = "CPU time: managers in lockstep on one core. Memory and wall time: separate runs";
    let lockstep = experiment.is_in_lockstep(program).then(|| lockstep.to_owned());
    let others: Vec<String> = experiment.at_once_with(program).iter().map(|name| name.to_string()).collect();
    let block = format!("In lockstep with each other: {}", and_list(&others));
    let block = (others.len() > 1).then_some(block);
    lockstep.into_iter().chain(block).chain(apart(experiment, program)).collect()
}

/// Which runs of a program were not in lockstep, where the experiment is, and why.
pub fn apart(experiment: &Experiment, program: &str) -> Vec<String> {
    if experiment.settings.pairing != Pairing::Lockstep {
        return vec![];
    }
    let stacks = || experiment.stacks_of(program);
    if !experiment.is_in_lockstep(program) {
        let baseline = experiment.stack(program, &experiment.baseline);
        let why = baseline.and_then(|stack| stack.apart.as_deref()).unwrap_or("the baseline did not run");
        return vec![format!("Runs one after the other, not in lockstep: {why}")];
    }
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for stack in stacks() {
        if let Some(why) = &stack.apart {
            by_reason.entry(why).or_default().push(&stack.name);
        }
    }
    let turns = experiment.settings.turns.get(program).map(|turns| {
        let (at_once, all) = (turns.at_once, stacks().filter(|stack| stack.apart.is_none()).count());
        format!(
            "{at_once} of {all} managers at a time ({} in each block, the others drawn at random): {}",
            experiment.baseline, turns.why
        )
    });
    let apart = by_reason.into_iter().map(|(why, names)| {
        let baseline = &experiment.baseline;
        format!("Run separately, between runs of {baseline}: {} ({why})", names.join(", "))
    });
    turns.into_iter().chain(apart).collect()
}

/// How the line of a checking quarantine about a write begins; blocks still quarantined at the end of a run are checked
/// then.
const FOUND: &str = "heaptoll: written after free: ";

/// What layers and managers reported of a program's runs that no figure shows: defects that were found, and a heap that
/// was too small.
fn reported_notes(experiment: &Experiment, program: &str) -> Vec<String> {
    let mut notes = Vec::new();
    for stack in experiment.stacks_of(program).map(|stack| &stack.name) {
        let runs: Vec<&Observation> =
            experiment.rows(program, stack).filter(|row| row.phase.is_measured()).collect();
        let most = |figure: fn(&Observation) -> Option<u64>| {
            let reported: Vec<u64> =
                runs.iter().filter_map(|row| figure(row)).filter(|found| *found > 0).collect();
            reported.iter().max().map(|most| (reported.len(), *most))
        };
        if let Some((bad, most)) = most(|row| row.written_after_free) {
            let line =
                runs.iter().find_map(|row| row.stderr_tail.lines().find_map(|line| line.strip_prefix(FOUND)));
            notes.push(format!(
                "Under {stack} the program wrote to freed memory in {bad} of {} runs (at most {most} \
                 blocks){}",
                runs.len(),
                line.map_or(String::new(), |line| format!("; the first: {line}"))
            ));
        }
        if let Some((bad, most)) = most(|row| row.refused_calls) {
            notes.push(format!(
                "Under {stack} the heap was too small: allocations failed in {bad} of {} runs (at most \
                 {most})",
                runs.len()
            ));
        }
        let of_all = |bits: fn(&Collections) -> u64| {
            runs.iter().filter_map(|row| row.collections.as_ref()).fold(0, |all, one| all | bits(one))
        };
        let unread: Vec<&str> = UnreadPlaces::of_bits(of_all(|one| one.unread_places)).texts().collect();
        if !unread.is_empty() {
            notes.push(format!(
                "Under {stack} collections cannot read {}, and may reclaim a block whose only pointer is \
                 there",
                unread.join(", ")
            ));
        }
        let abandoned: Vec<&str> =
            AbandonCause::of_bits(of_all(|one| one.abandon_causes)).map(AbandonCause::text).collect();
        if !abandoned.is_empty() {
            notes.push(format!(
                "Under {stack} the heap grew because collections were abandoned: {}",
                abandoned.join(", ")
            ));
        }
    }
    notes
}

fn startup_note(rows: &[Row], startup: Startup) -> Option<String> {
    let share = |row: &Row| {
        let net = row.figures.get(&Metric::Cpu)?.median;
        Some(row.startup_cpu_s? / (row.startup_cpu_s? + net))
    };
    match startup {
        Startup::NotMade => None,
        Startup::Failed => Some(
            "Start-up time is included in the ratios: it could not be separated under every manager (the \
             program may bypass main)"
                .into(),
        ),
        Startup::Everything => Some(
            "Start-up time is included in the ratios, because a run is hardly more than its start-up. Give \
             the program more work"
                .into(),
        ),
        Startup::Apart => {
            let share =
                rows.iter().filter_map(share).reduce(f64::max).filter(|share| *share > STARTUP_SHARE)?;
            let percent = 100.0 * share;
            Some(format!("Start-up takes up to {percent:.0} % of the CPU of this run. The ratios exclude it"))
        }
    }
}

/// Cross-checks the launcher's peak memory with the kernel's mark in `/proc` from the watched run.
fn memory_check(experiment: &Experiment, program: &str) -> Option<String> {
    let worst = experiment
        .tracks
        .iter()
        .filter(|track| track.program == program && track.vm_hwm_kib > 0)
        .filter_map(|track| {
            let row = experiment.rows(program, &track.stack).find(|row| {
                row.repetition == track.repetition
                    && row.outcome != Outcome::Interrupted
                    && row.phase == if row.serve.is_some() { Phase::Timed } else { Phase::Profile }
            })?;
            // The mark may be read before the peak, so only a mark above the reported peak is a contradiction.
            let excess = track.vm_hwm_kib as f64 / row.peak_rss_kib.max(1) as f64 - 1.0;
            let beyond_lag = track.vm_hwm_kib.saturating_sub(row.peak_rss_kib)
                > LAG_KIB * u64::from(experiment.machine.cores);
            beyond_lag.then_some((excess, track, row))
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (excess, track, row) = worst;
    (excess > MEMORY_TOLERANCE).then(|| {
        format!(
            "Under {} the kernel's mark (VmHWM {} KiB) exceeds the reported peak of {} KiB: its peak memory \
             is unreliable",
            track.stack, track.vm_hwm_kib, row.peak_rss_kib
        )
    })
}
