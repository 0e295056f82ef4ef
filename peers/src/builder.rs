//! Building: one pool of workers compiles all translation units of all requested peers; the worker that finishes a
//! peer's last unit links the object, proves it and installs it. An installed object stays until its replacement is
//! complete.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use heaptoll_callgrind::tools::{Compilers, Language, run};
use heaptoll_preflight::smoke::Expected;

use crate::error::{Error, IoContext};
use crate::install::put_in_place;
use crate::note::{self, Note};
use crate::peer::Peer;
use crate::recipe::{self, Configure, EXPORT_MAP, Recipe, Text, Unit};
use crate::source::Source;
use crate::{licence, symbols};

/// Where to build, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder for `NAME.so`, `NAME.toml` and `NAME.LICENSE`.
    pub out: PathBuf,
    /// The folder for intermediate files, which are removed again.
    pub work: PathBuf,
    /// Workers, 1 or more.
    pub jobs: usize,
    /// Build even what is up to date.
    pub force: bool,
    /// The program with the hidden smoke subcommand: this one.
    pub prover: PathBuf,
}

/// The outcome for a peer.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was up to date.
    UpToDate(Note),
    /// It was built; wall time from the first unit to the end of the proof.
    Built(Note, Duration),
}

/// A peer and its outcome.
pub type Report = (Peer, Result<Outcome, Error>);

/// The build of one peer.
struct Plan<'a> {
    peer: Peer,
    source: &'a Source,
    recipe: Recipe,
    stamp: String,
    dir: tempfile::TempDir,
    progress: Mutex<Progress>,
}

struct Progress {
    started: Option<Instant>,
    remaining: usize,
    result: Option<Result<Outcome, Error>>,
}

/// One step of a worker.
enum Step {
    Compile(usize),
    Configure,
}

/// Builds the peers that are not up to date; the results come in the order of `peers`.
///
/// # Errors
/// Only errors that stop all of them: no compiler, or folders that cannot be written.
pub fn build(
    peers: &[Peer],
    source_of: impl Fn(Peer) -> Result<Source, Error>,
    settings: &Settings,
) -> Result<Vec<Report>, Error> {
    let sources: Vec<(Peer, Source)> =
        peers.iter().map(|&peer| Ok((peer, source_of(peer)?))).collect::<Result<_, Error>>()?;
    let recipes: Vec<(Peer, Result<Recipe, Error>)> =
        sources.iter().map(|(peer, source)| (*peer, Recipe::of(*peer, source))).collect();
    let cxx = recipes.iter().any(|(_, recipe)| recipe.as_ref().is_ok_and(|r| r.linker == Language::Cxx));
    let compilers = Compilers::find(cxx)?;
    for dir in [&settings.out, &settings.work] {
        std::fs::create_dir_all(dir).context("create", dir)?;
    }

    let mut results: Vec<(Peer, Option<Result<Outcome, Error>>)> = Vec::new();
    let mut plans = Vec::new();
    for ((peer, recipe), (_, source)) in recipes.into_iter().zip(&sources) {
        let outcome = match recipe {
            Err(e) => Some(Err(e)),
            Ok(recipe) => {
                let stamp = note::stamp(&recipe, source, &compilers.version);
                match note::existing(&settings.out, peer) {
                    Some(note) if note.stamp == stamp && !settings.force => Some(Ok(Outcome::UpToDate(note))),
                    _ => {
                        plans.push(Plan::new(peer, source, recipe, stamp, &settings.work)?);
                        None
                    }
                }
            }
        };
        results.push((peer, outcome));
    }

    work_off(&plans, &compilers, settings);
    let mut built: Vec<Report> = Vec::new();
    for plan in plans {
        let progress = plan.progress.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let gone = || Err(Error::Unfinished(plan.peer.name()));
        built.push((plan.peer, progress.result.unwrap_or_else(gone)));
    }
    let mut built = built.into_iter();
    let reports = results.into_iter().filter_map(|(peer, outcome)| match outcome {
        Some(outcome) => Some((peer, outcome)),
        None => built.next(),
    });
    // Also for a peer that is up to date: an older builder wrote none.
    let with_licence = reports.zip(&sources).map(|((peer, outcome), (_, source))| {
        let licensed = |outcome| licence::put(&settings.out, peer, source).map(|()| outcome);
        (peer, outcome.and_then(licensed))
    });
    Ok(with_licence.collect())
}

/// Runs all steps of all plans on `settings.jobs` workers.
fn work_off(plans: &[Plan], compilers: &Compilers, settings: &Settings) {
    // `configure` first: it is the longest single step there is.
    let mut steps: Vec<(&Plan, Step)> = plans
        .iter()
        .filter(|plan| plan.recipe.configure.is_some())
        .map(|plan| (plan, Step::Configure))
        .collect();
    let most = plans.iter().map(|plan| plan.recipe.units.len()).max().unwrap_or(0);
    for index in 0..most {
        let with = plans.iter().filter(|plan| index < plan.recipe.units.len());
        steps.extend(with.map(|plan| (plan, Step::Compile(index))));
    }
    // A configured peer runs make in place of one worker: alone it may use all of them.
    let make_jobs = if plans.len() == 1 { settings.jobs } else { settings.jobs.div_ceil(2) };
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..settings.jobs.clamp(1, steps.len().max(1)) {
            scope.spawn(|| {
                while let Some((plan, step)) = steps.get(next.fetch_add(1, Ordering::Relaxed)) {
                    plan.take(step, compilers, settings, make_jobs);
                }
            });
        }
    });
}

impl<'a> Plan<'a> {
    fn new(
        peer: Peer,
        source: &'a Source,
        recipe: Recipe,
        stamp: String,
        work: &Path,
    ) -> Result<Plan<'a>, Error> {
        let prefix = format!("{}-", peer.name());
        let dir =
            tempfile::Builder::new().prefix(&prefix).tempdir_in(work).context("create a folder in", work)?;
        let remaining = recipe.units.len() + usize::from(recipe.configure.is_some());
        let progress = Mutex::new(Progress { started: None, remaining, result: None });
        Ok(Plan { peer, source, recipe, stamp, dir, progress })
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes one step; the last one links and proves too. After a failure the other steps are skipped.
    fn take(&self, step: &Step, compilers: &Compilers, settings: &Settings, make_jobs: usize) {
        let failed = {
            let mut progress = self.progress();
            progress.started.get_or_insert_with(Instant::now);
            progress.result.is_some()
        };
        let result = match step {
            _ if failed => Ok(()),
            Step::Compile(index) => self.compile(*index, compilers),
            Step::Configure => {
                self.recipe.configure.as_ref().map_or(Ok(()), |c| self.configure(c, compilers, make_jobs))
            }
        };
        let finish = {
            let mut progress = self.progress();
            progress.remaining -= 1;
            if let Err(e) = result {
                progress.result.get_or_insert(Err(e));
            }
            progress.remaining == 0 && progress.result.is_none()
        };
        if finish {
            let note = self.finish(compilers, settings);
            let mut progress = self.progress();
            let took = progress.started.map(|started| started.elapsed()).unwrap_or_default();
            progress.result = Some(note.map(|note| Outcome::Built(note, took)));
        }
    }

    fn object(&self, index: usize) -> PathBuf {
        self.dir.path().join(format!("{index}.o"))
    }

    fn compile(&self, index: usize, compilers: &Compilers) -> Result<(), Error> {
        let unit: &Unit = &self.recipe.units[index];
        let (path, shown) = match &unit.text {
            Text::File(inside) => (self.source.path(inside)?, inside.as_str()),
            Text::Shim(name, text) => {
                let path = self.dir.path().join(name);
                std::fs::write(&path, text).context("write", &path)?;
                (path, *name)
            }
        };
        let mut command = compilers.driver(unit.language);
        command.args(&unit.flags);
        for dir in recipe::include_dirs(&self.recipe, self.source)? {
            command.arg("-I").arg(dir);
        }
        command.arg("-c").arg(&path).arg("-o").arg(self.object(index));
        run(&mut command, &format!("compiling {shown} of {}", self.peer.name()), package(unit.language))?;
        Ok(())
    }

    /// Copies the tree, configures and makes it.
    fn configure(&self, configure: &Configure, compilers: &Compilers, jobs: usize) -> Result<(), Error> {
        let tree = self.dir.path().join("tree");
        copy_tree(&self.source.path(configure.tree)?, &tree)?;
        let script = tree.join("configure");
        std::fs::copy(self.source.path(configure.script)?, &script).context("write", &script)?;
        let what = self.peer.name();
        let mut command = Command::new("sh");
        command.arg("configure").args(&configure.arguments).current_dir(&tree);
        command.env("CC", compilers.command_line(Language::C).join(" "));
        command.env("CXX", compilers.command_line(Language::Cxx).join(" "));
        run(&mut command, &format!("configuring {what}"), "dash")?;
        let empty = tree.join(configure.empty);
        std::fs::write(&empty, "").context("write", &empty)?;
        let mut command = Command::new("make");
        command.args(&configure.make).arg(format!("-j{jobs}")).current_dir(&tree);
        // A make that runs this program must not pass on its job slots or its variables.
        command.env_remove("MAKEFLAGS").env_remove("MFLAGS").env_remove("MAKELEVEL");
        run(&mut command, &format!("making {what}"), "make")?;
        Ok(())
    }

    /// Links, proves and installs.
    fn finish(&self, compilers: &Compilers, settings: &Settings) -> Result<Note, Error> {
        let name = self.peer.name();
        let version = self.source.upstream_version(self.peer)?;
        let built = self.dir.path().join(format!("{name}.so"));
        let mut command = compilers.driver(self.recipe.linker);
        command.arg("-shared").arg("-o").arg(&built);
        command.args((0..self.recipe.units.len()).map(|index| self.object(index)));
        if let Some(configure) = &self.recipe.configure {
            command.args(configured_objects(&self.dir.path().join("tree"), configure)?);
        }
        command.arg(format!("-Wl,-soname,{name}.so"));
        command.args(["-Wl,-O1", "-Wl,--strip-debug", "-Wl,--no-undefined", "-Wl,--as-needed"]);
        if self.recipe.limit_exports {
            let map = self.dir.path().join("export.map");
            std::fs::write(&map, EXPORT_MAP).context("write", &map)?;
            command.arg(format!("-Wl,--version-script={}", map.display()));
        }
        command.args(&self.recipe.link);
        run(&mut command, &format!("linking {name}"), package(self.recipe.linker))?;

        let wanted: Vec<&str> = heaptoll_elf::family::replacement().collect();
        symbols::require(&built, &wanted)?;
        let expected = Expected { overflow: self.recipe.checks_overflow, operators: true };
        heaptoll_preflight::smoke::prove(&settings.prover, &built, expected, [])
            .map_err(|message| Error::Smoke { path: built.clone(), message })?;

        let note = Note {
            name: name.to_string(),
            version,
            origin: self.source.origin(),
            compiler: compilers.version.clone(),
            flags: self.recipe.flags(),
            kind: "peer".to_string(),
            about: self.peer.about().to_string(),
            stamp: self.stamp.clone(),
            sha256: note::file_digest(&built)?,
        };
        let text = toml::to_string(&note).map_err(|e| Error::File {
            action: "write",
            path: note::note_path(&settings.out, self.peer),
            source: std::io::Error::other(e),
        })?;
        put_in_place(
            &std::fs::read(&built).context("read", &built)?,
            &note::object_path(&settings.out, self.peer),
        )?;
        put_in_place(text.as_bytes(), &note::note_path(&settings.out, self.peer))?;
        Ok(note)
    }
}

/// The Debian package of a compiler driver.
fn package(language: Language) -> &'static str {
    match language {
        Language::C => "gcc libc6-dev",
        Language::Cxx => "g++",
    }
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(to).context("create", to)?;
    for entry in std::fs::read_dir(from).context("read", from)? {
        let entry = entry.context("read", from)?;
        let target = to.join(entry.file_name());
        if entry.file_type().context("read", &entry.path())?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target).context("write", &target)?;
        }
    }
    Ok(())
}

fn configured_objects(tree: &Path, configure: &Configure) -> Result<Vec<PathBuf>, Error> {
    let (folder, ending) = configure.objects;
    let dir = tree.join(folder);
    let mut objects = Vec::new();
    for entry in std::fs::read_dir(&dir).context("read", &dir)? {
        let path = entry.context("read", &dir)?.path();
        if path.to_string_lossy().ends_with(ending) {
            objects.push(path);
        }
    }
    objects.sort();
    if objects.is_empty() {
        return Err(Error::Layout { what: format!("make left no object *{ending}"), path: dir });
    }
    Ok(objects)
}
