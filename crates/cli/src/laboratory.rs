//! The laboratory is a binary of its own next to the product's: `heaptoll lab ...`, words that the product does not know, and
//! runs under its stacks are handed over to it, as git hands over to its commands.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptoll_command::failure::Failure;
use heaptoll_experiment::stack::named;
use thiserror::Error;

use crate::command::lab;
use crate::entry::Command as _;
use crate::registry::Registry;
use crate::{surface, version};

const BINARY: &str = "heaptoll-lab";

/// Why a laboratory that is there does not take a command line.
#[derive(Debug, Error)]
enum LaboratoryError {
    #[error("heaptoll is {own}, but its laboratory, {}, is {its}; install both of one version", path.display())]
    Another { path: PathBuf, own: &'static str, its: String },
    #[error("cannot start the laboratory, {}: {source}; install it again", path.display())]
    CannotStart { path: PathBuf, source: io::Error },
}

/// Executes the laboratory with these words, if it is there and they are none of the product's.
///
/// # Errors
/// It is of another version, or cannot be started.
pub fn hand_over(registry: &Registry, words: &[OsString]) -> Result<(), Failure> {
    match is_known(registry, words) && !names_its_stacks(words) {
        true => Ok(()),
        false => instead(words),
    }
}

/// Executes the laboratory with these words, if it is there and this is not it.
///
/// # Errors
/// As [`hand_over`].
pub fn instead(words: &[OsString]) -> Result<(), Failure> {
    let Ok(own) = std::env::current_exe() else { return Ok(()) };
    let path = own.with_file_name(BINARY);
    if own == path || !path.is_file() {
        return Ok(());
    }
    let failed =
        |source| Failure::Refused(Box::new(LaboratoryError::CannotStart { path: path.clone(), source }));
    let its = version_of(&path).map_err(failed)?;
    let own = version::version();
    if its != own {
        return Err(Failure::Refused(Box::new(LaboratoryError::Another { path, own, its })));
    }
    let (name, arguments) =
        words.split_first().map_or((OsStr::new(BINARY), words), |(name, rest)| (&**name, rest));
    Err(failed(Command::new(&path).arg0(name).args(arguments).exec()))
}

/// Whether a command line is the product's: a word of its own is first, or none at all.
pub fn is_known(registry: &Registry, words: &[OsString]) -> bool {
    let (words, _) = surface::present(registry, words.to_vec());
    let Some(first) = words.iter().skip(1).find(|word| *word != "help") else { return true };
    let mut own = registry.all().map(|entry| entry.name).filter(|name| *name != lab::Arguments::NAME);
    first.as_encoded_bytes().starts_with(b"-") || own.any(|name| name.split(' ').next() == first.to_str())
}

/// Whether a command line names a stack whose runs the laboratory prepares or reads: a layer with a file that it makes, or a
/// collector of Java's virtual machine. One that is resumed may have such a stack, and `managers` tries them all.
fn names_its_stacks(words: &[OsString]) -> bool {
    let is_its = |name: &str| {
        name == "jvm" || name.starts_with("jvm-") || named(name).is_some_and(|layer| layer.file.is_some())
    };
    let before_program = words.iter().skip(1).take_while(|word| *word != "--");
    before_program.filter_map(|word| word.to_str()).any(|word| {
        let value = word.strip_prefix("-m").unwrap_or(word);
        word == "managers" || word.starts_with("--resume") || value.split(['/', ',', '=']).any(is_its)
    })
}

/// A program's version as it prints it, after its name.
fn version_of(path: &Path) -> io::Result<String> {
    let output =
        Command::new(path).arg("--version").stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.trim().trim_start_matches("heaptoll ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::REGISTRY;

    #[test]
    fn stacks_of_the_laboratory_are_seen_wherever_a_manager_is_named() {
        let its = |line: &str| names_its_stacks(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in [
            "run -m jvm -- java",
            "run -mjvm-g1 -- java",
            "run -m=jvm-g1 -- java",
            "run --manager=glibc,jvm-zgc -- java",
            "run --baseline=jvm -- java",
            "run --resume a.db",
            "run --resume=a.db",
            "managers",
        ] {
            assert!(its(&format!("heaptoll {line}")), "{line}");
        }
        for line in ["run -m quarantine=2M/glibc -- jvm", "run -m tithe-collect -- java", "run -- a --resume"]
        {
            assert!(!its(&format!("heaptoll {line}")), "{line}");
        }
    }

    #[test]
    fn words_that_the_product_does_not_know_are_the_laboratorys() {
        let known =
            |line: &str| is_known(&REGISTRY, &line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in [
            "heaptoll",
            "heaptoll --help",
            "heaptoll help",
            "heaptoll help trace",
            "heaptoll run -- lab",
            "heaptoll stat t",
        ] {
            assert!(known(line), "{line}");
        }
        for line in [
            "heaptoll lab",
            "heaptoll help lab",
            "heaptoll study all",
            "heaptoll replay t --graph",
            "heaptoll nothing",
        ] {
            assert!(!known(line), "{line}");
        }
    }
}
