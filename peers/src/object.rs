//! Builds one object from sources that have been checked, in steps that workers share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::Refusal;
use crate::compiler::{Compiler, Compilers, is_cxx};
use crate::manifest::digest;
use crate::process::quietly;
use crate::recipe::Object;
use crate::sources::Sources;
use crate::table::Configure;

/// Of our own sources, and of every object: what is preloaded.
const SHARED: [&str; 2] = ["-fPIC", "-fvisibility=hidden"];
/// Of our own sources.
const OWN: [&str; 2] = ["-O2", "-fno-builtin"];
/// The linker's, before those of the recipe.
const LINK: [&str; 4] = ["-Wl,-O1", "-Wl,--strip-debug", "-Wl,--no-undefined", "-Wl,--as-needed"];

/// An object, its sources and its steps.
pub(crate) struct ObjectBuild<'a> {
    pub object: Object<'a>,
    pub sources: &'a Sources,
    pub compilers: &'a Compilers,
    /// For object files, and for what is linked from them.
    pub scratch: PathBuf,
    pub steps: Vec<Step<'a>>,
    /// When the first step began.
    pub begun: OnceLock<Instant>,
    /// Whether a step has failed: the others are left out then.
    pub failed: AtomicBool,
    /// Of a peer: a digest of all that it is built from.
    pub stamp: Option<String>,
}

/// What one worker does at a time.
pub(crate) enum Step<'a> {
    /// The authors' own `configure` and `make`, which takes longest.
    Configure(&'a Configure),
    Compile {
        source: PathBuf,
        is_cxx: bool,
        flags: Vec<String>,
    },
}

impl<'a> ObjectBuild<'a> {
    /// What is to be done for an object, and a folder for it below `scratch`.
    ///
    /// # Errors
    /// A file that lists sources does not, or no folder can be made.
    pub(crate) fn new(
        object: Object<'a>,
        sources: &'a Sources,
        compilers: &'a Compilers,
        scratch: &Path,
    ) -> Result<ObjectBuild<'a>, Refusal> {
        let scratch = scratch.join(object.name);
        fs::create_dir_all(&scratch).map_err(Refusal::system(format!("make {}", scratch.display())))?;
        let table = &object.recipe.table;
        let mut files = table.sources.clone();
        for place in &table.listed {
            let listed = sources.find(place)?;
            files.extend(listed.into_iter().filter(|file| !table.sources.contains(file)));
        }
        let (steps, begun, failed, stamp) = (vec![], OnceLock::new(), AtomicBool::new(false), None);
        let mut build = ObjectBuild { object, sources, compilers, scratch, steps, begun, failed, stamp };
        let mut steps: Vec<Step> = table.configure.iter().map(Step::Configure).collect();
        steps.extend(files.into_iter().map(|file| build.of_others(file)));
        steps.extend(table.own_sources.iter().map(|own| Step::Compile {
            source: object.recipe.own_file(own),
            is_cxx: false,
            flags: SHARED.into_iter().chain(OWN).map(String::from).collect(),
        }));
        build.steps = steps;
        if table.source.is_some() {
            build.stamp = Some(build.stamp()?);
        }
        Ok(build)
    }

    /// A digest of what decides the object: recipe, sources, compilers and this builder.
    fn stamp(&self) -> Result<String, Refusal> {
        let recipe = self.object.recipe;
        let linker = self.linker()?.version();
        let words = [
            env!("CARGO_PKG_VERSION"),
            self.object.name,
            &self.sources.origin,
            &self.sources.crate_version,
            &self.sources.version,
            &self.compilers.c.version(),
            &linker,
        ];
        let mut digests: String = words.map(|word| digest(word.as_bytes())).concat();
        for file in recipe.inputs().map_err(Refusal::system(format!("list the recipe {}", recipe.name())))? {
            let content = fs::read(&file).map_err(Refusal::system(format!("read {}", file.display())))?;
            digests.push_str(&digest(&content));
        }
        Ok(digest(digests.as_bytes()))
    }

    fn of_others(&self, file: String) -> Step<'a> {
        let table = &self.object.recipe.table;
        let is_cxx = is_cxx(&file);
        let mut flags = self.named(&[if is_cxx { &table.cxx_flags } else { &table.c_flags }]);
        flags.extend(table.includes.iter().map(|folder| format!("-I{folder}")));
        let more = table.file_flags.get(&file).into_iter().flatten();
        flags.extend(more.map(|flag| self.sources.filled(flag)));
        Step::Compile { source: file.into(), is_cxx, flags }
    }

    /// Flags of these languages, with those that every object has.
    fn named(&self, languages: &[&Vec<String>]) -> Vec<String> {
        let more = [&self.object.recipe.table.flags, &self.object.variant.flags];
        let named: Vec<String> = languages.iter().copied().chain(more).flatten().cloned().collect();
        let shared = SHARED.map(String::from).into_iter().filter(|flag| !named.contains(flag));
        shared.chain(named.iter().cloned()).collect()
    }

    /// Takes a step, unless another has failed; `jobs` is for one that is a build of its own.
    ///
    /// # Errors
    /// What a compiler, or the authors' own build, refuses.
    pub(crate) fn take(&self, index: usize, jobs: usize) -> Result<(), Refusal> {
        self.begun.get_or_init(Instant::now);
        match &self.steps[index] {
            _ if self.failed.load(Ordering::Relaxed) => Ok(()),
            Step::Configure(configure) => self.configure(configure, jobs),
            Step::Compile { source, is_cxx, flags } => {
                let compiler = if *is_cxx { self.compilers.cxx()? } else { &self.compilers.c };
                compiler.compile(&self.sources.tree, &[flags.as_slice()], &[], source, &self.file(index))
            }
        }
    }

    /// The object file of a step.
    fn file(&self, index: usize) -> PathBuf {
        self.scratch.join(format!("{index}.o"))
    }

    /// The copy of the tree that the authors' own build is run in.
    fn copy(&self) -> PathBuf {
        self.scratch.join("tree")
    }

    fn arguments(&self, configure: &Configure) -> Vec<String> {
        let arguments = configure.arguments.iter().chain(&self.object.variant.flags);
        arguments.map(|argument| self.sources.filled(argument)).collect()
    }

    /// Copies the tree, configures and makes it.
    fn configure(&self, configure: &Configure, jobs: usize) -> Result<(), Refusal> {
        let tree = self.copy();
        let prepare = || {
            copy_tree(&self.sources.tree.join(&configure.tree), &tree)?;
            fs::copy(self.sources.tree.join(&configure.script), tree.join("configure"))
        };
        prepare().map_err(Refusal::system(format!("copy {}", configure.tree)))?;
        let run = |command: &mut Command| {
            quietly(command.current_dir(&tree)).map_err(|problem| Refusal::Build { problem })
        };
        let mut script = Command::new("sh");
        script.arg("configure").args(self.arguments(configure));
        run(script.env("CC", &self.compilers.c.name).env("CXX", &self.compilers.cxx()?.name))?;
        let empty = tree.join(&configure.empty);
        fs::write(&empty, "").map_err(Refusal::system(format!("write {}", empty.display())))?;
        let mut make = Command::new("make");
        make.args(&configure.make).arg(format!("-j{jobs}"));
        // A make that runs this program must not pass on its job slots or its variables.
        run(make.env_remove("MAKEFLAGS").env_remove("MFLAGS").env_remove("MAKELEVEL"))
    }

    /// Links what the steps have left.
    ///
    /// # Errors
    /// What the linker refuses.
    pub(crate) fn link(&self) -> Result<PathBuf, Refusal> {
        let table = &self.object.recipe.table;
        let into = self.scratch.join(format!("{}.so", self.object.name));
        let mut link = self.linker()?.command();
        link.arg("-shared").arg("-o").arg(&into);
        for (index, step) in self.steps.iter().enumerate() {
            if matches!(step, Step::Compile { .. }) {
                link.arg(self.file(index));
            }
        }
        if let Some(configure) = &table.configure {
            let folder = self.copy().join(&configure.folder);
            link.args(made(&folder, &configure.ending).map_err(Refusal::system("list what was made"))?);
        }
        link.arg(format!("-Wl,-soname,{}.so", self.object.name)).args(LINK);
        if let Some(script) = &table.version_script {
            link.arg(format!("-Wl,--version-script={}", self.object.recipe.own_file(script).display()));
        }
        link.args(&table.link);
        quietly(&mut link).map_err(|problem| Refusal::Build { problem })?;
        Ok(into)
    }

    /// The compiler of C++ where a source needs it, or may need it, or else that of C.
    pub(crate) fn linker(&self) -> Result<&'a Compiler, Refusal> {
        let needs_cxx = |step: &Step| !matches!(step, Step::Compile { is_cxx: false, .. });
        if self.steps.iter().any(needs_cxx) { self.compilers.cxx() } else { Ok(&self.compilers.c) }
    }

    /// The flags in one line: those of the compilers or of `configure`, a bar, those of the linker.
    pub(crate) fn flags(&self) -> String {
        let table = &self.object.recipe.table;
        let compile = match &table.configure {
            Some(configure) => format!("configure {}", self.arguments(configure).join(" ")),
            None => self.named(&[&table.c_flags, &table.cxx_flags]).join(" "),
        };
        format!("{compile} | -shared {}", table.link.join(" "))
    }
}

fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// The files of a folder whose names end so, in order.
fn made(folder: &Path, ending: &str) -> std::io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.as_os_str().as_encoded_bytes().ends_with(ending.as_bytes())).collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Dialect;
    use crate::recipe::ManagerRecipe;

    #[test]
    fn a_stamp_changes_with_whatever_changes_the_object() {
        let folder = tempfile::tempdir().expect("made");
        let here = folder.path();
        let recipe = "name = 'one'\nversion = '1'\nsource = { crate = 'a' }\nsources = ['a.c']\n\
                      headers = ['../../a.h']\n[managers.one]\nabout = 'a'\n";
        let files = [
            ("recipes/one/recipe.toml", recipe),
            ("recipes/one/own.c", ""),
            ("recipes/common/shared.c", ""),
            ("a.h", ""),
        ];
        for (name, text) in files {
            fs::create_dir_all(here.join(name).parent().expect("a folder")).expect("made");
            fs::write(here.join(name), text).expect("written");
        }
        let compilers = Compilers::find(&[], Dialect::Today, here).expect("compilers");
        let stamp = |version: &str| {
            let recipes = ManagerRecipe::peers(&here.join("recipes")).expect("a recipe");
            let of_crate = |_: &str| Some((version.to_owned(), here.to_owned()));
            let sources = Sources::installed(&recipes[0], &of_crate).expect("sources");
            let object = recipes[0].objects().next().expect("an object");
            ObjectBuild::new(object, &sources, &compilers, here).expect("a build").stamp
        };
        let mut last = stamp("1");
        assert!(last.is_some() && last == stamp("1") && last != stamp("2"));
        for (name, text) in files {
            fs::write(here.join(name), format!("{text}\n")).expect("written");
            assert_ne!(stamp("1"), last, "{name}");
            last = stamp("1");
        }
    }
}
