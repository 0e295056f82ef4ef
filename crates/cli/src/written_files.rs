//! The options that name what is written, checked of every command in one place, since each can meet every other: no
//! command writes a file that it also reads, two outputs into one file or to standard output, or what cannot be written at
//! the end. The command line is refused before anything runs.

use std::any::TypeId;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::builder::{MapValueParser, PathBufValueParser, TypedValueParser, ValueParserFactory};
use clap::{Arg, ArgMatches, Command};
use heaptoll_command::failure::Failure;
use heaptoll_command::full::left_out;
use heaptoll_command::writable::{self, are_same};

use crate::terminal;

/// A file that is written as text. `-` is standard output: that form alone is then printed there.
#[derive(Debug, Clone)]
pub struct TextFile(pub PathBuf);

impl AsRef<Path> for TextFile {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl ValueParserFactory for TextFile {
    type Parser = MapValueParser<PathBufValueParser, fn(PathBuf) -> TextFile>;

    fn value_parser() -> Self::Parser {
        PathBufValueParser::new().map(TextFile)
    }
}

/// Whether an option names a file that is written as text.
pub fn is_text(argument: &Arg) -> bool {
    argument.get_value_parser().type_id() == TypeId::of::<TextFile>()
}

/// The options whose file is written and is no text.
const FILES: [&str; 3] = ["output", "parquet", "source"];
/// The options that name anything else that is written.
const OTHERS: [&str; 6] = ["callgrind", "db", "keep", "parquet_dir", "scratch", "socket"];

/// A word of the command line, and the option that it belongs to.
struct Word<'a> {
    argument: &'a Arg,
    id: &'a str,
    option: String,
    text: &'a OsStr,
}

/// Refuses a command line with what is written in a place where it cannot be, and gives standard output to the option that
/// names it, if one does.
///
/// # Errors
/// Which option, and why.
pub fn check(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        return check(command, matches);
    }
    let words: Vec<Word> = command.get_arguments().flat_map(|argument| words(argument, matches)).collect();
    let (streams, files): (Vec<Word>, Vec<Word>) = words.into_iter().partition(|word| word.text == "-");
    refuse_same(&files)?;
    if claim(command.get_name(), &streams)? {
        terminal::reserve_output();
    }
    let parquet = streams.iter().chain(&files).find(|word| word.id == "parquet");
    if let (Some(Word { option, .. }), false) = (parquet, cfg!(feature = "full")) {
        return Err(left_out(option));
    }
    let early = files.iter().filter(|word| is_text(word.argument) || word.id == "parquet");
    early.map(|word| Path::new(word.text)).try_for_each(writable)
}

/// What an argument was given: of the program to run, its path alone.
fn words<'a>(argument: &'a Arg, matches: &'a ArgMatches) -> Vec<Word<'a>> {
    let id = argument.get_id().as_str();
    let given = matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
    if !given || !argument.get_action().takes_values() {
        return Vec::new();
    }
    let option = argument.get_long().map_or_else(|| id.to_uppercase(), |long| format!("--{long}"));
    let all = matches.get_raw(id).into_iter().flatten();
    let one = |text| Word { argument, id, option: option.clone(), text };
    match argument.is_last_set() {
        true => all.take(1).filter(|text| text.as_encoded_bytes().contains(&b'/')).map(one).collect(),
        false => all.map(one).collect(),
    }
}

/// Refuses an output that is the same file as an input or another output.
fn refuse_same(words: &[Word]) -> Result<(), Failure> {
    let is_output = |word: &Word| is_text(word.argument) || FILES.contains(&word.id);
    for (at, output) in words.iter().enumerate().filter(|(_, word)| is_output(word)) {
        let others = words.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, word)| word);
        for other in others {
            if are_same(Path::new(output.text), Path::new(other.text)) {
                return Err(Failure::Usage(format!(
                    "{} and {} are the same file, {}, and would overwrite it: name another file",
                    output.option,
                    other.option,
                    output.text.display()
                )));
            }
        }
    }
    Ok(())
}

/// Whether one of these options, which are given as `-`, is printed; refuses what cannot be.
fn claim(command: &str, streams: &[Word]) -> Result<bool, Failure> {
    let mut claimed: Option<&str> = None;
    for Word { argument, id, option, .. } in streams.iter().filter(|word| is_written(word.argument)) {
        // It knows by the format.
        if command == "export" && *id == "output" {
            continue;
        }
        let why = match claimed {
            _ if command == "record" => "the program uses it".to_owned(),
            _ if !is_text(argument) => "such a file is not text".to_owned(),
            Some(other) => format!("{other} uses it already"),
            None => {
                claimed = Some(option);
                continue;
            }
        };
        return Err(Failure::Usage(format!(
            "{option} - means standard output, but {why}: name a file with {option}"
        )));
    }
    Ok(claimed.is_some())
}

/// Whether an option names what is written.
pub fn is_written(argument: &Arg) -> bool {
    let id = argument.get_id().as_str();
    !argument.is_positional() && (is_text(argument) || FILES.contains(&id) || OTHERS.contains(&id))
}

/// Refuses a file that could not be written at the end, before time is spent.
///
/// # Errors
/// A folder that does not exist or does not let us write; a path that is a folder.
pub fn writable(path: &Path) -> Result<(), Failure> {
    writable::check(path).map_err(|why| Failure::Usage(format!("cannot write {}: {why}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{REGISTRY, definitions};

    /// Whether the words are refused, and how.
    fn refused(words: &[&str]) -> Option<String> {
        let command = definitions(&REGISTRY);
        let matches = command.clone().try_get_matches_from(words).expect("a command line");
        check(&command, &matches).err().map(|failure| failure.to_string())
    }

    #[test]
    fn an_output_is_no_input_and_no_other_output() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        let (trace, link, fresh, again) = (at("a.graph"), at("link"), at("new"), at("./new"));
        std::fs::write(&trace, "x").expect("writes");
        std::os::unix::fs::symlink("a.graph", &link).expect("links");
        for words in [
            &["heaptoll", "trace", "stat", &trace, "--json", &link][..],
            &["heaptoll", "trace", "stat", &link, "--markdown", &trace],
            &["heaptoll", "report", &trace, "--parquet", &trace],
        ] {
            let why = refused(words).expect("refused");
            assert!(why.contains("are the same file") && why.contains(words[words.len() - 2]), "{why}");
        }
        let both = refused(&["heaptoll", "trace", "stat", &trace, "--json", &fresh, "--html", &again]);
        assert!(both.is_some_and(|why| why.contains("--json") && why.contains("--html")));
        assert!(refused(&["heaptoll", "record", "-f", "-o", &trace, "--", &trace]).is_some());
    }

    #[test]
    fn other_files_streams_and_arguments_of_the_program_are_let_through() {
        let folder = tempfile::tempdir().expect("a folder");
        let fresh = folder.path().join("a").display().to_string();
        let path = std::env::current_exe().expect("this test").display().to_string();
        for words in [
            &["heaptoll", "trace", "stat", &path, "--json", &fresh][..],
            &["heaptoll", "trace", "stat", "-", "--json", "-"],
            &["heaptoll", "trace", "stat", &path, "--json", "/dev/full", "--html", "/dev/full"],
            &["heaptoll", "run", "--json", &path, "--", "sort", &path],
        ] {
            assert_eq!(refused(words), None);
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_before() {
        for option in ["--json", "--html", "--parquet", "--csv"] {
            let why = refused(&["heaptoll", "report", "e.db", option, "/nowhere/a"]);
            assert!(why.is_some_and(|why| why.contains("cannot write /nowhere/a: there is no folder")));
        }
    }

    #[test]
    fn standard_output_is_for_one_text() {
        for (words, why) in [
            (&["trace", "stat", "t", "--json", "-", "--markdown", "-"][..], "uses it already"),
            (&["report", "e.db", "--parquet", "-"], "not text"),
            (&["run", "--db", "-", "--", "ls"], "not text"),
            (&["leaks", "-o", "-", "--", "ls"], "not text"),
            (&["record", "-o", "-", "--", "ls"], "the program uses it"),
        ] {
            let refused = refused(&[&["heaptoll"], words].concat()).expect("refused");
            assert!(refused.contains(why) && refused.contains("name a file with --"), "{refused}");
        }
        assert_eq!(refused(&["heaptoll", "trace", "export", "t", "--to", "folded", "-o", "-"]), None);
        assert_eq!(refused(&["heaptoll", "trace", "stat", "-", "--json", "f"]), None);
    }
}
