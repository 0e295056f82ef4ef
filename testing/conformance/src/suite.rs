//! The compiled suite: its program, its libraries and the list of its cases.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use heaptoll_callgrind::tools::{self, driver};
use serde::Serialize;

use crate::error::{Error, file};
use crate::process::{self, Ending};

/// The kind of a case: the managers it applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CaseKind {
    /// It applies to every manager.
    Plain,
    /// It applies to managers that export `heaptoll_control_v1`.
    Control,
    /// A defect of the program: its effect is recorded, not judged.
    Misuse,
    /// A defect and its use to an attacker: recorded, not judged. These cases are a program of their own.
    Security,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Case {
    /// Its name, that of a C function.
    pub name: String,
    /// Its kind.
    pub kind: CaseKind,
    /// One line.
    pub about: String,
}

/// The suite, compiled.
#[derive(Debug)]
pub struct Suite {
    program: PathBuf,
    /// Its cases, in the order of the sources.
    pub cases: Vec<Case>,
}

/// The suite's C sources in the source tree.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("c")
}

/// `include/`, where heaptoll.h is.
pub fn headers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include")
}

/// `-fno-builtin`: the compiler knows the malloc family and would drop calls whose blocks are not used.
const FLAGS: [&str; 6] = ["-O1", "-g", "-fno-builtin", "-pthread", "-Wall", "-Wextra"];
/// Sources that are libraries of their own.
const LIBRARIES: [&str; 2] = ["early", "plugin"];
/// Sources that stand for several files, each a `PART` of them.
const PARTED: (&str, u32) = ("flows", 5);

impl Suite {
    /// Compiles the sources in `from` into the folder `work`.
    ///
    /// # Errors
    /// A compiler that is missing or fails, or a folder that cannot be used.
    pub fn build(from: &Path, work: &Path) -> Result<Suite, Error> {
        file("create", work, std::fs::create_dir_all(work))?;
        let units = units(from)?;
        let (includes, headers) = (include(from), include(&headers()));
        for name in LIBRARIES {
            let object = work.join(format!("lib{name}.so"));
            let mut command = driver(false);
            command.args(FLAGS).args(["-std=c11", "-fPIC", "-shared"]).args([&includes, &headers]);
            command.arg(format!("-Wl,-soname,lib{name}.so")).arg("-o").arg(&object);
            compile(command.arg(from.join(format!("{name}.c"))), "gcc")?;
        }
        let objects = objects(&units, from, work)?;
        let program = work.join("suite");
        let mut command = driver(true);
        // The plugin uses the program's own helpers.
        command.args(["-pthread", "-rdynamic", "-Wl,-rpath,$ORIGIN", "-o"]).arg(&program).args(&objects);
        compile(command.arg("-L").arg(work).args(["-Wl,--no-as-needed", "-learly", "-ldl"]), "g++")?;
        Ok(Suite { cases: list(&program)?, program })
    }

    /// Compiles the attacks in the folder `name` below `from` into the folder `work`: a program without the other cases.
    ///
    /// # Errors
    /// As [`Suite::build`].
    pub fn build_attacks(from: &Path, name: &str, work: &Path) -> Result<Suite, Error> {
        file("create", work, std::fs::create_dir_all(work))?;
        let mut units = units(&from.join(name))?;
        units.extend(["check.c", "main.c"].map(|name| from.join(name)));
        let program = work.join(name);
        let mut command = driver(true);
        command.args(["-pthread", "-o"]).arg(&program).args(objects(&units, from, work)?).arg("-ldl");
        compile(&mut command, "g++")?;
        Ok(Suite { cases: list(&program)?, program })
    }

    /// The case of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn case(&self, name: &str) -> Result<&Case, Error> {
        self.cases
            .iter()
            .find(|case| case.name == name)
            .ok_or_else(|| Error::NoCase { name: name.to_string() })
    }

    /// Verifies that malloc comes from the first object of `preload`: the loader skips what it cannot preload, and
    /// every case would hold because glibc's malloc holds. An object under which no program runs is left to the cases.
    ///
    /// # Errors
    /// It comes from elsewhere.
    pub fn check_bound(
        &self,
        manager: &str,
        preload: &[PathBuf],
        environment: &[(String, String)],
    ) -> Result<(), Error> {
        let Some(object) = preload.first() else { return Ok(()) };
        let limit = Duration::from_secs(20);
        let end = process::run(&self.program, &["--malloc"], preload, environment, limit)?;
        let found = end.stdout.trim();
        let is_it = match (Path::new(found).canonicalize(), object.canonicalize()) {
            (Ok(found), Ok(object)) => found == object,
            _ => false,
        };
        if end.ending == Ending::Status(0) && !is_it {
            return Err(Error::NotBound { manager: manager.into(), found: found.into() });
        }
        Ok(())
    }

    /// Runs one case with these objects preloaded.
    ///
    /// # Errors
    /// Only the system's; how the case ended is in the result.
    pub fn run(
        &self,
        case: &Case,
        preload: &[PathBuf],
        environment: &[(String, String)],
        quick: bool,
        limit: Duration,
    ) -> Result<process::End, Error> {
        let arguments = [case.name.as_str(), "--quick"];
        process::run(&self.program, &arguments[..if quick { 2 } else { 1 }], preload, environment, limit)
    }
}

/// The C and C++ sources in a folder, without those of libraries, in order.
fn units(from: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut units: Vec<PathBuf> = file("read", from, std::fs::read_dir(from))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "c" || end == "cc"))
        .filter(|path| !LIBRARIES.iter().any(|name| path.file_stem().is_some_and(|stem| stem == *name)))
        .collect();
    units.sort();
    Ok(units)
}

/// Compiles sources, several at once. Gives the object files.
fn objects(units: &[PathBuf], from: &Path, work: &Path) -> Result<Vec<PathBuf>, Error> {
    let (includes, headers) = (include(from), include(&headers()));
    let mut jobs = Vec::new();
    for unit in units {
        let parts = if unit.file_stem().is_some_and(|stem| stem == PARTED.0) { PARTED.1 } else { 1 };
        jobs.extend((1..=parts).map(|part| (unit, part)));
    }
    in_parallel(&jobs, |(unit, part)| {
        let plus = unit.extension().is_some_and(|end| end == "cc");
        let object = work.join(format!("{}-{part}.o", unit.file_name().unwrap_or_default().display()));
        let mut command = driver(plus);
        command.args(FLAGS).arg(if plus { "-std=c++17" } else { "-std=c11" }).args([&includes, &headers]);
        command.arg(format!("-DPART={part}")).arg("-c").arg("-o").arg(&object).arg(unit);
        compile(&mut command, if plus { "g++" } else { "gcc" })?;
        Ok(object)
    })
    .into_iter()
    .collect()
}

fn include(folder: &Path) -> String {
    format!("-I{}", folder.display())
}

/// Runs a compiler.
///
/// # Errors
/// It is missing, or fails: the error holds its message.
pub fn compile(command: &mut Command, package: &'static str) -> Result<(), Error> {
    Ok(tools::run(command, "compiling the suite", package).map(drop)?)
}

fn list(program: &Path) -> Result<Vec<Case>, Error> {
    let end = process::run(program, &["--list"], &[], &[], Duration::from_secs(20))?;
    let unexpected =
        |answer: &str| Error::Answer { what: program.display().to_string(), answer: answer.to_string() };
    if end.ending != Ending::Status(0) {
        return Err(unexpected(&end.ending.to_string()));
    }
    end.stdout
        .lines()
        .map(|line| {
            let mut parts = line.splitn(3, '\t');
            let (Some(name), Some(kind), Some(about)) = (parts.next(), parts.next(), parts.next()) else {
                return Err(unexpected(line));
            };
            let kind = match kind {
                "plain" => CaseKind::Plain,
                "control" => CaseKind::Control,
                "misuse" => CaseKind::Misuse,
                "security" => CaseKind::Security,
                _ => return Err(unexpected(line)),
            };
            Ok(Case { name: name.into(), kind, about: about.into() })
        })
        .collect()
}

/// Does `work` on every job, as many at once as there are processors; results are in the order of the jobs.
pub fn in_parallel<J: Sync, R: Send>(jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(jobs.len().max(1));
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(|| {
                    let mut own = Vec::new();
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(job) = jobs.get(at) else { return own };
                        own.push((at, work(job)));
                    }
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
