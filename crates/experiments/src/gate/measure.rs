//! The gate of one program: watched runs, one repetition, counts and recordings, then paired runs until it is decided.

use heaptoll_experiment::experiment::{Experiment, StackInfo};
use heaptoll_experiment::runner::Ending;
use heaptoll_experiment::store::Store;
use heaptoll_instruction_counts::SizeClass;
use heaptoll_reftrace_host::Tracer;
use heaptoll_scratch::Scratch;
use heaptoll_units::{count, percent, took};

use super::causes;
use super::counted::{self, Counted};
use super::figures::{MetricFigures, MetricVerdict, Outputs, Program, SizeFigures};
use super::judge::{self, Counts, Effort};
use super::metric::Metric;
use super::prepare::{Begun, Prepared, Sides, prepare};
use super::recorded::{self, Recorded, Recordings};
use super::request::{Entry, Request};
use super::side::BuiltSide;
use super::timed::Timed;
use super::worktrees::TreeError;
use crate::context::Context;
use crate::failure::Failure;

/// One program to gate.
pub struct Gate<'a> {
    /// The program.
    pub entry: &'a Entry,
    /// Its base.
    pub base: &'a BuiltSide,
    /// Its new build.
    pub new: &'a BuiltSide,
    /// The tracer, or why there is none.
    pub tracer: Result<&'a Tracer, &'a String>,
    /// The request that it is a part of.
    pub request: &'a Request,
    /// The surroundings.
    pub context: &'a Context<'a>,
}

/// Everything that was counted and measured of a program.
struct Evidence {
    timed: Timed,
    counted: Option<Counted>,
    recordings: Option<Recordings>,
    outputs: Outputs,
    interrupted: bool,
}

impl Gate<'_> {
    /// Measures it and judges. The second part is whether all runs were made.
    ///
    /// # Errors
    /// See [`super::run`].
    pub fn run(&self) -> Result<(Program, bool), Failure> {
        let sides = Sides { entry: self.entry, base: self.base, new: self.new };
        let begun = match prepare(&sides, self.request.seed, self.request.timeout_s, self.context)? {
            Prepared::Runs(begun) => *begun,
            Prepared::NewFails(how) => return Ok((self.failed(how), true)),
        };
        let scratch = Scratch::make().map_err(TreeError::Scratch).map_err(|error| Failure::Refused(Box::new(error)))?;
        let evidence = self.gather(begun, &scratch)?;
        let whole = !evidence.interrupted;
        Ok((self.judged(evidence), whole))
    }

    /// A program whose new build fails.
    fn failed(&self, how: String) -> Program {
        let failure = Some(format!("the new build {how}, and the base does not"));
        Program {
            name: self.entry.name.clone(),
            base: self.base.described(),
            new: self.new.described(),
            metrics: vec![],
            sizes: vec![],
            outputs: Outputs::Unknown,
            verdict: judge::verdict(&[], failure.as_ref()),
            failure,
            notes: vec![],
            functions: None,
            sites: None,
        }
    }

    fn gather(&self, begun: Begun, scratch: &Scratch) -> Result<Evidence, Failure> {
        let Begun { experiment, run_s, together_bytes } = begun;
        let store = Store::create(&scratch.path().join("runs.db"), &experiment)?;
        let stacks = experiment.stacks.clone();
        let program = experiment.programs[0].clone();
        let mut timed = Timed::new(experiment, store, self.request.budget_s, run_s);
        if timed.first(self.context)? == Ending::Interrupted {
            return Err(Failure::Interrupted);
        }
        let outputs = timed.outputs();
        if outputs == Outputs::Differ && !self.entry.outputs_differ {
            return Err(Failure::Usage(self.other_output(&timed)));
        }
        let pair: [&StackInfo; 2] = [&stacks[0], &stacks[1]];
        let managers = [self.base.manager.as_ref(), self.new.manager.as_ref()];
        let record = || recorded::record(&program, pair, managers, scratch.path(), self.context);
        let (counted, recordings) = match self.tracer {
            Err(_) => (None, record()),
            Ok(tracer) => {
                let subject = counted::Subject {
                    program: &program,
                    stacks: pair,
                    expect_status: self.entry.expect_status,
                    timeout_s: self.request.timeout_s,
                    together_bytes,
                };
                let (counted, recordings) = counted::count(&subject, tracer, self.context, record);
                (Some(counted), recordings)
            }
        };
        let rest = match self.context.interrupt.is_set() {
            true => Ending::Interrupted,
            false => timed.rest(self.context, |timed| self.is_decided(timed))?,
        };
        let interrupted = rest == Ending::Interrupted;
        Ok(Evidence { outputs: timed.outputs(), timed, counted, recordings: Some(recordings), interrupted })
    }

    fn other_output(&self, timed: &Timed) -> String {
        let what = |stack: &str| {
            let mut rows = timed.experiment.observations.iter().filter(|row| row.stack == stack);
            let row = rows.find(|row| row.phase.is_measured());
            row.map_or_else(String::new, |row| {
                let digest = row.output_digest.get(..12).unwrap_or_default();
                format!("{} bytes, SHA-256 {digest}...", count(row.output_bytes as f64))
            })
        };
        format!(
            "{}: the two builds write different output (base: {}; new: {}), so they did not do the same work; with \
             --outputs-differ they are compared all the same",
            self.entry.name,
            what(super::prepare::BASE),
            what(super::prepare::NEW)
        )
    }

    /// Whether more runs would decide nothing.
    fn is_decided(&self, timed: &Timed) -> bool {
        let open = |one: &MetricFigures| matches!(one.verdict, MetricVerdict::Undecided { .. });
        !self.measured(timed).iter().any(open)
    }

    fn measured(&self, timed: &Timed) -> Vec<MetricFigures> {
        let table = timed.table(self.entry.outputs_differ);
        let effort = Effort { each_s: timed.each_s() };
        let metrics = Metric::ALL.into_iter().filter(|metric| !metric.is_counted());
        let missing = "runs that end well";
        let pair = |metric| table.as_ref().and_then(|table| timed.pair(metric, table));
        metrics.map(|metric| judge::measured(metric, pair(metric), &self.entry.limits, effort, missing)).collect()
    }

    fn judged(&self, evidence: Evidence) -> Program {
        let mut metrics = self.counted(&evidence);
        metrics.extend(self.measured(&evidence.timed));
        metrics.sort_by_key(|one| (matches!(one.verdict, MetricVerdict::NotGated { .. }), one.metric));
        let failure = evidence.timed.failures_of_new().filter(|_| {
            // Other output is not a failure where it may differ.
            evidence.outputs != Outputs::Differ || !self.entry.outputs_differ
        });
        let failure = failure.map(|how| format!("the new build fails in {how}"));
        let mut notes = self.notes(&evidence);
        let sites = match causes::sites(evidence.recordings.as_ref()) {
            Some(Err(why)) => {
                notes.push(format!("call sites are not compared: {why}"));
                None
            }
            found => found.and_then(Result::ok),
        };
        Program {
            name: self.entry.name.clone(),
            base: self.base.described(),
            new: self.new.described(),
            sizes: sizes(&evidence),
            outputs: evidence.outputs,
            verdict: judge::verdict(&metrics, failure.as_ref()),
            failure,
            functions: causes::functions(evidence.counted.as_ref()),
            sites,
            notes,
            metrics,
        }
    }

    fn counted(&self, evidence: &Evidence) -> Vec<MetricFigures> {
        let missing = self.missing(evidence);
        let all = Metric::ALL.into_iter().filter(|metric| metric.is_counted());
        all.map(|metric| {
            let traced = evidence.counted.as_ref().map(|counted| {
                let of = |run: &Result<counted::Counts, String>| run.as_ref().ok()?.metrics.get(&metric).copied();
                Counts { base: of(&counted.base), new: of(&counted.new), again: of(&counted.again) }
            });
            let recorded = evidence.recordings.as_ref().map(|recordings| {
                let of = |run: &Result<Recorded, String>| run.as_ref().ok()?.metrics.get(&metric).copied();
                Counts { base: of(&recordings.base), new: of(&recordings.new), again: None }
            });
            let whole = |counts: &Counts| counts.base.is_some() && counts.new.is_some();
            // Requests are counted by recordings, too.
            let counts = traced.filter(whole).or(recorded.filter(whole)).unwrap_or_default();
            judge::counted(metric, counts, &self.entry.limits, &missing)
        })
        .collect()
    }

    /// Why there are no counts, where there are none.
    fn missing(&self, evidence: &Evidence) -> String {
        let Some(counted) = &evidence.counted else {
            return self.tracer.err().map_or_else(|| "the tracer".into(), |why| format!("the tracer: {why}"));
        };
        match (&counted.base, &counted.new) {
            (Err(why), _) => format!("a traced run of the base: {why}"),
            (_, Err(why)) => format!("a traced run of the new build: {why}"),
            _ => "symbols by which the malloc family is recognised: neither build may be stripped".into(),
        }
    }

    fn notes(&self, evidence: &Evidence) -> Vec<String> {
        let timed = &evidence.timed;
        let mut notes = Vec::new();
        if let Some(table) = timed.table(self.entry.outputs_differ) {
            if let Some(ratio) = table.detectable_cpu_ratio {
                notes.push(format!(
                    "this machine now: CPU differences of about {} are seen in {} repetitions, which took {}",
                    percent(ratio - 1.0),
                    timed.experiment.settings.repetitions,
                    took(timed.each_s() * f64::from(timed.experiment.settings.repetitions))
                ));
            }
            notes.extend(table.disturbance.as_ref().map(heaptoll_report::format::disturbed));
            notes.extend(table.notes);
        }
        notes.extend(match evidence.outputs {
            Outputs::Equal => Some("both builds write the same output".to_owned()),
            Outputs::Differ => Some("the builds write different output, which --outputs-differ allows".to_owned()),
            Outputs::Vary => Some("outputs differ from run to run, so they are not compared".to_owned()),
            Outputs::Unknown => None,
        });
        notes.extend(traced_notes(evidence));
        notes.extend(recorded_notes(evidence));
        notes.extend(stack_notes(&timed.experiment));
        notes
    }
}

fn stack_notes(experiment: &Experiment) -> Vec<String> {
    let all = experiment.stacks.iter();
    all.flat_map(|stack| stack.warnings.iter().map(|warning| format!("{}: {warning}", stack.name))).collect()
}

fn traced_notes(evidence: &Evidence) -> Vec<String> {
    let Some(counted) = &evidence.counted else { return vec![] };
    let mut notes = vec![format!("counted by {}, with randomness and the clock pinned", counted.tracer)];
    for (name, run) in [("base", &counted.base), ("new", &counted.new), ("the second run of base", &counted.again)] {
        match run {
            Err(why) => notes.push(format!("{name} was not counted: {why}")),
            Ok(counts) => notes.extend(counts.remarks.iter().map(|remark| format!("{name}, traced: {remark}"))),
        }
    }
    if let Ok(counts) = &counted.base
        && counts.images > 1
    {
        notes.push(format!("counts are sums over {} process images", counts.images));
    }
    notes
}

fn recorded_notes(evidence: &Evidence) -> Vec<String> {
    let Some(recordings) = &evidence.recordings else { return vec![] };
    let mut notes = Vec::new();
    if let Err(why) = recordings.base.as_ref().and(recordings.new.as_ref()) {
        notes.push(format!("no recording, so call sites are not compared: {why}"));
    }
    let counted = |run: &Result<counted::Counts, String>| {
        let counts = run.as_ref().ok().filter(|counts| counts.images == 1)?;
        counts.metrics.get(&Metric::Live).copied()
    };
    let Some(runs) = &evidence.counted else { return notes };
    for (name, traced, recorded) in
        [("base", &runs.base, &recordings.base), ("new", &runs.new, &recordings.new)]
    {
        let recorded = recorded.as_ref().ok().and_then(|recorded| recorded.metrics.get(&Metric::Live).copied());
        if let (Some(traced), Some(recorded)) = (counted(traced), recorded)
            && traced != recorded
        {
            notes.push(format!(
                "{name}: most live bytes are {} as traced and {} as recorded: it does not do the same work in each run",
                count(traced as f64),
                count(recorded as f64)
            ));
        }
    }
    notes
}

/// Requests by size of both, where both were counted.
fn sizes(evidence: &Evidence) -> Vec<SizeFigures> {
    let Some(Counted { base: Ok(base), new: Ok(new), .. }) = &evidence.counted else { return vec![] };
    let mut classes: Vec<SizeClass> = base.sizes.keys().chain(new.sizes.keys()).copied().collect();
    classes.sort_unstable();
    classes.dedup();
    let row = |class: SizeClass| {
        let of = |counts: &counted::Counts| counts.sizes.get(&class).copied().unwrap_or_default();
        let (base, new) = (of(base), of(new));
        SizeFigures {
            up_to: class.up_to(),
            base_calls: base.calls,
            new_calls: new.calls,
            base_bytes: base.bytes,
            new_bytes: new.bytes,
        }
    };
    classes.into_iter().map(row).collect()
}
