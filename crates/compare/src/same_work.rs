//! Whether a program did the same work in two experiments: a comparison of different work shows nothing about managers.

use std::collections::BTreeSet;

use heaptoll_experiment::experiment::{Experiment, ProgramInfo};
use heaptoll_experiment::kept_input;
use heaptoll_report::format::shell_command;

/// What differs for one program, in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// The command or its input: another piece of work.
    pub work: Vec<String>,
    /// What may change the work or its cost.
    pub surroundings: Vec<String>,
}

/// Folders in which heaptoll keeps the files of catalog programs. The names below them identify the contents (inputs
/// carry a hash); the folders above them depend on the machine.
const OUR_FOLDERS: [&str; 3] = ["/heaptoll/inputs/", "/lib/heaptoll/programs/", "/share/heaptoll/programs/"];

/// A word of a command without the folders above heaptoll's own.
fn lasting(word: &str) -> &str {
    OUR_FOLDERS.iter().find_map(|ours| word.rfind(ours).map(|at| &word[at..])).unwrap_or(word)
}

fn lasting_words(words: &[String]) -> Vec<&str> {
    words.iter().map(|word| lasting(word)).collect()
}

/// What differs between A and B for the program of this name; nothing where one of them does not have it.
pub fn differences(a: &Experiment, b: &Experiment, program: &str) -> Differences {
    let mut found = Differences::default();
    let of = |experiment: &Experiment| -> Option<ProgramInfo> {
        experiment.programs.iter().find(|info| info.name == program).cloned()
    };
    let (Some(in_a), Some(in_b)) = (of(a), of(b)) else { return found };
    let quoted = |words: &[String]| format!("`{}`", shell_command(words));
    let (words_a, words_b) = (lasting_words(&in_a.command), lasting_words(&in_b.command));
    if words_a != words_b {
        let setting =
            format!("the command is {} in A, {} in B", quoted(&in_a.command), quoted(&in_b.command));
        let name =
            |words: &[&str]| words.first().and_then(|word| word.rsplit('/').next().map(str::to_string));
        // Another build of the program in another folder is what many want to compare.
        let only_folder = name(&words_a) == name(&words_b) && words_a.get(1..) == words_b.get(1..);
        if only_folder { &mut found.surroundings } else { &mut found.work }.push(setting);
    }
    let stdin =
        |info: &ProgramInfo| info.stdin.as_deref().map_or_else(|| "nothing".into(), kept_input::shown);
    if lasting(&stdin(&in_a)) != lasting(&stdin(&in_b)) {
        found.work.push(format!("standard input is {} in A, {} in B", stdin(&in_a), stdin(&in_b)));
    }
    let load = |info: &ProgramInfo| info.serve.as_ref().map(|serve| serve.load.clone()).unwrap_or_default();
    if lasting_words(&load(&in_a)) != lasting_words(&load(&in_b)) {
        found.work.push(format!("the load is {} in A, {} in B", quoted(&load(&in_a)), quoted(&load(&in_b))));
    }
    if in_a.environment != in_b.environment {
        let setting = |info: &ProgramInfo| {
            let pairs: Vec<String> =
                info.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
            if pairs.is_empty() { "nothing".to_string() } else { pairs.join(" ") }
        };
        found.surroundings.push(format!(
            "the environment sets {} in A, {} in B",
            setting(&in_a),
            setting(&in_b)
        ));
    }
    // Of servers the load's words are kept apart; where outputs vary by themselves they prove nothing.
    if let ([one], [other]) = (&outputs(a, program)[..], &outputs(b, program)[..])
        && in_a.serve.is_none()
        && one != other
    {
        let short = |digest: &str| digest.chars().take(12).collect::<String>();
        found.surroundings.push(format!(
            "the output differs (SHA-256 {}… in A, {}… in B): other input, or another version of the program",
            short(one),
            short(other)
        ));
    }
    found
}

/// The distinct digests of good runs.
fn outputs(experiment: &Experiment, program: &str) -> Vec<String> {
    let rows = experiment
        .observations
        .iter()
        .filter(|row| row.program == program && row.phase.is_whole() && row.outcome.is_ok());
    rows.map(|row| row.output_digest.clone()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// What differs for all programs: the machine, its settings, and the managers' versions.
pub fn of_all(a: &Experiment, b: &Experiment) -> Vec<String> {
    let thp = |experiment: &Experiment| match experiment.settings.thp.as_str() {
        "" => experiment.machine.thp.clone(),
        set => set.to_string(),
    };
    let mut pairs = vec![
        ("the CPU".to_string(), a.machine.cpu.clone(), b.machine.cpu.clone()),
        ("the kernel".to_string(), a.machine.kernel.clone(), b.machine.kernel.clone()),
        ("glibc's version".to_string(), a.machine.libc.clone(), b.machine.libc.clone()),
        ("huge pages".to_string(), thp(a), thp(b)),
    ];
    let mut seen = BTreeSet::new();
    for stack in a.stacks.iter().filter(|stack| seen.insert(&stack.name)) {
        // glibc's has its line already.
        let same = b.stacks.iter().find(|other| other.name == stack.name && !stack.preload.is_empty());
        if let Some(other) = same {
            pairs.push((format!("{}'s version", stack.name), stack.version.clone(), other.version.clone()));
        }
    }
    let differ = pairs.into_iter().filter(|(_, in_a, in_b)| in_a != in_b);
    differ.map(|(what, in_a, in_b)| format!("{what} differs: {in_a} in A, {in_b} in B")).collect()
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::observation::Phase;

    use super::*;

    /// A run of a search was once compared with the other file's outputs.
    #[test]
    fn neither_a_start_nor_a_run_of_a_search_is_the_programs_work() {
        let phases = [Phase::Timed, Phase::Alone, Phase::Startup, Phase::Search];
        assert_eq!(phases.map(Phase::is_whole), [true, true, false, false]);
    }

    #[test]
    fn heaptolls_own_folders_may_lie_elsewhere() {
        let root = "/root/.cache/heaptoll/inputs/0123abcd-access.log";
        assert_eq!(lasting(root), lasting("/home/x/.cache/heaptoll/inputs/0123abcd-access.log"));
        assert_ne!(lasting(root), lasting("/root/.cache/heaptoll/inputs/4567abcd-access.log"));
        assert_eq!(lasting("/a/lib/heaptoll/programs/cfrac"), lasting("/b/lib/heaptoll/programs/cfrac"));
        assert_ne!(lasting("/a/data.txt"), lasting("/b/data.txt"));
    }
}
