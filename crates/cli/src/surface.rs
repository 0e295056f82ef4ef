//! The words of the command line: five groups of them, as the help prints them, and the names that commands had before.

use std::ffi::OsString;

use clap::Command;

/// From what likeness on, of 0 to 1, a name is offered.
const LIKE: f64 = 0.85;

/// The groups of commands, and the commands of each.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Compare", &["run", "gate", "choose", "report", "diff"]),
    ("Record", &["record", "leaks", "ledger", "trace"]),
    ("Count exactly, under Valgrind", &["exact"]),
    ("Lists", &["managers", "programs"]),
    ("Laboratory", &["lab"]),
];

/// The commands that had other names before, and what each is now.
const RENAMED: [(&str, &[&str]); 25] = [
    ("artifact", &["lab", "artifact"]),
    ("bound", &["trace", "bound"]),
    ("compare", &["diff"]),
    ("conservatism", &["lab", "conservatism"]),
    ("delay", &["lab", "delay"]),
    ("drag", &["exact", "drag"]),
    ("export", &["trace", "export"]),
    ("frequency", &["lab", "frequency"]),
    ("import", &["trace", "import"]),
    ("instructions", &["exact", "instructions"]),
    ("lifetimes", &["trace", "lifetimes"]),
    ("locality", &["exact", "locality"]),
    ("merge", &["lab", "shards", "merge"]),
    ("minheap", &["lab", "minheap"]),
    ("oracle", &["lab", "oracle"]),
    ("plan", &["lab", "shards", "plan"]),
    ("proximity", &["lab", "proximity"]),
    ("reclamation", &["lab", "reclamation"]),
    ("replay", &["trace", "replay"]),
    ("sample", &["record", "attach"]),
    ("stat", &["trace", "stat"]),
    ("study", &["lab", "study"]),
    ("tailor", &["lab", "tailor"]),
    ("work", &["lab", "shards", "work"]),
    REPLAY_GRAPH,
];

/// What the old command became where `--graph` followed it.
const REPLAY_GRAPH: (&str, &[&str]) = ("replay --graph", &["lab", "replay-graph"]);

/// The words with the present name of their command, and the old name where that is what they had.
pub fn present(words: Vec<OsString>) -> (Vec<OsString>, Option<&'static str>) {
    let found = words.get(1).and_then(|word| RENAMED.iter().find(|(old, _)| word == *old));
    let Some((mut old, mut new)) = found.copied() else { return (words, None) };
    let is_graph = |word: &OsString| word == "--graph";
    let options = words.iter().take_while(|word| *word != "--");
    let has_graph = old == "replay" && options.clone().any(is_graph);
    if has_graph {
        (old, new) = REPLAY_GRAPH;
    }
    let rest = words[2..].iter().filter(|word| !(has_graph && is_graph(word))).cloned();
    let all = words[..1].iter().cloned().chain(new.iter().map(OsString::from)).chain(rest);
    (all.collect(), Some(old))
}

/// The sentence about an old name.
pub fn renamed(old: &str) -> Option<String> {
    let (_, new) = RENAMED.iter().find(|(name, _)| *name == old)?;
    Some(format!("`heaptoll {old}` is now `heaptoll {}`", new.join(" ")))
}

/// The whole name of a command: `trace stat`. It ends where a word names no command.
pub fn name(command: &Command, words: &[OsString]) -> Vec<String> {
    let mut names = Vec::new();
    let mut at = command;
    for word in words.iter().skip(1) {
        let Some(inner) = at.find_subcommand(word) else { break };
        names.push(inner.get_name().to_owned());
        at = inner;
    }
    names
}

/// What a word that is no command may mean: the command with the nearest name, of those within groups and the old ones too.
pub fn nearest(command: &Command, word: &str) -> Option<String> {
    let old = RENAMED.iter().map(|(old, new)| ((*old).to_owned(), new.join(" ")));
    let near = |name: &str| strsim::jaro_winkler(word, name);
    let all = within(command, "").into_iter().chain(old).map(|(name, whole)| (near(&name), whole));
    let (likeness, whole) = all.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (likeness >= LIKE).then(|| format!("there is `heaptoll {whole}`"))
}

/// The listed commands: the name of each, and its whole name.
fn within(command: &Command, around: &str) -> Vec<(String, String)> {
    let listed = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    let all = listed.flat_map(|inner| {
        let whole = format!("{around}{}", inner.get_name());
        let inside = within(inner, &format!("{whole} "));
        std::iter::once((inner.get_name().to_owned(), whole)).chain(inside)
    });
    all.collect()
}

/// The whole command line's help: what heaptoll is for, what is asked most, and the groups.
pub fn help(command: &Command) -> String {
    let about = |name: &str| {
        let found = command.find_subcommand(name).and_then(Command::get_about);
        found.map(|about| about.to_string()).unwrap_or_default()
    };
    let group = |(title, names): &(&str, &[&str])| {
        let lines = names.iter().map(|name| format!("  {name:<9} {}\n", about(name)));
        format!("{title}:\n{}", lines.collect::<String>())
    };
    let groups: Vec<String> = GROUPS.iter().map(group).collect();
    format!(
        "What does memory management cost this program, and what would another manager cost?\n\n{QUESTIONS}\n{}\n\
         `heaptoll COMMAND -h` shows the options that most people need, `--help` all of them.\n",
        groups.join("\n")
    )
}

/// The questions that bring most people here.
const QUESTIONS: &str = "  Which allocator is best for my program?    heaptoll run -- ./program
  Where is its memory?                       heaptoll ledger -- ./program
  What leaks?                                heaptoll leaks -- ./program
  Did this change cost something?            heaptoll gate --base ./old --new ./new -- ARGS
";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn every_listed_command_is_in_one_group_and_every_group_has_commands_that_are() {
        let cli = Cli::command();
        let listed = cli.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
        let mut listed: Vec<&str> = listed.collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        listed.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(listed, grouped);
        assert_eq!(grouped.len(), 13);
    }

    #[test]
    fn the_help_is_one_screen() {
        let help = help(&Cli::command());
        assert!(help.lines().count() <= 40, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }

    /// Before, `trace import`, `trace export` and `oracle` had no `-f`.
    #[test]
    fn force_has_one_short_name_in_all_commands() {
        fn shorts(command: &clap::Command, found: &mut Vec<Option<char>>) {
            found.extend(
                command.get_arguments().filter(|one| one.get_id() == "force").map(clap::Arg::get_short),
            );
            command.get_subcommands().for_each(|inner| shorts(inner, found));
        }
        let mut found = vec![];
        shorts(&Cli::command(), &mut found);
        assert!(found.len() > 5 && found.iter().all(|short| *short == Some('f')), "{found:?}");
    }

    #[test]
    fn every_old_name_leads_to_a_command() {
        for (old, new) in RENAMED {
            let (line, found) = present(words(&format!("heaptoll {old}")));
            assert_eq!(found, Some(old));
            assert_eq!(name(&Cli::command(), &line), new, "{old}");
            assert!(renamed(old).is_some_and(|text| text.contains(&new.join(" "))));
        }
    }

    #[test]
    fn a_word_that_is_no_command_is_answered_with_the_nearest_one_wherever_it_is() {
        let near = |word: &str| nearest(&Cli::command(), word);
        for (word, whole) in [
            ("lifetime", "trace lifetimes"),
            ("stats", "trace stat"),
            ("studdy", "lab study"),
            ("merge-shards", "lab shards merge"),
            ("ledgr", "ledger"),
            ("compair", "diff"),
        ] {
            assert!(
                near(word).is_some_and(|text| text.contains(&format!("`heaptoll {whole}`"))),
                "{word}: {:?}",
                near(word)
            );
        }
        assert_eq!(near("xyzzy"), None);
    }

    #[test]
    fn other_words_stay_as_they_are() {
        for line in
            ["heaptoll", "heaptoll run -- stat", "heaptoll trace stat x", "heaptoll --help", "heaptoll no"]
        {
            assert_eq!(present(words(line)), (words(line), None));
        }
        let (line, _) = present(words("heaptoll replay t --graph -n 6"));
        assert_eq!(line, words("heaptoll lab replay-graph t -n 6"));
        let (line, _) = present(words("heaptoll stat t --json j"));
        assert_eq!(line, words("heaptoll trace stat t --json j"));
    }
}
