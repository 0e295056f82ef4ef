//! heaptoll as it is built: its own pieces, the catalog's programs, the managers, and experiments on them.

use std::path::PathBuf;

use heaptoll_catalog::{Catalog, Prepared, Program, Size};
use heaptoll_experiment::experiment::{Experiment, Machine, Protocol};
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::machine;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::places::Places;
use heaptoll_experiment::runner::{Progress, RunContext};
use heaptoll_preflight::inspect_manager;
use heaptoll_report::format::date;

use crate::{Error, Stack};

/// The installation, its catalog and its managers.
pub struct Installation {
    pub places: Places,
    catalog: Catalog,
    known: Vec<Manager>,
}

impl Installation {
    /// Finds everything.
    ///
    /// # Errors
    /// heaptoll is not built, or its catalog or a manager's description cannot be read.
    pub fn find() -> Result<Installation, Error> {
        let places = Places::find()?;
        let catalog = Catalog::load(&places.catalog())?;
        let known = manager::known(&places)?;
        Ok(Installation { places, catalog, known })
    }

    /// Programs of the catalog that are installed here and no servers.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        let folders = self.folders();
        self.catalog
            .programs()
            .filter(move |program| program.missing(&folders).is_none() && !program.is_server())
    }

    /// A program ready to run.
    ///
    /// # Errors
    /// It is not in the catalog or not installed, or an input cannot be written.
    pub fn program(&self, name: &str, size: Size) -> Result<Prepared, Error> {
        let (program, folders) = (self.catalog.find(name)?, self.folders());
        match program.missing(&folders) {
            Some(reason) => Err(Error::Missing { program: name.into(), reason }),
            None => Ok(program.prepare(size, &folders)?),
        }
    }

    /// The programs of a set of the catalog.
    ///
    /// # Errors
    /// There is no such set.
    pub fn set(&self, name: &str) -> Result<Vec<String>, Error> {
        Ok(self.catalog.set(name)?.programs.clone())
    }

    fn folders(&self) -> heaptoll_catalog::Places {
        heaptoll_catalog::Places {
            bin: self.places.programs(),
            added: Places::added(),
            inputs_cache: Places::inputs(),
        }
    }

    /// A manager by name or path, with its layers.
    ///
    /// # Errors
    /// It is not known.
    pub fn manager(&self, name: &str) -> Result<Manager, Error> {
        Ok(manager::find(&self.known, name)?)
    }

    /// The managers requested by name, group or path, or these.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn managers(&self, requested: &[String], default: &[&str]) -> Result<Vec<Manager>, Error> {
        Ok(match requested {
            [] => manager::choose(&self.known, default.iter().copied())?,
            _ => manager::choose(&self.known, requested.iter().map(String::as_str))?,
        })
    }

    /// The stack of a manager.
    ///
    /// # Errors
    /// It is not known.
    pub fn stack(&self, name: &str) -> Result<Stack, Error> {
        let found = self.manager(name)?;
        let has_control = |object: &PathBuf| inspect_manager(object).is_ok_and(|facts| facts.control);
        Ok(Stack {
            name: found.name.clone(),
            preload: found.preload(&self.places),
            reports_statistics: found.object.as_ref().is_some_and(has_control),
            environment: found.environment,
        })
    }

    /// Runs a program, which is no server, under the stacks, of which the first is the baseline.
    ///
    /// # Errors
    /// As [`crate::experiment::run`].
    pub fn run(
        &self,
        program: &Prepared,
        stacks: &[Stack],
        protocol: Protocol,
        progress: &mut dyn Progress,
    ) -> Result<Experiment, Error> {
        let context = RunContext {
            launcher: self.places.launcher(),
            start_layer: self.places.start_layer(),
            interrupt: Interrupt::default(),
        };
        Ok(crate::experiment::run(program, stacks, protocol, &context, progress)?)
    }
}

/// The heaptoll next to this program.
///
/// # Errors
/// The system's.
pub fn heaptoll() -> Result<PathBuf, Error> {
    let own = std::env::current_exe().map_err(Error::system("own path"))?;
    Ok(own.with_file_name("heaptoll"))
}

/// A folder that goes when the value does.
///
/// # Errors
/// The system's.
pub fn scratch() -> Result<tempfile::TempDir, Error> {
    // Its path always has the same length.
    let made = tempfile::Builder::new().prefix("heaptoll-bench-").tempdir();
    made.map_err(Error::system("no temporary folder; is TMPDIR writable, and not full?"))
}

/// This machine, in a line.
pub fn machine_line() -> String {
    line(&machine::read())
}

/// The day, a machine and its load then, in a line.
pub fn dated_line(unix_s: f64, machine: &Machine) -> String {
    format!("{}, {}, load {:.1}", date(unix_s), line(machine), machine.load[0])
}

fn line(machine: &Machine) -> String {
    format!(
        "{}, {} cores, Linux {}, {}, glibc {}",
        machine.cpu, machine.cores, machine.kernel, machine.distribution, machine.libc
    )
}
