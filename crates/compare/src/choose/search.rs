//! The search: rounds of all candidates that are left; the better third goes on.
//!
//! All rounds are one experiment. So each candidate is proved once, and its ratios are of all its repetitions.

use std::time::Instant;

use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::{Experiment, Protocol};
use heaptoll_experiment::observation::Phase;
use heaptoll_experiment::runner::Ending;
use heaptoll_scratch::Scratch;

use super::figures::Candidate;
use super::request::{ChooseRequest, FINALISTS};
use super::schedule::Schedule;
use super::score::{Measured, measured};
use super::servers;
use crate::run::Run;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_report::format::plural;
use heaptoll_runs::preparation::estimate::Estimate;
use heaptoll_runs::{cells, measurement};

/// What a search found.
#[derive(Debug, Default)]
pub(super) struct Searched {
    /// The best candidates, without the baseline.
    pub finalists: Vec<String>,
    /// What each candidate had in its last round, the best first.
    pub candidates: Vec<Candidate>,
    /// Timed runs.
    pub runs: u64,
    /// Those of a full search: all in as many repetitions as the fresh runs.
    pub full_runs: u64,
}

/// Searches; where there are no more candidates than finalists nothing is run.
///
/// # Errors
/// The request cannot be carried out, no candidate works, or Ctrl-C.
pub(super) fn search(
    request: &ChooseRequest,
    names: Vec<String>,
    context: &Context,
) -> Result<Searched, Failure> {
    let fresh = request.run.protocol.repetitions;
    let all = (names.len() as u64 + 1) * u64::from(fresh);
    if names.len() <= FINALISTS {
        return Ok(Searched { finalists: names, full_runs: all, ..Searched::default() });
    }
    let scratch = Scratch::make()
        .map_err(|error| Failure::Usage(format!("no temporary folder for the search: {error}")))?;
    let mut search = Search::begin(request, &names, &scratch, context)?;
    let finalists = search.halve(names)?;
    let full_runs = all * search.run.experiment.programs.len() as u64;
    let mut candidates = search.rows;
    candidates.sort_by(|a, b| {
        let score = |row: &Candidate| row.score.unwrap_or(f64::INFINITY);
        b.round.cmp(&a.round).then_with(|| score(a).total_cmp(&score(b)))
    });
    Ok(Searched { finalists, candidates, runs: timed_runs(&search.run.experiment), full_runs })
}

/// The rounds so far.
struct Search<'a> {
    request: &'a ChooseRequest,
    context: &'a Context<'a>,
    run: Run,
    schedule: Schedule,
    /// Rounds that are planned.
    steps: usize,
    rows: Vec<Candidate>,
}

/// All runs of the rounds and of the fresh runs, with warm-ups, start-up runs and runs alone, on all programs.
fn runs_to_make(experiment: &Experiment, plan: &[(usize, u32)], fresh: u32) -> usize {
    let mut once = experiment.clone();
    once.settings.repetitions = 1;
    let cells = cells::all(&once);
    let warm_ups = cells.iter().filter(|cell| cell.phase.is_warm_up()).count();
    let stacks = experiment.stacks.len().max(1);
    let programs = experiment.programs.len();
    let rounds = plan.iter().map(|(candidates, repetitions)| (candidates + 1) * *repetitions as usize);
    let repetitions = programs * (rounds.sum::<usize>() + (FINALISTS + 1) * fresh as usize);
    let warm = warm_ups + programs * (FINALISTS + 1) * warm_ups / stacks;
    warm + repetitions * (cells.len() - warm_ups) / stacks
}

impl<'a> Search<'a> {
    fn begin(
        request: &'a ChooseRequest,
        names: &[String],
        scratch: &Scratch,
        context: &'a Context<'a>,
    ) -> Result<Search<'a>, Failure> {
        let mut all = request.runs_of(names);
        // A candidate whose first runs alone are slow is not let go by them.
        let usual = all.protocol;
        // Each round adds its own.
        all.protocol = Protocol { repetitions: 0, warmup: 1, precision: None, budget_s: None, ..usual };
        all.db = Some(scratch.path().join("search.db"));
        let fresh = request.run.protocol.repetitions;
        let begun = Instant::now();
        let run = Run::begin(&all, context)?;
        let schedule = Schedule::new(names.len(), FINALISTS, fresh);
        let plan = schedule.plan(names.len());
        let runs = runs_to_make(&run.experiment, &plan, fresh);
        let estimate = Estimate {
            what: format!(
                "about {runs} runs to make in {} steps: {} of the search, then fresh runs",
                plan.len() + 1,
                plural(plan.len(), "round")
            ),
            seconds: begun.elapsed().as_secs_f64() / run.experiment.stacks.len().max(1) as f64 * runs as f64,
            at_least: false,
            provided: "a run takes what a preflight took".into(),
        };
        if let Some(text) = estimate.sentence() {
            context.messages.note(&text);
        }
        Ok(Search { request, context, run, schedule, steps: plan.len(), rows: Vec::new() })
    }

    /// The finalists, best first.
    fn halve(&mut self, mut names: Vec<String>) -> Result<Vec<String>, Failure> {
        for round in 1.. {
            let repetitions = self.schedule.next(names.len());
            let working = self.round(round, &names, repetitions)?;
            let kept = self.schedule.kept(names.len()).min(working.len());
            names = working.into_iter().take(kept).collect();
            if names.is_empty() {
                return Err(self.none_works());
            }
            if kept <= FINALISTS {
                break;
            }
            let made = self.run.experiment.settings.repetitions;
            let baseline = self.run.experiment.baseline.clone();
            for stack in &mut self.run.experiment.stacks {
                if stack.name != baseline && !names.contains(&stack.name) {
                    stack.dropped_after.get_or_insert(made);
                }
            }
        }
        Ok(names)
    }

    fn none_works(&self) -> Failure {
        let within = if self.request.memory_limit_bytes.is_some() { " within the memory limit" } else { "" };
        let reasons =
            self.rows.iter().filter_map(|row| Some(format!("\n  {}: {}", row.stack, row.why_out.as_ref()?)));
        Failure::Usage(format!(
            "only {} runs this program correctly{within}:{}",
            self.request.run.baseline(),
            reasons.collect::<String>()
        ))
    }

    /// Runs these candidates and the baseline so often; those that work, best first.
    fn round(&mut self, round: u32, names: &[String], repetitions: u32) -> Result<Vec<String>, Failure> {
        let times = plural(repetitions as usize, "repetition");
        self.context.messages.note(&format!(
            "round {round} of {}: {} candidates, {times} each",
            self.steps,
            names.len()
        ));
        let Run { experiment, store, .. } = &mut self.run;
        experiment.settings.repetitions += repetitions;
        experiment.complete = false;
        let ended = measurement::measure_lacking(experiment, store, self.context, &|_| None).0?;
        if ended != Ending::Complete {
            return Err(Failure::Interrupted);
        }
        // On a copy: by what outputs are judged may still change.
        let mut judged = experiment.clone();
        judge_outputs(&mut judged);
        let comparison = compare(&judged);
        let mut scored: Vec<(f64, String)> = Vec::new();
        for name in names {
            let found = Candidate { round, ..self.judge(name, &judged, &comparison) };
            scored.extend(found.score.filter(|_| found.why_out.is_none()).map(|score| (score, name.clone())));
            self.rows.retain(|row| row.stack != *name);
            self.rows.push(found);
        }
        scored.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        Ok(scored.into_iter().map(|(_, name)| name).collect())
    }

    fn judge(&self, name: &str, experiment: &Experiment, comparison: &Comparison) -> Candidate {
        let mut row = Candidate { stack: name.to_owned(), ..Candidate::default() };
        if let Some((_, _, why)) = experiment.refused.iter().find(|(_, stack, _)| stack == name) {
            row.why_out = Some(why.clone());
            return row;
        }
        match measured(name, experiment, comparison) {
            Ok(Measured { cpu, memory, peak_bytes, repetitions }) => {
                (row.cpu_ratio, row.memory_ratio, row.peak_bytes) =
                    (Some(cpu.mean), Some(memory.mean), Some(peak_bytes));
                row.repetitions = repetitions;
                row.served = servers::served(name, experiment);
                let score = |cpu, memory| Some(self.request.preference.score(cpu, memory, &row.served));
                (row.score, row.best_score) = (score(cpu.mean, memory.mean), score(cpu.least, memory.least));
                row.why_out = self.request.limits().broken(peak_bytes, &row.served);
            }
            Err(why) => row.why_out = Some(why),
        }
        row
    }
}

/// Timed runs of an experiment, one a stack and repetition; those of start-up, and alone in addition to a lockstep, not
/// counted.
pub fn timed_runs(experiment: &Experiment) -> u64 {
    let is_apart = |program: &str, stack: &str| {
        let of_it = experiment.stack(program, stack);
        of_it.is_some_and(|stack| !experiment.runs_in_lockstep(stack)) && experiment.is_in_lockstep(program)
    };
    let counts = |phase: Phase, program: &str, stack: &str| match phase {
        Phase::Timed => true,
        Phase::Alone => is_apart(program, stack),
        _ => false,
    };
    experiment.observations.iter().filter(|row| counts(row.phase, &row.program, &row.stack)).count() as u64
}
