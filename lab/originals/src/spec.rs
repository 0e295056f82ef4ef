//! SPEC CPU 2017 by path: entries of the catalog for the benchmarks that are built and set up in an installed tree.
//!
//! `runcpu --action=setup` makes a folder for each benchmark and workload, `run_base_refrate_LABEL.0000`, which has the
//! inputs and `speccmds.cmd`: a line for each invocation, in the words of SPEC's specinvoke. An entry runs all of them,
//! one after the other, by a script, with what goes to a file there going to standard output: so outputs are compared.
//! Nothing of SPEC's is copied.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use heaptoll_peers::RecipeError;
use thiserror::Error;

/// What the user types, and the folder that keeps the entries.
pub const NAME: &str = "spec2017";
/// The file of a run folder that has its invocations.
const COMMANDS: &str = "speccmds.cmd";
/// SPEC's workloads with the size of the catalog that each is.
const WORKLOADS: [(&str, &str); 4] =
    [("test", "quick"), ("train", "demo"), ("refrate", "full"), ("refspeed", "full")];

/// Why there are no entries of SPEC's programs.
#[derive(Debug, Error)]
pub enum SpecError {
    /// The folder is no tree of SPEC's.
    #[error(
        "{} has no benchspec/CPU: name the folder that SPEC CPU 2017 was installed in (--from)", path.display()
    )]
    NoTree {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing in it can be run.
    #[error(
        "no benchmark below {} is built and set up: runcpu --config=FILE --action=setup --size=test,ref BENCHMARK",
        path.display()
    )]
    NothingBuilt {
        /// The folder.
        path: PathBuf,
    },
    /// A folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A folder cannot be written.
    #[error(transparent)]
    Write(#[from] RecipeError),
}

/// A benchmark of which an entry was made, or why none was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecProgram {
    /// SPEC's name: `505.mcf_r`.
    pub benchmark: String,
    /// Name of the entry, `spec-mcf_r`, and the workloads that are set up; or why it has none.
    pub entry: Result<(String, Vec<&'static str>), String>,
}

/// One invocation of a run folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Invocation {
    /// Program and arguments, as `sh` reads them.
    words: String,
    /// Standard input, as the line names it.
    stdin: Option<String>,
}

/// What a run folder's commands are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Commands {
    /// Variables, by `-E`.
    environment: Vec<(String, String)>,
    invocations: Vec<Invocation>,
}

/// Makes the entries of what is built and set up in a tree, in the folder `spec2017` of `into`: those that were there are
/// replaced.
///
/// # Errors
/// It is no tree of SPEC's, nothing in it can be run, or a folder cannot be read or written.
pub fn add(tree: &Path, into: &Path) -> Result<(PathBuf, Vec<SpecProgram>), SpecError> {
    let tree = std::path::absolute(tree).unwrap_or_else(|_| tree.to_path_buf());
    let benchmarks = tree.join("benchspec/CPU");
    if !benchmarks.is_dir() {
        return Err(SpecError::NoTree { path: tree });
    }
    let folder = into.join(NAME);
    let written = |source| RecipeError::Write { path: folder.clone(), source };
    let mut programs = Vec::new();
    let mut files: Vec<(String, String)> = Vec::new();
    for benchmark in folders(&benchmarks)? {
        let Some(found) = workloads(&benchmark)? else { continue };
        let name = file_name(&benchmark);
        programs.push(SpecProgram { entry: entry(&name, &found, &folder, &mut files), benchmark: name });
    }
    if programs.is_empty() {
        return Err(SpecError::NothingBuilt { path: tree });
    }
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(written)?;
    for (name, text) in files {
        fs::write(folder.join(name), text).map_err(written)?;
    }
    Ok((folder, programs))
}

/// The run folders of a benchmark by workload, the newest of each; `None` where none is set up.
fn workloads(benchmark: &Path) -> Result<Option<BTreeMap<&'static str, PathBuf>>, SpecError> {
    let run = benchmark.join("run");
    if !run.is_dir() {
        return Ok(None);
    }
    let mut found: BTreeMap<&'static str, PathBuf> = BTreeMap::new();
    for folder in folders(&run)? {
        let name = file_name(&folder);
        let of = |(workload, _): &&(&'static str, &str)| name.starts_with(&format!("run_base_{workload}_"));
        if let Some((workload, _)) = WORKLOADS.iter().find(of)
            && folder.join(COMMANDS).is_file()
        {
            // Folders are in order of their names, which end in a number that rises.
            found.insert(workload, folder);
        }
    }
    Ok((!found.is_empty()).then_some(found))
}

/// The entry of a benchmark and its scripts, added to `files`.
fn entry(
    benchmark: &str,
    found: &BTreeMap<&'static str, PathBuf>,
    folder: &Path,
    files: &mut Vec<(String, String)>,
) -> Result<(String, Vec<&'static str>), String> {
    let short = benchmark.split_once('.').map_or(benchmark, |(_, name)| name);
    let name = format!("spec-{}", short.to_ascii_lowercase());
    let (mut sizes, mut there) = (String::new(), Vec::new());
    let mut scripts = Vec::new();
    for (workload, size) in WORKLOADS {
        let header = format!("[sizes.{size}]");
        let Some(run) = found.get(workload).filter(|_| !sizes.contains(&header)) else { continue };
        let commands = read(run)?;
        runs(run, &commands)?;
        let script = format!("{name}-{workload}.sh");
        let path = folder.join(&script);
        let _ = writeln!(
            sizes,
            "\n{header}\nparameters = {{ script = {} }}",
            quoted(&path.display().to_string())
        );
        scripts.push((script, text(run, &commands)));
        there.push(workload);
    }
    let about = format!("{benchmark} of SPEC CPU 2017, as it is built in {}", first(found));
    let entry = format!(
        "name = {}\nabout = {}\nthreads = 1\nby_name = true\ncommand = [\"/bin/sh\", \"{{script}}\"]\n{sizes}",
        quoted(&name),
        quoted(&about)
    );
    files.extend(scripts);
    files.push((format!("{name}.toml"), entry));
    Ok((name, there))
}

fn first(found: &BTreeMap<&'static str, PathBuf>) -> String {
    found.values().next().map(|path| path.display().to_string()).unwrap_or_default()
}

/// Text of TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Reads what a run folder runs.
fn read(run: &Path) -> Result<Commands, String> {
    let path = run.join(COMMANDS);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let commands = parse(&text);
    if commands.invocations.is_empty() {
        return Err(format!("{} has no invocation", path.display()));
    }
    Ok(commands)
}

/// Lines of specinvoke: options with their values, then the command with its redirections.
fn parse(text: &str) -> Commands {
    let mut commands = Commands::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (mut rest, mut stdin) = (line, None);
        while let Some((option, after)) = option_of(rest) {
            let (value, after) = word(after);
            rest = after;
            match option {
                "-i" => stdin = Some(value.to_owned()),
                "-E" => {
                    let (content, after) = word(rest);
                    commands.environment.push((value.to_owned(), content.to_owned()));
                    rest = after;
                }
                // The folder is the run's, files of output give way to standard output.
                _ => {}
            }
        }
        let words = without_redirections(rest);
        if !words.is_empty() {
            commands.invocations.push(Invocation { words: words.to_owned(), stdin });
        }
    }
    commands
}

/// An option at the beginning of a line that has a value, and what follows it.
fn option_of(line: &str) -> Option<(&str, &str)> {
    let (option, rest) = word(line);
    let is_option = option.len() == 2 && option.starts_with('-');
    is_option.then_some((option, rest))
}

fn word(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    line.split_once(char::is_whitespace).map_or((line, ""), |(word, rest)| (word, rest.trim_start()))
}

/// A command without the redirections that SPEC writes at its end, such as `> inp.out 2>> inp.err`.
fn without_redirections(command: &str) -> &str {
    let mut command = command.trim();
    loop {
        let (before, target) = command.rsplit_once(char::is_whitespace).unwrap_or(("", command));
        let before = before.trim_end();
        let (head, operator) = before.rsplit_once(char::is_whitespace).unwrap_or(("", before));
        let attached = [">", ">>", "2>", "2>>", "<"]
            .iter()
            .any(|one| target.starts_with(one) && target.len() > one.len());
        if attached {
            command = before;
        } else if [">", ">>", "2>", "2>>", "<"].contains(&operator) {
            command = head.trim_end();
        } else {
            return command;
        }
    }
}

/// Whether the programs of these commands are there.
fn runs(run: &Path, commands: &Commands) -> Result<(), String> {
    for invocation in &commands.invocations {
        let (program, _) = word(&invocation.words);
        if !run.join(program).is_file() {
            return Err(format!("{program} is not built: {} has no such file", run.display()));
        }
    }
    Ok(())
}

/// The script of a run folder.
fn text(run: &Path, commands: &Commands) -> String {
    let mut script =
        format!("#!/bin/sh\n# Made by `heaptoll programs add {NAME}`.\ncd {} || exit 127\n", shell(run));
    for (name, value) in &commands.environment {
        let _ = writeln!(script, "export {name}={}", shell(Path::new(value)));
    }
    let last = commands.invocations.len().saturating_sub(1);
    for (at, invocation) in commands.invocations.iter().enumerate() {
        let stdin = invocation.stdin.as_deref().unwrap_or("/dev/null");
        // The last one takes the shell's place.
        let (exec, status) = if at == last { ("exec ", "") } else { ("", " || exit") };
        let _ = writeln!(script, "{exec}{} < {stdin}{status}", invocation.words);
    }
    script
}

fn shell(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// The folders in a folder, by name.
fn folders(path: &Path) -> Result<Vec<PathBuf>, SpecError> {
    let read = |source| SpecError::Read { path: path.to_path_buf(), source };
    let mut found = Vec::new();
    for item in fs::read_dir(path).map_err(read)? {
        let path = item.map_err(read)?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stand-in for an installed tree, of SPEC's shape: one benchmark that is set up for two workloads, one of which the
    /// program was removed, and one that is not built.
    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().expect("a folder");
        let run = |benchmark: &str, run: &str, commands: &str, program: Option<&str>| {
            let folder = tree.path().join("benchspec/CPU").join(benchmark).join("run").join(run);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(COMMANDS), commands).expect("writes");
            if let Some(program) = program {
                fs::write(folder.join(program), "").expect("writes");
            }
        };
        let mcf = "-C /elsewhere\n-o inp.out -e inp.err ../run_base_test_x.0000/mcf_r_base.x inp.in  > inp.out 2>> inp.err\n";
        run("505.mcf_r", "run_base_test_x.0000", mcf, Some("mcf_r_base.x"));
        let two = "-E OMP_NUM_THREADS 4\n-i a.in -o 1.out ./mcf_r_base.x one > 1.out\n./mcf_r_base.x 'two words' 2>>e\n";
        run("505.mcf_r", "run_base_refrate_x.0000", "gone", None);
        run("505.mcf_r", "run_base_refrate_x.0001", two, Some("mcf_r_base.x"));
        run("502.gcc_r", "run_base_test_x.0000", "-o a ../run_base_test_x.0000/cpugcc_r_base.x a.c\n", None);
        fs::create_dir_all(tree.path().join("benchspec/CPU/999.specrand_ir/src")).expect("a folder");
        tree
    }

    #[test]
    fn a_tree_gives_an_entry_for_each_benchmark_that_is_built() {
        let (tree, into) = (tree(), tempfile::tempdir().expect("a folder"));
        let (folder, programs) = add(tree.path(), into.path()).expect("it is a tree");
        let names: Vec<&str> = programs.iter().map(|program| program.benchmark.as_str()).collect();
        assert_eq!(names, ["502.gcc_r", "505.mcf_r"]);
        assert!(programs[0].entry.as_ref().is_err_and(|why| why.contains("cpugcc_r_base.x is not built")));
        assert_eq!(programs[1].entry, Ok(("spec-mcf_r".into(), vec!["test", "refrate"])));
        let text = fs::read_to_string(folder.join("spec-mcf_r.toml")).expect("reads");
        assert!(text.contains("[sizes.quick]") && text.contains("[sizes.full]"), "{text}");
        let script = fs::read_to_string(folder.join("spec-mcf_r-test.sh")).expect("reads");
        assert!(
            script.ends_with("exec ../run_base_test_x.0000/mcf_r_base.x inp.in < /dev/null\n"),
            "{script}"
        );
        let script = fs::read_to_string(folder.join("spec-mcf_r-refrate.sh")).expect("reads");
        for line in [
            "export OMP_NUM_THREADS='4'",
            "./mcf_r_base.x one < a.in || exit",
            "exec ./mcf_r_base.x 'two words' < /dev/null",
        ] {
            assert!(script.lines().any(|found| found == line), "{line}: {script}");
        }
        assert!(script.contains("run_base_refrate_x.0001'"), "the newest: {script}");
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let (empty, into) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        assert!(matches!(add(empty.path(), into.path()), Err(SpecError::NoTree { .. })));
        fs::create_dir_all(empty.path().join("benchspec/CPU/505.mcf_r")).expect("a folder");
        assert!(matches!(add(empty.path(), into.path()), Err(SpecError::NothingBuilt { .. })));
        assert!(!into.path().join(NAME).exists());
    }

    #[test]
    fn redirections_are_left_out_and_words_kept() {
        assert_eq!(without_redirections("./a b > c 2>> d"), "./a b");
        assert_eq!(without_redirections("./a '-x 1' >c 2>>d"), "./a '-x 1'");
        assert_eq!(without_redirections("./a"), "./a");
        assert_eq!(parse("# comment\n\n-r\n"), Commands::default());
    }
}
