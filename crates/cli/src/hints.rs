//! Hints for command lines that clap refuses: what the user most likely meant.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands that take a program after `--`.
const TAKE_A_PROGRAM: [&str; 10] = [
    "run",
    "record",
    "ledger",
    "instructions",
    "locality",
    "drag",
    "delay",
    "frequency",
    "proximity",
    "minheap",
];

/// The words with `--` in front of the program, where that is what was left out.
pub fn left_out_dashes(error: &clap::Error, words: &[OsString]) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let command = words.get(1)?.to_str().filter(|command| TAKE_A_PROGRAM.contains(command))?;
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    (!word.starts_with('-')).then(|| {
        format!("the program to measure goes after `--`: heaptoll {command} [OPTIONS] -- {word} ...")
    })
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
        assert_eq!(hint("heaptoll run --no-such-option"), None);
        assert_eq!(hint("heaptoll managers ls"), None);
    }
}
