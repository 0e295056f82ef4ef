//! What is to be gated: programs, each in two builds, and how long it may take.

use std::ffi::OsString;
use std::path::PathBuf;

use super::limits::Limits;
use heaptoll_experiment::experiment::Protocol;
use heaptoll_runs::standard_input::StandardInput;

/// A gate.
#[derive(Debug, Clone)]
pub struct Request {
    /// The programs.
    pub programs: Vec<Entry>,
    /// The commits that both sides are built of; without them both are there.
    pub refs: Option<Refs>,
    /// Seconds that the timed runs of each program may take; by the length of a run where none were given.
    pub budget_s: Option<f64>,
    /// How runs are made; the exit status of success is each program's own.
    pub protocol: Protocol,
    /// A file with families of allocator symbols besides those of the installation.
    pub allocator_symbols: Option<PathBuf>,
}

/// One program in two builds.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What it is compared with.
    pub base: SideRequest,
    /// What is gated.
    pub new: SideRequest,
    /// Its limits.
    pub limits: Limits,
    /// Standard input of both.
    pub stdin: StandardInput,
    /// Exit status of success.
    pub expect_status: i32,
    /// Whether both may write different output.
    pub outputs_differ: bool,
}

/// One side of a program.
#[derive(Debug, Clone, Default)]
pub struct SideRequest {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// A manager that is put into it; its own without one.
    pub manager: Option<String>,
}

/// Two commits of the repository in whose folder heaptoll runs.
#[derive(Debug, Clone)]
pub struct Refs {
    /// The base.
    pub base: String,
    /// What is gated; the working tree as it is without one.
    pub new: Option<String>,
    /// The command that builds a tree, for `sh`; none where nothing has to be built.
    pub build: Option<String>,
}

impl Entry {
    /// A name for a program that has none: that of its file, or of the script that an interpreter runs.
    pub fn name_of(command: &[OsString]) -> String {
        let first = command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        let name = file_name(&first);
        let version = |c: char| c.is_ascii_digit() || c == '.';
        let script =
            INTERPRETERS.contains(&name.trim_end_matches(version)).then(|| script(command)).flatten();
        match script {
            Some(script) => script,
            None if name.is_empty() => first,
            None => name.to_owned(),
        }
    }
}

/// Programs that are named for what they run.
const INTERPRETERS: [&str; 10] =
    ["python", "node", "ruby", "perl", "php", "lua", "sh", "bash", "dash", "java"];

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The script of an interpreter: its first word that is no option. Code on the command line (`-c`, `-e`) is none.
fn script(command: &[OsString]) -> Option<String> {
    let words = command.iter().skip(1).map(|word| word.to_string_lossy());
    let mut words = words.skip_while(|word| word.starts_with('-') && !["-c", "-e"].contains(&word.as_ref()));
    let name = words.next().filter(|word| !word.starts_with('-'))?;
    let name = file_name(&name);
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_an_interpreter_is_named_for_its_script() {
        let name = |text: &str| Entry::name_of(&text.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(name("/usr/bin/python3.11 -S bench/run.py old"), "run.py");
        assert_eq!(name("python3 -m pytest"), "pytest");
        assert_eq!(name("python3 -c print(1)"), "python3");
        assert_eq!(name("sh ./run.sh"), "run.sh");
        assert_eq!(name("perl"), "perl");
        assert_eq!(name("./build/parse in.xml"), "parse");
        assert_eq!(name("/"), "/");
    }
}
