//! Hints for command lines that are refused: what the user most likely meant by a word.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Whether a path is a file that can be executed.
pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Whether a shell would find a program of this name.
pub fn is_found(program: &Path) -> bool {
    if program.components().count() > 1 {
        return is_program(program);
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| is_program(&folder.join(program)))
}

/// Words of a command line as text.
pub fn texts(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// What answers an attempt to attach to a process that runs: a number in place of a trace or a program, or `--pid`.
pub fn no_attaching(words: &[OsString]) -> Option<String> {
    let words: Vec<&str> =
        words.iter().map_while(|word| word.to_str()).take_while(|word| *word != "--").collect();
    let (first, rest) = match &words[..] {
        [_, "record", "attach", first, rest @ ..]
        | [_, "record" | "leaks" | "ledger", first, rest @ ..]
        | [_, "trace", "stat", first, rest @ ..] => (first, rest),
        _ => return None,
    };
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_meant = |word: &&str| *word == "--pid" || word.starts_with("--pid=");
    let is_process = is_number(first) && !Path::new(first).exists();
    let is_option = *first == "-p" && rest.first().is_some_and(|word| is_number(word));
    (is_process || is_option || words[2..].iter().any(is_meant)).then(|| {
        "heaptoll cannot attach to a running process. Start it with a dormant sampler: heaptoll record --sample 512K \
         --dormant --socket PATH -- PROGRAM. Then `heaptoll record attach PATH start` begins to sample, and `heaptoll record attach PATH dump` writes a profile"
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_process_is_answered_with_the_sampler_that_sleeps() {
        let answer = |line: &str| no_attaching(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in [
            "record 24654",
            "record -p 24654",
            "record --pid 24654",
            "leaks --pid=24654",
            "ledger 24654",
            "record attach 1",
        ] {
            let answer = answer(&format!("heaptoll {line}")).expect(line);
            assert!(answer.contains("--dormant --socket"), "{answer}");
        }
        for line in
            ["record -- prog --pid 3", "leaks t.heaptoll", "record -p gawk", "run -n 6 -- prog", "record"]
        {
            assert_eq!(answer(&format!("heaptoll {line}")), None, "{line}");
        }
    }
}
