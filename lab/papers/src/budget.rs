//! Which programs and how many repetitions of each step fit into a time, and what that costs in precision.

use std::collections::{BTreeMap, BTreeSet};

use heaptoll_statistics::FEWEST_PAIRS;
use heaptoll_statistics::student::reach;
use heaptoll_units::took;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::definition::{Step, StepKind, Study};
use super::needs::Needs;
use super::variant::base;

/// A step as it is to be run.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Planned {
    /// Study and step.
    pub study: String,
    /// Step's id.
    pub step: String,
    /// Programs, the first of the step's list.
    pub programs: usize,
    /// Of this many.
    pub of_programs: usize,
    /// Managers, the first of the step's list.
    pub managers: usize,
    /// Of this many.
    pub of_managers: usize,
    /// Repetitions.
    pub repetitions: u32,
    /// Of this many.
    pub of_repetitions: u32,
    /// Size of the inputs.
    pub size: String,
    /// Guess, seconds.
    pub seconds: f64,
    /// It is interrupted after this many seconds, and what it has is kept.
    pub deadline_s: f64,
}

/// How much of the studies is requested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// The shortest form: one program, one or two managers, smallest inputs, two repetitions.
    Quick,
    /// What fits into this many seconds.
    Seconds(f64),
    /// All of it.
    Whole,
}

/// A step that there is no time for.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// Study.
    pub study: String,
    /// Step's id.
    pub step: String,
    /// Why, with its guess and the time there is.
    pub why: String,
}

/// What is to be run, in this order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Steps that are run.
    pub planned: Vec<Planned>,
    /// Steps that are not.
    pub left_out: Vec<LeftOut>,
}

/// Guess of the seconds that all of a step takes.
pub fn whole_s(step: &Step) -> f64 {
    Form::whole(step).guess(step)
}

/// Whether a program has a size of input.
pub type HasSize<'a> = &'a dyn Fn(&str, &str) -> bool;

/// How much slower than the guesses this machine is, by kind of step: sums of raw guesses and of seconds taken.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Speed(BTreeMap<StepKind, (f64, f64)>);

impl Speed {
    /// Learns from a step that was run to its end as planned in `took_s` seconds.
    pub fn learn(&mut self, step: &Step, planned: &Planned, took_s: f64) {
        let form = Form {
            programs: planned.programs,
            managers: planned.managers,
            repetitions: planned.repetitions,
            size: planned.size.clone(),
        };
        let sum = self.0.entry(step.kind).or_default();
        *sum = (sum.0 + form.guess(step), sum.1 + took_s);
    }

    /// Seconds taken over seconds guessed. Of a kind of which nothing is known yet, that of all others, but not much
    /// below the guess: a machine is idle or busy for all alike, and a step that is planned too long is cut.
    pub fn factor(&self, kind: StepKind) -> f64 {
        let of = |(guessed, took): (f64, f64)| (guessed > 0.0).then(|| (took / guessed).clamp(0.1, 20.0));
        let all = || self.0.values().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let known = self.0.get(&kind).copied().and_then(of);
        known.or_else(|| of(all()).map(|factor| factor.max(UNKNOWN))).unwrap_or(1.0)
    }
}

/// How far below its guess a kind of step is planned as long as none of it was run.
const UNKNOWN: f64 = 0.6;
/// Share of the time that is planned; the rest is for guesses that were too low.
const PLANNED: f64 = 0.9;
/// Repetitions of a timed step in the shortest form.
const QUICK_REPETITIONS: u32 = 2;
/// Managers in the shortest form, at most.
const QUICK_MANAGERS: usize = 2;
/// Forms of one program in it, where the step compares these.
const QUICK_FORMS: usize = 4;
/// Longer than any step takes, s: a day.
const NO_DEADLINE_S: f64 = 86_400.0;

/// A step's size.
#[derive(Debug, Clone, PartialEq)]
struct Form {
    programs: usize,
    managers: usize,
    repetitions: u32,
    size: String,
}

impl Form {
    /// All of the step.
    fn whole(step: &Step) -> Form {
        Form {
            programs: step.programs.len(),
            managers: step.managers.len(),
            repetitions: step.repetitions(),
            size: step.size.clone(),
        }
    }

    /// The least that decides what is claimed of it: all that its claims need, in enough repetitions.
    fn least(study: &Study, step: &Step) -> Form {
        let whole = Form { repetitions: step.least_repetitions(), ..Form::whole(step) };
        match Needs::of(study, step) {
            None => Form { programs: next_program(step, 0), ..whole },
            Some(needs) => Form {
                programs: Needs::first_of(&step.programs, &needs.programs).max(1),
                managers: Needs::first_of(&step.managers, &needs.managers),
                ..whole
            },
        }
    }

    /// The shortest.
    fn quick(step: &Step, has_size: HasSize<'_>) -> Form {
        let whole = Form::whole(step);
        // Nothing is decided: one program shows that the step runs, and in its forms what it compares.
        let programs = if is_of_one(step) { whole.programs.min(QUICK_FORMS) } else { next_program(step, 0) };
        let all_have =
            |size: &str| step.programs[..programs].iter().all(|program| has_size(step.run_as(program), size));
        // Where a step needs larger inputs than `quick`, tiny ones show nothing.
        let is_small = step.size == "tiny" || step.size == "quick" && all_have("tiny");
        let size = if is_small { "tiny" } else { "quick" };
        Form {
            programs,
            managers: whole.managers.min(QUICK_MANAGERS),
            repetitions: whole.repetitions.min(QUICK_REPETITIONS),
            size: size.into(),
        }
    }

    /// What takes its time: `10 repetitions need`.
    fn words(&self) -> String {
        match (self.repetitions, self.programs) {
            (1, 1) => "1 program needs".into(),
            (1, programs) => format!("{programs} programs need"),
            (repetitions, _) => format!("{repetitions} repetitions need"),
        }
    }

    /// Estimate of the seconds that a step takes in this form.
    fn guess(&self, step: &Step) -> f64 {
        let run_s = match self.size.as_str() {
            "tiny" => 0.02,
            "quick" => 0.15,
            "demo" => 0.5,
            _ => 2.0,
        } * step.heaviness;
        let programs = self.programs as f64;
        let managers = self.managers.max(1) as f64;
        let listed =
            |option: &str, otherwise: usize| listed(&step.options, option).unwrap_or(otherwise) as f64;
        // Preflight proves each program with each stack first.
        let (stacks, cell_s) = match step.kind {
            StepKind::Run => {
                let rounds = if step.runs_in_lockstep(self.repetitions) { 1.0 + BLOCK } else { 1.0 };
                // Every manager but the first may be a collector, and runs in each heap, too.
                let is_at_heaps = step.options.iter().any(|word| word.starts_with("--heaps"));
                let heaps = if is_at_heaps { listed("--heaps", 5) } else { 0.0 };
                let stacks = managers + (managers - 1.0) * heaps;
                let searched =
                    if is_at_heaps { (managers - 1.0) * (HEAPS_TRIED + 6.0) / stacks } else { 0.0 };
                (stacks, (rounds * f64::from(self.repetitions) + 1.0 + COLLECTED * searched) * run_s)
            }
            StepKind::Instructions => (managers, 12.0 * run_s + 1.0),
            StepKind::Locality => (managers, 150.0 * run_s + 1.0),
            StepKind::Lifetimes | StepKind::Ledger => (managers, 6.0 * run_s + 1.0),
            // One byte is always among the sizes; each manager also runs without the layer.
            StepKind::Delay => {
                (managers * (listed("--sizes", 9) + 2.0), f64::from(self.repetitions + 1) * run_s)
            }
            // Each program is recorded under the tracer and proved first; each manager also runs without the layer.
            StepKind::Reclamation => {
                let stacks = managers * (listed("--points", 7) + 2.0);
                let recorded = RECORDED * run_s + 2.0;
                return programs * (recorded + stacks * (0.3 + f64::from(self.repetitions + 1) * run_s));
            }
            StepKind::Graph => {
                let replays = listed("--heap", 3) * f64::from(self.repetitions) + HEAPS_TRIED;
                return programs * (40.0 * run_s + 2.0 + managers * replays * (COLLECTED * run_s + 0.1));
            }
            StepKind::Frequency => {
                let stacks = listed("--every", 3) + listed("--reclaim", 3) - 1.0;
                // A collector that collects often takes longer than the program does.
                (managers * stacks, COLLECTED * f64::from(self.repetitions + 1) * run_s)
            }
            StepKind::Proximity => {
                (managers * listed("--collections", 3), f64::from(self.repetitions) * run_s)
            }
            StepKind::Minheap => {
                let baselines =
                    given(&step.options, &["-b", "--baseline"]).max(1) as f64 * listed("--every", 3);
                let repeats = ["-n", "--repeats"].into_iter().find_map(|name| value(&step.options, name));
                let repeats = repeats.and_then(|n| n.parse().ok()).unwrap_or(3.0);
                let searched = managers * (HEAPS_TRIED + 2.0 * repeats) + baselines * repeats;
                return programs * (0.3 * (managers + baselines) + COLLECTED * searched * run_s);
            }
        };
        programs * stacks * (0.3 + cell_s)
    }
}

/// How much longer a block in lockstep takes than its runs one after the other: as long as its slowest stack, times
/// their number. The runs alone come on top.
const BLOCK: f64 = 1.7;
/// How much longer runs take under collections by the period.
const COLLECTED: f64 = 2.0;
/// How many runs of a program its recording of last uses takes as long as, with the runs that prove it.
const RECORDED: f64 = 120.0;
/// Heaps that a search for the smallest one tries.
const HEAPS_TRIED: f64 = 12.0;

/// Whether a step compares forms of one program, which are then counted one by one.
fn is_of_one(step: &Step) -> bool {
    step.programs.windows(2).all(|pair| base(&pair[0]) == base(&pair[1]))
}

/// How many entries there are with one program more, in all its forms: these, which the file lists next to each other,
/// are one program, and a mean over them estimates nothing.
fn next_program(step: &Step, entries: usize) -> usize {
    let rest = &step.programs[entries.min(step.programs.len())..];
    let Some(first) = rest.first() else { return entries };
    let forms = rest.iter().take_while(|name| base(name) == base(first)).count();
    entries + if is_of_one(step) { 1 } else { forms }
}

/// The value of an option, as `--sizes 1B,2M` or `--sizes=1B,2M`.
fn value<'a>(options: &'a [String], name: &str) -> Option<&'a str> {
    let apart = options.iter().position(|option| option == name).and_then(|at| options.get(at + 1));
    let joined = || options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    apart.map(String::as_str).or_else(joined)
}

/// How many values an option lists.
fn listed(options: &[String], name: &str) -> Option<usize> {
    value(options, name).map(|values| values.split(',').count())
}

/// How often an option is given.
fn given(options: &[String], names: &[&str]) -> usize {
    let is =
        |option: &&String| names.iter().any(|name| option == name || option.starts_with(&format!("{name}=")));
    options.iter().filter(is).count()
}

/// A step with what it is to become.
struct Candidate<'a> {
    study: &'a Study,
    step: &'a Step,
    form: Form,
    seconds: f64,
}

impl Candidate<'_> {
    fn planned(&self, deadline_s: f64) -> Planned {
        let whole = Form::whole(self.step);
        Planned {
            study: self.study.name.clone(),
            step: self.step.id.clone(),
            programs: self.form.programs,
            of_programs: whole.programs,
            managers: self.form.managers,
            of_managers: whole.managers,
            repetitions: self.form.repetitions,
            of_repetitions: whole.repetitions,
            size: self.form.size.clone(),
            seconds: self.seconds,
            deadline_s,
        }
    }
}

/// The steps of the studies, without those in `done` (by id), in the form requested. To plan the rest again, call it
/// with what is done and the seconds left. Programs that are not installed must have been taken out of the steps
/// before; a step without programs is left out.
pub fn plan(
    studies: &[Study],
    length: Length,
    has_size: HasSize<'_>,
    speed: &Speed,
    done: &BTreeSet<String>,
) -> Plan {
    let mut left_out = Vec::new();
    let mut candidates = Vec::new();
    for study in studies {
        for step in study.steps.iter().filter(|step| !done.contains(&step.id)) {
            if step.programs.is_empty() {
                let why = "none of its programs is installed".to_owned();
                left_out.push(LeftOut { study: study.name.clone(), step: step.id.clone(), why });
                continue;
            }
            let form = match length {
                Length::Quick => Form::quick(step, has_size),
                Length::Seconds(_) => Form::least(study, step),
                Length::Whole => Form::whole(step),
            };
            let seconds = form.guess(step) * speed.factor(step.kind);
            candidates.push(Candidate { study, step, form, seconds });
        }
    }
    let Length::Seconds(seconds) = length else {
        let deadline = |candidate: &Candidate<'_>| match length {
            // Only a guard: a busy machine takes several times as long.
            Length::Quick => (10.0 * candidate.seconds).max(300.0),
            _ => NO_DEADLINE_S,
        };
        let planned = candidates.iter().map(|one| one.planned(deadline(one))).collect();
        return Plan { planned, left_out };
    };
    let available_s = PLANNED * seconds.max(0.0);
    let kept = leave_out(candidates, available_s, &mut left_out);
    let mut kept = grow(kept, available_s, speed);
    kept.sort_by_key(|candidate| candidate.step.priority);
    // A step may take some of the others' time: they are planned again after it. It may not take all of the time.
    let deadline = |candidate: &Candidate<'_>| (2.0 * candidate.seconds + 20.0).min(seconds).max(1.0);
    Plan { planned: kept.iter().map(|one| one.planned(deadline(one))).collect(), left_out }
}

/// Without what does not fit at its least: of the steps that matter least, the longest first. What was left out and
/// fits after all, because something longer had to go as well, is taken back.
fn leave_out<'a>(
    candidates: Vec<Candidate<'a>>,
    available_s: f64,
    left_out: &mut Vec<LeftOut>,
) -> Vec<Candidate<'a>> {
    // What matters most first, and of that the shortest: taking while it fits is leaving out from the other end.
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&candidates[*a], &candidates[*b]);
        a.step.priority.cmp(&b.step.priority).then(a.seconds.total_cmp(&b.seconds))
    });
    let mut taken = BTreeSet::new();
    let mut spent = 0.0;
    for at in order {
        if spent + candidates[at].seconds <= available_s {
            spent += candidates[at].seconds;
            taken.insert(at);
        }
    }
    let (kept, gone): (Vec<_>, Vec<_>) =
        candidates.into_iter().enumerate().partition(|(at, _)| taken.contains(at));
    left_out.extend(gone.into_iter().map(|(_, gone)| {
        let why = format!("no time in the budget: {} {}", gone.form.words(), took(gone.seconds));
        LeftOut { study: gone.study.name.clone(), step: gone.step.id.clone(), why }
    }));
    kept.into_iter().map(|(_, candidate)| candidate).collect()
}

/// A form of a step with more in it, up to the whole.
type Larger = fn(&Form, &Form, &Step) -> Option<Form>;

/// Steps take more programs in turn, what matters most first, then more managers and repetitions, while it fits.
fn grow<'a>(mut candidates: Vec<Candidate<'a>>, available_s: f64, speed: &Speed) -> Vec<Candidate<'a>> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|at| candidates[*at].step.priority);
    let mut spent: f64 = candidates.iter().map(|candidate| candidate.seconds).sum();
    let larger: [Larger; 3] = [
        |form, whole, step| {
            let programs = next_program(step, form.programs);
            (programs > form.programs && programs <= whole.programs)
                .then(|| Form { programs, ..form.clone() })
        },
        |form, whole, _| {
            let managers = form.managers + 1;
            (managers <= whole.managers).then(|| Form { managers, ..form.clone() })
        },
        |form, whole, _| {
            let repetitions = form.repetitions + 1;
            (repetitions <= whole.repetitions).then(|| Form { repetitions, ..form.clone() })
        },
    ];
    for larger in larger {
        loop {
            let mut grown = false;
            for at in &order {
                let candidate = &mut candidates[*at];
                let Some(form) = larger(&candidate.form, &Form::whole(candidate.step), candidate.step) else {
                    continue;
                };
                let seconds = form.guess(candidate.step) * speed.factor(candidate.step.kind);
                if spent - candidate.seconds + seconds <= available_s {
                    spent += seconds - candidate.seconds;
                    (candidate.form, candidate.seconds, grown) = (form, seconds, true);
                }
            }
            if !grown {
                break;
            }
        }
    }
    candidates
}

/// What the form of a step costs in precision, in words; empty when it is whole.
pub fn precision(planned: &Planned, step: &Step) -> String {
    let width = |n: usize| reach(n - 1, 1) / (n as f64).sqrt();
    let mut words = Vec::new();
    if planned.repetitions < planned.of_repetitions {
        let (has, of) = (planned.repetitions, planned.of_repetitions);
        words.push(if (has as usize) < FEWEST_PAIRS {
            format!(
                "{has} of {of} repetitions: no intervals (they need {FEWEST_PAIRS}), so nothing timed is \
                 decided"
            )
        } else {
            let wider = width(has as usize) / width(of as usize);
            format!("{has} of {of} repetitions: their intervals are {wider:.1} times as wide")
        });
    }
    if planned.programs < planned.of_programs {
        let (has, of) = (planned.programs, planned.of_programs);
        words.push(format!("{has} of {of} programs: no claim that needs the others is decided"));
    }
    if planned.managers < planned.of_managers {
        words.push(format!("{} of {} managers", planned.managers, planned.of_managers));
    }
    if planned.size != step.size {
        words.push(format!("inputs of size {}, not {}", planned.size, step.size));
    }
    words.join("; ")
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
