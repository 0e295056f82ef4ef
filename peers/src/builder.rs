//! Builds objects: workers share the steps of all; whichever object has its last step behind it is linked, proved and
//! put in place. One that is there stays until another is whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use heaptoll_scratch::Scratch;

use crate::compiler::{Compilers, Dialect};
use crate::description::{Description, installed};
use crate::manifest::digest;
use crate::object::ObjectBuild;
use crate::recipe::{ManagerRecipe, Object};
use crate::sources::Sources;
use crate::{RecipeError, Refusal};

/// Whether an object of a recipe serves as a manager, with these variables set; the error is what does not hold.
pub type Proof<'a> = dyn Fn(&ManagerRecipe, &Path, &BTreeMap<String, String>) -> Result<(), String> + 'a;

/// What became of one manager.
#[derive(Debug)]
pub struct AddedManager {
    /// The name for `-m`.
    pub name: String,
    /// How long it took to build, nothing where it was up to date; or why it is not there.
    pub outcome: Result<Option<Duration>, Refusal>,
}

/// Where managers are built, and how.
pub struct Builder<'a> {
    into: &'a Path,
    scratch: Scratch,
    compilers: Compilers,
    /// Compilers that run at once.
    pub jobs: usize,
    /// Whether what is up to date is built again.
    pub force: bool,
}

impl<'a> Builder<'a> {
    /// Into a folder, which gets `NAME.so`, `NAME.toml` and `NAME.LICENSE`. `work` is for what is needed meanwhile, on the
    /// same file system, so that one rename completes a file.
    ///
    /// # Errors
    /// A folder cannot be made, or there is no compiler.
    pub fn new(into: &'a Path, work: &Path) -> Result<Builder<'a>, RecipeError> {
        let unwritable = |source| RecipeError::Write { path: into.to_owned(), source };
        fs::create_dir_all(into).map_err(unwritable)?;
        fs::create_dir_all(work).map_err(unwritable)?;
        let scratch = Scratch::make_in(work).map_err(unwritable)?;
        let compilers = Compilers::find(&[], Dialect::Today, scratch.path())?;
        let jobs = std::thread::available_parallelism().map_or(1, |number| number.get());
        Ok(Builder { into, scratch, compilers, jobs, force: false })
    }

    /// A folder that goes with the builder.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Builds, proves and installs objects. One that fails leaves what was there of it earlier.
    pub fn build(&self, wanted: &[(Object<'_>, &Sources)], prove: &Proof<'_>) -> Vec<AddedManager> {
        let mut outcomes = Vec::new();
        let mut builds = Vec::new();
        for (index, (object, sources)) in wanted.iter().enumerate() {
            let prepared = self.prepared(*object, sources);
            outcomes.push(prepared.map(|build| {
                builds.extend(build.map(|build| (index, build)));
                None
            }));
        }
        self.work_off(&builds, prove, &mut |index, outcome| outcomes[index] = outcome.map(Some));
        let names = wanted.iter().map(|(object, _)| object.name.to_owned());
        names.zip(outcomes).map(|(name, outcome)| AddedManager { name, outcome }).collect()
    }

    /// What is to be done for an object; nothing where it is up to date.
    fn prepared<'b>(
        &'b self,
        object: Object<'b>,
        sources: &'b Sources,
    ) -> Result<Option<ObjectBuild<'b>>, Refusal> {
        let build = ObjectBuild::new(object, sources, &self.compilers, &self.scratch().join("objects"))?;
        let is_same = |name: &str| {
            installed(self.into, name).is_some_and(|there| {
                there.get("stamp").and_then(|stamp| stamp.as_str()) == build.stamp.as_deref()
            })
        };
        if self.force || build.stamp.is_none() || !object.modes().all(|(name, _)| is_same(name)) {
            return Ok(Some(build));
        }
        self.put_licence(&build)?;
        Ok(None)
    }

    /// Takes all steps: the first of each object, then the second of each, and so on.
    fn work_off(
        &self,
        builds: &[(usize, ObjectBuild<'_>)],
        prove: &Proof<'_>,
        done: &mut dyn FnMut(usize, Result<Duration, Refusal>),
    ) {
        let mut left: Vec<usize> = builds.iter().map(|(_, build)| build.steps.len()).collect();
        let mut steps: Vec<(usize, usize)> =
            left.iter().enumerate().flat_map(|(at, &all)| (0..all).map(move |step| (step, at))).collect();
        steps.sort_unstable();
        // The authors' own build runs in place of one worker: alone it may use all of them.
        let make_jobs = if builds.len() == 1 { self.jobs } else { self.jobs.div_ceil(2) };
        let (steps, next) = (&steps, &AtomicUsize::new(0));
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.min(steps.len()) {
                let sender = sender.clone();
                scope.spawn(move || {
                    while let Some(&(step, at)) = steps.get(next.fetch_add(1, Ordering::Relaxed)) {
                        // It fails only after a panic of the receiver.
                        let _ = sender.send((at, builds[at].1.take(step, make_jobs)));
                    }
                });
            }
            drop(sender);
            for (at, result) in receiver {
                let (index, build) = &builds[at];
                left[at] -= 1;
                match result {
                    Err(refusal) if !build.failed.swap(true, Ordering::Relaxed) => done(*index, Err(refusal)),
                    Ok(()) if left[at] == 0 && !build.failed.load(Ordering::Relaxed) => {
                        done(*index, self.finish(build, prove));
                    }
                    _ => {}
                }
            }
        });
    }

    /// Links, proves and puts in place.
    fn finish(&self, build: &ObjectBuild<'_>, prove: &Proof<'_>) -> Result<Duration, Refusal> {
        let object = build.object;
        let made = build.link()?;
        for (_, mode) in object.modes() {
            prove(object.recipe, &made, &mode.environment)
                .map_err(|problem| Refusal::NoManager { problem })?;
        }
        let content = fs::read(&made).map_err(Refusal::system(format!("read {}", made.display())))?;
        let sha256 = digest(&content);
        let mut descriptions = Vec::new();
        for (name, mode) in object.modes() {
            descriptions.push((name, Description::of(build, (name, mode), &sha256)?.text()?));
        }
        self.put_in_place(&made)?;
        self.put_licence(build)?;
        // The descriptions last: with them the managers are there.
        for (name, text) in descriptions {
            self.put(&format!("{name}.toml"), &text)?;
        }
        Ok(build.begun.get().map(Instant::elapsed).unwrap_or_default())
    }

    /// For an installation that is passed on: it contains compiled copies of what others wrote.
    fn put_licence(&self, build: &ObjectBuild<'_>) -> Result<(), Refusal> {
        match &build.sources.licence[..] {
            "" => Ok(()),
            licence => self.put(&format!("{}.LICENSE", build.object.name), licence),
        }
    }

    fn put(&self, name: &str, text: &str) -> Result<(), Refusal> {
        let path = self.scratch().join(name);
        fs::write(&path, text).map_err(Refusal::system(format!("write {}", path.display())))?;
        self.put_in_place(&path)
    }

    /// Renames a file, so that a reader has the old one or the new one and never a part.
    fn put_in_place(&self, file: &Path) -> Result<(), Refusal> {
        let place = self.into.join(file.file_name().unwrap_or_default());
        fs::rename(file, &place).map_err(Refusal::system(format!("write {}", place.display())))
    }
}
