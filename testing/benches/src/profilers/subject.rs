//! The programs whose profiles are compared. The set was chosen before anything was measured: three planted ones whose
//! sites are known, and the two of the catalog's interpreters that leave their heap as it is when they end.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptoll_catalog::{Prepared, Size};

use crate::Error;
use crate::compile::compile;
use crate::installation::Installation;

const SOURCE: &str = include_str!("../../c/sites.c");
/// How the planted program allocates.
const PLANTED: [&str; 3] = ["even", "mixed", "churn"];
/// Of the catalog.
const INTERPRETERS: [&str; 2] = ["gawk", "perl"];
/// The catalog's program that does most calls for what it computes: for the cost alone.
const BUSY: &str = "cfrac";

/// A program with its input.
pub struct Subject {
    /// Its name in tables.
    pub name: String,
    words: Vec<PathBuf>,
    environment: Vec<(String, String)>,
    stdin: Option<PathBuf>,
}

/// All of them.
pub struct Subjects {
    /// Whose profiles are compared.
    pub profiled: Vec<Subject>,
    /// By which the cost is measured: a planted one, and one that does little else than allocate.
    pub timed: Vec<Subject>,
}

impl Subject {
    /// The command, but for what is preloaded. `before` are words in front of it.
    ///
    /// # Errors
    /// Its input cannot be opened.
    pub fn command(&self, before: &[&str]) -> Result<Command, Error> {
        let mut words = before.iter().map(PathBuf::from).chain(self.words.iter().cloned());
        let first = words.next().ok_or_else(|| Error::Unexpected(format!("{} has no command", self.name)))?;
        let mut command = Command::new(first);
        command.args(words).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(match &self.stdin {
            Some(path) => File::open(path).map_err(Error::system(path.display().to_string()))?.into(),
            None => Stdio::null(),
        });
        Ok(command)
    }

    /// The name of the file that its code is in.
    pub fn object(&self) -> String {
        let first = self.words.first().and_then(|path| path.file_name());
        first.unwrap_or_default().to_string_lossy().into_owned()
    }

    fn planted(program: &Path, mode: &str, seed: u64) -> Subject {
        Subject {
            name: format!("sites {mode}"),
            words: vec![program.to_owned(), mode.into(), seed.to_string().into()],
            environment: Vec::new(),
            stdin: None,
        }
    }

    fn of_catalog(prepared: Prepared) -> Subject {
        Subject {
            name: prepared.name.clone(),
            words: prepared.command.into_iter().map(PathBuf::from).collect(),
            environment: prepared.environment.into_iter().collect(),
            stdin: prepared.stdin,
        }
    }
}

impl Subjects {
    /// Compiles the planted program into a folder, and prepares the others.
    ///
    /// # Errors
    /// No compiler, or a program is not installed.
    pub fn prepare(installation: &Installation, folder: &Path, seed: u64) -> Result<Subjects, Error> {
        let options = ["-std=gnu11", "-O2", "-g", "-fno-builtin-malloc"];
        let program = compile(folder, "sites.c", SOURCE, &options)?;
        let of_catalog = |name: &str, size: Size| -> Result<Subject, Error> {
            Ok(Subject::of_catalog(installation.program(name, size)?))
        };
        let mut profiled: Vec<Subject> =
            PLANTED.iter().map(|mode| Subject::planted(&program, mode, seed)).collect();
        for name in INTERPRETERS {
            profiled.push(of_catalog(name, Size::Demo)?);
        }
        let timed = vec![Subject::planted(&program, PLANTED[0], seed), of_catalog(BUSY, Size::Quick)?];
        Ok(Subjects { profiled, timed })
    }
}
