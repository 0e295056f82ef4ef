//! The programs of an experiment: a command, entries of the catalog, or a server with its load.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use heaptoll_catalog::{Catalog, CatalogError, Places as CatalogPlaces, Prepared, Program, Size};
use heaptoll_experiment::experiment::{ProgramInfo, ServeInfo};
use heaptoll_experiment::places::Places;
use heaptoll_experiment::serve::signal_number;
use heaptoll_experiment::words;

use crate::standard_input::StandardInput;
use heaptoll_command::context::{Context, Messages};
use heaptoll_command::failure::Failure;

/// Which programs to run. Of `serve`, `command` and the catalog's entries the first that is there counts.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Entries of the catalog, by name.
    pub program: Vec<String>,
    /// Every entry of the catalog that is installed.
    pub all: bool,
    /// Every program of a set of the catalog that is installed.
    pub set: Option<String>,
    /// Size of the entries' input.
    pub size: Size,
    /// A folder with further entries.
    pub catalog: Option<PathBuf>,
    /// Standard input of the command.
    pub stdin: StandardInput,
    /// A server.
    pub serve: Option<Server>,
    /// What servers do after their load; stopped at once without it.
    pub after_load: Option<AfterLoad>,
    /// A program and its arguments.
    pub command: Vec<OsString>,
}

/// What a server does after its load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AfterLoad {
    /// A second load, a shell-quoted string; that of the catalog's entry without one, where it has one.
    pub burst: Option<String>,
    /// Times after that at which its memory is read, seconds, rising.
    pub idle_s: Vec<f64>,
}

/// A server, as the user describes it: commands are shell-quoted strings.
#[derive(Debug, Clone)]
pub struct Server {
    /// The server's command.
    pub command: String,
    /// The command that loads it.
    pub load: Option<String>,
    /// The pattern of the line by which it is ready.
    pub ready: Option<String>,
    /// The pattern of figures in the load's report.
    pub figures: Option<String>,
    /// Name of the signal that stops it.
    pub stop: String,
}

impl Workload {
    /// One command.
    pub fn of_command<W: Into<OsString>>(command: impl IntoIterator<Item = W>) -> Workload {
        Workload {
            command: command.into_iter().map(Into::into).collect(),
            ..Workload::of_catalog(&[], Size::Full)
        }
    }

    /// Entries of the catalog.
    pub fn of_catalog(names: &[&str], size: Size) -> Workload {
        Workload {
            program: names.iter().map(|name| (*name).to_owned()).collect(),
            all: false,
            set: None,
            size,
            catalog: None,
            stdin: StandardInput::Nothing,
            serve: None,
            after_load: None,
            command: vec![],
        }
    }

    /// Whether any program was named.
    pub fn is_empty(&self) -> bool {
        self.program.is_empty()
            && !self.all
            && self.set.is_none()
            && self.serve.is_none()
            && self.command.is_empty()
    }

    /// Whether programs were requested together, so that those that do not fit a command are left out and not refused.
    pub fn is_many(&self) -> bool {
        self.all || self.set.is_some()
    }

    /// Refuses a request that names nothing; `resumes` where the command serves and resumes as well.
    ///
    /// # Errors
    /// No program was named.
    pub fn require(&self, others: &str) -> Result<(), Failure> {
        match self.is_empty() {
            true => Err(Failure::Usage(format!(
                "nothing to run: give a command after `--`, or --program NAME, {others}"
            ))),
            false => Ok(()),
        }
    }

    /// Finds and prepares the requested programs: inputs are generated here.
    ///
    /// # Errors
    /// Unknown or missing programs, unreadable input, patterns that are none.
    pub fn resolve(&self, context: &Context) -> Result<Vec<ProgramInfo>, Failure> {
        let mut programs = self.named(context)?;
        for serve in programs.iter_mut().filter_map(|program| program.serve.as_mut()) {
            let after = self.after_load.clone().unwrap_or_default();
            serve.burst = match (&self.after_load, &after.burst) {
                (None, _) => None,
                (Some(_), Some(burst)) => Some(words("burst", burst)?),
                (Some(_), None) => serve.burst.take(),
            };
            serve.idle_s = after.idle_s;
        }
        Ok(programs)
    }

    fn named(&self, context: &Context) -> Result<Vec<ProgramInfo>, Failure> {
        if let Some(server) = &self.serve {
            return Ok(vec![self.server(server)?]);
        }
        if !self.command.is_empty() {
            return Ok(vec![self.plain_command(context)?]);
        }
        let mut catalog = catalog(context.places, self.catalog.as_deref())?;
        let folders = catalog_places(context.places);
        let named = self.each_named(&mut catalog, &folders)?;
        let many: Option<Vec<&Program>> = match (&self.set, self.all) {
            (Some(set), _) => Some(of_set(&catalog, set)?),
            (None, true) => Some(catalog.programs().filter(|program| !program.is_by_name()).collect()),
            (None, false) => None,
        };
        let mut prepared = match many {
            Some(many) => self.installed(&many, &folders, context.messages)?,
            None => Vec::new(),
        };
        for name in &named {
            if prepared.iter().all(|one| one.name != *name) {
                prepared.push(info(catalog.find(name)?.prepare(self.size, &folders)?));
            }
        }
        Ok(prepared)
    }

    /// The names of the entries that were named, which are all here: before any is prepared, which takes time.
    fn each_named(&self, catalog: &mut Catalog, folders: &CatalogPlaces) -> Result<Vec<String>, Failure> {
        let named = |word: &String| {
            let program = catalog.meant(word)?;
            match program.missing(folders) {
                Some(what) => Err(Failure::Usage(format!("{word}: {what}"))),
                None => Ok(program.name().to_owned()),
            }
        };
        self.program.iter().map(named).collect()
    }

    /// Those that are here, prepared; of the others a warning.
    fn installed(
        &self,
        programs: &[&Program],
        folders: &CatalogPlaces,
        messages: &dyn Messages,
    ) -> Result<Vec<ProgramInfo>, Failure> {
        let mut prepared = Vec::new();
        for program in programs {
            match program.missing(folders) {
                Some(what) => messages.warning(&format!("{} is left out: {what}", program.name())),
                None => match program.prepare(self.size, folders) {
                    Ok(one) => prepared.push(info(one)),
                    Err(error @ CatalogError::NoSize { .. }) => {
                        messages.warning(&format!("{} is left out: {error}", program.name()));
                    }
                    Err(error) => return Err(error.into()),
                },
            }
        }
        match (prepared.is_empty(), &self.set) {
            (true, Some(set)) => Err(Failure::Usage(format!(
                "no program of the set `{set}` is installed: `heaptoll programs` lists their packages"
            ))),
            _ => Ok(prepared),
        }
    }

    fn plain_command(&self, context: &Context) -> Result<ProgramInfo, Failure> {
        let stdin = self.stdin.path(context)?.map(|path| path.display().to_string());
        let (command, raw_words) = words::stored(&self.command);
        Ok(ProgramInfo { name: base_name(&command), command, raw_words, stdin, ..ProgramInfo::default() })
    }

    fn server(&self, server: &Server) -> Result<ProgramInfo, Failure> {
        let given = |option: &str, value: &Option<String>| {
            value.clone().ok_or_else(|| Failure::Usage(format!("--serve needs --{option}")))
        };
        let command = words("serve", &server.command)?;
        let load = words("load", &given("load", &server.load)?)?;
        let ready = given("ready", &server.ready)?;
        if signal_number(&server.stop).is_none() {
            return Err(Failure::Usage(format!(
                "--stop {}: use TERM, INT, QUIT, HUP, USR1 or USR2",
                server.stop
            )));
        }
        heaptoll_experiment::serve::check_patterns(&ready, server.figures.as_deref())
            .map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(ProgramInfo {
            name: base_name(&command),
            command,
            serve: Some(ServeInfo {
                load,
                ready,
                figures: server.figures.clone(),
                stop: server.stop.clone(),
                ..ServeInfo::default()
            }),
            scratch: true,
            ..ProgramInfo::default()
        })
    }
}

/// The programs of a set, in its order.
fn of_set<'c>(catalog: &'c Catalog, name: &str) -> Result<Vec<&'c Program>, Failure> {
    let programs = catalog.set(name)?.programs.iter();
    Ok(programs.map(|program| catalog.find(program)).collect::<Result<_, _>>()?)
}

/// The words of a command that an option gives as one shell-quoted string.
fn words(option: &str, text: &str) -> Result<Vec<String>, Failure> {
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(words),
        _ => Err(Failure::Usage(format!("--{option} `{text}` is not a command: check its quotes"))),
    }
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
    CatalogPlaces { bin: places.programs(), added: Places::added(), inputs_cache: Places::inputs() }
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
        varies: prepared.varies,
        serve: prepared.serve.map(|serve| ServeInfo {
            load: serve.load,
            ready: serve.ready,
            figures: serve.figures,
            stop: serve.stop,
            burst: serve.burst,
            idle_s: vec![],
        }),
        scratch: true,
        ..ProgramInfo::default()
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
