//! Everything one experiment file holds besides its rows: what was compared, how, and on which machine.

use std::collections::BTreeMap;
use std::time::Duration;

use heaptoll_statistics::{ALPHA, Interval};
use heaptoll_units::each_once;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::heap_limit::HeapLimit;
use crate::named::Named;
use crate::observation::{MemoryTrack, Observation, Phase};
use crate::varied::Varied;

/// Family-wise level of an experiment that decides itself when it has enough ([`crate::precision`]).
pub const STOPPED_ALPHA: f64 = 0.04;
/// Timed repetitions where no number is given, as in Sareen and Blackburn 2022, §7.1.
pub const REPETITIONS: u32 = 10;

/// The machine an experiment ran on; stored because no figure means anything without it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// CPU model name.
    pub cpu: String,
    /// Logical processors this process may use.
    pub cores: u32,
    /// Physical memory, KiB.
    pub memory_kib: u64,
    /// Kernel release.
    pub kernel: String,
    /// Distribution name and version.
    pub distribution: String,
    /// glibc version.
    pub libc: String,
    /// Transparent huge pages: the system's setting (`always`, `madvise`, `never`, or `unknown`).
    pub thp: String,
    /// CPU frequency governor, or `unknown`.
    pub governor: String,
    /// Address-space randomisation as the kernel has it (`0`, `1`, `2`).
    pub aslr: String,
    /// Load averages (1, 5, 15 minutes) when the experiment began.
    pub load: [f64; 3],
    /// Why there are no hardware counters, in words; `None` where the kernel gave them.
    pub no_hardware_counters: Option<String>,
}

/// One program of the experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramInfo {
    /// Name used in rows.
    pub name: String,
    /// One line: what it is.
    pub about: String,
    /// The command as run, each argument.
    pub command: Vec<String>,
    /// Environment pinned for it.
    pub environment: Vec<(String, String)>,
    /// Standard input file, if any.
    pub stdin: Option<String>,
    /// Expected SHA-256 of the output, if the catalog has one.
    pub expected_digest: Option<String>,
    /// Regular expression with named groups; each match in what it writes to standard error is one of its own figures.
    #[serde(default)]
    pub figures: Option<String>,
    /// Regular expression for what of its standard output differs from run to run, which is left out of the digest; its
    /// named groups are figures of its own too. The output has 16 KiB at most.
    #[serde(default)]
    pub varies: Option<String>,
    /// For servers: the load command, the ready pattern.
    pub serve: Option<ServeInfo>,
    /// Whether `{tmp}` in its words stands for a scratch folder: in the catalog's and in a server's, not in a user's own
    /// command. Experiments from before it was stored fill every command.
    #[serde(default = "filled")]
    pub scratch: bool,
    /// The words of `command` that are not UTF-8.
    #[serde(default)]
    pub raw_words: Vec<RawWord>,
    /// The allocator that it uses without heaptoll, where that is not glibc.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked: Option<String>,
    /// The block of forms of one program that are compared: in lockstep all their stacks run at once. `None` if it has
    /// a block of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
}

const fn filled() -> bool {
    true
}

/// A word of a command that is not UTF-8; the command itself holds it as it can be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RawWord {
    /// Which word of the command, from 0.
    pub at: usize,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// How a server is driven.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServeInfo {
    /// The load command.
    pub load: Vec<String>,
    /// Regular expression that the server's output must match before the load starts.
    pub ready: String,
    /// Regular expression with named groups; each match over the load's report becomes a figure.
    pub figures: Option<String>,
    /// Signal that stops the server cleanly, without `SIG`.
    pub stop: String,
    /// A second load, of which the server's memory is to come back; none where the load is the last.
    #[serde(default)]
    pub burst: Option<Vec<String>>,
    /// Times after the last load at which the idle server's memory is read, seconds, rising; empty where it is stopped at
    /// once.
    #[serde(default)]
    pub idle_s: Vec<f64>,
}

/// What the preflight proved of one stack on one program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackInfo {
    /// Program it was proved on.
    pub program: String,
    /// Name used in rows.
    pub name: String,
    /// Shared objects preloaded, in order; empty for plain glibc.
    pub preload: Vec<String>,
    /// Extra environment.
    pub environment: Vec<(String, String)>,
    /// Version, as far as known.
    pub version: String,
    /// Where it comes from: a crate and its version, a Debian package and its version, or a path.
    pub origin: String,
    /// The proof, in one sentence, e.g. `malloc bound to /…/mimalloc3.so in 1 process, 84210 calls seen`.
    pub proof: String,
    /// Warnings for the reader, e.g. a child process that the manager does not reach.
    pub warnings: Vec<String>,
    /// Whether the manager keeps the statistics page of `include/heaptoll.h`.
    #[serde(default, rename = "tells")]
    pub reports_statistics: bool,
    /// Why this stack does not run in lockstep with the others of its program, where they do.
    #[serde(default)]
    pub apart: Option<String>,
    /// Whether the program makes files of its own, which a run that is ended early would leave.
    #[serde(default)]
    pub makes_files: bool,
    /// Whether the program ended in the proof run and had freed fewer than one block in 100.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_frees: bool,
    /// Repetitions after which a search let it go, so that it has no more; `None` where it has all.
    #[serde(default)]
    pub dropped_after: Option<u32>,
    /// Which of its program's blocks it runs in: in lockstep only stacks of one block run at once.
    #[serde(default)]
    pub block: u32,
    /// The heap that is fixed for it, where one is.
    #[serde(default)]
    pub heap: Option<HeapLimit>,
    /// Its setting that the experiment varies; left out where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub varied: Option<Varied>,
    /// What it runs in the place of its program's command: another build of it. `None` where stacks differ in their
    /// managers only.
    #[serde(default)]
    pub own_command: Option<OwnCommand>,
}

/// A command of one stack: the other build of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnCommand {
    /// The command as run, each argument.
    pub command: Vec<String>,
    /// Its words that are not UTF-8.
    #[serde(default)]
    pub raw_words: Vec<RawWord>,
    /// Folder that it runs in; heaptoll's own without one.
    #[serde(default)]
    pub directory: Option<String>,
}

/// How the runs of one repetition share the machine's noise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pairing {
    /// One after the other, in random order: noise affects them alike on average.
    #[default]
    Interleaved,
    /// All at once on one processor, which the scheduler slices between them: noise affects them alike at each instant.
    Lockstep,
}

/// How the stacks of a program take turns in lockstep, where not all of them may run at once.
///
/// A round is as many repetitions as there are turns: in each the baseline runs at once with a part of the other stacks,
/// so that after the round each of them has run with the baseline once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Turns {
    /// Repetitions of a round.
    pub count: u32,
    /// Stacks that run at once, at most, the baseline among them.
    pub at_once: u32,
    /// Why not all of them.
    pub why: String,
}

/// Which cells of an experiment are a shard's: all stacks of one program in some of its repetitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// The program.
    pub program: String,
    /// The class of machines that it is measured on.
    pub class: String,
    /// Its first repetition; round, where the program's stacks take turns.
    pub first: u32,
    /// How many repetitions; rounds, where the program's stacks take turns.
    pub repetitions: u32,
    /// The first repetition of its class.
    pub class_first: u32,
    /// Number of its first warm-up; each shard has warm-ups of its own.
    pub first_warmup: u32,
    /// Whether it is the exact counts and the recordings of a gate's program, which are no cells.
    #[serde(default, skip_serializing_if = "is_false")]
    pub counts: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A shard that was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shard {
    /// Digest of its plan: SHA-256, hexadecimal.
    pub plan: String,
    /// Its number in the plan, from 0.
    pub number: u32,
    /// How many shards the plan has.
    pub of: u32,
    /// Its cells.
    pub part: Part,
    /// Name of the node that measured it.
    pub node: String,
    /// The node.
    pub machine: Machine,
    /// Own cost of an invocation there above fork and exec of the bare command: (seconds, KiB), where measured.
    pub own_cost: Option<(f64, i64)>,
}

/// How an experiment is made: what options of the command line set, what the runner reads, and what is stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Protocol {
    /// Timed repetitions requested; rounds, of programs whose stacks take turns.
    pub repetitions: u32,
    /// Warm-up repetitions.
    pub warmup: u32,
    /// Seed of every random choice.
    pub seed: u64,
    /// Time limit of one invocation, seconds.
    pub timeout_s: f64,
    /// Transparent huge pages: `always`, `madvise`, `never`, or empty for the system's own.
    pub thp: String,
    /// Exit status that counts as success.
    #[serde(default)]
    pub expect_status: i32,
    /// Folder it was begun in, where names in the command are looked up; empty when unknown.
    #[serde(default)]
    pub directory: String,
    /// Half-width of its CPU intervals, as a share, at which a program has enough repetitions; `None` where the number
    /// of repetitions was given.
    #[serde(default)]
    pub precision: Option<f64>,
    /// Seconds of measuring after which the experiment ends however wide its intervals are.
    #[serde(default)]
    pub budget_s: Option<f64>,
    /// Programs that had enough, and after how many repetitions.
    #[serde(default)]
    pub enough: BTreeMap<String, u32>,
    /// Programs whose stacks take turns in lockstep.
    #[serde(default)]
    pub turns: BTreeMap<String, Turns>,
    /// How runs are paired; interleaved in files from before there was another way.
    #[serde(default)]
    pub pairing: Pairing,
    /// Whether each run has a copy of the folder, and runs there.
    #[serde(default)]
    pub working_copy: bool,
    /// Time slice of programs in lockstep, seconds; `None` for the kernel's own.
    #[serde(default)]
    pub slice_s: Option<f64>,
    /// Memory that runs in lockstep may take together, bytes; `None` for half of what is available. It decides how
    /// stacks take turns, which is stored.
    #[serde(skip)]
    pub at_once_bytes: Option<u64>,
    /// Whether each program also runs once under each stack and the tracer, for exact counts.
    #[serde(default)]
    pub exact: bool,
    /// Family-wise level of its intervals where it is analysed several times for one decision, which share the level of
    /// all; `None` for the usual one.
    #[serde(default)]
    pub level: Option<f64>,
    /// What the user named one by one; `None` where each manager and program counts as named: in studies, and in files
    /// from before it was stored.
    #[serde(default)]
    pub named: Option<Named>,
    /// The shards that were measured, where the experiment was cut into shards (`heaptoll lab shards plan`); none where it was
    /// measured in one place.
    #[serde(default)]
    pub shards: Vec<Shard>,
    /// The heaptoll command that repeats the experiment, each argument; empty where none began it.
    pub repeat_command: Vec<String>,
}

impl Protocol {
    /// Time limit of one invocation.
    pub fn timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.timeout_s).unwrap_or(Duration::MAX)
    }
}

/// A whole experiment, as read back from its file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    /// Version of heaptoll that wrote it.
    pub heaptoll_version: String,
    /// Unix time of its beginning, seconds.
    pub created_unix_s: f64,
    /// How it is made.
    pub settings: Protocol,
    /// Where it ran.
    pub machine: Machine,
    /// Name of the baseline stack (the one ratios are taken to).
    pub baseline: String,
    /// Programs in the order requested.
    pub programs: Vec<ProgramInfo>,
    /// Stacks, per program, in the order requested.
    pub stacks: Vec<StackInfo>,
    /// Stacks that were requested and left out, with the reason: (program, stack, reason).
    pub refused: Vec<(String, String, String)>,
    /// What the reader of exact counts must know, reasons why there are none among them: (program, stack, sentence);
    /// of all its stacks where that is empty.
    #[serde(default)]
    pub exact_notes: Vec<(String, String, String)>,
    /// Every row.
    pub observations: Vec<Observation>,
    /// Memory over time.
    pub tracks: Vec<MemoryTrack>,
    /// Own cost of one invocation above fork and exec of the bare command: (seconds, KiB), where measured.
    pub own_cost: Option<(f64, i64)>,
    /// False while it runs or when it was interrupted.
    pub complete: bool,
}

impl Experiment {
    /// The program of this name.
    pub fn program(&self, name: &str) -> Option<&ProgramInfo> {
        self.programs.iter().find(|program| program.name == name)
    }

    /// The stacks of a program.
    pub fn stacks_of(&self, program: &str) -> impl Iterator<Item = &StackInfo> {
        self.stacks.iter().filter(move |stack| stack.program == program)
    }

    /// The stack of this name on a program.
    pub fn stack(&self, program: &str, stack: &str) -> Option<&StackInfo> {
        self.stacks_of(program).find(|info| info.name == stack)
    }

    /// The names of its stacks, each once.
    pub fn stack_names(&self) -> Vec<&str> {
        each_once(self.stacks.iter().map(|stack| stack.name.as_str()))
    }

    /// The rows of a program under a stack.
    pub fn rows(&self, program: &str, stack: &str) -> impl DoubleEndedIterator<Item = &Observation> + Clone {
        self.observations.iter().filter(move |row| row.program == program && row.stack == stack)
    }

    /// Intervals of series of log ratios that are compared together.
    pub fn paired(&self, series: &[Vec<Option<f64>>]) -> Vec<Option<Interval>> {
        heaptoll_statistics::paired(series, self.alpha(), self.settings.seed)
    }

    /// Whether the program's stacks run in lockstep: where that was requested and the baseline can.
    pub fn is_in_lockstep(&self, program: &str) -> bool {
        self.settings.pairing == Pairing::Lockstep
            && self.stack(program, &self.baseline).is_some_and(|stack| stack.apart.is_none())
    }

    /// The programs whose stacks run at once in lockstep with those of this one, and it, in their order.
    pub fn at_once_with<'a>(&'a self, program: &'a str) -> Vec<&'a str> {
        let block = self.program(program).and_then(|one| one.block);
        if block.is_none() || !self.is_in_lockstep(program) {
            return vec![program];
        }
        let others = self.programs.iter().filter(|one| one.block == block && self.is_in_lockstep(&one.name));
        others.map(|one| one.name.as_str()).collect()
    }

    /// Repetitions of a program's round: more than one where its stacks take turns.
    pub fn turns(&self, program: &str) -> u32 {
        let turns = self.settings.turns.get(program).filter(|_| self.is_in_lockstep(program));
        turns.map_or(1, |turns| turns.count.max(1))
    }

    /// Repetitions that were begun; rounds, of programs whose stacks take turns.
    pub fn repetitions(&self) -> u32 {
        let of_program = |program: &ProgramInfo| {
            let timed = self
                .observations
                .iter()
                .filter(|row| row.phase == Phase::Timed && row.program == program.name);
            timed.map(|row| row.repetition / self.turns(&program.name) + 1).max()
        };
        self.programs.iter().filter_map(of_program).max().unwrap_or(0)
    }

    /// Whether a manager that the user named was refused, or a program left out. Where it is not stored what was named,
    /// everything counts as named, and each refusal as one of it.
    pub fn refused_what_was_named(&self) -> bool {
        let Some(named) = &self.settings.named else { return !self.refused.is_empty() };
        let is_left_out = |name: &String| {
            named.programs.contains(name) && self.programs.iter().all(|program| program.name != *name)
        };
        self.refused.iter().any(|(program, stack, _)| named.is_manager(stack) || is_left_out(program))
    }

    /// The family-wise level of its tables.
    pub fn alpha(&self) -> f64 {
        let usual = if self.settings.precision.is_some() { STOPPED_ALPHA } else { ALPHA };
        self.settings.level.unwrap_or(usual)
    }

    /// Whether this stack runs in lockstep with the baseline of its program.
    pub fn runs_in_lockstep(&self, stack: &StackInfo) -> bool {
        stack.apart.is_none() && self.is_in_lockstep(&stack.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::experiment;

    fn refuses(named: Option<Named>, program: &str, stack: &str) -> bool {
        let mut experiment = experiment(&["glibc"]);
        experiment.settings.named = named;
        experiment.refused.push((program.into(), stack.into(), "a reason".into()));
        experiment.refused_what_was_named()
    }

    #[test]
    fn a_refusal_counts_where_its_manager_or_its_program_was_named() {
        let named =
            || Some(Named { managers: vec!["lea".into()], programs: vec!["gone".into(), "prog".into()] });
        assert!(refuses(named(), "prog", "lea") && refuses(named(), "prog", "lea#2"));
        assert!(!refuses(named(), "prog", "leap"), "another manager, of a group");
        assert!(refuses(named(), "gone", "glibc"), "no program of the experiment any more");
        assert!(!refuses(named(), "prog", "tithe"), "still a program of the experiment");
    }

    #[test]
    fn every_refusal_counts_in_a_file_from_before_names_were_stored() {
        assert!(refuses(None, "prog", "tithe"));
        assert!(!experiment(&["glibc"]).refused_what_was_named());
    }
}
