//! Builds one manager from sources that have been checked.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::recipe::{ManagerRecipe, Variant};
use crate::Refusal;
use crate::compiler::{Compiler, Compilers};
use crate::process::quietly;
use crate::recipe::is_cxx;

/// Of our own sources, and of every object: what is preloaded.
const SHARED: [&str; 2] = ["-fPIC", "-fvisibility=hidden"];
/// Of our own sources.
const OWN: [&str; 2] = ["-O2", "-fno-builtin"];

/// Where a manager is built from, and to.
pub(super) struct ManagerBuild<'a> {
    pub recipe: &'a ManagerRecipe,
    pub compilers: &'a Compilers,
    /// The folder above the repositories' folders.
    pub tree: &'a Path,
    /// For object files; made when it is not there.
    pub scratch: &'a Path,
}

impl ManagerBuild<'_> {
    /// Compiles and links a manager into `object`.
    ///
    /// # Errors
    /// What the compiler or the linker refuses.
    pub(super) fn variant(&self, name: &str, variant: &Variant, object: &Path) -> Result<(), Refusal> {
        fs::create_dir_all(self.scratch)
            .map_err(Refusal::system(format!("make {}", self.scratch.display())))?;
        let table = &self.recipe.table;
        let shared = SHARED.map(String::from);
        let includes: Vec<String> = table.includes.iter().map(|folder| format!("-I{folder}")).collect();
        let mut objects = Vec::new();
        for (at, source) in table.sources.iter().enumerate() {
            let (compiler, own) = match is_cxx(source) {
                true => (self.compilers.cxx()?, &table.cxx_flags),
                false => (&self.compilers.c, &table.c_flags),
            };
            let flags = [&shared[..], own, &table.flags, &variant.flags, &includes];
            objects.push(self.scratch.join(format!("{at}.o")));
            compiler.compile(self.tree, &flags, &[], Path::new(source), &objects[at])?;
        }
        for own in &table.own_sources {
            let into = self.scratch.join(format!("{own}.o"));
            let flags = OWN.map(OsStr::new);
            self.compilers.c.compile(self.tree, &[&shared], &flags, &self.recipe.own_file(own), &into)?;
            objects.push(into);
        }
        self.link(name, &objects, object)
    }

    fn link(&self, name: &str, objects: &[PathBuf], object: &Path) -> Result<(), Refusal> {
        let mut link = self.compiler()?.command();
        link.arg("-shared").arg("-o").arg(object).args(objects);
        link.arg(format!("-Wl,-soname,{name}.so")).args(["-Wl,--strip-debug", "-Wl,--no-undefined"]);
        link.args(&self.recipe.table.link);
        quietly(&mut link).map_err(|problem| Refusal::Build { problem })
    }

    /// That of C++ where a source needs it, or else that of C. It links.
    pub(super) fn compiler(&self) -> Result<&Compiler, Refusal> {
        let has_cxx = self.recipe.table.sources.iter().any(|source| is_cxx(source));
        if has_cxx { self.compilers.cxx() } else { Ok(&self.compilers.c) }
    }

    /// The flags in one line: those of the compilers, a bar, those of the linker.
    pub(super) fn flags(&self, variant: &Variant) -> String {
        let table = &self.recipe.table;
        let compile = [&table.c_flags, &table.cxx_flags, &table.flags, &variant.flags];
        let words: Vec<&str> =
            SHARED.into_iter().chain(compile.into_iter().flatten().map(String::as_str)).collect();
        format!("{} | -shared {}", words.join(" "), table.link.join(" "))
    }
}
