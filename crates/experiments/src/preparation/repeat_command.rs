//! The command that repeats an experiment.

/// The command that repeats the one of these words, with the seed made explicit and without the experiment's name.
pub fn repeating(mut words: Vec<String>, seed: u64, given: bool) -> Vec<String> {
    if let Some(first) = words.first_mut() {
        *first = "heaptoll".into();
    }
    // Each experiment is a file of its own: the same name again would be refused.
    let options = words.iter().position(|word| word == "--").unwrap_or(words.len());
    if let Some(at) = words[..options].iter().position(|word| word == "--db") {
        words.drain(at..(at + 2).min(options));
    } else if let Some(at) = words[..options].iter().position(|word| word.starts_with("--db=")) {
        words.remove(at);
    }
    if !given && words.len() >= 2 {
        words.splice(2..2, ["--seed".to_string(), seed.to_string()]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(line: &str, seed_given: bool) -> String {
        let words = line.split(' ').map(str::to_string).collect();
        repeating(words, 7, seed_given).join(" ")
    }

    #[test]
    fn a_command_is_repeated_with_its_seed_and_into_another_file() {
        assert_eq!(repeated("/x/heaptoll run -- ls", false), "heaptoll run --seed 7 -- ls");
        assert_eq!(repeated("heaptoll run --db e.db --seed 3 -- ls", true), "heaptoll run --seed 3 -- ls");
        assert_eq!(repeated("heaptoll run -n 3 --db=e.db -- ls", true), "heaptoll run -n 3 -- ls");
        assert_eq!(repeated("heaptoll run --all --db e.db", true), "heaptoll run --all");
        // What follows the dashes is the program's.
        assert_eq!(repeated("heaptoll run -- x --db e.db", true), "heaptoll run -- x --db e.db");
    }
}
