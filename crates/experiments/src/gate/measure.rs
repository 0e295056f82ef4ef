//! The gate of one program: watched runs, one repetition, counts and recordings, then paired runs until it is decided.

use std::sync::Arc;
use std::time::Duration;

use heaptoll_allocator_symbols::Table;
use heaptoll_experiment::experiment::StackInfo;
use heaptoll_experiment::runner::Ending;
use heaptoll_experiment::store::Store;
use heaptoll_instruction_counts::SizeClass;
use heaptoll_reftrace_host::Tracer;
use heaptoll_scratch::Scratch;
use heaptoll_units::count;

use super::causes;
use super::counted::{self, Counted};
use super::evidence::Evidence;
use super::figures::{MetricFigures, MetricVerdict, Outputs, Program, SizeFigures, Verdict};
use super::followed;
use super::functions::Of;
use super::judge::{self, Counts, Effort};
use super::metric::Metric;
use super::notes;
use super::prepare::{BASE, Begun, NEW, Prepared, Sides, prepare};
use super::recorded::{self, Recorded};
use super::request::{Entry, Request};
use super::side::BuiltSide;
use super::timed::Timed;
use super::tree_error::TreeError;
use crate::context::Context;
use crate::failure::Failure;

/// A program whose processes hold less than this together, in memory that is no file's, has no heap to speak of.
const NO_HEAP_BYTES: u64 = 1 << 20;

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
    /// The allocators that are followed in it.
    pub table: &'a Arc<Table>,
    /// The request that it is a part of.
    pub request: &'a Request,
    /// The surroundings.
    pub context: &'a Context<'a>,
}

/// A program that was gated.
pub struct Gated {
    /// Its figures and its verdict.
    pub program: Program,
    /// Whether all runs were made.
    pub whole: bool,
    /// What the machine can see of it.
    pub sight: Option<String>,
}

impl Gate<'_> {
    /// Measures it and judges.
    ///
    /// # Errors
    /// See [`super::run`].
    pub fn run(&self) -> Result<Gated, Failure> {
        let sides = Sides { entry: self.entry, base: self.base, new: self.new };
        let begun = match prepare(&sides, self.request.seed, self.request.timeout_s, self.context)? {
            Prepared::Runs(begun) => *begun,
            Prepared::NewFails(how) => {
                return Ok(Gated { program: self.failed(how), whole: true, sight: None });
            }
        };
        let scratch =
            Scratch::make().map_err(TreeError::Scratch).map_err(|error| Failure::Refused(Box::new(error)))?;
        let mut evidence = self.gather(begun, &scratch)?;
        let trouble = evidence.trouble.take();
        let (whole, sight) =
            (!evidence.interrupted, notes::sight(&evidence.timed, self.entry.outputs_differ));
        let mut program = self.judged(evidence);
        match trouble {
            Some(error) if program.verdict != Verdict::Broken => return Err(error.into()),
            Some(error) => program.notes.push(format!("the timed runs were broken off: {error}")),
            None => {}
        }
        Ok(Gated { program, whole, sight })
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
            library: None,
            function_stacks: None,
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
        if let Some((_, _, how)) = timed.failures(BASE) {
            return Err(Failure::Usage(format!("{}: the base build fails: {how}", self.entry.name)));
        }
        self.check_outputs(&timed)?;
        let pair: [&StackInfo; 2] = [&stacks[0], &stacks[1]];
        let managers = [self.base.manager.as_ref(), self.new.manager.as_ref()];
        let runs = recorded::Runs {
            program: &program,
            stacks: pair,
            managers,
            expect_status: self.entry.expect_status,
            limit: Duration::from_secs_f64(self.request.timeout_s),
            folder: scratch.path(),
            // Without traced runs nothing else shows which counts vary by themselves.
            again: self.tracer.is_err(),
        };
        let record = || recorded::record(&runs, self.context);
        let (counted, recordings) = match self.tracer {
            Err(_) => (None, record()),
            Ok(tracer) => {
                let followed = followed::both(&program, pair, tracer, self.table, self.context)?;
                let subject = counted::Subject {
                    program: &program,
                    stacks: pair,
                    expect_status: self.entry.expect_status,
                    timeout_s: self.request.timeout_s,
                    run_s,
                    together_bytes,
                    followed: &followed,
                };
                let (counted, recordings) = counted::count(&subject, tracer, self.context, record);
                (Some(counted), recordings)
            }
        };
        let recordings = recordings.checked(requests(counted.as_ref(), together_bytes));
        let rest = match self.context.interrupt.is_set() {
            true => Ok(Ending::Interrupted),
            false => timed.rest(self.context, |timed| self.is_decided(timed)),
        };
        // A full disk does not take back what was counted.
        let (rest, trouble) = match rest {
            Ok(rest) => (rest, None),
            Err(error) => (Ending::Complete, Some(error)),
        };
        self.check_outputs(&timed)?;
        let interrupted = rest == Ending::Interrupted;
        Ok(Evidence { outputs: timed.outputs(), timed, counted, recordings, interrupted, trouble })
    }

    /// Refuses other output where it is not allowed: both builds then did not do the same work.
    fn check_outputs(&self, timed: &Timed) -> Result<(), Failure> {
        match timed.outputs() {
            Outputs::Differ if !self.entry.outputs_differ => Err(Failure::Usage(self.other_output(timed))),
            _ => Ok(()),
        }
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
            what(BASE),
            what(NEW)
        )
    }

    /// Whether more runs would decide nothing.
    fn is_decided(&self, timed: &Timed) -> bool {
        let open = |one: &MetricFigures| matches!(one.verdict, MetricVerdict::Undecided { .. });
        !self.measured(timed).iter().any(open)
    }

    fn measured(&self, timed: &Timed) -> Vec<MetricFigures> {
        let table = timed.table(self.entry.outputs_differ);
        let effort = Effort { repetitions: timed.experiment.settings.repetitions, each_s: timed.each_s() };
        let metrics = Metric::ALL.into_iter().filter(|metric| !metric.is_counted());
        let missing = "no run ended as it should";
        let pair = |metric| table.as_ref().and_then(|table| timed.pair(metric, table));
        metrics
            .map(|metric| judge::measured(metric, pair(metric), &self.entry.limits, effort, missing))
            .collect()
    }

    fn judged(&self, evidence: Evidence) -> Program {
        let mut metrics = self.counted(&evidence);
        metrics.extend(self.measured(&evidence.timed));
        metrics.sort_by_key(|one| (matches!(one.verdict, MetricVerdict::NotGated { .. }), one.metric));
        let failure = failure(&evidence.timed);
        let mut notes = notes::of(&evidence, self.entry.outputs_differ);
        notes.extend(notes::unseen_memory(&metrics));
        let sites = match causes::sites(&evidence.recordings) {
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
            functions: causes::functions(Of::Itself, evidence.counted.as_ref()),
            library: causes::functions(Of::Library, evidence.counted.as_ref()),
            function_stacks: causes::function_stacks(evidence.counted.as_ref()),
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
                let of =
                    |run: &Result<counted::Counts, String>| run.as_ref().ok()?.metrics.get(&metric).copied();
                Counts { base: of(&counted.base), new: of(&counted.new), again: of(&counted.again) }
            });
            let recorded = |run: &Result<Recorded, String>| run.as_ref().ok()?.metrics.get(&metric).copied();
            let recordings = &evidence.recordings;
            let (base, new) = (recorded(&recordings.base), recorded(&recordings.new));
            let again = recordings.again.as_ref().and_then(recorded);
            let recorded = Some(Counts { base, new, again });
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
            return "there is no tracer here".into();
        };
        match (&counted.base, &counted.new) {
            (Err(why), _) => format!("the base has no traced run: {why}"),
            (_, Err(why)) => format!("the new build has no traced run: {why}"),
            (Ok(counted::Counts { unseen: Some(why), .. }), _) => {
                format!("the base's allocator cannot be followed: {why}")
            }
            (_, Ok(counted::Counts { unseen: Some(why), .. })) => {
                format!("the new build's allocator cannot be followed: {why}")
            }
            _ => "the malloc family is not recognised without symbols: neither build may be stripped".into(),
        }
    }
}

/// How the new build fails where the base does not, or less often.
fn failure(timed: &Timed) -> Option<String> {
    let (failed, of, how) = timed.failures(NEW)?;
    let base = timed.failures(BASE).map_or(0, |(failed, ..)| failed);
    (base == 0 || failed == of).then(|| format!("the new build fails in {failed} of its {of} runs: {how}"))
}

/// The base's calls that a traced run has shown. Where no routine was recognised, and so little memory was there that no
/// heap can be in it, that is none.
fn requests(counted: Option<&Counted>, together_bytes: u64) -> Option<u64> {
    let traced = counted?.base.as_ref().ok()?;
    let shown = traced.metrics.get(&Metric::Allocations).copied();
    shown.or((together_bytes < NO_HEAP_BYTES).then_some(0))
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
