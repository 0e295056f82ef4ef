//! No command writes a file that it also reads, or two outputs into one file: the command line is refused before anything
//! runs. Of every command in one place, since every option that names a file can meet every other.

use std::ffi::OsStr;
use std::path::Path;

use clap::{Arg, ArgMatches, Command};
use heaptoll_command::failure::Failure;
use heaptoll_command::writable::are_same;

/// The options that name a file to be written.
const OUTPUTS: [&str; 10] = [
    "bencher",
    "csv",
    "github_benchmark",
    "html",
    "json",
    "junit",
    "markdown",
    "output",
    "parquet",
    "source",
];

/// A word of the command line, and the option that it belongs to.
struct Word<'a> {
    option: String,
    text: &'a OsStr,
    is_output: bool,
}

/// Refuses a command line on which an output is the same file as an input or another output.
///
/// # Errors
/// Which are the same.
pub fn refuse(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    let Some(command) = command.find_subcommand(name) else { return Ok(()) };
    if matches.subcommand().is_some() {
        return refuse(command, matches);
    }
    let words: Vec<Word> = command.get_arguments().flat_map(|argument| words(argument, matches)).collect();
    for (at, output) in words.iter().enumerate().filter(|(_, word)| word.is_output) {
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

/// What an argument was given: of the program to run, its path alone.
fn words<'a>(argument: &Arg, matches: &'a ArgMatches) -> Vec<Word<'a>> {
    let id = argument.get_id().as_str();
    let given = matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
    if !given || !argument.get_action().takes_values() {
        return Vec::new();
    }
    let option = argument.get_long().map_or_else(|| id.to_uppercase(), |long| format!("--{long}"));
    // `-` is standard input or output.
    let all = matches.get_raw(id).into_iter().flatten().filter(|text| *text != "-");
    let one = |text| Word { option: option.clone(), text, is_output: OUTPUTS.contains(&id) };
    match argument.is_last_set() {
        true => all.take(1).filter(|text| text.as_encoded_bytes().contains(&b'/')).map(one).collect(),
        false => all.map(one).collect(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    /// Whether the words are refused, and how.
    fn refused(words: &[&str]) -> Option<String> {
        let command = Cli::command();
        let matches = command.clone().try_get_matches_from(words).expect("a command line");
        refuse(&command, &matches).err().map(|failure| failure.to_string())
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
            &["heaptoll", "lab", "tailor", &trace, "-o", &trace],
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
        let path = std::env::current_exe().expect("this test").display().to_string();
        for words in [
            &["heaptoll", "trace", "stat", &path, "--json", "/nowhere/a"][..],
            &["heaptoll", "trace", "stat", "-", "--json", "-"],
            &["heaptoll", "trace", "stat", &path, "--json", "/dev/full", "--html", "/dev/full"],
            &["heaptoll", "run", "--json", &path, "--", "sort", &path],
        ] {
            assert_eq!(refused(words), None);
        }
    }
}
