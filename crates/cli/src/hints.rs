//! Hints for command lines that clap refuses: what the user most likely meant.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands that take a program after `--`.
const TAKE_A_PROGRAM: [&str; 13] = [
    "run",
    "record",
    "ledger",
    "instructions",
    "locality",
    "drag",
    "oracle",
    "delay",
    "frequency",
    "proximity",
    "minheap",
    "reclamation",
    "gate",
];

/// The words with `--` in front of the program, where that is what was left out.
pub fn left_out_dashes(error: &clap::Error, words: &[OsString]) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let command = words.get(1)?.to_str().filter(|command| TAKE_A_PROGRAM.contains(command))?;
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    (!word.starts_with('-')).then(|| {
        let program = program_before(command, word, words).unwrap_or(word);
        format!("the program to measure goes after `--`: heaptoll {command} [OPTIONS] -- {program} ...")
    })
}

/// `ledger` takes a trace without `--`: what it took for one is the program, and the refused word its first argument.
fn program_before<'a>(command: &str, refused: &str, words: &'a [OsString]) -> Option<&'a str> {
    let at = words.iter().position(|word| word == refused)?;
    let before = words.get(at.checked_sub(1)?)?.to_str()?;
    (command == "ledger" && at > 2 && !before.starts_with('-')).then_some(before)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn hint(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = crate::Cli::try_parse_from(&words).expect_err("it is refused");
        left_out_dashes(&error, &words)
    }

    #[test]
    fn a_program_without_dashes_in_front_is_answered_with_them() {
        let message = hint("heaptoll run ./rs").expect("a hint");
        assert!(message.contains("heaptoll run [OPTIONS] -- ./rs"), "{message}");
        assert!(hint("heaptoll record -o t ls /").is_some_and(|message| message.contains("-- ls")));
        assert!(
            hint("heaptoll ledger ./requests 8000")
                .is_some_and(|message| message.contains("-- ./requests ..."))
        );
        assert_eq!(hint("heaptoll run --no-such-option"), None);
        assert_eq!(hint("heaptoll managers ls"), None);
    }
}
