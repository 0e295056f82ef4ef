//! The programs of a run: a command line, entries of the catalog, or a server with its load.

use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use heaptoll_catalog::{Catalog, Places as CatalogPlaces, Prepared, Program, Size};
use heaptoll_experiment::experiment::{ProgramInfo, ServeInfo};
use heaptoll_experiment::places::Places;
use heaptoll_experiment::serve::signal_number;
use heaptoll_experiment::words;

use crate::terminal;
use heaptoll_experiments::failure::Failure;

/// Sizes of a catalog program's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SizeArg {
    /// About 10 ms a run: for trying what is slow; not every program has it
    Tiny,
    /// About 0.1 s a run: for trying things out
    Quick,
    /// About 0.4 s a run
    Demo,
    /// 1 to 4 s a run: for measuring
    Full,
}

impl From<SizeArg> for Size {
    fn from(word: SizeArg) -> Size {
        match word {
            SizeArg::Tiny => Size::Tiny,
            SizeArg::Quick => Size::Quick,
            SizeArg::Demo => Size::Demo,
            SizeArg::Full => Size::Full,
        }
    }
}

/// The programs to run.
#[derive(Debug, Args)]
pub struct WorkloadArgs {
    /// A program of the catalog (`heaptoll programs`); may be given several times
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["command", "serve"])]
    pub program: Vec<String>,
    /// Every program of the catalog that is installed
    #[arg(long, conflicts_with_all = ["command", "serve", "program"])]
    pub all: bool,
    /// Input size of catalog programs
    #[arg(long, value_enum, default_value = "full", value_name = "SIZE")]
    pub size: SizeArg,
    /// The same as --size quick
    #[arg(long, conflicts_with = "size")]
    pub quick: bool,
    /// A folder with catalog entries of your own (docs/guide/programs.md explains how to write one)
    #[arg(long, value_name = "DIR")]
    pub catalog: Option<PathBuf>,
    /// Standard input of the command (default: nothing)
    #[arg(long, value_name = "FILE", requires = "command")]
    pub stdin: Option<PathBuf>,
    /// A server to measure, as one shell-quoted string; {tmp}, in the load too, is a fresh folder for
    /// each round ({{tmp}} for the word itself)
    #[arg(long, value_name = "COMMAND", requires = "load", requires = "ready", help_heading = "Servers")]
    pub serve: Option<String>,
    /// The command that loads the server, run to its end once the server is ready
    #[arg(long, value_name = "COMMAND", requires = "serve", help_heading = "Servers")]
    pub load: Option<String>,
    /// The server is ready when a line of its output matches this
    #[arg(long, value_name = "REGEX", requires = "serve", help_heading = "Servers")]
    pub ready: Option<String>,
    /// Figures in the load's own report: named groups, e.g. '(?P<requests_per_s>[\d.]+) requests per second'
    #[arg(long, value_name = "REGEX", requires = "serve", help_heading = "Servers")]
    pub figures: Option<String>,
    /// Signal that stops the server cleanly
    #[arg(long, value_name = "SIGNAL", default_value = "TERM", help_heading = "Servers")]
    pub stop: String,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// The catalog, with the user's own entries when there are some.
///
/// # Errors
/// An entry that cannot be read.
pub fn catalog(places: &Places, own: Option<&Path>) -> Result<Catalog, Failure> {
    let mut catalog = Catalog::load(&places.catalog())?;
    if let Some(own) = own {
        catalog.add(own)?;
    }
    Ok(catalog)
}

/// Folders for the catalog crate.
pub fn catalog_places(places: &Places) -> CatalogPlaces {
    CatalogPlaces { bin: places.programs(), inputs_cache: Places::inputs() }
}

impl WorkloadArgs {
    /// Whether any program was named.
    pub fn is_empty(&self) -> bool {
        self.program.is_empty() && !self.all && self.serve.is_none() && self.command.is_empty()
    }

    fn size(&self) -> Size {
        if self.quick { Size::Quick } else { self.size.into() }
    }

    /// Finds and prepares the requested programs: inputs are generated here.
    ///
    /// # Errors
    /// Unknown or missing programs, unreadable input, patterns that are none.
    pub fn resolve(&self, places: &Places) -> Result<Vec<ProgramInfo>, Failure> {
        if let Some(server) = &self.serve {
            return Ok(vec![self.server(server)?]);
        }
        if !self.command.is_empty() {
            return Ok(vec![self.plain_command()?]);
        }
        let catalog = catalog(places, self.catalog.as_deref())?;
        let folders = catalog_places(places);
        if self.all {
            let mut prepared = Vec::new();
            for program in catalog.programs().filter(|program| !program.is_by_name()) {
                match program.missing(&folders) {
                    Some(what) => terminal::warning(&format!("{} is left out: {what}", program.name())),
                    None => prepared.push(info(program.prepare(self.size(), &folders)?)),
                }
            }
            return Ok(prepared);
        }
        let mut seen = std::collections::HashSet::new();
        let unique = self.program.iter().filter(|name| seen.insert(name.as_str()));
        unique
            .map(|name| {
                let program: &Program = catalog.find(name)?;
                match program.missing(&folders) {
                    Some(what) => Err(Failure::Usage(format!("{name}: {what}"))),
                    None => Ok(info(program.prepare(self.size(), &folders)?)),
                }
            })
            .collect()
    }

    fn plain_command(&self) -> Result<ProgramInfo, Failure> {
        let stdin = match &self.stdin {
            None => None,
            Some(path) => {
                let refuse =
                    |why: String| Failure::Usage(format!("cannot read --stdin {}: {why}", path.display()));
                let kind = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?.file_type();
                // A pipe would be empty from the second run on, and opening one may never return.
                if !kind.is_file() && !kind.is_char_device() {
                    return Err(refuse("it is no file that every run can read from its beginning".into()));
                }
                let readable = std::fs::File::open(path).and_then(|_| std::path::absolute(path));
                let absolute = readable.map_err(|error| refuse(error.to_string()))?;
                Some(absolute.display().to_string())
            }
        };
        let (command, raw_words) = words::stored(&self.command);
        Ok(ProgramInfo { name: base_name(&command), command, raw_words, stdin, ..ProgramInfo::default() })
    }

    fn server(&self, server: &str) -> Result<ProgramInfo, Failure> {
        let words = |option: &str, text: &str| match shlex::split(text) {
            Some(words) if !words.is_empty() => Ok(words),
            _ => Err(Failure::Usage(format!("--{option} `{text}` is no command: check its quotes"))),
        };
        let given = |option: &str, value: &Option<String>| {
            value.clone().ok_or_else(|| Failure::Usage(format!("--serve needs --{option}")))
        };
        let command = words("serve", server)?;
        let load = words("load", &given("load", &self.load)?)?;
        let ready = given("ready", &self.ready)?;
        if signal_number(&self.stop).is_none() {
            return Err(Failure::Usage(format!(
                "--stop {}: use TERM, INT, QUIT, HUP, USR1 or USR2",
                self.stop
            )));
        }
        heaptoll_experiment::serve::check_patterns(&ready, self.figures.as_deref())
            .map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(ProgramInfo {
            name: base_name(&command),
            command,
            serve: Some(ServeInfo { load, ready, figures: self.figures.clone(), stop: self.stop.clone() }),
            scratch: true,
            ..ProgramInfo::default()
        })
    }
}

fn base_name(command: &[String]) -> String {
    let first = command.first().map(String::as_str).unwrap_or_default();
    let name = first.rsplit('/').next().unwrap_or(first);
    if name.is_empty() { first.to_string() } else { name.to_string() }
}

fn info(prepared: Prepared) -> ProgramInfo {
    ProgramInfo {
        name: prepared.name,
        about: prepared.about,
        command: prepared.command,
        environment: prepared.environment,
        stdin: prepared.stdin.map(|path| path.display().to_string()),
        expected_digest: prepared.expected_digest,
        figures: prepared.figures,
        serve: prepared.serve.map(|serve| ServeInfo {
            load: serve.load,
            ready: serve.ready,
            figures: Some(serve.figures),
            stop: serve.stop,
        }),
        scratch: true,
        raw_words: vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_named_for_the_program_not_its_path() {
        assert_eq!(base_name(&["/usr/bin/gawk".into()]), "gawk");
        assert_eq!(base_name(&["./".into()]), "./");
    }
}
