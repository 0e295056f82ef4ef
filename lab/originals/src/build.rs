//! Builds a form of a program.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use heaptoll_peers::Refusal;
use heaptoll_peers::compiler::{Compilers, is_cxx};
use heaptoll_peers::process::quietly;

use crate::Recipe;
use crate::recipe::{Form, Program, last};

/// Where a form is built from, and to.
pub(crate) struct Build<'a> {
    pub recipe: &'a Recipe,
    pub compilers: &'a Compilers,
    pub program: &'a Program,
    /// The program's folder, with its sources below.
    pub here: &'a Path,
    /// For object files.
    pub scratch: &'a Path,
}

impl Build<'_> {
    /// Compiles and links a form into `binary`.
    ///
    /// # Errors
    /// What the compiler or the linker refuses.
    pub(crate) fn form(&self, form: &Form, binary: &Path) -> Result<(), Refusal> {
        let header = self.scratch.join("declarations.h");
        let declarations = format!("{}\n{}\n", self.program.declarations, form.declarations);
        fs::write(&header, declarations).map_err(Refusal::system(format!("write {}", header.display())))?;
        let home = self.here.join(last(self.program.home()));
        let mut objects = Vec::new();
        for source in &self.program.sources {
            let object = self.scratch.join(format!("{source}.o"));
            let compiler = if is_cxx(source) { self.compilers.cxx()? } else { &self.compilers.c };
            let flags = [&self.recipe.table.flags[..], &self.program.flags, &form.flags];
            let include = [OsStr::new("-include"), header.as_os_str()];
            compiler.compile(&home, &flags, &include, Path::new(source), &object)?;
            objects.push(object);
        }
        self.link(form, &objects, binary)
    }

    fn link(&self, form: &Form, objects: &[PathBuf], binary: &Path) -> Result<(), Refusal> {
        let linker = if self.program.has_cxx() { self.compilers.cxx()? } else { &self.compilers.c };
        let mut link = linker.command();
        link.arg("-O2").args(objects);
        // Ours are C of today.
        link.args(
            self.program.own_sources.iter().chain(&form.own_sources).map(|name| self.recipe.own_file(name)),
        );
        link.arg("-o").arg(binary).args(&self.program.libraries);
        quietly(&mut link).map_err(|problem| Refusal::Build { problem })
    }
}
