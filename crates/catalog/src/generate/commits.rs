//! The history of a project as git's `fast-import` reads it.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `commits` commits, each of which changes some lines of one of `files` files.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commits {
    seed: u64,
    commits: NonZeroU32,
    files: NonZeroU32,
}

/// Lines of a file.
const LINES: u64 = 120;

impl Generate for Commits {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let files = u64::from(self.files.get());
        let mut contents: Vec<Vec<String>> =
            (0..files).map(|_| (0..LINES).map(|_| line(&mut dice)).collect()).collect();
        for commit in 0..u64::from(self.commits.get()) {
            let file = dice.zipf(files);
            let content = &mut contents[file as usize];
            for _ in 0..dice.between(1, 5) {
                content[dice.below(LINES) as usize] = line(&mut dice);
            }
            let (author, time) = (word(dice.zipf(30)), 1_600_000_000 + commit * 60);
            let message = format!("{}\n", line(&mut dice));
            writeln!(out, "commit refs/heads/main\nmark :{}", commit + 1)?;
            writeln!(out, "committer {author} <{author}@example.org> {time} +0000")?;
            writeln!(out, "data {}\n{message}", message.len())?;
            if commit > 0 {
                writeln!(out, "from :{commit}")?;
            }
            let text = format!("{}\n", content.join("\n"));
            writeln!(
                out,
                "M 644 inline {}/{}.txt\ndata {}\n{text}",
                word(file % 20),
                word(file),
                text.len()
            )?;
        }
        writeln!(out, "done")
    }
}

fn line(dice: &mut Dice) -> String {
    let words: Vec<String> = (0..dice.between(3, 10)).map(|_| word(dice.zipf(6000))).collect();
    words.join(" ")
}
