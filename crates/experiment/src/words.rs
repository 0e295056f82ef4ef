//! The words of a program's command as they are run: byte for byte as they were given, with the scratch folder's name
//! where the catalog or a server's command has `{tmp}`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use heaptoll_catalog::fill_scratch;

use crate::experiment::{OwnCommand, ProgramInfo, RawWord, ServeInfo, StackInfo};

/// A user's own command as it is stored: each word as it can be shown, and those again that this changes.
pub fn stored(command: &[OsString]) -> (Vec<String>, Vec<RawWord>) {
    let shown = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let raw = command.iter().enumerate().filter(|(_, word)| word.to_str().is_none());
    (shown, raw.map(|(at, word)| RawWord { at, bytes: word.as_bytes().to_vec() }).collect())
}

/// Words as they are stored, and in their places those that are not UTF-8.
fn as_given(shown: &[String], raw_words: &[RawWord]) -> Vec<OsString> {
    let raw = |at| raw_words.iter().find(|raw| raw.at == at);
    let word = |(at, shown): (usize, &String)| {
        raw(at).map_or_else(|| shown.into(), |raw| OsStr::from_bytes(&raw.bytes).to_owned())
    };
    shown.iter().enumerate().map(word).collect()
}

impl OwnCommand {
    /// A user's own command, run in this folder.
    pub fn of(command: &[OsString], directory: Option<&Path>) -> OwnCommand {
        let (command, raw_words) = stored(command);
        OwnCommand { command, raw_words, directory: directory.map(|folder| folder.display().to_string()) }
    }

    /// Its words, byte for byte as they were given.
    pub fn words(&self) -> Vec<OsString> {
        as_given(&self.command, &self.raw_words)
    }
}

impl StackInfo {
    /// What runs under this stack: its own command, or its program's.
    pub fn command_in(&self, program: &ProgramInfo, scratch: &Path) -> Vec<OsString> {
        self.own_command.as_ref().map_or_else(|| program.command_in(scratch), OwnCommand::words)
    }

    /// The folder in which its own command runs, where that has one.
    pub fn directory(&self) -> Option<&Path> {
        self.own_command.as_ref()?.directory.as_deref().map(Path::new)
    }
}

impl ProgramInfo {
    /// A word with the scratch folder's name in its place, where this program has one.
    pub fn filled(&self, word: &str, scratch: &Path) -> String {
        if self.scratch { fill_scratch(word, &scratch.display().to_string()) } else { word.to_owned() }
    }

    /// The command as it is run with this scratch folder.
    pub fn command_in(&self, scratch: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> =
            self.command.iter().map(|word| self.filled(word, scratch).into()).collect();
        for raw in &self.raw_words {
            if let Some(word) = words.get_mut(raw.at) {
                *word = OsString::from_vec(raw.bytes.clone());
            }
        }
        words
    }

    /// The command as it is stored, for looking at its program before any folder is there.
    pub fn command_as_stored(&self) -> Vec<OsString> {
        as_given(&self.command, &self.raw_words)
    }

    /// A server's load as it is run with this scratch folder.
    pub fn load_in(&self, serve: &ServeInfo, scratch: &Path) -> Vec<OsString> {
        self.words_in(&serve.load, scratch)
    }

    /// A server's load and then its burst, where it has one.
    pub fn loads_in(&self, serve: &ServeInfo, scratch: &Path) -> Vec<Vec<OsString>> {
        let all = std::iter::once(&serve.load).chain(&serve.burst);
        all.map(|words| self.words_in(words, scratch)).collect()
    }

    fn words_in(&self, words: &[String], scratch: &Path) -> Vec<OsString> {
        words.iter().map(|word| self.filled(word, scratch).into()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_command(words: &[&[u8]]) -> ProgramInfo {
        let words: Vec<OsString> = words.iter().map(|word| OsString::from_vec(word.to_vec())).collect();
        let (command, raw_words) = stored(&words);
        ProgramInfo { command, raw_words, ..ProgramInfo::default() }
    }

    #[test]
    fn a_users_own_command_is_run_as_it_was_given() {
        let words: [&[u8]; 4] = [b"jq", b"{tmp} {{tmp}}", b"\xff\xfe", "\u{fffd}".as_bytes()];
        let program = own_command(&words);
        let json = serde_json::to_string(&program).expect("it is stored");
        let read: ProgramInfo = serde_json::from_str(&json).expect("it is read back");
        let run = read.command_in(Path::new("/x"));
        assert_eq!(run.iter().map(|word| word.as_bytes()).collect::<Vec<_>>(), words);
        assert_eq!(run, read.command_as_stored());
    }

    #[test]
    fn a_stack_runs_its_own_command_where_it_has_one() {
        let program = own_command(&[b"old", b"{tmp}"]);
        let mut stack = StackInfo::default();
        assert_eq!(stack.command_in(&program, Path::new("/x")), program.command_as_stored());
        let words: Vec<OsString> =
            [&b"new"[..], b"\xff"].map(|word| OsString::from_vec(word.to_vec())).into();
        stack.own_command = Some(OwnCommand::of(&words, Some(Path::new("/built"))));
        let json = serde_json::to_string(&stack).expect("it is stored");
        let read: StackInfo = serde_json::from_str(&json).expect("it is read back");
        assert_eq!(read.command_in(&program, Path::new("/x")), words);
        assert_eq!(read.directory(), Some(Path::new("/built")));
    }

    #[test]
    fn words_of_the_catalog_are_filled_and_so_are_those_of_older_experiments() {
        let words: [&[u8]; 2] = [b"x", b"{tmp}/s"];
        let mut program = ProgramInfo { scratch: true, ..own_command(&words) };
        assert_eq!(program.command_in(Path::new("/x"))[1], "/x/s");
        let mut stored = serde_json::to_value(&program).expect("it is stored");
        stored.as_object_mut().expect("an object").remove("scratch");
        program = serde_json::from_value(stored).expect("it is read back");
        assert_eq!(program.command_in(Path::new("/x"))[1], "/x/s");
    }
}
