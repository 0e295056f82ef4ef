//! The commands that a step is: as they are run here, with files in the step's own folder, and as the reader repeats
//! them.

use std::path::Path;

use crate::budget::Planned;
use crate::definition::{Step, StepKind};
use heaptoll_report::format::shell_command;

/// Below this number of repetitions no warm-up is made: nothing will be claimed from them.
const FEWEST_FOR_A_WARM_UP: u32 = 6;
/// The line of the paper's caches (Zorn 1992, §4.3), bytes.
const LINE: &str = "32";
/// Memories in which page faults are counted: from less than any program touches to more than most do.
const MEMORIES: &str = "128K,256K,512K,1M,2M,4M,8M,16M,32M,64M";

/// The extent of a step: the first of its programs and managers, as many as are planned.
pub struct Extent<'a> {
    /// The step, without what cannot be run here.
    pub step: &'a Step,
    /// How much of it.
    pub planned: &'a Planned,
    /// Seed of random choices.
    pub seed: u64,
    /// Folder with the user's own catalog entries.
    pub catalog: Option<&'a Path>,
}

impl<'a> Extent<'a> {
    /// Programs that are run.
    pub fn programs(&self) -> &'a [String] {
        let all = &self.step.programs;
        &all[..self.planned.programs.min(all.len())]
    }

    /// What runs for them: the paper's own programs where they are installed.
    pub fn run_programs(&self) -> Vec<String> {
        self.programs().iter().map(|program| self.step.run_as(program).to_owned()).collect()
    }

    /// Those that run in one block.
    fn together(&self) -> Vec<Vec<String>> {
        if !self.step.runs_in_lockstep(self.planned.repetitions) {
            return vec![];
        }
        let runs = |name: &&String| self.programs().contains(name);
        let of = |group: &Vec<String>| {
            group.iter().filter(runs).map(|name| self.step.run_as(name).to_owned()).collect()
        };
        let groups = self.step.together.iter().map(of);
        groups.filter(|group: &Vec<String>| group.len() > 1).collect()
    }

    /// Managers that are run, as the step names them.
    pub fn managers(&self) -> &'a [String] {
        let all = &self.step.managers;
        &all[..self.planned.managers.min(all.len())]
    }

    /// The arguments of the step's command, without the files that it writes. Not of lifetimes and ledgers, which are several.
    pub fn arguments(&self) -> Vec<String> {
        self.arguments_for(&self.run_programs())
    }

    /// The same for some of its programs.
    pub fn arguments_for(&self, programs: &[String]) -> Vec<String> {
        let Extent { step, planned, seed, .. } = self;
        let mut words = step.kind.command().words();
        let has = |option: &str| {
            let with_value = format!("{option}=");
            step.options.iter().any(|word| word == option || word.starts_with(&with_value))
        };
        let mut give = |option: &str, value: &str| {
            if !has(option) {
                words.extend([option.to_owned(), value.to_owned()]);
            }
        };
        if matches!(step.kind, StepKind::Run | StepKind::Instructions | StepKind::Locality)
            && let Some(first) = self.managers().first()
        {
            give("--baseline", first);
        }
        if step.kind.is_timed() && !step.kind.records() {
            give("-n", &planned.repetitions.to_string());
            give("--seed", &seed.to_string());
        }
        if step.kind == StepKind::Run {
            let lockstep = step.runs_in_lockstep(planned.repetitions);
            give("--pairing", if lockstep { "lockstep" } else { "interleaved" });
        }
        if step.kind == StepKind::Run && planned.repetitions < FEWEST_FOR_A_WARM_UP {
            give("--warmup", "0");
        }
        if step.kind == StepKind::Locality {
            give("--line", LINE);
            give("--memory", MEMORIES);
            give("--placement", "no");
        }
        give("--size", &planned.size);
        if let Some(folder) = self.catalog {
            give("--catalog", &folder.display().to_string());
        }
        for forms in self.together() {
            words.extend(["--together".to_owned(), forms.join(",")]);
        }
        words.extend(self.managers().iter().flat_map(|name| ["-m".to_owned(), name.clone()]));
        words.extend(programs.iter().flat_map(|name| ["-p".to_owned(), name.clone()]));
        words.extend(step.options.iter().cloned());
        words
    }

    /// What recordings are made under: each manager, or none where the step has none, counts or replays.
    pub fn recorded_under(&self) -> Vec<Option<&'a String>> {
        match self.managers() {
            _ if self.step.kind.replays() || !self.step.kind.records() => vec![None],
            [] => vec![None],
            some => some.iter().map(Some).collect(),
        }
    }

    /// The arguments of `heaptoll record` for one program under one manager.
    pub fn recording(&self, program: &str, manager: Option<&str>, trace: &Path) -> Vec<String> {
        let mut words: Vec<String> =
            ["record", "-p", program, "--size", &self.planned.size].map(Into::into).into();
        words.extend(manager.into_iter().flat_map(|name| ["-m".to_owned(), name.to_owned()]));
        words.extend(
            self.catalog
                .into_iter()
                .flat_map(|folder| ["--catalog".to_owned(), folder.display().to_string()]),
        );
        if self.step.kind == StepKind::Ledger {
            words.extend(["--ledger", "--collect"].map(Into::into));
        }
        if self.step.kind.replays() {
            words.extend(["--graph", "--force"].map(Into::into));
            words.extend(self.needs_references().then(|| "--references".to_owned()));
            words.push("-o".into());
        } else {
            words.extend(["--children", "ignore", "--force", "--brief", "-o"].map(Into::into));
        }
        words.push(trace.display().to_string());
        words
    }

    /// Whether a recording has every load and store: where they are replayed.
    fn needs_references(&self) -> bool {
        self.step.kind.replays() && self.step.options.iter().any(|option| option == "--misses")
    }

    /// The arguments of the step's command for its trace.
    pub fn analysis(&self, trace: &Path, json: &Path) -> Vec<String> {
        let mut words = self.step.kind.command().words();
        words.push(trace.display().to_string());
        words.extend(self.replay_options());
        words.extend(self.step.options.iter().cloned());
        words.extend(["--json".to_owned(), json.display().to_string()]);
        words
    }

    /// What a replay under the step's plans has besides its options.
    fn replay_options(&self) -> Vec<String> {
        if !self.step.kind.replays() {
            return vec![];
        }
        let mut words = vec!["-n".to_owned(), self.planned.repetitions.to_string()];
        words.extend(["--seed".to_owned(), self.seed.to_string()]);
        words.extend(self.managers().iter().flat_map(|plan| ["-m".to_owned(), plan.clone()]));
        words
    }

    /// The command by which the reader repeats the step.
    pub fn repeat(&self) -> String {
        if !self.step.kind.records() {
            let words: Vec<String> = std::iter::once("heaptoll".to_owned()).chain(self.arguments()).collect();
            return shell_command(&words);
        }
        let quoted = |words: &[String]| shell_command(words);
        let (record, over) = match self.managers() {
            _ if self.needs_references() => ("heaptoll record --graph --references -p $p".to_owned(), None),
            _ if self.step.kind.replays() => ("heaptoll record --graph -p $p".to_owned(), None),
            [] => ("heaptoll record -p $p".to_owned(), None),
            [one] => (format!("heaptoll record -m {} -p $p", quoted(std::slice::from_ref(one))), None),
            several => ("heaptoll record -m $m -p $p".to_owned(), Some(several)),
        };
        let mut options = quoted(&[self.replay_options(), self.step.options.clone()].concat());
        if !options.is_empty() {
            options.insert(0, ' ');
        }
        let size = &self.planned.size;
        let command = self.step.kind.command().name;
        let snapshots = if self.step.kind == StepKind::Ledger { " --ledger --collect" } else { "" };
        let children = if self.step.kind.replays() { "" } else { " --children ignore" };
        let catalog = match self.catalog {
            None => String::new(),
            Some(folder) => format!(" --catalog {}", quoted(&[folder.display().to_string()])),
        };
        let one = format!(
            "{record} --size {size}{catalog}{snapshots}{children} --force -o t.heaptoll && heaptoll {command} t.heaptoll{options}"
        );
        let one = match over {
            None => one,
            Some(managers) => format!("for m in {}; do {one}; done", quoted(managers)),
        };
        format!("for p in {}; do {one}; done", quoted(&self.run_programs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: &str, rest: &str) -> Step {
        let text = format!("id = 's'\nkind = '{kind}'\nprograms = ['cfrac', 'gawk']\n{rest}");
        toml::from_str(&text).expect("a step")
    }

    fn planned(programs: usize, managers: usize, repetitions: u32) -> Planned {
        Planned {
            study: "zorn1992".into(),
            step: "s".into(),
            programs,
            of_programs: 2,
            managers,
            of_managers: 2,
            repetitions,
            of_repetitions: 10,
            size: "quick".into(),
            seconds: 1.0,
            deadline_s: 10.0,
        }
    }

    fn repeat(step: &Step, planned: &Planned) -> String {
        Extent { step, planned, seed: 7, catalog: None }.repeat()
    }

    #[test]
    fn the_first_manager_is_the_baseline_and_only_what_is_planned_is_run() {
        let of = step("run", "managers = ['kingsley', 'quarantine=2M/mimalloc3', 'lea']");
        assert_eq!(
            repeat(&of, &planned(1, 2, 10)),
            "heaptoll run --baseline kingsley -n 10 --seed 7 --pairing interleaved --size quick -m kingsley -m 'quarantine=2M/mimalloc3' -p cfrac"
        );
        assert!(repeat(&of, &planned(1, 2, 2)).contains(" --warmup 0 "));
    }

    #[test]
    fn a_step_in_lockstep_is_so_from_as_many_repetitions_as_can_claim_something() {
        let of = step("run", "managers = ['kingsley', 'lea']\npairing = 'lockstep'");
        assert!(repeat(&of, &planned(1, 2, 6)).contains(" --pairing lockstep "));
        assert!(repeat(&of, &planned(1, 2, 5)).contains(" --pairing interleaved "));
    }

    #[test]
    fn forms_that_are_compared_run_in_one_block() {
        let more = "managers = ['kingsley', 'lea']\npairing = 'lockstep'\ntogether = [['cfrac', 'gawk']]\n\
                    [originals]\ncfrac = 'mb-cfrac:plain'";
        let of = step("run", more);
        assert!(repeat(&of, &planned(2, 2, 10)).contains(" --together 'mb-cfrac:plain,gawk' "));
        for other in [planned(1, 2, 10), planned(2, 2, 2)] {
            assert!(!repeat(&of, &other).contains("--together"), "one form, or no lockstep");
        }
    }

    #[test]
    fn what_the_step_sets_itself_is_not_set_twice() {
        let of = step("locality", "managers = ['lea']\noptions = ['--line', '64', '--memory=1M']");
        let command = repeat(&of, &planned(2, 1, 1));
        assert_eq!(
            command,
            "heaptoll exact locality --baseline lea --placement no --size quick -m lea -p cfrac -p gawk --line 64 '--memory=1M'"
        );
    }

    #[test]
    fn lifetimes_are_a_recording_of_each_program_and_its_analysis() {
        let command = repeat(&step("lifetimes", ""), &planned(2, 0, 1));
        assert_eq!(
            command,
            "for p in cfrac gawk; do heaptoll record -p $p --size quick --children ignore --force -o t.heaptoll && \
             heaptoll trace lifetimes t.heaptoll; done"
        );
        let ledger = repeat(&step("ledger", "managers = ['lea']"), &planned(1, 1, 1));
        assert_eq!(
            ledger,
            "for p in cfrac; do heaptoll record -m lea -p $p --size quick --ledger --collect --children ignore --force -o t.heaptoll && \
             heaptoll ledger t.heaptoll; done"
        );
        let command = repeat(&step("lifetimes", "managers = ['lea', 'bw16']"), &planned(1, 2, 1));
        assert!(
            command.starts_with("for p in cfrac; do for m in lea bw16; do heaptoll record -m $m -p $p "),
            "{command}"
        );
    }
}
