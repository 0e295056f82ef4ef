//! The program: all cases in one, compiled from `c/proof/` and the conformance suite's helpers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::{Error as SuiteError, file};
use crate::process::{self, Ending};
use crate::proof::subject::Subject;
use crate::proof::verdict::Verdict;
use crate::suite::{self, compile, in_parallel};

/// What can go wrong before a manager can be judged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The compiler, a file, or a process.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// The program did not list its cases.
    #[error("{program} --list ended with {ending}; it has just been compiled: does it run at all?", program = program.display())]
    List {
        /// The program.
        program: PathBuf,
        /// How it ended.
        ending: Ending,
    },
    /// A case that the program does not have.
    #[error("there is no case `{0}`; `heaptoll-proof --list` lists them")]
    NoCase(String),
}

/// A case: its name, and a line on what it checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The name of a C function.
    pub name: String,
    /// One line.
    pub about: String,
}

/// The program, compiled.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    /// Its cases, in the order of the sources.
    pub cases: Vec<Case>,
}

/// The C and C++ sources in the source tree.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("c/proof")
}

/// `-fno-builtin`: the compiler knows the malloc family and would drop calls whose blocks are not used.
const FLAGS: [&str; 6] = ["-O1", "-g", "-fno-builtin", "-pthread", "-Wall", "-Wextra"];
/// The library that cases open and close.
const LIBRARY: &str = "holder";
/// The conformance suite's helpers that the cases use.
const HELPERS: [&str; 2] = ["check.c", "main.c"];

impl Program {
    /// Compiles it into the folder `work`.
    ///
    /// # Errors
    /// A compiler that is missing or fails, a folder that cannot be used, or a program that does not run.
    pub fn build(work: &Path) -> Result<Program, Error> {
        let (own, helpers) = (sources(), suite::sources());
        let mut units: Vec<PathBuf> = file("read", &own, std::fs::read_dir(&own))?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "c" || end == "cc"))
            .filter(|path| path.file_stem().is_some_and(|stem| stem != LIBRARY))
            .chain(HELPERS.iter().map(|name| helpers.join(name)))
            .collect();
        units.sort();
        let includes: Vec<String> =
            [&own, &helpers, &suite::headers()].iter().map(|path| format!("-I{}", path.display())).collect();
        let library = work.join(format!("lib{LIBRARY}.so"));
        let mut command = Command::new("cc");
        command.args(FLAGS).args(["-std=gnu11", "-fPIC", "-shared", "-o"]).arg(&library);
        compile(command.arg(own.join(format!("{LIBRARY}.c"))), "gcc")?;
        let objects: Vec<PathBuf> = units
            .iter()
            .map(|unit| work.join(unit.file_name().unwrap_or_default()).with_extension("o"))
            .collect();
        let jobs: Vec<_> = units.iter().zip(&objects).collect();
        in_parallel(&jobs, |(unit, object)| {
            let plus = unit.extension().is_some_and(|end| end == "cc");
            let mut command = Command::new(if plus { "c++" } else { "cc" });
            command.args(FLAGS).arg(if plus { "-std=gnu++17" } else { "-std=gnu11" }).args(&includes);
            compile(command.arg("-c").arg("-o").arg(object).arg(unit), if plus { "g++" } else { "gcc" })
        })
        .into_iter()
        .collect::<Result<Vec<()>, SuiteError>>()?;
        let path = work.join("proof");
        let mut command = Command::new("c++");
        command
            .args(["-pthread", "-Wl,-rpath,$ORIGIN", "-o"])
            .arg(&path)
            .args(&objects)
            .args(["-ldl", "-lrt"]);
        compile(&mut command, "g++")?;
        Ok(Program { cases: list(&path)?, path })
    }

    /// The case of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn case(&self, name: &str) -> Result<&Case, Error> {
        self.cases.iter().find(|case| case.name == name).ok_or_else(|| Error::NoCase(name.to_string()))
    }

    /// Runs one case; the result has its output, however it ended.
    ///
    /// # Errors
    /// There is no such case, or the system cannot run it.
    pub fn run(&self, name: &str, subject: &Subject, limit: Duration) -> Result<process::End, Error> {
        let case = self.case(name)?;
        let arguments = [case.name.as_str(), "--quick"];
        let arguments = &arguments[..if subject.quick { 2 } else { 1 }];
        Ok(process::run(&self.path, arguments, &subject.preload(), &subject.environment, limit)?)
    }

    /// Runs one case and judges its end.
    ///
    /// # Errors
    /// As of `run`.
    pub fn judge(&self, name: &str, subject: &Subject, limit: Duration) -> Result<Verdict, Error> {
        Ok(Verdict::of(&self.run(name, subject, limit)?))
    }

    /// The file that provides malloc under a subject.
    ///
    /// # Errors
    /// The system cannot run it.
    pub fn malloc_of(&self, subject: &Subject) -> Result<process::End, Error> {
        let limit = Duration::from_secs(20);
        Ok(process::run(&self.path, &["--malloc"], &subject.preload(), &subject.environment, limit)?)
    }
}

fn list(program: &Path) -> Result<Vec<Case>, Error> {
    let end = process::run(program, &["--list"], &[], &[], Duration::from_secs(20))?;
    if end.ending != Ending::Status(0) {
        return Err(Error::List { program: program.to_path_buf(), ending: end.ending });
    }
    let case = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let (name, _, about) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Case { name: name.into(), about: about.into() })
    };
    Ok(end.stdout.lines().filter_map(case).collect())
}
