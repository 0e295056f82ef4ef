//! `heaptoll shell-files`: man pages and completions, made from the definitions that parse the arguments. `make install`
//! and the release call it; it is not listed in the help.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Arg, Args, Command, FromArgMatches, ValueHint};
use clap_complete::Shell;
use heaptoll_command::failure::Failure;
use thiserror::Error;

use crate::entry::Entry;
use crate::written_files::is_text;

/// Write man pages and the completions of bash, zsh and fish below DIR, as a `share` folder has them.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The folder, for example /usr/local/share
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Where each shell finds completions, below a `share` folder.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/heaptoll"),
    (Shell::Zsh, "zsh/site-functions/_heaptoll"),
    (Shell::Fish, "fish/vendor_completions.d/heaptoll.fish"),
];

const MAN: &str = "man/man1";

#[derive(Debug, Error)]
#[error("cannot write {}: {source}; name a folder that can be written to", path.display())]
struct CannotWrite {
    path: PathBuf,
    source: io::Error,
}

/// It is about all commands, and so takes their definitions.
pub const ENTRY: Entry = Entry {
    name: "shell-files",
    former: None,
    first: &[],
    #[cfg(feature = "schemas")]
    schemas: &[],
    define: Arguments::augment_args,
    run: |matches, definitions| {
        let arguments =
            Arguments::from_arg_matches(matches).map_err(|error| Failure::Refused(Box::new(error)))?;
        write(&definitions(), &arguments.folder).map_err(|error| Failure::Refused(Box::new(error)))?;
        Ok(0)
    },
};

fn write(all: &Command, share: &Path) -> Result<(), CannotWrite> {
    for (shell, path) in COMPLETIONS {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut listed(all), "heaptoll", &mut text);
        put(&share.join(path), &text)?;
    }
    let man = share.join(MAN);
    let failed = |source| CannotWrite { path: man.clone(), source };
    fs::create_dir_all(&man).map_err(failed)?;
    clap_mangen::generate_to(all.clone(), &man).map_err(failed)
}

fn put(path: &Path, text: &[u8]) -> Result<(), CannotWrite> {
    let failed = |source| CannotWrite { path: path.to_owned(), source };
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    fs::write(path, text).map_err(failed)
}

/// The commands that the help lists: completions offer no others. (Man pages leave hidden ones out themselves.)
fn listed(all: &Command) -> Command {
    let kept = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let version = crate::version::version();
    with_paths(Command::new("heaptoll").version(version).propagate_version(true).subcommands(kept))
}

/// Has text files completed as paths: clap knows those by their type alone.
fn with_paths(command: Command) -> Command {
    let hinted = |one: Arg| if is_text(&one) { one.value_hint(ValueHint::AnyPath) } else { one };
    command.mut_args(hinted).mut_subcommands(with_paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{REGISTRY, definitions};

    fn files(share: &Path) -> impl Fn(&str) -> String {
        write(&definitions(&REGISTRY), share).expect("writes");
        let share = share.to_owned();
        move |path| fs::read_to_string(share.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[test]
    fn each_listed_command_has_a_man_page_and_is_completed() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = files(folder.path());
        let commands: Vec<String> = listed(&definitions(&REGISTRY))
            .get_subcommands()
            .map(|command| command.get_name().to_owned())
            .collect();
        assert_eq!(commands.len(), 13);
        for command in &commands {
            let page = text(&format!("{MAN}/heaptoll-{command}.1"));
            assert!(page.contains(".SH SYNOPSIS"), "{command}");
            for (_, path) in COMPLETIONS {
                assert!(text(path).contains(command.as_str()), "{path} lacks {command}");
            }
        }
        assert!(text(&format!("{MAN}/heaptoll-trace-stat.1")).contains(".SH OPTIONS"));
        assert!(
            text(&format!("{MAN}/heaptoll.1")).contains("heaptoll\\-run"),
            "the commands' pages are named"
        );
    }

    #[test]
    fn what_help_does_not_list_is_in_none_of_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = files(folder.path());
        for (_, path) in COMPLETIONS {
            assert!(!text(path).contains("shell-files"), "{path}");
        }
        assert!(!text(&format!("{MAN}/heaptoll.1")).contains("shell"));
        assert!(!folder.path().join(MAN).join("heaptoll-shell-files.1").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("writes");
        let error = write(&definitions(&REGISTRY), &file).expect_err("a file is no folder").to_string();
        assert!(error.contains("file/bash-completion") && error.contains("name a folder"), "{error}");
    }
}
