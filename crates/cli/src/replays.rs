//! What both replays share: of traces under managers, and of graphs under collectors.

use heaptoll_report::format::shell_command;

use crate::{exit, outputs, terminal};

/// The exit status of a replay.
pub fn status(complete: bool, has_trouble: bool, code: u8) -> u8 {
    match complete {
        false => {
            terminal::note("interrupted: the tables hold the runs that were made until then");
            exit::INTERRUPTED
        }
        true if has_trouble => exit::TROUBLE,
        true => code,
    }
}

/// The command that repeats it.
pub fn again(seed: u64) -> String {
    let mut words: Vec<String> = outputs::own_arguments();
    if let Some(first) = words.first_mut() {
        *first = "heaptoll".into();
    }
    if !words.iter().any(|word| word == "--seed" || word.starts_with("--seed=")) {
        words.extend(["--seed".into(), seed.to_string()]);
    }
    shell_command(&words)
}
