//! What every table needs: the installation, the catalog, the managers, and running a program once under one of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use heaptoll_callgrind::tools::{Compilers, Language, run};
use heaptoll_catalog::{Catalog, Prepared, Size, fill_scratch};
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::{self, Invocation};
use heaptoll_experiment::manager::{self, Manager, ManagerSource};
use heaptoll_experiment::places::Places;
use heaptoll_experiment::{machine, runner};
use heaptoll_launcher::Ended;
use heaptoll_stats_page::{SlotRecord, StatsPage};

use crate::{Error, stand_ins};

/// Slots on the statistics page, one a process.
const SLOTS: u32 = 256;

/// What is chosen on the command line of every table.
#[derive(Debug, Clone, clap::Args)]
pub struct Choice {
    /// A manager by name, group or path; several times for several [default: glibc and all of the papers' that are
    /// built]
    #[arg(long = "manager", short, value_name = "MANAGER")]
    pub managers: Vec<String>,
    /// Size of the programs' inputs [default: each table's own]
    #[arg(long, value_name = "SIZE", value_parser = clap::builder::PossibleValuesParser::new(["quick", "demo", "full"]))]
    pub size: Option<String>,
    /// Folder of the papers' tables
    #[arg(long, value_name = "DIR", default_value_os_t = crate::published::default_folder())]
    pub published: PathBuf,
    /// Seconds after which a run is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    pub timeout: u64,
    /// Runs at once, where time is not measured [default: the number of processors]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
}

impl Choice {
    /// The requested size, or a table's own.
    ///
    /// # Errors
    /// None that the command line lets through.
    pub fn size(&self, default: Size) -> Result<Size, Error> {
        Ok(self.size.as_deref().map_or(Ok(default), str::parse)?)
    }
}

/// A manager as a table shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedManager {
    /// Its name; for one given by path the file's.
    pub name: String,
    /// What is preloaded; nothing for glibc.
    pub object: Option<PathBuf>,
    /// What is set for it.
    pub environment: Vec<(String, String)>,
}

/// The installation and what belongs to it.
pub struct Installation {
    /// heaptoll's own pieces.
    pub places: Places,
    /// Cancels runs.
    pub interrupt: Interrupt,
    catalog: Catalog,
    known: Vec<Manager>,
    scratch: tempfile::TempDir,
    timeout: Duration,
    jobs: usize,
}

/// One run of a program.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// The command that runs the program, if any does.
    pub head: Vec<String>,
    /// Objects to preload, in order.
    pub preload: Vec<PathBuf>,
    /// Further environment.
    pub environment: Vec<(String, String)>,
}

impl Installation {
    /// Finds everything.
    ///
    /// # Errors
    /// heaptoll is not built, or its catalog or a manager's description cannot be read.
    pub fn open(timeout: Duration, jobs: Option<u16>) -> Result<Installation, Error> {
        let places = Places::find()?;
        let catalog = Catalog::load(&places.catalog())?;
        let known = manager::known(&places)?;
        let scratch = tempfile::Builder::new()
            .prefix("heaptoll-papers-")
            .tempdir()
            .map_err(Error::file("make a folder in", &std::env::temp_dir()))?;
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Ok(Installation {
            places,
            interrupt: Interrupt::default(),
            catalog,
            known,
            scratch,
            timeout,
            jobs: jobs.map_or_else(cores, usize::from),
        })
    }

    /// A folder that lives as long as the workshop.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// A new folder in it.
    ///
    /// # Errors
    /// The system's reason.
    pub fn folder(&self) -> Result<tempfile::TempDir, Error> {
        tempfile::tempdir_in(self.scratch()).map_err(Error::file("make a folder in", self.scratch()))
    }

    /// The requested managers: by name, group or path; without any, glibc and all of the papers' that are built.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn managers(&self, names: &[String]) -> Result<Vec<SelectedManager>, Error> {
        let chosen = |manager: Manager| {
            let stem = manager.object.as_deref().and_then(Path::file_stem);
            let name = match (manager.kind, stem) {
                (ManagerSource::Path, Some(stem)) => stem.to_string_lossy().into_owned(),
                _ => manager.name,
            };
            SelectedManager { name, object: manager.object, environment: manager.environment }
        };
        if !names.is_empty() {
            let found = manager::choose(&self.known, names.iter().map(String::as_str))?;
            return Ok(found.into_iter().map(chosen).collect());
        }
        let papers = stand_ins::ALL.iter().filter_map(|stand_in| {
            self.known
                .iter()
                .find(|manager| manager.name == stand_in.name && manager.kind == ManagerSource::Built)
        });
        let glibc = self.known.iter().filter(|manager| manager.kind == ManagerSource::Glibc);
        Ok(glibc.chain(papers).cloned().map(chosen).collect())
    }

    /// The papers' managers that are not built here.
    pub fn not_built(&self) -> Vec<&'static str> {
        let built = |name: &str| self.known.iter().any(|manager| manager.name == name);
        stand_ins::ALL.iter().map(|stand_in| stand_in.name).filter(|name| !built(name)).collect()
    }

    /// Programs ready to run.
    ///
    /// # Errors
    /// One that is not in the catalog or not installed, or an input that cannot be written.
    pub fn programs(&self, names: &[String], size: Size) -> Result<Vec<Prepared>, Error> {
        let folders =
            heaptoll_catalog::Places { bin: self.places.programs(), inputs_cache: Places::inputs() };
        names
            .iter()
            .map(|name| {
                let program = self.catalog.find(name)?;
                if let Some(reason) = program.missing(&folders) {
                    return Err(Error::Missing { program: name.clone(), reason });
                }
                Ok(program.prepare(size, &folders)?)
            })
            .collect()
    }

    /// Compiles the object that gives a program a second thread, which sleeps.
    ///
    /// # Errors
    /// There is no C compiler, or it fails.
    pub fn sleeper(&self) -> Result<PathBuf, Error> {
        let (source, object) = (self.scratch().join("sleeper.c"), self.scratch().join("sleeper.so"));
        std::fs::write(&source, include_str!("../sleeper.c")).map_err(Error::file("write", &source))?;
        let mut compile = Compilers::find(false)?.driver(Language::C);
        compile.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&object).arg(&source).arg("-lpthread");
        run(&mut compile, "compiling the sleeping thread", "gcc libc6-dev")?;
        Ok(object)
    }

    /// The layer that counts the requested bytes.
    ///
    /// # Errors
    /// [`Error::NoLayer`].
    pub fn live_layer(&self) -> Result<PathBuf, Error> {
        const FILE: &str = "libheaptoll_live.so";
        let folder = std::env::var_os("HEAPTOLL_LAYERS_DIR").map(PathBuf::from);
        let path = folder.map_or_else(|| self.places.count_layer().with_file_name(FILE), |f| f.join(FILE));
        if path.is_file() { Ok(path) } else { Err(Error::NoLayer(path)) }
    }

    /// Runs a program once. `manager` is for messages: what is preloaded is in `request`.
    ///
    /// # Errors
    /// [`Error::Failed`] when it does not end with status 0 or prints what it must not.
    pub fn run(&self, program: &Prepared, manager: &str, request: &RunRequest) -> Result<(), Error> {
        if self.interrupt.is_set() {
            return Err(Error::Interrupted);
        }
        let folder = self.folder()?;
        let tmp = folder.path().display().to_string();
        let fill = |text: &String| fill_scratch(text, &tmp);
        let mut environment: Vec<(String, String)> =
            runner::PINNED.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        environment.extend(program.environment.iter().map(|(name, value)| (name.clone(), fill(value))));
        environment.extend(request.environment.iter().cloned());
        let invocation = Invocation {
            command: request
                .head
                .iter()
                .cloned()
                .chain(program.command.iter().map(fill))
                .map(Into::into)
                .collect(),
            environment,
            preload: request.preload.clone(),
            stdin: program.stdin.clone(),
            timeout: self.timeout,
            ..Invocation::default()
        };
        let finished = launch::run(&self.places.launcher(), &invocation, &self.interrupt)?;
        let message = finished.error_tail.trim();
        let reason = match finished.ended {
            Ended::Exit(0) => match &program.expected_digest {
                Some(digest) if *digest != finished.digest => "its output is not the expected one".to_owned(),
                _ => return Ok(()),
            },
            Ended::Exit(status) => format!("it ended with status {status}"),
            Ended::Signal(signal) => format!("it was killed by signal {signal}"),
            Ended::Timeout => {
                let limit = self.timeout.as_secs();
                format!("it was killed after {limit} s; --timeout gives it more")
            }
            Ended::Cancelled => return Err(Error::Interrupted),
            Ended::ExecFailed(code) | Ended::SetupFailed(code) => {
                let reason = std::io::Error::from_raw_os_error(code);
                format!("{} could not be started: {reason}", invocation.command[0].display())
            }
        };
        let reason = if message.is_empty() { reason } else { format!("{reason}: {message}") };
        Err(Error::Failed { program: program.name.clone(), manager: manager.into(), reason })
    }

    /// Runs a program once with a statistics page and returns what was written there.
    ///
    /// # Errors
    /// As [`Installation::run`], and the page's.
    pub fn run_with_page(
        &self,
        program: &Prepared,
        manager: &str,
        mut request: RunRequest,
    ) -> Result<Vec<SlotRecord>, Error> {
        let folder = self.folder()?;
        let page = StatsPage::create(&folder.path().join("page"), SLOTS)?;
        request.environment.push((heaptoll_stats_page::VARIABLE.into(), page.path().display().to_string()));
        self.run(program, manager, &request)?;
        Ok(page.read()?)
    }

    /// Does work for each of `items`, several at once, and keeps their order.
    pub fn each<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.min(items.len()) {
                scope.spawn(|| {
                    while let Some((number, item)) = {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        items.get(number).map(|item| (number, item))
                    } {
                        let result = work(item);
                        done.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, result)| result).collect()
    }
}

/// The machine, in a line.
pub fn machine_line() -> String {
    let machine = machine::read();
    format!(
        "{}, {} cores, Linux {}, {}, glibc {}",
        machine.cpu, machine.cores, machine.kernel, machine.distribution, machine.libc
    )
}

/// The note about managers of the papers that are missing, if any are.
pub fn missing_note(installation: &Installation) -> Option<String> {
    let missing = installation.not_built();
    (!missing.is_empty()).then(|| format!("Not built here and so not in the table: {}.", missing.join(", ")))
}
