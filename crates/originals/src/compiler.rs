//! The C compiler, and whether it takes C as it was written before 1989.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::OriginalsError;
use crate::process::quietly;

/// Functions whose parameters are declared after their names, and a call of one that is not declared at all: recent
/// compilers refuse both unless a flag permits them.
const OLD_STYLE: &str = "main(argc, argv) int argc; char **argv; { return undeclared(argc) - argc; }\n\
                         undeclared(number) { return number; }\n";

/// The command of a compiler that has been tried.
#[derive(Debug)]
pub(crate) struct Compiler {
    name: String,
}

impl Compiler {
    /// `$CC`, or `cc`.
    ///
    /// # Errors
    /// It is not there, or does not compile old C with these flags.
    pub(crate) fn find(flags: &[String], scratch: &Path) -> Result<Compiler, OriginalsError> {
        let named = std::env::var("CC").ok().filter(|name| !name.is_empty());
        let compiler = Compiler { name: named.unwrap_or_else(|| "cc".to_owned()) };
        let source = scratch.join("probe.c");
        fs::write(&source, OLD_STYLE)
            .map_err(|error| OriginalsError::Write { path: source.clone(), source: error })?;
        let mut probe = compiler.command();
        probe.args(flags).arg(&source).arg("-o").arg(scratch.join("probe"));
        quietly(&mut probe)
            .map_err(|problem| OriginalsError::Compiler { compiler: compiler.name.clone(), problem })?;
        Ok(compiler)
    }

    /// A command of it, in English.
    pub(crate) fn command(&self) -> Command {
        let mut words = self.name.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("cc"));
        command.args(words).env("LC_ALL", "C");
        command
    }
}
