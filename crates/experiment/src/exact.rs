//! The exact axis: what one traced run of each stack counts, next to the CPU ratio that was measured.
//!
//! Instructions, misses of a simulated machine and pages repeat to the digit, where time has noise; but none of them is
//! time. They stand side by side here, never summed, and [`sentence`] states what it means where they disagree.

mod sentence;

use crate::comparison::{CacheCounted, Counted, ExactRow, ExactTable, Metric, Row};
use crate::experiment::Experiment;
use crate::observation::{ExactFigures, GeometryMisses, LocalityFigures, Phase};
use crate::side::Startup;
use heaptoll_units::groups;
use sentence::{Axis, Part};

/// A program's own instructions that differ by more than this share between managers are other work.
pub const OTHER_WORK: f64 = 0.001;
/// A difference of at most this many instructions counts as none: functions are bound at their first call, by look-ups
/// in more objects or fewer.
pub const LAZY_BINDING: f64 = 50_000.0;

/// Of fewer calls than this, a share is not judged.
const FEW_CALLS: u64 = 10_000;

/// A whole traced run.
#[derive(Clone, Copy)]
struct Run<'a> {
    stack: &'a str,
    exact: &'a ExactFigures,
    locality: Option<&'a LocalityFigures>,
}

impl Run<'_> {
    fn instructions(&self, less_startup: bool) -> u64 {
        let startup = self.exact.startup.filter(|_| less_startup).map_or(0, |startup| startup.total());
        self.exact.instructions.total().saturating_sub(startup)
    }

    /// The program's own, from `main` on where that was seen of its only process.
    fn application(&self) -> (u64, bool) {
        match self.exact.startup.filter(|_| self.exact.images == 1) {
            Some(startup) => (self.exact.instructions.program.saturating_sub(startup.program), true),
            None => (self.exact.instructions.program, false),
        }
    }
}

/// The exact counts of a program whose measured rows are these; `None` where nothing was counted and there is no note.
pub fn table(experiment: &Experiment, program: &str, startup: Startup, rows: &[Row]) -> Option<ExactTable> {
    let runs: Vec<(&Row, Run)> =
        rows.iter().filter_map(|row| Some((row, run(experiment, program, &row.stack)?))).collect();
    let mut notes = notes(experiment, program);
    let base = runs.iter().find(|(row, _)| row.stack == experiment.baseline).copied();
    let Some((base_row, base)) = base else {
        return (!notes.is_empty()).then(|| ExactTable { notes, ..ExactTable::default() });
    };
    let less_startup = startup == Startup::Apart && runs.iter().all(|(_, run)| run.exact.startup.is_some());
    let others = || runs.iter().filter(|(row, _)| row.stack != experiment.baseline);
    notes.extend(others().filter_map(|(_, run)| other_work(*run, base)));
    let row = |(row, run): &(&Row, Run)| of(row, *run, base_row, base, less_startup);
    let rows = std::iter::once(row(&(base_row, base))).chain(others().map(row));
    Some(ExactTable { less_startup, rows: rows.collect(), notes })
}

/// The last whole traced run, one with a simulated machine before one without.
fn run<'a>(experiment: &'a Experiment, program: &str, stack: &'a str) -> Option<Run<'a>> {
    let good =
        experiment.rows(program, stack).filter(|row| row.phase == Phase::Traced && row.outcome.is_ok());
    let runs = good.filter_map(|row| {
        let exact = row.exact.as_ref().filter(|exact| exact.whole)?;
        Some(Run { stack, exact, locality: row.locality.as_ref() })
    });
    runs.max_by_key(|run| run.locality.is_some())
}

fn of(row: &Row, run: Run, base_row: &Row, base: Run, less_startup: bool) -> ExactRow {
    let is_baseline = run.stack == base.stack;
    let counted = |count: u64, of: u64| Counted {
        count,
        ratio: (!is_baseline && of > 0).then(|| count as f64 / of as f64),
    };
    let instructions = counted(run.instructions(less_startup), base.instructions(less_startup));
    let misses = caches(run, base).map(|(own, of)| CacheCounted {
        cache: own.cache.clone(),
        misses: counted(own.misses.total(), of.misses.total()),
    });
    let pages =
        run.locality.map(|own| counted(own.pages_touched, base.locality.map_or(0, |of| of.pages_touched)));
    let faults =
        (row.good > 0 && base_row.good > 0).then(|| counted(median_faults(row), median_faults(base_row)));
    let cpu = row.figures.get(&Metric::Cpu).and_then(|figure| figure.ratio);
    let parts = parts(run, base, faults.map(|faults| (faults.count, median_faults(base_row))));
    let axis = instructions.ratio.map(|ratio| Axis {
        baseline: base.stack,
        instructions: ratio,
        of_instructions: base.instructions(less_startup) as f64,
        parts: &parts,
        cpu,
    });
    ExactRow {
        stack: run.stack.into(),
        instructions,
        misses: misses.collect(),
        pages,
        faults,
        cpu,
        words: axis.and_then(|axis| sentence::sentence(&axis)).unwrap_or_default(),
    }
}

fn median_faults(row: &Row) -> u64 {
    row.minor_faults.round() as u64
}

/// The caches of both runs, where they are those of one machine.
fn caches<'a>(run: Run<'a>, base: Run<'a>) -> impl Iterator<Item = (&'a GeometryMisses, &'a GeometryMisses)> {
    let of = |run: Run<'a>| run.locality.map_or(&[][..], |locality| &locality.caches[..]);
    let (own, of) = (of(run), of(base));
    let is_one = own.iter().map(|cache| &cache.cache).eq(of.iter().map(|cache| &cache.cache));
    own.iter().zip(of).filter(move |_| is_one)
}

/// Misses and page faults (this stack's and the baseline's) with what they are assumed to cost.
fn parts(run: Run, base: Run, faults: Option<(u64, u64)>) -> Vec<Part> {
    let misses = caches(run, base).filter_map(|(own, of)| {
        let wait = of.wait_cycles? as f64;
        Part::of(format!("misses of {}", of.cache), own.misses.total(), of.misses.total(), wait)
    });
    let faults = faults.and_then(|(own, of)| Part::of("page faults".into(), own, of, sentence::FAULT_CYCLES));
    misses.chain(faults).collect()
}

/// What was noted when the runs were made, and traced runs that are not good.
fn notes(experiment: &Experiment, program: &str) -> Vec<String> {
    let made = experiment.exact_notes.iter().filter(|(of, ..)| of == program);
    let by_text = groups(made.map(|(_, stack, text)| (text.as_str(), stack.as_str())));
    let mut notes: Vec<String> = by_text
        .into_iter()
        .map(|(text, stacks)| match stacks.join(", ") {
            of_all if of_all.is_empty() => text.to_owned(),
            stacks => format!("{stacks}: {text}"),
        })
        .collect();
    let traced =
        experiment.observations.iter().filter(|row| row.phase == Phase::Traced && row.program == program);
    notes.extend(traced.filter_map(|row| {
        let whole = row.exact.is_none_or(|exact| exact.whole);
        let why = match (row.outcome.is_ok(), whole) {
            (true, true) => return None,
            (true, false) => "its trace is incomplete".to_owned(),
            (false, _) => row.outcome.to_string(),
        };
        let last = row.stderr_tail.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let last = last.map_or(String::new(), |line| format!("; its last output: {line}"));
        Some(format!(
            "{}: left out of the exact counts, because its traced run failed: {why}{last}",
            row.stack
        ))
    }));
    notes
}

/// That the program itself executed something else than under the baseline.
fn other_work(run: Run, base: Run) -> Option<String> {
    let ((mine, mine_from_main), (theirs, theirs_from_main)) = (run.application(), base.application());
    let from_main = mine_from_main && theirs_from_main;
    let (mine, theirs) = match from_main {
        true => (mine as f64, theirs as f64),
        false => (run.exact.instructions.program as f64, base.exact.instructions.program as f64),
    };
    if theirs == 0.0 || (mine - theirs).abs() <= LAZY_BINDING.max(OTHER_WORK * theirs) {
        return None;
    }
    let why = match (same_calls(run.exact, base.exact), from_main) {
        (false, _) => {
            "it also makes other calls, so its behaviour depends on addresses, usable sizes or \
                       time"
        }
        (true, false) => {
            "these figures include what comes before main, where the loader has more to do with another \
             object"
        }
        (true, true) => {
            "its calls are the same, so the addresses differ, or the manager works outside its own routines"
        }
    };
    Some(format!(
        "{}: the program itself executes {:.2} % {} instructions than under {}. It should execute as many; \
         likely {why} (`heaptoll exact instructions -n 2` shows whether that repeats)",
        run.stack,
        100.0 * (mine / theirs - 1.0).abs(),
        if mine > theirs { "more" } else { "fewer" },
        base.stack
    ))
}

/// Whether the program made as many calls, but for a few.
fn same_calls(one: &ExactFigures, other: &ExactFigures) -> bool {
    let same = |a: u64, b: u64| a.abs_diff(b) as f64 <= OTHER_WORK * a.max(b).max(FEW_CALLS) as f64;
    same(one.allocations, other.allocations) && same(one.frees, other.frees)
}

#[cfg(test)]
mod tests;
