//! `-` as the name of a file to write is standard output, in every command: that form alone is then printed there, and a
//! file that cannot be printed is refused before anything runs.

use std::path::Path;

use clap::{Arg, ArgMatches, Command};
use heaptoll_command::failure::Failure;

use crate::terminal;

/// Makes every write to a standard output that was closed (`>&-`) fail. Before `main`, since Rust's run-time would put
/// `/dev/null` there, which takes a result in silence.
extern "C" fn refuse_where_closed() {
    // SAFETY: both are bare system calls; the path is a C string. What is open is numbered 1 only if 0 is open.
    unsafe {
        if libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) == -1 {
            let full = libc::open(c"/dev/full".as_ptr(), libc::O_WRONLY);
            if full != libc::STDOUT_FILENO && full >= 0 {
                libc::dup2(full, libc::STDOUT_FILENO);
                libc::close(full);
            }
        }
    }
}

#[used]
// SAFETY: the section holds functions that the loader calls, with a C function's calling convention.
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = refuse_where_closed;

/// The options whose file is text.
const TEXTS: [&str; 7] = ["bencher", "csv", "github_benchmark", "html", "json", "junit", "markdown"];

/// The options whose file or folder is written and cannot be printed.
const OTHERS: [&str; 10] =
    ["callgrind", "db", "folder", "keep", "output", "parquet", "parquet_dir", "scratch", "socket", "source"];

/// Whether a path is standard output.
pub fn is_meant(path: &Path) -> bool {
    path == Path::new("-")
}

/// Gives standard output to the option that names it, if one does: of a command, or of one below it.
///
/// # Errors
/// Two options name it, or one whose file cannot be printed.
pub fn claim(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    let Some(command) = command.find_subcommand(name) else { return Ok(()) };
    let mut claimed: Option<String> = None;
    for argument in
        command.get_arguments().filter(|argument| is_output(argument) && names_it(argument, matches))
    {
        let id = argument.get_id().as_str();
        // It knows by the format.
        if name == "export" && id == "output" {
            continue;
        }
        let option = argument.get_long().map_or_else(|| id.to_owned(), |long| format!("--{long}"));
        let why = match &claimed {
            _ if name == "record" => "the program uses it".to_owned(),
            _ if OTHERS.contains(&id) => "such a file is not text".to_owned(),
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
    if claimed.is_some() {
        terminal::reserve_output();
    }
    claim(command, matches)
}

/// Whether an option names what is written.
fn is_output(argument: &Arg) -> bool {
    let id = argument.get_id().as_str();
    !argument.is_positional() && (TEXTS.contains(&id) || OTHERS.contains(&id))
}

fn names_it(argument: &Arg, matches: &ArgMatches) -> bool {
    let id = argument.get_id().as_str();
    argument.get_action().takes_values() && matches.get_raw(id).into_iter().flatten().any(|text| text == "-")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    /// Options that name a file or a folder which is read.
    const INPUTS: [&str; 14] = [
        "allocator_symbols",
        "catalog",
        "check",
        "config",
        "extra",
        "from",
        "instructions",
        "merged",
        "oracles",
        "plan",
        "resume",
        "stdin",
        "suppress",
        "verdicts",
    ];

    /// A command with all below it.
    fn all(command: &Command) -> Vec<&Command> {
        std::iter::once(command).chain(command.get_subcommands().flat_map(all)).collect()
    }

    fn refusal(words: &[&str]) -> Option<String> {
        let command = Cli::command();
        let matches = command.clone().try_get_matches_from(words).expect("a command line");
        claim(&command, &matches).err().map(|failure| failure.to_string())
    }

    #[test]
    fn every_option_that_takes_a_file_is_known_as_one_that_is_read_printed_or_refused() {
        let mut unknown = Vec::new();
        for command in all(&Cli::command()) {
            for argument in command.get_arguments().filter(|argument| !argument.is_positional()) {
                let names = argument.get_value_names().unwrap_or_default();
                let is_file = names.iter().any(|name| ["FILE", "DIR", "DB", "PATH"].contains(&name.as_str()));
                let id = argument.get_id().as_str();
                if is_file && !is_output(argument) && !INPUTS.contains(&id) {
                    unknown.push(format!("{} {id}", command.get_name()));
                }
            }
        }
        assert_eq!(unknown, Vec::<String>::new());
    }

    #[test]
    fn standard_output_is_for_one_text() {
        for (words, why) in [
            (&["trace", "stat", "t", "--json", "-", "--markdown", "-"][..], "uses it already"),
            (&["report", "e.db", "--parquet", "-"], "not text"),
            (&["run", "--db", "-", "--", "ls"], "not text"),
            (&["leaks", "-o", "-", "--", "ls"], "not text"),
            (&["record", "-o", "-", "--", "ls"], "the program uses it"),
            (&["lab", "shards", "plan", "gate", "-o", "-", "--base", "a", "--new", "b"], "not text"),
        ] {
            let refused = refusal(&[&["heaptoll"], words].concat()).expect("refused");
            assert!(refused.contains(why) && refused.contains("name a file with --"), "{refused}");
        }
        assert_eq!(refusal(&["heaptoll", "trace", "export", "t", "--to", "folded", "-o", "-"]), None);
        assert_eq!(refusal(&["heaptoll", "trace", "stat", "-", "--json", "f"]), None);
    }
}
