//! heaptoll as a command, and the programs of the catalog as commands.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptoll_catalog::{Catalog, Prepared, Program, Size};
use heaptoll_experiment::places::Places;

use heaptoll_bench::BenchError;

/// The heaptoll next to this binary, and the catalog.
pub struct Installation {
    heaptoll: PathBuf,
    places: Places,
    catalog: Catalog,
}

impl Installation {
    /// Finds them.
    ///
    /// # Errors
    /// No installation.
    pub fn find() -> Result<Installation, BenchError> {
        let places = Places::find()?;
        let own = std::env::current_exe().map_err(BenchError::system("own path"))?;
        let catalog = Catalog::load(&places.catalog())?;
        Ok(Installation { heaptoll: own.with_file_name("heaptoll"), places, catalog })
    }

    /// A heaptoll command.
    pub fn heaptoll(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.heaptoll);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Programs of the catalog that are installed here and no servers.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        let folders = self.folders();
        self.catalog
            .programs()
            .filter(move |program| program.missing(&folders).is_none() && !program.is_server())
    }

    fn folders(&self) -> heaptoll_catalog::Places {
        heaptoll_catalog::Places {
            bin: self.places.programs(),
            added: Places::added(),
            inputs_cache: Places::inputs(),
        }
    }

    /// A program with its input.
    ///
    /// # Errors
    /// Unknown, or its input cannot be made.
    pub fn prepare(&self, name: &str, size: Size) -> Result<Prepared, BenchError> {
        Ok(self.catalog.find(name)?.prepare(size, &self.folders())?)
    }

    /// The program as it is.
    ///
    /// # Errors
    /// Its input cannot be opened.
    pub fn plain(&self, program: &Prepared) -> Result<Command, BenchError> {
        let words = &program.command;
        let first = words
            .first()
            .ok_or_else(|| BenchError::Unexpected(format!("{} has no command", program.name)))?;
        let mut command = Command::new(first);
        command.args(&words[1..]);
        self.give(program, command)
    }

    /// The program recorded into a file.
    ///
    /// # Errors
    /// Its input cannot be opened.
    pub fn recorded(&self, program: &Prepared, into: &Path, options: &[&str]) -> Result<Command, BenchError> {
        let mut command = self.heaptoll(&["record", "--force", "-o"]);
        command.arg(into).args(options).arg("--").args(&program.command);
        self.give(program, command)
    }

    fn give(&self, program: &Prepared, mut command: Command) -> Result<Command, BenchError> {
        command.envs(program.environment.iter().map(|(name, value)| (name, value)));
        match &program.stdin {
            Some(path) => {
                command.stdin(File::open(path).map_err(BenchError::system(path.display().to_string()))?)
            }
            None => command.stdin(Stdio::null()),
        };
        Ok(command)
    }
}
