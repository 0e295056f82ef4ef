//! Stacks whose collection period a study sets: the sweep layer in front of a manager, or a collector with such an option.

use heaptoll_experiment::manager::Manager;

/// One thread marks and a collection is over with its pause, so that the time between pauses is the program's own.
pub const FIXED: [(&str, &str); 2] = [("markers", "1"), ("sweep", "eager")];

/// Whether a stack's collector is the sweep layer.
fn is_swept(stack: &Manager) -> bool {
    stack.layers.iter().any(|layer| layer.kind.collects)
}

/// Whether a stack sets this option of its collector.
fn sets(stack: &Manager, option: &str) -> bool {
    match stack.layers.iter().find(|layer| layer.kind.collects) {
        Some(layer) => layer.setting(option).is_some(),
        None => stack.set.iter().any(|name| name == option),
    }
}

/// Refuses a stack whose period cannot be set, or that has one of the options which the study varies. Each of these stands with
/// the option of the command that sets it.
///
/// # Errors
/// The reason, and what to take instead.
pub fn check(stack: &Manager, varied: &[(&str, &str)]) -> Result<(), String> {
    if !is_swept(stack) && !stack.options.contains_key("every") {
        return Err(format!(
            "{}: it has no period that can be set (option every=); take a collector that has one, or put the \
             sweep layer in front of an allocator: sweep/mimalloc3",
            stack.name
        ));
    }
    match varied.iter().find(|(option, _)| sets(stack, option)) {
        Some((option, by)) => {
            Err(format!("{}: leave out {option}=, which the study sets; set it with {by}", stack.name))
        }
        None => Ok(()),
    }
}

/// The varied options, and those of [`FIXED`] that the collector takes. What the user has set stays.
pub fn options(stack: &Manager, varied: &str) -> String {
    let is_free =
        |option: &str| (is_swept(stack) || stack.options.contains_key(option)) && !sets(stack, option);
    let fixed = FIXED.into_iter().filter(|(option, _)| is_free(option));
    fixed.fold(varied.to_owned(), |all, (option, value)| format!("{all},{option}={value}"))
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::manager::{self, glibc};

    use super::*;

    #[test]
    fn a_study_sets_what_the_user_has_not() {
        let known = [glibc()];
        let stack = |word: &str| manager::find(&known, word).expect("a stack");
        assert_eq!(options(&stack("sweep/glibc"), "every=4096"), "every=4096,markers=1,sweep=eager");
        assert_eq!(options(&stack("sweep,markers=2,sweep=lazy/glibc"), "every=8"), "every=8");
        let refused = |word: &str, varied: &[(&str, &str)]| check(&stack(word), varied).expect_err(word);
        let set = refused("sweep,every=1M/glibc", &[("every", "--every")]);
        assert!(set.contains("leave out every=") && set.ends_with("set it with --every"), "{set}");
        assert!(refused("glibc", &[]).contains("sweep/mimalloc3"));
        assert_eq!(check(&stack("sweep,every=1M/glibc"), &[("reclaim", "--reclaim")]), Ok(()));
    }
}
