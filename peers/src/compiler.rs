//! The compilers, and whether they take what is to be compiled: C as it was written before 1989, that of today, C++.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::process::quietly;
use crate::{RecipeError, Refusal};

/// Functions whose parameters are declared after their names, and a call of one that is not declared at all: recent
/// compilers refuse both unless a flag permits them.
const OLD_STYLE: &str = "main(argc, argv) int argc; char **argv; { return undeclared(argc) - argc; }\n\
                         undeclared(number) { return number; }\n";
/// A program that needs the header and the library of threads.
const TODAY: &str = "#include <pthread.h>\nint main(void) { return pthread_self() == 0; }\n";
const CXX: &str = "#include <thread>\nint main() { std::thread([] {}).join(); }\n";

/// The C that programs are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// As before 1989, without prototypes.
    #[default]
    Old,
    /// As compilers take it without a flag; files whose names end in `.cpp` are C++.
    Today,
}

/// The compilers of a recipe.
#[derive(Debug)]
pub struct Compilers {
    pub c: Compiler,
    /// Why there is none of C++: a program that needs it is refused, and the others are not.
    cxx: Result<Compiler, String>,
}

impl Compilers {
    /// `$CC` or `cc`, and `$CXX` or `c++`.
    ///
    /// # Errors
    /// That of C is not there, or does not compile the recipe's C with these flags.
    pub fn find(flags: &[String], dialect: Dialect, scratch: &Path) -> Result<Compilers, RecipeError> {
        let c = Compiler::named("CC", "cc");
        let (source, what, remedy) = match dialect {
            Dialect::Old => (OLD_STYLE, "C of 1989", "a compiler that takes -std=gnu89"),
            Dialect::Today => (TODAY, "C", "one that does"),
        };
        c.compiles(source, "probe.c", flags, scratch)?.map_err(|problem| RecipeError::Compiler {
            compiler: c.name.clone(),
            what,
            problem,
            remedy,
        })?;
        let cxx = Compiler::named("CXX", "c++");
        let cxx = cxx.compiles(CXX, "probe.cpp", flags, scratch)?.map(|()| cxx);
        Ok(Compilers { c, cxx })
    }

    /// That of C++.
    ///
    /// # Errors
    /// There is none that works.
    pub fn cxx(&self) -> Result<&Compiler, Refusal> {
        self.cxx.as_ref().map_err(|problem| Refusal::Cxx { problem: problem.clone() })
    }
}

/// The command of a compiler that has been tried.
#[derive(Debug)]
pub struct Compiler {
    pub name: String,
}

impl Compiler {
    fn named(variable: &str, usual: &str) -> Compiler {
        let named = std::env::var(variable).ok().filter(|name| !name.is_empty());
        Compiler { name: named.unwrap_or_else(|| usual.to_owned()) }
    }

    /// Whether it compiles and links a program with these flags; the inner error is its first message.
    fn compiles(
        &self,
        program: &str,
        name: &str,
        flags: &[String],
        scratch: &Path,
    ) -> Result<Result<(), String>, RecipeError> {
        let source = scratch.join(name);
        fs::write(&source, program)
            .map_err(|error| RecipeError::Write { path: source.clone(), source: error })?;
        let mut probe = self.command();
        probe.args(flags).arg(&source).arg("-o").arg(scratch.join("probe")).arg("-pthread");
        Ok(quietly(&mut probe))
    }

    /// Compiles a source to an object, in the folder `home`, with flags and with `more` of them.
    ///
    /// # Errors
    /// What it refuses.
    pub fn compile(
        &self,
        home: &Path,
        flags: &[&[String]],
        more: &[&OsStr],
        source: &Path,
        object: &Path,
    ) -> Result<(), Refusal> {
        let mut compile = self.command();
        compile.current_dir(home).args(flags.iter().copied().flatten()).args(more);
        compile.arg("-c").arg(source).arg("-o").arg(object);
        quietly(&mut compile).map_err(|problem| Refusal::Build { problem })
    }

    /// The first line of its `--version`.
    pub fn version(&self) -> String {
        let output = self.command().arg("--version").output().map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&output).lines().next().unwrap_or(&self.name).to_owned()
    }

    /// A command of it, in English.
    pub fn command(&self) -> Command {
        let mut words = self.name.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("cc"));
        command.args(words).env("LC_ALL", "C");
        command
    }
}

/// Whether a file is C++, by its name.
pub fn is_cxx(source: &str) -> bool {
    [".cpp", ".cc"].iter().any(|ending| source.ends_with(ending))
}
