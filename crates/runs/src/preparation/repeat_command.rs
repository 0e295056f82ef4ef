//! The command that repeats an experiment.

use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::kept_input;

/// The command that repeats the one of these words on these programs, with the file of standard input made explicit.
pub fn with_input(mut words: Vec<String>, programs: &[ProgramInfo]) -> Vec<String> {
    let dashes = words.iter().position(|word| word == "--");
    let stdin = programs.first().and_then(|program| program.stdin.as_ref());
    if let (Some(dashes), Some(stdin)) = (dashes, stdin)
        && kept_input::sha256(stdin).is_none()
        && !words[..dashes].iter().any(|word| word == "--stdin" || word.starts_with("--stdin="))
    {
        words.splice(dashes..dashes, ["--stdin".to_owned(), stdin.clone()]);
    }
    words
}

/// The command that repeats the one of these words, without the experiment's name; a seed is made explicit.
pub fn repeating(mut words: Vec<String>, seed: Option<u64>) -> Vec<String> {
    // Each experiment is a file of its own: the same name again would be refused.
    let options = words.iter().position(|word| word == "--").unwrap_or(words.len());
    if let Some(at) = words[..options].iter().position(|word| word == "--db") {
        words.drain(at..(at + 2).min(options));
    } else if let Some(at) = words[..options].iter().position(|word| word.starts_with("--db=")) {
        words.remove(at);
    }
    let options = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let is_given = words[..options].iter().any(|word| word == "--seed" || word.starts_with("--seed="));
    if let Some(seed) = seed.filter(|_| !is_given && !words.is_empty()) {
        // The words before the first option are the command's name.
        let at = words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len());
        words.splice(at..at, ["--seed".to_owned(), seed.to_string()]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(line: &str, seed: Option<u64>) -> String {
        repeating(line.split(' ').map(str::to_string).collect(), seed).join(" ")
    }

    #[test]
    fn a_file_on_standard_input_is_named_in_the_command_that_repeats_and_a_pipe_is_not() {
        let repeated = |line: &str, stdin: &str| {
            let program = ProgramInfo { stdin: Some(stdin.into()), ..ProgramInfo::default() };
            with_input(line.split(' ').map(str::to_string).collect(), &[program]).join(" ")
        };
        assert_eq!(repeated("heaptoll run -n 3 -- jq .", "/d"), "heaptoll run -n 3 --stdin /d -- jq .");
        assert_eq!(repeated("heaptoll run --stdin x -- jq .", "/x"), "heaptoll run --stdin x -- jq .");
        assert_eq!(repeated("heaptoll run -p gawk", "/log"), "heaptoll run -p gawk", "the catalog's own");
        let kept = format!("/tmp/{}1/{}", heaptoll_scratch::PREFIX, kept_input::name("0f"));
        assert_eq!(repeated("heaptoll run -- jq .", &kept), "heaptoll run -- jq .");
    }

    #[test]
    fn a_command_is_repeated_with_its_seed_and_into_another_file() {
        let seed = Some(7);
        assert_eq!(repeated("heaptoll run -- ls", seed), "heaptoll run --seed 7 -- ls");
        assert_eq!(repeated("heaptoll run --db e.db --seed 3 -- ls", seed), "heaptoll run --seed 3 -- ls");
        assert_eq!(repeated("heaptoll run -n 3 --seed=3 --db=e.db", seed), "heaptoll run -n 3 --seed=3");
        assert_eq!(repeated("heaptoll run --all --db e.db", None), "heaptoll run --all");
        // What follows the dashes is the program's.
        assert_eq!(repeated("heaptoll run -- x --db e.db", None), "heaptoll run -- x --db e.db");
        assert_eq!(repeated("heaptoll run -- x --seed 3", seed), "heaptoll run --seed 7 -- x --seed 3");
        assert_eq!(repeating(vec![], seed), Vec::<String>::new());
    }

    /// Before, the seed stood within the name of a command that is in a group.
    #[test]
    fn the_seed_follows_the_whole_name_of_a_command() {
        assert_eq!(repeated("heaptoll lab delay -p lua", Some(7)), "heaptoll lab delay --seed 7 -p lua");
        assert_eq!(repeated("heaptoll choose", Some(7)), "heaptoll choose --seed 7");
    }
}
