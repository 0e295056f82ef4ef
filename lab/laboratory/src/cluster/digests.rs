//! The files that decide what is measured, with their digests: programs, what the loader gives them, managers, layers,
//! the launcher, inputs.
//!
//! A node finds them again and compares: another build of a library under the same name, or one that a node lacks so that
//! the loader leaves out a manager in silence, is refused before anything runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptoll_experiment::experiment::{Experiment, ProgramInfo, StackInfo};
use heaptoll_experiment::places::Places;
use heaptoll_preflight::inspect_program;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ClusterError;
use super::role::Role;

/// A file and what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDigest {
    /// Its path, the same on each node.
    pub path: String,
    /// What it is to the experiment.
    pub role: Role,
    /// Its length.
    pub bytes: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

/// The files of an experiment by path, each once; without digests.
#[derive(Default)]
struct Files {
    found: BTreeMap<PathBuf, Role>,
}

/// Finds the files of an experiment on this machine and digests them, with `others` that take part.
///
/// # Errors
/// A file is missing or cannot be read, or the loader cannot serve a program or an object.
pub fn of_experiment(
    experiment: &Experiment,
    others: &[PathBuf],
    places: &Places,
) -> Result<Vec<FileDigest>, ClusterError> {
    let mut files = Files::default();
    files.add(&places.launcher(), Role::Launcher);
    others.iter().for_each(|path| files.add(path, Role::Object));
    let mut objects = vec![places.start_layer()];
    let mut loaders = Vec::new();
    for program in &experiment.programs {
        for run in commands(program, &experiment.stacks) {
            files.add_command(&run, &mut loaders)?;
        }
        if let Some(stdin) = &program.stdin {
            files.add(Path::new(stdin), Role::Input);
        }
    }
    objects.extend(experiment.stacks.iter().flat_map(|stack| &stack.preload).map(PathBuf::from));
    files.with_objects(objects, loaders)?;
    files.digested()
}

/// The files of one command with this environment, and what is preloaded into it.
///
/// # Errors
/// As [`of_experiment`].
pub fn of_command(
    words: &[OsString],
    environment: Vec<(OsString, OsString)>,
    stdin: Option<&Path>,
    objects: &[PathBuf],
) -> Result<Vec<FileDigest>, ClusterError> {
    let (mut files, mut loaders) = (Files::default(), Vec::new());
    files.add_command(&Run { words: words.to_vec(), environment, folder: None }, &mut loaders)?;
    if let Some(stdin) = stdin {
        files.add(stdin, Role::Input);
    }
    files.with_objects(objects.to_vec(), loaders)?;
    files.digested()
}

/// Variables with their values.
type Environment = Vec<(OsString, OsString)>;

/// A command that takes part.
struct Run {
    words: Vec<OsString>,
    environment: Environment,
    folder: Option<PathBuf>,
}

/// The commands of a program: its own or those of its builds, and the load of a server.
fn commands(program: &ProgramInfo, stacks: &[StackInfo]) -> Vec<Run> {
    // No path is below it, so words with a scratch folder name no input.
    let scratch = Path::new("/nonexistent");
    let mut environment: Environment = std::env::vars_os().collect();
    let own = program.environment.iter();
    environment.extend(own.map(|(name, value)| (name.into(), program.filled(value, scratch).into())));
    let builds = stacks.iter().filter(|stack| stack.program == program.name && stack.own_command.is_some());
    let mut commands: Vec<Run> = builds
        .map(|stack| Run {
            words: stack.command_in(program, scratch),
            environment: environment.clone(),
            folder: stack.directory().map(Path::to_path_buf),
        })
        .collect();
    if commands.is_empty() {
        commands.push(Run { words: program.command_in(scratch), environment, folder: None });
    }
    if let Some(serve) = &program.serve {
        let words = program.load_in(serve, scratch);
        commands.push(Run { words, environment: std::env::vars_os().collect(), folder: None });
    }
    commands
}

impl Files {
    /// Adds what is preloaded, and the libraries that the loader gives to it and to the programs: each with its loader.
    fn with_objects(
        &mut self,
        mut objects: Vec<PathBuf>,
        mut loaders: Vec<(PathBuf, PathBuf)>,
    ) -> Result<(), ClusterError> {
        objects.sort();
        objects.dedup();
        for object in &objects {
            self.add(object, Role::Object);
        }
        // Any of the programs' loaders finds an object's libraries; they are one C library's.
        if let Some((loader, _)) = loaders.first().cloned() {
            loaders.extend(objects.into_iter().map(|object| (loader.clone(), object)));
        }
        loaders.sort();
        loaders.dedup();
        for (loader, binary) in &loaders {
            self.add(loader, Role::Library);
            for library in libraries(loader, binary)? {
                self.add(&library, Role::Library);
            }
        }
        Ok(())
    }

    /// All of them with their digests.
    fn digested(self) -> Result<Vec<FileDigest>, ClusterError> {
        self.found.into_iter().map(|(path, role)| digest(&path, role)).collect()
    }

    /// Adds a file under the first role in which it was found.
    fn add(&mut self, path: &Path, role: Role) {
        self.found.entry(path.to_path_buf()).or_insert(role);
    }

    /// Adds what a command runs, and the files that its other words name. The loader of its binary is added to `loaders`.
    fn add_command(&mut self, run: &Run, loaders: &mut Vec<(PathBuf, PathBuf)>) -> Result<(), ClusterError> {
        let command = &run.words;
        let facts = inspect_program(command, &run.environment, run.folder.as_deref()).map_err(|refusal| {
            let command = command.first().map_or("a command".into(), |word| word.to_string_lossy());
            ClusterError::Program { command: command.into_owned(), why: refusal.to_string() }
        })?;
        self.add(&facts.path, Role::Program);
        for interpreter in &facts.interpreters {
            self.add(interpreter, Role::Program);
        }
        self.add(&facts.binary, Role::Program);
        loaders.push((facts.loader, facts.binary));
        for word in command.iter().skip(1) {
            if let Some(path) = file_of_word(word) {
                self.add(&path, Role::Input);
            }
        }
        Ok(())
    }
}

/// The regular file that a word names, by itself or after `=`.
fn file_of_word(word: &OsStr) -> Option<PathBuf> {
    let after_equals = word.to_str().and_then(|text| text.split_once('=')).map(|(_, value)| value);
    let candidates = [Some(Path::new(word)), after_equals.map(Path::new)];
    let path = candidates.into_iter().flatten().find(|path| path.is_file())?;
    std::path::absolute(path).ok()
}

/// The shared libraries that the loader gives to a program or an object. Nothing of the program runs.
fn libraries(loader: &Path, binary: &Path) -> Result<Vec<PathBuf>, ClusterError> {
    let refused =
        |why: String| ClusterError::Libraries { path: binary.to_path_buf(), why: why.trim().to_owned() };
    let output = Command::new(loader)
        .arg("--list")
        .arg(binary)
        .env_remove("LD_PRELOAD")
        .env_remove("LD_AUDIT")
        .env_remove("LD_DEBUG")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| refused(format!("{} cannot be started: {error}", loader.display())))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if let Some(line) = text.lines().find(|line| line.contains("not found")) {
        return Err(refused(line.to_owned()));
    }
    // An object without libraries is reported so, with a status of its own.
    if !output.status.success() && !text.contains("statically linked") {
        return Err(refused(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(listed(&text))
}

/// The paths in the loader's list: `libm.so.6 => /lib/libm.so.6 (0x7f...)`, or a path alone for what was named by one.
fn listed(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let line = line.trim();
        let target = line.split_once(" => ").map_or(line, |(_, target)| target);
        let (path, _) = target.rsplit_once(" (0x")?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

/// A file's length and digest.
pub(crate) fn digest(path: &Path, role: Role) -> Result<FileDigest, ClusterError> {
    let read = || {
        // To open a pipe waits for its writer, and a device has no end: a description of others may name either.
        if !path.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        heaptoll_catalog::FileDigest::read(path)
    };
    match read() {
        Ok(found) => {
            let path = path.display().to_string();
            Ok(FileDigest { path, role, bytes: found.bytes, sha256: found.sha256 })
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            Err(ClusterError::MissingFile { path: path.to_path_buf(), role })
        }
        Err(cause) => Err(ClusterError::Read { path: path.to_path_buf(), cause }),
    }
}

/// Compares the files of a plan with those that were found on this node.
///
/// # Errors
/// The first file that is missing here, differs, or was not there when the plan was made.
pub fn compare(planned: &[FileDigest], here: &[FileDigest]) -> Result<(), ClusterError> {
    let found: BTreeMap<&str, &FileDigest> = here.iter().map(|file| (file.path.as_str(), file)).collect();
    for file in planned {
        match found.get(file.path.as_str()) {
            Some(same) if same.sha256 == file.sha256 => {}
            Some(other) => {
                return Err(ClusterError::OtherFile {
                    path: file.path.clone().into(),
                    role: file.role,
                    here: other.sha256.clone(),
                    planned: file.sha256.clone(),
                });
            }
            None => {
                return Err(ClusterError::MissingFile { path: file.path.clone().into(), role: file.role });
            }
        }
    }
    let known: BTreeSet<&str> = planned.iter().map(|file| file.path.as_str()).collect();
    // A word that names a file only now named none when the plan was made: an output, or nothing that was read.
    let is_new = |file: &&FileDigest| file.role != Role::Input && !known.contains(file.path.as_str());
    match here.iter().find(is_new) {
        Some(file) => Err(ClusterError::UnplannedFile { path: file.path.clone().into(), role: file.role }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, sha256: &str) -> FileDigest {
        FileDigest { path: path.into(), role: Role::Library, bytes: 1, sha256: sha256.into() }
    }

    #[test]
    fn the_loader_s_list_gives_paths() {
        let text = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibm.so.6 => /lib/x86_64/libm.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let found = listed(text);
        assert_eq!(found, [Path::new("/lib/x86_64/libm.so.6"), Path::new("/lib64/ld-linux-x86-64.so.2")]);
        assert!(listed("\tstatically linked\n").is_empty());
    }

    /// Before, an artifact that names a pipe or `/dev/zero` was read for ever.
    #[test]
    fn a_device_is_no_file_that_took_part() {
        let refused = digest(Path::new("/dev/zero"), Role::Input).expect_err("a device").to_string();
        assert!(refused.contains("/dev/zero") && refused.contains("not a regular file"), "{refused}");
        let missing = digest(Path::new("/nowhere/at/all"), Role::Input);
        assert!(matches!(missing, Err(ClusterError::MissingFile { .. })), "{missing:?}");
    }

    #[test]
    fn another_file_a_missing_one_and_one_more_are_distinguished() {
        let planned = [file("/a", "1"), file("/b", "2")];
        assert!(compare(&planned, &planned).is_ok());
        let other = compare(&planned, &[file("/a", "1"), file("/b", "3")]);
        assert!(matches!(other, Err(ClusterError::OtherFile { .. })), "{other:?}");
        let missing = compare(&planned, &planned[..1]);
        assert!(matches!(missing, Err(ClusterError::MissingFile { .. })), "{missing:?}");
        let more = compare(&planned[..1], &planned);
        assert!(matches!(more, Err(ClusterError::UnplannedFile { .. })), "{more:?}");
        let output = FileDigest { role: Role::Input, ..file("/c", "3") };
        assert!(compare(&planned, &[planned[0].clone(), planned[1].clone(), output]).is_ok());
    }

    #[test]
    fn a_program_has_itself_its_loader_and_the_c_library() {
        let words = vec![OsString::from("/bin/ls")];
        let run = Run { words, environment: std::env::vars_os().collect(), folder: None };
        let (mut files, mut loaders) = (Files::default(), vec![]);
        files.add_command(&run, &mut loaders).expect("ls is there");
        let (loader, binary) = &loaders[0];
        let found = libraries(loader, binary).expect("the loader lists");
        assert!(found.iter().any(|path| path.ends_with("libc.so.6")), "{found:?}");
        let digest = digest(binary, Role::Program).expect("reads");
        assert_eq!(digest.sha256.len(), 64);
        assert!(digest.bytes > 1000);
    }

    #[test]
    fn words_name_files_by_themselves_and_after_an_equals_sign() {
        assert_eq!(file_of_word(OsStr::new("/etc/passwd")), Some("/etc/passwd".into()));
        assert_eq!(file_of_word(OsStr::new("--in=/etc/passwd")), Some("/etc/passwd".into()));
        assert_eq!(file_of_word(OsStr::new("--in=/no/such")), None);
        assert_eq!(file_of_word(OsStr::new("/etc")), None, "a folder");
    }
}
