//! Selects the collectors and their periods.

use heaptoll_experiment::manager::{self, Manager};

use crate::collecting::check;
use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;

/// Collectors when none is named: mark-sweep over the paper's two allocators, and Tithe.
const DEFAULT: [&str; 3] = ["sweep/mimalloc3", "sweep/tcmalloc", "tithe-collect"];
/// Programs when none is named: those that mark their requests.
pub const PROGRAMS: [&str; 3] = ["kv", "queries", "search"];

/// The option that the study varies.
const VARIED: [(&str, &str); 1] = [("every", "--collections")];

/// The collectors: those named, or those of [`DEFAULT`] that are here.
///
/// # Errors
/// An unknown name, or a stack whose period cannot be set.
pub fn stacks(known: &[Manager], words: &[String], messages: &dyn Messages) -> Result<Vec<Manager>, Failure> {
    if words.is_empty() {
        let found = DEFAULT.iter().filter_map(|word| manager::find(known, word).ok());
        return Ok(found.filter(|stack| check(stack, &VARIED).is_ok()).collect());
    }
    let mut chosen: Vec<Manager> = Vec::new();
    for stack in manager::choose(known, words.iter().map(String::as_str))? {
        match check(&stack, &VARIED) {
            Ok(()) => chosen.push(stack),
            // Members of a group are tried, not requested.
            Err(why) if !words.contains(&stack.name) => messages.note(&format!("left out: {why}")),
            Err(why) => return Err(Failure::Usage(format!("-m {why}"))),
        }
    }
    match chosen.is_empty() {
        true => Err(Failure::Usage(format!("no collector is left; take for instance {}", DEFAULT[0]))),
        false => Ok(chosen),
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::manager::glibc;

    use heaptoll_command::context::Silent;

    use super::*;

    #[test]
    fn what_has_no_period_or_sets_it_is_refused() {
        let known = [glibc()];
        let selection =
            |word: &str| stacks(&known, &[word.into()], &Silent).map_err(|failure| failure.to_string());
        assert!(selection("sweep,every=1M/glibc").is_err_and(|message| message.contains("leave out every=")));
        assert!(selection("glibc").is_err_and(|message| message.contains("sweep/mimalloc3")));
        assert_eq!(selection("sweep/glibc").map(|all| all.len()), Ok(1));
    }
}
