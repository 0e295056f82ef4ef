//! Which stacks of a program may run at once on one processor, and why the others may not.
//!
//! What is known comes from the proof runs, which are watched (`heaptoll_preflight::Effect`): copies that run at the
//! same time would meet in a file, a port or a lock; one that waits by the clock, or has several threads, does not share
//! a processor as one that only computes does.

use std::collections::BTreeMap;
use std::path::PathBuf;

use heaptoll_experiment::experiment::{Experiment, Pairing, ProgramInfo, StackInfo, Turns};
use heaptoll_experiment::manager::uses_folder;
use heaptoll_launcher::affinity;
use heaptoll_preflight::{Effect, Watched};
use heaptoll_units::whole_bytes;

use crate::preparation::proof_run::ProofRun;

/// All copies together may take one part in this many of the memory that is available.
const MEMORY_SHARE: u64 = 2;

/// The machine's resources for runs at the same time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Machine {
    /// Processors that this process may use.
    pub processors: usize,
    /// Memory that is available, bytes.
    pub available_bytes: u64,
    /// What runs at once may take together, bytes, where the user gave a limit.
    pub at_once_bytes: Option<u64>,
}

impl Machine {
    /// The resources of this machine now.
    pub fn now() -> Machine {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
        let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
        Machine {
            processors: affinity::allowed().map_or(0, |all| all.len()),
            available_bytes: kib.unwrap_or(0).saturating_mul(1024),
            at_once_bytes: None,
        }
    }

    /// What runs at once may take together, bytes.
    fn limit_bytes(self) -> u64 {
        self.at_once_bytes.unwrap_or(self.available_bytes / MEMORY_SHARE)
    }

    /// That so many stacks at once would take too much.
    fn too_much(self, stacks: usize, bytes: u64) -> String {
        let wanted = whole_bytes(bytes);
        match self.at_once_bytes {
            Some(limit) => {
                format!(
                    "{stacks} together would take {wanted}, more than the limit of {}",
                    whole_bytes(limit)
                )
            }
            None => {
                format!(
                    "{stacks} together would take {wanted} of the available {}",
                    whole_bytes(self.available_bytes)
                )
            }
        }
    }
}

/// Marks the stacks that cannot run in lockstep, the baseline first, where lockstep is wanted. Gives how the others take
/// turns, where `in_turns` allows that and memory is too short for all at once.
pub fn decide(
    pairing: Pairing,
    program: &ProgramInfo,
    stacks: &mut [StackInfo],
    runs: &[ProofRun],
    machine: Machine,
    in_turns: bool,
) -> Option<Turns> {
    let (baseline, of_baseline) = stacks.first_mut().zip(runs.first())?;
    if pairing != Pairing::Lockstep {
        return None;
    }
    baseline.apart =
        why_not(program, of_baseline, machine).or_else(|| meeting_files(runs)).or_else(|| of_java(baseline));
    if baseline.apart.is_some() {
        return None;
    }
    let makes_files = of_baseline.watched.as_ref().is_some_and(|watched| !watched.made.is_empty());
    stacks.iter_mut().for_each(|stack| stack.makes_files = makes_files);
    for (stack, run) in stacks[1..].iter_mut().zip(&runs[1..]) {
        let threads = run.watched.as_ref().is_some_and(|watched| watched.effects.contains(&Effect::Threads));
        stack.apart =
            threads.then(|| "it starts threads in the program".to_owned()).or_else(|| of_java(stack));
    }
    let turns = match turns(stacks, runs, machine, in_turns) {
        Ok(turns) => turns,
        Err(why) => {
            stacks[0].apart = Some(why);
            return None;
        }
    };
    for at in 0..stacks.len() {
        let in_same_block = |other: &&StackInfo| other.block == stacks[at].block && other.apart.is_none();
        if stacks[at].apart.is_none() && stacks.iter().filter(in_same_block).count() < 2 {
            stacks[at].apart = Some("no other stack can run at the same time".to_owned());
        }
    }
    turns
}

/// What the stacks of a program that run at once take together, bytes. Of a run that was stopped early the baseline's
/// memory counts, if that is more.
pub fn together_bytes(stacks: &[StackInfo], runs: &[ProofRun]) -> u64 {
    let at_once = stacks.iter().zip(runs).filter(|(stack, _)| stack.apart.is_none());
    at_once.fold(0u64, |sum, (_, run)| sum.saturating_add(held(run, runs)))
}

/// What a run takes, bytes.
fn held(run: &ProofRun, runs: &[ProofRun]) -> u64 {
    let of_baseline = runs.first().map_or(0, |run| run.anonymous_bytes);
    if run.finished { run.anonymous_bytes } else { run.anonymous_bytes.max(of_baseline) }
}

/// Puts the programs of a group that run in lockstep, all of their stacks at once, into one block. `bytes` is what they
/// take, by program.
///
/// # Errors
/// They are too large for that: why each has a block of its own.
pub fn join(
    experiment: &mut Experiment,
    group: &[String],
    bytes: &BTreeMap<String, u64>,
    machine: Machine,
) -> Result<(), String> {
    let block =
        experiment.programs.iter().filter_map(|program| program.block).max().map_or(0, |last| last + 1);
    let joins = |name: &str| {
        group.iter().any(|one| one == name) && experiment.is_in_lockstep(name) && experiment.turns(name) == 1
    };
    let members: Vec<String> =
        experiment.programs.iter().map(|program| program.name.clone()).filter(|name| joins(name)).collect();
    let sum =
        members.iter().filter_map(|name| bytes.get(name)).fold(0u64, |sum, one| sum.saturating_add(*one));
    if members.len() < 2 {
        return Ok(());
    }
    if sum > machine.limit_bytes() {
        let why = machine.too_much(members.len(), sum);
        return Err(format!("{}: each runs in lockstep by itself: {why}", members.join(", ")));
    }
    let all = experiment.programs.iter_mut().filter(|program| members.contains(&program.name));
    all.for_each(|program| program.block = Some(block));
    Ok(())
}

/// Why a collector of Java does not: what keeps the processor shared after its end would be in its log, too.
fn of_java(stack: &StackInfo) -> Option<String> {
    let why = "its virtual machine collects in its own threads, and writes a log of them";
    uses_folder(&stack.environment).then(|| why.to_owned())
}

/// Whether the next proof run is to go to its end, too: the baseline's made files, and no second run has shown yet
/// whether each run gives them names of its own.
pub fn wants_another_whole(runs: &[ProofRun]) -> bool {
    let makes = |run: &ProofRun| run.watched.as_ref().is_some_and(|watched| !watched.made.is_empty());
    runs.first().is_some_and(makes) && !runs[1..].iter().any(|run| run.finished && !run.copied)
}

/// A file that the baseline's run made and another's, too, under the same name; or any, where no other run ended.
fn meeting_files(runs: &[ProofRun]) -> Option<String> {
    let made = |run: &ProofRun| run.watched.as_ref().map(|watched| watched.made.clone()).unwrap_or_default();
    let of_baseline = made(runs.first()?);
    let first = of_baseline.first()?;
    let others: Vec<&ProofRun> = runs[1..].iter().filter(|run| run.finished && !run.copied).collect();
    if others.is_empty() {
        return Some(format!("it creates {}, whose name may differ between runs", first.display()));
    }
    let again = |path: &&PathBuf| others.iter().any(|run| made(run).contains(path));
    of_baseline.iter().find(again).map(|path| format!("it creates {} in each run", path.display()))
}

/// Why no stack of the program can run at once with another.
fn why_not(program: &ProgramInfo, run: &ProofRun, machine: Machine) -> Option<String> {
    if program.serve.is_some() {
        return Some("it is a server, and its load generator needs a processor of its own".to_owned());
    }
    if machine.processors < 2 {
        return Some("only one processor may be used".to_owned());
    }
    let Some(Watched { effects, .. }) = &run.watched else {
        return Some("its effects could not be observed (ptrace and seccomp are needed)".to_owned());
    };
    if let Some(first) = effects.first() {
        let more = effects.len() - 1;
        return Some(if more == 0 { first.to_string() } else { format!("{first}, and {more} more") });
    }
    if !run.finished {
        let seconds = run.seconds;
        return Some(format!("its proof run was stopped after {seconds:.0} s: its later writes are unknown"));
    }
    None
}

/// How the stacks of a program that has one block take turns, where all of them at once would take too much memory: as
/// many run with the baseline as there is memory for, whichever stacks they are. A stack for which there is none even
/// with the baseline alone runs apart.
///
/// # Errors
/// There is too little memory for two, or turns are not allowed: why nothing runs at once.
fn turns(
    stacks: &mut [StackInfo],
    runs: &[ProofRun],
    machine: Machine,
    in_turns: bool,
) -> Result<Option<Turns>, String> {
    let of_baseline = runs.first().map_or(0, |run| run.anonymous_bytes);
    let held = |run: &ProofRun| held(run, runs);
    let sum = |all: &[u64]| all.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    if in_turns {
        let mut too_large = None;
        let others = stacks.iter_mut().zip(runs).skip(1).filter(|(stack, _)| stack.apart.is_none());
        for (stack, run) in others {
            let pair = of_baseline.saturating_add(held(run));
            if pair > machine.limit_bytes() {
                stack.apart = Some(machine.too_much(2, pair));
                too_large.clone_from(&stack.apart);
            }
        }
        if let Some(why) = too_large.filter(|_| stacks.iter().skip(1).all(|stack| stack.apart.is_some())) {
            return Err(why);
        }
    }
    let mut blocks: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for (stack, run) in stacks.iter().zip(runs).filter(|(stack, _)| stack.apart.is_none()) {
        blocks.entry(stack.block).or_default().push(held(run));
    }
    let Some(largest) = blocks.values().max_by_key(|all| sum(all)) else { return Ok(None) };
    if sum(largest) <= machine.limit_bytes() {
        return Ok(None);
    }
    let why = machine.too_much(largest.len(), sum(largest));
    let mut others = largest[1..].to_vec();
    others.sort_unstable_by(|a, b| b.cmp(a));
    let fit = (0..others.len())
        .take_while(|at| largest[0].saturating_add(sum(&others[..=*at])) <= machine.limit_bytes())
        .count();
    if fit == 0 || !in_turns || blocks.len() > 1 {
        return Err(why);
    }
    let count = others.len().div_ceil(fit);
    let at_once = 1 + others.len().div_ceil(count);
    Ok(Some(Turns { count: count as u32, at_once: at_once as u32, why }))
}

#[cfg(test)]
pub(super) mod tests {
    use heaptoll_experiment::experiment::{Protocol, ServeInfo};

    use super::*;

    const MACHINE: Machine = Machine { processors: 2, available_bytes: 8 << 30, at_once_bytes: None };

    /// An experiment whose stacks run in lockstep where they can.
    pub fn in_lockstep(programs: Vec<ProgramInfo>, stacks: Vec<StackInfo>) -> Experiment {
        let settings = Protocol { pairing: Pairing::Lockstep, ..Protocol::default() };
        Experiment { stacks, ..Experiment::begun(settings, "glibc".into(), programs) }
    }

    fn proven(effects: &[Effect]) -> ProofRun {
        ProofRun {
            seconds: 1.0,
            finished: true,
            anonymous_bytes: 1 << 20,
            watched: Some(Watched { effects: effects.to_vec(), made: vec![] }),
            ..ProofRun::default()
        }
    }

    fn stacks(count: usize) -> Vec<StackInfo> {
        let stack = |number: usize| StackInfo { name: format!("m{number}"), ..StackInfo::default() };
        (0..count).map(stack).collect()
    }

    fn decided(program: &ProgramInfo, runs: &[ProofRun], machine: Machine) -> Vec<Option<String>> {
        let mut stacks = stacks(runs.len());
        decide(Pairing::Lockstep, program, &mut stacks, runs, machine, false);
        stacks.into_iter().map(|stack| stack.apart).collect()
    }

    #[test]
    fn stacks_that_only_compute_run_in_lockstep() {
        let program = ProgramInfo::default();
        assert_eq!(decided(&program, &[proven(&[]), proven(&[])], MACHINE), [None, None]);
        let mut unasked = stacks(2);
        let threads = [proven(&[Effect::Threads]), proven(&[])];
        decide(Pairing::Interleaved, &program, &mut unasked, &threads, MACHINE, true);
        assert!(unasked.iter().all(|stack| stack.apart.is_none()));
    }

    #[test]
    fn a_stack_with_threads_runs_apart_and_the_others_together() {
        let runs = [proven(&[]), proven(&[Effect::Threads]), proven(&[])];
        let apart = decided(&ProgramInfo::default(), &runs, MACHINE);
        assert!(apart[0].is_none() && apart[1].is_some() && apart[2].is_none(), "{apart:?}");
        let apart = decided(&ProgramInfo::default(), &runs[..2], MACHINE);
        assert!(apart.iter().all(Option::is_some), "no stack is left to run with: {apart:?}");
    }

    #[test]
    fn blocks_of_a_program_are_decided_one_by_one() {
        let decided = |blocks: &[u32], runs: &[ProofRun]| {
            let mut stacks = stacks(runs.len());
            stacks.iter_mut().zip(blocks).for_each(|(stack, block)| stack.block = *block);
            decide(Pairing::Lockstep, &ProgramInfo::default(), &mut stacks, runs, MACHINE, false);
            stacks.into_iter().map(|stack| stack.apart).collect::<Vec<_>>()
        };
        // Of three and a half GiB two stacks run at once, and four do not.
        let large = || ProofRun { anonymous_bytes: 3 << 29, ..proven(&[]) };
        let four = [large(), large(), large(), large()];
        assert_eq!(decided(&[0, 0, 1, 1], &four), [None, None, None, None]);
        assert!(decided(&[0; 4], &four)[0].is_some());
        let threads = [proven(&[]), proven(&[]), proven(&[]), proven(&[Effect::Threads])];
        let apart = decided(&[0, 0, 1, 1], &threads);
        assert!(apart[0].is_none() && apart[1].is_none(), "{apart:?}");
        assert_eq!(apart[2].as_deref(), Some("no other stack can run at the same time"));
    }

    #[test]
    fn files_under_the_same_name_in_two_runs_keep_them_apart_and_others_do_not() {
        let makes = |name: &str| ProofRun {
            watched: Some(Watched { effects: vec![], made: vec![name.into()] }),
            ..proven(&[])
        };
        let plain = ProgramInfo::default();
        let first = |runs: &[ProofRun]| decided(&plain, runs, MACHINE)[0].clone();
        assert_eq!(first(&[makes("/tmp/a1"), makes("/tmp/b2")]), None);
        assert_eq!(first(&[makes("/lock"), makes("/lock")]).as_deref(), Some("it creates /lock in each run"));
        // A run that did not end, or is the same run, shows nothing.
        let unended = ProofRun { finished: false, ..makes("/tmp/b2") };
        let copied = ProofRun { copied: true, ..makes("/tmp/a1") };
        for other in [unended, copied] {
            let runs = [makes("/tmp/a1"), other];
            assert!(
                wants_another_whole(&runs)
                    && first(&runs).is_some_and(|why| why.contains("may differ between runs"))
            );
        }
        assert!(!wants_another_whole(&[proven(&[])]) && !wants_another_whole(&[makes("/a"), proven(&[])]));
        let mut stacks = stacks(2);
        let runs = [makes("/tmp/a1"), makes("/tmp/b2")];
        decide(Pairing::Lockstep, &plain, &mut stacks, &runs, MACHINE, true);
        assert!(stacks.iter().all(|stack| stack.makes_files && stack.apart.is_none()));
    }

    #[test]
    fn each_reason_against_lockstep_is_given() {
        let why = |program: &ProgramInfo, run: ProofRun, machine| {
            decided(program, &[run, proven(&[])], machine)[0].clone().unwrap_or_default()
        };
        let plain = ProgramInfo::default();
        let serve = ServeInfo { ready: "r".into(), stop: "TERM".into(), ..ServeInfo::default() };
        let server = ProgramInfo { serve: Some(serve), ..ProgramInfo::default() };
        assert!(why(&server, proven(&[]), MACHINE).contains("server"));
        assert!(why(&plain, proven(&[]), Machine { processors: 1, ..MACHINE }).contains("one processor"));
        let unwatched = ProofRun { watched: None, ..proven(&[]) };
        assert!(why(&plain, unwatched, MACHINE).contains("could not be observed"));
        let writes = proven(&[Effect::Writes("/out".into()), Effect::Threads]);
        assert_eq!(why(&plain, writes, MACHINE), "it writes /out, and 1 more");
        let unfinished = ProofRun { finished: false, seconds: 60.0, ..proven(&[]) };
        assert!(why(&plain, unfinished, MACHINE).contains("stopped after 60 s"));
        let large = ProofRun { anonymous_bytes: 5 << 30, ..proven(&[]) };
        assert!(
            why(&plain, large, MACHINE).contains("2 together would take 5.00 GiB of the available 8.00 GiB")
        );
    }

    /// Decides on stacks that hold so many MiB each, the baseline first, where so many GiB are available.
    fn with_memory(held_mib: &[u64], gib: u64, in_turns: bool) -> (Option<Turns>, Option<String>) {
        let held = |mib: &u64| ProofRun { anonymous_bytes: mib << 20, ..proven(&[]) };
        let runs: Vec<ProofRun> = held_mib.iter().map(held).collect();
        let (machine, mut stacks) = (Machine { available_bytes: gib << 30, ..MACHINE }, stacks(runs.len()));
        let plain = ProgramInfo::default();
        let turns = decide(Pairing::Lockstep, &plain, &mut stacks, &runs, machine, in_turns);
        (turns, stacks[0].apart.clone())
    }

    #[test]
    fn where_memory_is_short_as_many_run_at_once_as_it_allows_whichever_they_are() {
        let seven = [512; 7];
        assert_eq!(with_memory(&seven, 7, true), (None, None), "all of them");
        let (turns, apart) = with_memory(&seven, 4, true);
        let turns = turns.expect("turns");
        // Three with the baseline: two turns.
        assert_eq!((turns.count, turns.at_once, apart), (2, 4, None));
        assert_eq!(turns.why, "7 together would take 3.50 GiB of the available 4.00 GiB");
        // The two largest decide.
        let turns = with_memory(&[512, 64, 1024, 64, 1024, 64], 4, true).0.expect("turns");
        assert_eq!((turns.count, turns.at_once), (5, 2));
    }

    #[test]
    fn where_memory_is_too_short_for_two_or_turns_are_not_allowed_nothing_runs_at_once() {
        let (turns, apart) = with_memory(&[512, 1024], 2, true);
        assert_eq!(turns, None);
        assert_eq!(apart.as_deref(), Some("2 together would take 1.50 GiB of the available 2.00 GiB"));
        // Others run at once where one does not.
        assert_eq!(with_memory(&[512, 1024, 64], 2, true), (None, None));
        let (turns, apart) = with_memory(&[512; 7], 4, false);
        assert!(turns.is_none() && apart.is_some());
    }

    #[test]
    fn forms_share_a_block_where_all_run_in_lockstep_and_memory_is_enough() {
        let program = |name: &&str| ProgramInfo { name: name.to_string(), ..ProgramInfo::default() };
        let names = ["a", "a:gc", "b", "b:gc", "c"];
        let stack = |name: &&str| StackInfo {
            program: name.to_string(),
            name: "glibc".into(),
            ..StackInfo::default()
        };
        let mut made = in_lockstep(names.iter().map(program).collect(), names.iter().map(stack).collect());
        // b:gc starts threads.
        made.stacks[3].apart = Some("threads".into());
        let group = |names: &[&str]| -> Vec<String> { names.iter().map(|name| name.to_string()).collect() };
        let bytes: BTreeMap<String, u64> = names.iter().map(|name| (name.to_string(), 1 << 20)).collect();
        let blocks = |made: &Experiment| made.programs.iter().map(|one| one.block).collect::<Vec<_>>();
        assert_eq!(join(&mut made, &group(&["b", "b:gc"]), &bytes, MACHINE), Ok(()));
        assert_eq!(blocks(&made), [None; 5]);
        let small = Machine { at_once_bytes: Some(1 << 20), ..MACHINE };
        let why = join(&mut made, &group(&["a", "a:gc"]), &bytes, small).expect_err("no memory");
        assert_eq!(
            why,
            "a, a:gc: each runs in lockstep by itself: 2 together would take 2.00 MiB, more than the limit of 1.00 MiB"
        );
        assert_eq!(join(&mut made, &group(&["a", "a:gc"]), &bytes, MACHINE), Ok(()));
        assert_eq!(join(&mut made, &group(&["b", "c"]), &bytes, MACHINE), Ok(()));
        assert_eq!(blocks(&made), [Some(0), Some(0), Some(1), None, Some(1)]);
    }

    #[test]
    fn a_limit_of_the_users_counts_in_place_of_what_is_available() {
        let limited = Machine { at_once_bytes: Some(3 << 20), ..MACHINE };
        let mut stacks = stacks(4);
        let runs = [proven(&[]), proven(&[]), proven(&[]), proven(&[])];
        let plain = ProgramInfo::default();
        let turns = decide(Pairing::Lockstep, &plain, &mut stacks, &runs, limited, true).expect("turns");
        assert_eq!((turns.count, turns.at_once), (2, 3));
        assert_eq!(turns.why, "4 together would take 4.00 MiB, more than the limit of 3.00 MiB");
    }
}
