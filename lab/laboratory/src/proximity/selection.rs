//! Selects the collectors and their periods.

use heaptoll_experiment::manager::{self, Manager};

use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;

/// Collectors when none is named: mark-sweep over the paper's two allocators, and Tithe.
const DEFAULT: [&str; 3] = ["sweep/mimalloc3", "sweep/tcmalloc", "tithe-collect"];
/// Programs when none is named: those that mark their requests.
pub const PROGRAMS: [&str; 3] = ["kv", "queries", "search"];

/// The option that sets the period.
const EVERY: &str = "every";

/// Whether a stack's period can be set, and has not been.
fn check(stack: &Manager) -> Result<(), String> {
    let swept = stack.layers.iter().find(|layer| layer.kind.collects);
    let set = |option: &str| match swept {
        Some(layer) => layer.settings.iter().any(|(name, _)| name == option),
        None => stack.set.iter().any(|name| name == option),
    };
    if swept.is_none() && !stack.options.contains_key(EVERY) {
        return Err(format!(
            "{} has no period that can be set (option every=); take a collector that has one, or put the \
             sweep layer in front of an allocator: sweep/mimalloc3",
            stack.name
        ));
    }
    match set(EVERY) {
        true => Err(format!("{}: leave out every=, which the study sets", stack.name)),
        false => Ok(()),
    }
}

/// The collectors: those named, or those of [`DEFAULT`] that are here.
///
/// # Errors
/// An unknown name, or a stack whose period cannot be set.
pub fn stacks(known: &[Manager], words: &[String], messages: &dyn Messages) -> Result<Vec<Manager>, Failure> {
    if words.is_empty() {
        let found = DEFAULT.iter().filter_map(|word| manager::find(known, word).ok());
        return Ok(found.filter(|stack| check(stack).is_ok()).collect());
    }
    let mut chosen: Vec<Manager> = Vec::new();
    for stack in manager::choose(known, words.iter().map(String::as_str))? {
        match check(&stack) {
            Ok(()) => chosen.push(stack),
            // Members of a group are tried, not requested.
            Err(why) if !words.contains(&stack.name) => messages.note(&format!("left out: {why}")),
            Err(why) => return Err(Failure::Usage(why)),
        }
    }
    match chosen.is_empty() {
        true => Err(Failure::Usage(format!("no collector is left; take for instance {}", DEFAULT[0]))),
        false => Ok(chosen),
    }
}

/// The options of a period: serial marking and eager sweeps put all of the collector's work into the pauses, so that
/// the requests between them are the program's own. What the user has set stays.
pub fn options(stack: &Manager, every: u64) -> String {
    let swept = stack.layers.iter().find(|layer| layer.kind.collects);
    let mut text = format!("{EVERY}={every}");
    for (option, value) in [("markers", "1"), ("sweep", "eager")] {
        let has = swept.is_some() || stack.options.contains_key(option);
        let set = match swept {
            Some(layer) => layer.settings.iter().any(|(name, _)| name == option),
            None => stack.set.iter().any(|name| name == option),
        };
        if has && !set {
            text.push_str(&format!(",{option}={value}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::manager::glibc;

    use heaptoll_command::context::Silent;

    use super::*;

    #[test]
    fn the_study_sets_what_the_user_has_not() {
        let known = [glibc()];
        let stack = |word: &str| manager::find(&known, word).expect("a stack");
        assert_eq!(options(&stack("sweep/glibc"), 4096), "every=4096,markers=1,sweep=eager");
        assert_eq!(options(&stack("sweep,markers=2,sweep=lazy/glibc"), 8), "every=8");
        let selection =
            |word: &str| stacks(&known, &[word.into()], &Silent).map_err(|failure| failure.to_string());
        assert!(selection("sweep,every=1M/glibc").is_err_and(|message| message.contains("leave out every=")));
        assert!(selection("glibc").is_err_and(|message| message.contains("sweep/mimalloc3")));
        assert_eq!(selection("sweep/glibc").map(|all| all.len()), Ok(1));
    }
}
