//! The common parts of all tables: the installation, the catalog, the managers, and one run of a program, plain or
//! under one of Valgrind's tools.
//!
//! Valgrind's tools are started as the tracer is, by their own binary and with the tracer's folder as Valgrind's own.
//! The program then finds the same environment, to the byte, and so its stack at the same addresses: the remaining
//! difference is the tools'.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heaptoll_catalog::{Prepared, Size, fill_scratch};
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::{self, Finished, Invocation};
use heaptoll_experiment::manager::Manager;
use heaptoll_experiment::places::Places;
use heaptoll_experiment::runner;
use heaptoll_launcher::Ended;

use crate::Error;
use crate::compile::{OBJECT, compile};
use crate::installation::{Installation, scratch};

/// Where Debian's package has Valgrind's tools.
const VALGRIND: &str = "/usr/libexec/valgrind";

/// The command line of every table.
#[derive(Debug, Clone, clap::Args)]
pub struct Choice {
    /// A program of the catalog; several times for several [default: each table's own]
    #[arg(long = "program", short, value_name = "PROGRAM")]
    pub programs: Vec<String>,
    /// A manager by name, group or path; several times for several [default: each table's own]
    #[arg(long = "manager", short, value_name = "MANAGER")]
    pub managers: Vec<String>,
    /// Size of the programs' inputs
    #[arg(long, value_name = "SIZE", default_value = "quick",
        value_parser = clap::builder::PossibleValuesParser::new(["quick", "demo", "full"]))]
    pub size: String,
    /// Seconds after which a run is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    pub timeout: u64,
}

/// One of Valgrind's own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValgrindTool {
    Callgrind,
    Cachegrind,
}

impl ValgrindTool {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ValgrindTool::Callgrind => "callgrind",
            ValgrindTool::Cachegrind => "cachegrind",
        }
    }
}

/// The installation, and how programs run in it.
pub struct Setup {
    /// heaptoll's own pieces, the catalog and the managers.
    pub installation: Installation,
    /// Cancels runs.
    pub interrupt: Interrupt,
    timeout: Duration,
    /// Preloaded after every manager.
    after_manager: Vec<PathBuf>,
    /// The folder of those objects.
    built: tempfile::TempDir,
}

impl Setup {
    /// Finds everything.
    ///
    /// # Errors
    /// heaptoll is not built, or its catalog or a manager's description cannot be read.
    pub fn open(timeout: u64) -> Result<Setup, Error> {
        let installation = Installation::find()?;
        let (timeout, interrupt) = (Duration::from_secs(timeout), Interrupt::default());
        Ok(Setup { installation, interrupt, timeout, after_manager: vec![], built: scratch()? })
    }

    /// Uses the tracer of another folder (`make -C tracer OUT=FOLDER`) in place of the installation's.
    ///
    /// # Errors
    /// The system's reason.
    pub fn use_tracer(&mut self, folder: &Path) -> Result<(), Error> {
        let folder = folder.canonicalize().map_err(Error::file("find", folder))?;
        let (home, lib) = (self.built.path().to_path_buf(), self.built.path().join("lib/heaptoll"));
        let link = |from: &Path, to: &Path| {
            std::os::unix::fs::symlink(from, to).map_err(Error::file("make a link", to))
        };
        std::fs::create_dir_all(&lib).map_err(Error::file("make", &lib))?;
        let old = self.installation.places.launcher();
        for entry in old.parent().map_or(Ok(vec![]), Setup::files)? {
            if let Some(name) = entry.file_name().filter(|name| *name != "tracer") {
                link(&entry, &lib.join(name))?;
            }
        }
        link(&folder, &lib.join("tracer"))?;
        self.installation.places = Places::at(&home);
        Ok(())
    }

    /// Gives every program a clock that advances with its reads, independent of the speed of the program.
    ///
    /// # Errors
    /// There is no C compiler, or it fails.
    pub fn stop_the_clock(&mut self) -> Result<(), Error> {
        let object = compile(self.built.path(), "clock.c", include_str!("../../c/clock.c"), &OBJECT)?;
        self.after_manager.push(object);
        Ok(())
    }

    /// The programs requested, or these, with their inputs.
    ///
    /// # Errors
    /// One that is not in the catalog or not installed, or an input that cannot be written.
    pub fn programs(&self, choice: &Choice, default: &[&str]) -> Result<Vec<Prepared>, Error> {
        let size: Size = choice.size.parse()?;
        let requested: Vec<&str> = match choice.programs.is_empty() {
            true => default.to_vec(),
            false => choice.programs.iter().map(String::as_str).collect(),
        };
        requested.into_iter().map(|name| self.installation.program(name, size)).collect()
    }

    /// The invocation of a program under a manager, with `tmp` as its scratch folder.
    pub fn invocation(&self, program: &Prepared, manager: &Manager, tmp: &Path) -> Invocation {
        let tmp = tmp.display().to_string();
        let fill = |text: &String| fill_scratch(text, &tmp);
        let pinned = runner::PINNED.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let own = program.environment.iter().map(|(name, value)| (name.clone(), fill(value)));
        Invocation {
            command: program.command.iter().map(fill).map(Into::into).collect(),
            environment: pinned.chain(own).chain(manager.environment.iter().cloned()).collect(),
            preload: manager.object.iter().chain(&self.after_manager).cloned().collect(),
            stdin: program.stdin.clone(),
            timeout: self.timeout,
            ..Invocation::default()
        }
    }

    /// Puts one of Valgrind's tools before an invocation.
    ///
    /// # Errors
    /// [`Error::NoValgrind`].
    pub fn valgrind_tool(
        &self,
        valgrind_tool: ValgrindTool,
        options: &[String],
        to: &Invocation,
    ) -> Result<Invocation, Error> {
        // The tracer's folder has what its own tool needs; others are in Debian's package.
        let folder = Path::new(VALGRIND);
        let tool = folder.join(format!("{}-amd64-linux", valgrind_tool.name()));
        if !tool.is_file() {
            return Err(Error::NoValgrind(tool));
        }
        let mut invocation = to.clone();
        invocation.environment.push(("VALGRIND_LIB".into(), folder.display().to_string()));
        invocation.environment.push(("VALGRIND_LAUNCHER".into(), "/usr/bin/valgrind.bin".into()));
        let head = [tool.into_os_string(), format!("--tool={}", valgrind_tool.name()).into(), "-q".into()];
        let rest = options.iter().map(OsString::from).chain(["--".into()]).chain(to.command.iter().cloned());
        invocation.command = head.into_iter().chain(rest).collect();
        Ok(invocation)
    }

    /// Runs an invocation.
    ///
    /// # Errors
    /// [`Error::Failed`] when it does not end with status 0 or prints what it must not.
    pub fn run(
        &self,
        program: &Prepared,
        manager: &str,
        by: &str,
        invocation: &Invocation,
    ) -> Result<Finished, Error> {
        let finished = launch::run(&self.installation.places.launcher(), invocation, &self.interrupt)?;
        self.check(program, manager, by, &finished)?;
        Ok(finished)
    }

    /// Checks that a run ended well and printed the expected output.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Interrupted`].
    pub fn check(
        &self,
        program: &Prepared,
        manager: &str,
        by: &str,
        finished: &Finished,
    ) -> Result<(), Error> {
        let stderr = finished.error_tail.trim();
        let reason = match finished.ended {
            Ended::Exit(0) => match &program.expected_digest {
                Some(digest) if *digest != finished.digest => "its output is not the expected one".to_owned(),
                _ => return Ok(()),
            },
            Ended::Exit(status) => format!("it ended with status {status}"),
            Ended::Signal(signal) => format!("it was killed by signal {signal}"),
            Ended::Timeout => {
                format!("it was ended after {} s; --timeout gives it more", self.timeout.as_secs())
            }
            Ended::Cancelled => return Err(Error::Interrupted),
            Ended::ExecFailed(code) | Ended::SetupFailed(code) => {
                format!("it could not be started: {}", std::io::Error::from_raw_os_error(code))
            }
        };
        let reason = if stderr.is_empty() { reason } else { format!("{reason}: {stderr}") };
        Err(self.failed(program, manager, by, reason))
    }

    /// The error of a run that did not end as it must.
    pub fn failed(&self, program: &Prepared, manager: &str, by: &str, reason: String) -> Error {
        Error::failed(format!("{} under {manager} by {by}", program.name), reason)
    }

    /// The content of a scratch folder.
    ///
    /// # Errors
    /// The system's reason.
    pub fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let entries = std::fs::read_dir(folder).map_err(Error::file("read", folder))?;
        entries.map(|entry| Ok(entry.map_err(Error::file("read", folder))?.path())).collect()
    }
}
