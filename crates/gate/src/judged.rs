//! What is judged of one program: its limits over what was counted and measured, wherever that was.

use heaptoll_units::count;

use super::counted;
use super::evidence::Evidence;
use super::exact::Exact;
use super::figures::{MetricFigures, MetricVerdict, Outputs, Program, Side};
use super::judge::{self, Counts, Effort, Remedy};
use super::limits::Limits;
use super::measured::Measured;
use super::metric::Metric;
use super::notes;
use super::prepare::{BASE, NEW};
use super::recorded::Recorded;
use heaptoll_command::failure::Failure;

/// A program that is judged.
pub struct Judged<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is compared with.
    pub base: Side,
    /// What is gated.
    pub new: Side,
    /// Its limits.
    pub limits: &'a Limits,
    /// Whether both may write different output.
    pub outputs_differ: bool,
    /// What gives more repetitions where more are needed.
    pub remedy: Remedy,
    /// How both sides are the same in all that may differ, where they are.
    pub unchanged: Option<String>,
}

impl Judged<'_> {
    /// A program whose new build fails.
    pub fn failed(&self, how: String) -> Program {
        let failure = Some(format!("the new build {how}, and the base does not"));
        Program {
            name: self.name.to_owned(),
            base: self.base.clone(),
            new: self.new.clone(),
            verdict: judge::verdict(&[], failure.as_ref()),
            failure,
            ..Program::default()
        }
    }

    /// Refuses other output where it is not allowed: both builds then did not do the same work.
    ///
    /// # Errors
    /// What each wrote.
    pub fn check_outputs(&self, measured: &Measured) -> Result<(), Failure> {
        match measured.outputs() {
            Outputs::Differ if !self.outputs_differ => Err(Failure::Usage(self.other_output(measured))),
            _ => Ok(()),
        }
    }

    fn other_output(&self, measured: &Measured) -> String {
        let what = |stack: &str| {
            let mut rows = measured.experiment.observations.iter().filter(|row| row.stack == stack);
            let row = rows.find(|row| row.phase.is_measured());
            row.map_or_else(String::new, |row| {
                let digest = row.output_digest.get(..12).unwrap_or_default();
                format!("{} bytes, SHA-256 {digest}...", count(row.output_bytes as f64))
            })
        };
        format!(
            "{}: the two builds write different output (base: {}; new: {}), so they did different work; with \
             --outputs-differ they are compared anyway",
            self.name,
            what(BASE),
            what(NEW)
        )
    }

    /// Whether more runs would decide nothing.
    pub fn is_decided(&self, measured: &Measured) -> bool {
        let open = |one: &MetricFigures| matches!(one.verdict, MetricVerdict::Undecided { .. });
        !self.measured(measured).iter().any(open)
    }

    fn measured(&self, measured: &Measured) -> Vec<MetricFigures> {
        let table = measured.table(self.outputs_differ);
        let repetitions = measured.experiment.settings.repetitions;
        let effort = Effort { repetitions, each_s: measured.each_s(), remedy: self.remedy };
        let metrics = Metric::ALL.into_iter().filter(|metric| !metric.is_counted());
        let missing = "no run ended as it should";
        let pair = |metric| table.as_ref().and_then(|table| measured.pair(metric, table));
        let judge = |metric| judge::measured(metric, pair(metric), self.limits, effort, missing);
        let mut judged: Vec<MetricFigures> = metrics.map(judge).collect();
        let times = judged.iter_mut().filter(|one| one.limit.is_some() && self.unchanged.is_some());
        times.for_each(|one| one.verdict = MetricVerdict::Within);
        judged
    }

    /// The figures and the verdict.
    pub fn judged(&self, evidence: Evidence) -> Program {
        let mut metrics = self.counted(&evidence);
        let is_open = |one: &&mut MetricFigures| matches!(one.verdict, MetricVerdict::Undecided { .. });
        let open = metrics.iter_mut().filter(|one| self.unchanged.is_some() && is_open(one));
        open.for_each(|one| one.verdict = MetricVerdict::Within);
        metrics.extend(self.measured(&evidence.measured));
        metrics.sort_by_key(|one| (matches!(one.verdict, MetricVerdict::NotGated { .. }), one.metric));
        let failure = failure(&evidence.measured);
        let mut notes = notes::of(&evidence, self.outputs_differ);
        notes.extend(notes::unseen_memory(&metrics));
        let Exact { sizes, functions, library, function_stacks, sites, .. } = evidence.exact;
        let sites = match sites {
            Some(Err(why)) => {
                notes.push(format!("call sites are not compared: {why}"));
                None
            }
            found => found.and_then(Result::ok),
        };
        Program {
            name: self.name.to_owned(),
            base: self.base.clone(),
            new: self.new.clone(),
            sizes,
            outputs: evidence.outputs,
            unchanged: self.unchanged.clone(),
            verdict: judge::verdict(&metrics, failure.as_ref()),
            failure,
            functions,
            library,
            function_stacks,
            sites,
            notes,
            metrics,
        }
    }

    fn counted(&self, evidence: &Evidence) -> Vec<MetricFigures> {
        let missing = self.missing(evidence);
        let all = Metric::ALL.into_iter().filter(|metric| metric.is_counted());
        all.map(|metric| {
            let traced = evidence.exact.counted.as_ref().map(|counted| {
                let of =
                    |run: &Result<counted::Counts, String>| run.as_ref().ok()?.metrics.get(&metric).copied();
                Counts { base: of(&counted.base), new: of(&counted.new), again: of(&counted.again) }
            });
            let recorded = |run: &Result<Recorded, String>| run.as_ref().ok()?.metrics.get(&metric).copied();
            let recordings = &evidence.exact.recordings;
            let (base, new) = (recorded(&recordings.base), recorded(&recordings.new));
            let again = recordings.again.as_ref().and_then(recorded);
            let recorded = Some(Counts { base, new, again });
            let whole = |counts: &Counts| counts.base.is_some() && counts.new.is_some();
            // Requests are counted by recordings, too.
            let counts = traced.filter(whole).or(recorded.filter(whole)).unwrap_or_default();
            judge::counted(metric, counts, self.limits, &missing)
        })
        .collect()
    }

    /// Why there are no counts, where there are none.
    fn missing(&self, evidence: &Evidence) -> String {
        let Some(counted) = &evidence.exact.counted else {
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
            _ => "the malloc family is not recognised without symbols: do not strip the builds".into(),
        }
    }
}

/// How the new build fails where the base does not, or less often.
fn failure(measured: &Measured) -> Option<String> {
    let (failed, of, how) = measured.failures(NEW)?;
    let base = measured.failures(BASE).map_or(0, |(failed, ..)| failed);
    (base == 0 || failed == of).then(|| format!("the new build fails in {failed} of its {of} runs: {how}"))
}
