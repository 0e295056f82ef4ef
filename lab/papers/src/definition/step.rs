//! A step of a study: one command of heaptoll, and how much of it a shorter form runs.

use std::collections::BTreeMap;

use heaptoll_compare::comparative::Comparable;
use heaptoll_experiment::experiment::Pairing;
use heaptoll_laboratory::comparative;
use heaptoll_statistics::FEWEST_PAIRS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Repetitions of a published figure: the interval of ten pairs, trimmed by one at either end, is 1.4 of their standard
/// deviations wide either way.
const IN_LOCKSTEP: u32 = 10;
/// The same of runs one after the other, which spread more.
const INTERLEAVED: u32 = 20;

/// One command of heaptoll.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// By which exhibits and claims name it; no two steps of any studies share one, for figures are kept by it.
    pub id: String,
    /// Which command.
    pub kind: StepKind,
    /// Programs of the catalog, what can least be left out first; those of its set go before them.
    #[serde(default)]
    pub programs: Vec<String>,
    /// The paper's own programs, by what stands for them in `programs` (their kin): one that is installed runs in place
    /// of its kin, and its figures are under the kin's name. Several kin of one are run once, under the first name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub originals: BTreeMap<String, String>,
    /// The set (`programs/sets/NAME.toml`) whose programs it runs, which was named before any of them was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Programs of the set that it leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Programs that take the places of those that cannot run, the first one first; the set names them where the file
    /// does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserves: Vec<String>,
    /// Stacks (`docs/questions/stacks.md`).
    #[serde(default)]
    pub managers: Vec<String>,
    /// Size of the inputs: `tiny`, `quick`, `demo`, `full`.
    #[serde(default = "quick")]
    pub size: String,
    /// Repetitions (runs, of `proximity`); 10 in lockstep and 20 interleaved when left out. Not used by exact commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetitions: Option<u32>,
    /// Further arguments of the command.
    #[serde(default)]
    pub options: Vec<String>,
    /// How many times as long as the planner's first guess it takes; 1 when unknown.
    #[serde(default = "unit")]
    pub heaviness: f64,
    /// What is left out last when time is short: 1 is kept longest.
    #[serde(default = "middle")]
    pub priority: u32,
    /// How the runs of `run` are paired. Where the file leaves it out: in lockstep where a claim compares the CPU time
    /// of managers on one program, else interleaved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairing: Option<Pairing>,
    /// Programs of one block in lockstep each. Where the file leaves it out: forms of one program whose CPU time a claim
    /// compares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<Vec<String>>,
}

impl Step {
    /// What runs for a program of the step: the paper's own, or the program itself.
    pub fn run_as<'a>(&'a self, program: &'a str) -> &'a str {
        self.originals.get(program).map_or(program, String::as_str)
    }

    /// Repetitions of the whole step.
    pub fn repetitions(&self) -> u32 {
        let timed = self.repetitions.filter(|_| self.kind.is_timed());
        timed.unwrap_or_else(|| self.least_repetitions())
    }

    /// The fewest that a shorter form makes: below these, intervals are too wide to be published.
    pub fn least_repetitions(&self) -> u32 {
        let is_lockstep = |word: &String| ["lockstep", "--pairing=lockstep"].contains(&word.as_str());
        match self.pairing {
            _ if !self.kind.is_timed() => 1,
            Some(Pairing::Lockstep) => IN_LOCKSTEP,
            _ if self.options.iter().any(is_lockstep) => IN_LOCKSTEP,
            _ => INTERLEAVED,
        }
        .min(self.repetitions.unwrap_or(u32::MAX))
    }

    /// Makes a timed step repeat so often, where that is enough for a published figure.
    pub fn repeat(&mut self, repetitions: u32) {
        if self.kind.is_timed() {
            self.repetitions = Some(repetitions.max(self.least_repetitions()));
        }
    }

    /// Whether its runs are in lockstep, in this number of repetitions: from fewer than can claim something nothing is
    /// compared, and a block takes longer than the same runs one after the other.
    pub fn runs_in_lockstep(&self, repetitions: u32) -> bool {
        let interval = repetitions as usize >= FEWEST_PAIRS;
        self.kind == StepKind::Run && self.pairing == Some(Pairing::Lockstep) && interval
    }
}

/// The commands that steps are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// `heaptoll run`: timed repetitions; the first manager is the baseline.
    Run,
    /// `heaptoll exact instructions`.
    Instructions,
    /// `heaptoll exact locality`.
    Locality,
    /// `heaptoll record`, then `lifetimes` of the trace.
    Lifetimes,
    /// `heaptoll record --ledger`, then `ledger` of the trace.
    Ledger,
    /// `heaptoll lab delay`.
    Delay,
    /// `heaptoll lab frequency`.
    Frequency,
    /// `heaptoll lab proximity`.
    Proximity,
    /// `heaptoll lab minheap`.
    Minheap,
    /// `heaptoll lab reclamation`.
    Reclamation,
    /// `heaptoll record --graph`, then `lab replay-graph` of the trace under the collectors that are the step's managers; ratios
    /// are to the first.
    Graph,
}

impl StepKind {
    /// Whether it records programs, and then analyses the traces.
    pub const fn records(self) -> bool {
        matches!(self, StepKind::Lifetimes | StepKind::Ledger | StepKind::Graph)
    }

    /// Whether repetitions make its figures more precise.
    pub const fn is_timed(self) -> bool {
        matches!(
            self,
            StepKind::Run
                | StepKind::Delay
                | StepKind::Frequency
                | StepKind::Proximity
                | StepKind::Reclamation
                | StepKind::Graph
        )
    }

    /// Whether its managers are collectors under which a trace is replayed; the program itself runs under none of them.
    pub const fn replays(self) -> bool {
        matches!(self, StepKind::Graph)
    }

    /// The kind of a command; none of one that studies do not run.
    #[cfg(test)]
    pub fn of(command: &Comparable) -> Option<StepKind> {
        let name = command.name.rsplit([' ', '-']).next();
        serde_json::from_value(name.into()).ok()
    }

    /// Its command. Both are in the same order.
    pub fn command(self) -> &'static Comparable {
        &comparative::ALL[self as usize]
    }
}

fn unit() -> f64 {
    1.0
}

fn middle() -> u32 {
    2
}

fn quick() -> String {
    "quick".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_the_command_of_its_name() {
        let all = comparative::ALL.iter();
        let kinds: Vec<usize> = all.map_while(StepKind::of).map(|kind| kind as usize).collect();
        assert_eq!(kinds, (0..=StepKind::Graph as usize).collect::<Vec<_>>());
    }
}
