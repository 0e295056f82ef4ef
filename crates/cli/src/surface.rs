//! The words of the command line: five groups of them, as the help prints them, the names that commands had before, and what
//! refused words may mean.

use std::ffi::OsString;
use std::path::Path;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use heaptoll_report::format::shell_command;

#[cfg(not(feature = "full"))]
use crate::command::LEFT_OUT;
use crate::hints::{is_found, texts};
use crate::laboratory::FORMER;
use crate::registry::{Registry, Section};

/// From what likeness on, of 0 to 1, a name is offered.
const LIKE: f64 = 0.85;

/// The name that `record attach`, a part of a command, had before.
const ATTACH: (&str, &str) = ("sample", "record attach");

/// The names that commands had before, the laboratory's too, and what each is now.
pub fn former(registry: &Registry) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    registry.all().filter_map(|entry| Some((entry.former?, entry.name))).chain([ATTACH]).chain(FORMER)
}

/// The words with the present name of their command, and the old name where that is what they had. `help lab` is `lab help`,
/// which the laboratory answers.
pub fn present(registry: &Registry, mut words: Vec<OsString>) -> (Vec<OsString>, Option<&'static str>) {
    if words.len() > 2 && words[1] == "help" && words[2] == "lab" {
        words.swap(1, 2);
    }
    let is_graph = |word: &OsString| word == "--graph";
    let first = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let has_graph = first == "replay" && words.iter().take_while(|word| *word != "--").any(is_graph);
    let typed = if has_graph { "replay --graph" } else { first };
    let Some((old, new)) = former(registry).find(|(old, _)| *old == typed) else { return (words, None) };
    let rest = words[2..].iter().filter(|word| !(has_graph && is_graph(word))).cloned();
    let all = words[..1].iter().cloned().chain(new.split(' ').map(OsString::from)).chain(rest);
    (all.collect(), Some(old))
}

/// The sentence about an old name.
pub fn renamed(registry: &Registry, old: &str) -> Option<String> {
    let (_, new) = former(registry).find(|(name, _)| *name == old)?;
    Some(format!("`heaptoll {old}` is now `heaptoll {new}`"))
}

/// The command that the words begin with.
fn named<'a>(mut command: &'a Command, words: &[OsString]) -> &'a Command {
    for word in words.iter().skip(1) {
        let Some(inner) = command.find_subcommand(word) else { break };
        command = inner;
    }
    command
}

/// What a word that is no command may mean: the command with the nearest name, of those within groups and the old ones too.
pub fn nearest(registry: &Registry, command: &Command, word: &str) -> Option<String> {
    let old = former(registry).map(|(old, new)| (old.to_owned(), new.to_owned()));
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

/// The words with `--` in front of the program, where that is what was left out, or with the command before it; or what
/// need not be turned on.
pub fn left_out_dashes(
    registry: &Registry,
    error: &clap::Error,
    cli: &Command,
    words: &[OsString],
) -> Option<String> {
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && words.get(1).is_some_and(|first| first == word.as_str())
    {
        return match is_found(Path::new(word)) {
            true => {
                Some(format!("to measure a program: heaptoll run -- {}", shell_command(&texts(&words[1..]))))
            }
            #[cfg(not(feature = "full"))]
            false if LEFT_OUT.contains(&word.as_str()) => {
                Some(heaptoll_command::full::left_out(&format!("`heaptoll {word}`")).to_string())
            }
            false => nearest(registry, cli, word),
        };
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let command = named(cli, words);
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    if let Some(off) = word.strip_prefix("--").and_then(|name| turned_off_by(command, name)) {
        return Some(format!("it does that where --{off} is not given: leave {word} out"));
    }
    if !command.get_positionals().any(clap::Arg::is_last_set) {
        return None;
    }
    let at = words.iter().position(|one| one == word.as_str()).filter(|_| !word.starts_with('-'))?;
    let (before, command) = words.split_at(if takes_trace(command, at, words) { at - 1 } else { at });
    let all = [vec!["heaptoll".into()], texts(before.get(1..)?), vec!["--".into()], texts(command)].concat();
    Some(format!("the program to measure goes after `--`: {}", shell_command(&all)))
}

/// The option that turns off what an option of this name, or its beginning, would turn on.
fn turned_off_by<'a>(command: &'a Command, name: &str) -> Option<&'a str> {
    let mut longs = command.get_arguments().filter_map(clap::Arg::get_long);
    longs.find(|long| !name.is_empty() && long.strip_prefix("no-").is_some_and(|what| what.starts_with(name)))
}

/// Some commands take a trace without `--`: what they took for one is the program, and the refused word its first
/// argument.
fn takes_trace(command: &Command, refused: usize, words: &[OsString]) -> bool {
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let takes_one = command.get_positionals().any(|one| !one.is_last_set());
    takes_one && refused > 2 && !is_option(&words[refused - 1])
}

/// The whole command line's help: what heaptoll is for, what is asked most, and the groups.
pub fn help(registry: &Registry, command: &Command) -> String {
    let about = |name: &str| {
        let found = command.find_subcommand(name).and_then(Command::get_about);
        found.map(|about| about.to_string()).unwrap_or_default()
    };
    let group = |(title, entries): &Section| {
        let mut names: Vec<&str> = entries.iter().filter_map(|entry| entry.name.split(' ').next()).collect();
        names.dedup();
        let lines = names.iter().map(|name| format!("  {name:<9} {}\n", about(name)));
        format!("{title}:\n{}", lines.collect::<String>())
    };
    let groups: Vec<String> = registry.listed.iter().map(group).collect();
    let has = |line: &&str| {
        let name = line.split("heaptoll ").nth(1).and_then(|words| words.split(' ').next());
        name.is_some_and(|name| command.find_subcommand(name).is_some())
    };
    let questions: String = QUESTIONS.split_inclusive('\n').filter(has).collect();
    format!(
        "What does memory management cost this program, and what would another manager cost?\n\n{questions}\n{}\n\
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
    use super::*;
    use crate::{REGISTRY, cli, definitions};

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_help_is_one_screen() {
        let help = help(&REGISTRY, &definitions(&REGISTRY));
        assert!(help.contains(QUESTIONS), "{help}");
        assert!(help.lines().count() <= 40, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }

    /// Before, every word that the build of the demo did not know was a command that it lacks.
    #[test]
    fn the_words_that_the_build_of_the_demo_refuses_are_those_of_the_commands_that_it_lacks() {
        let has = ["run", "choose", "report", "managers", "programs", "lab"];
        let lists = |entry: &&crate::entry::Entry| !REGISTRY.hidden.iter().any(|one| one.name == entry.name);
        let words =
            REGISTRY.all().filter(lists).flat_map(|entry| [entry.name.split(' ').next(), entry.former]);
        let mut lacking: Vec<&str> = words.flatten().filter(|word| !has.contains(word)).collect();
        lacking.sort_unstable();
        lacking.dedup();
        let mut refused = crate::command::LEFT_OUT;
        refused.sort_unstable();
        assert_eq!(refused[..], lacking[..]);
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
        shorts(&definitions(&REGISTRY), &mut found);
        assert!(found.len() > 5 && found.iter().all(|short| *short == Some('f')), "{found:?}");
    }

    #[test]
    fn every_old_name_leads_to_a_command() {
        for (old, new) in former(&REGISTRY) {
            let (line, found) = present(&REGISTRY, words(&format!("heaptoll {old}")));
            assert_eq!(found, Some(old));
            let name = if new.starts_with("lab ") { Some("lab") } else { new.split(' ').next_back() };
            assert_eq!(name, Some(named(&definitions(&REGISTRY), &line).get_name()), "{old}");
            assert!(renamed(&REGISTRY, old).is_some_and(|text| text.contains(new)));
        }
    }

    #[test]
    fn a_word_that_is_no_command_is_answered_with_the_nearest_one_wherever_it_is() {
        let near = |word: &str| nearest(&REGISTRY, &definitions(&REGISTRY), word);
        for (word, whole) in [
            ("lifetime", "trace lifetimes"),
            ("stats", "trace stat"),
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
            assert_eq!(present(&REGISTRY, words(line)), (words(line), None));
        }
        let (line, _) = present(&REGISTRY, words("heaptoll stat t --json j"));
        assert_eq!(line, words("heaptoll trace stat t --json j"));
    }

    fn hint(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let cli = cli(&REGISTRY);
        let error = cli.clone().try_get_matches_from(&words).expect_err("it is refused");
        left_out_dashes(&REGISTRY, &error, &cli, &words)
    }

    #[test]
    fn a_program_without_dashes_in_front_is_answered_with_them() {
        let message = hint("heaptoll run ./rs").expect("a hint");
        assert_eq!(message, "the program to measure goes after `--`: heaptoll run -- ./rs");
        for (typed, meant) in [
            ("record -o t ls /", "record -o t -- ls /"),
            ("run -n 3 sort words.txt", "run -n 3 -- sort words.txt"),
            ("ledger ./requests 8000", "ledger -- ./requests 8000"),
        ] {
            let message = hint(&format!("heaptoll {typed}")).expect(typed);
            assert!(message.ends_with(&format!(": heaptoll {meant}")), "{message}");
        }
        assert_eq!(hint("heaptoll run --no-such-option"), None);
        assert!(
            hint("heaptoll ledger --site").is_some_and(|message| message.contains("--no-sites is not given"))
        );
        assert_eq!(hint("heaptoll managers ls"), None);
    }
}
