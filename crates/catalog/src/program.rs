//! One program of the catalog, and what it takes to run it: the entry's templates with paths and parameters put in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::cache;
use crate::check::Check;
use crate::entry::{AddedBy, Entry, Parameter, SizeEntry, Stat};
use crate::installed_version::installed_version;
use crate::placeholder::{Piece, Template};
use crate::scratch_word;
use crate::stdin::Stdin;
use crate::verified;
use crate::{CatalogError, Generator, Size};

/// A program (or a variant of one) that can be prepared at several sizes.
#[derive(Debug, Clone)]
pub struct Program {
    file: PathBuf,
    name: String,
    variant: Option<String>,
    about: String,
    package: Option<String>,
    added_by: Option<AddedBy>,
    pools: Option<String>,
    digests_of: Option<String>,
    stat: Option<Stat>,
    requires: Vec<Template>,
    /// Files of digests: what they name is compared before each use.
    verified_by: Vec<Template>,
    threads: u32,
    by_name: bool,
    command: Vec<Template>,
    serve: Option<ServeTemplates>,
    figures: Option<String>,
    varies: Option<String>,
    stdin: Option<Stdin>,
    environment: Vec<(String, Template)>,
    sizes: BTreeMap<Size, Plan>,
}

#[derive(Debug, Clone)]
struct ServeTemplates {
    load: Vec<Template>,
    burst: Option<Vec<Template>>,
    ready: String,
    figures: Option<String>,
    stop: String,
}

/// What one size fixes.
#[derive(Debug, Clone)]
struct Plan {
    parameters: BTreeMap<String, Parameter>,
    inputs: BTreeMap<String, Generator>,
    digest: Option<String>,
}

/// Folders that a command refers to. The entry's own folder (`{share}`) is known to the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Where the bundled binaries (`cfrac`, `reverse`, `heaptoll-espresso`) are: `{bin}`.
    pub bin: PathBuf,
    /// Where programs of others are that the user has added (`heaptoll programs add`): `{added}`.
    pub added: PathBuf,
    /// Where generated inputs are kept from one run to the next. Created when absent.
    pub inputs_cache: PathBuf,
}

/// Something that a program requires and that is not there.
struct Absent {
    path: String,
    /// Heaptoll's own build makes it.
    is_bundled: bool,
    /// `heaptoll programs add` makes it.
    is_added: bool,
}

/// A program ready to run: all inputs are generated and all placeholders but `{tmp}` are replaced.
///
/// `{tmp}` stays in `command`, `environment` and `serve`: the runner of the command puts a scratch folder there that is
/// fresh for every invocation, by [`fill_scratch`](crate::fill_scratch).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// `gawk`, or `reverse:8-byte` for a variant.
    pub name: String,
    /// One line on what the program does.
    pub about: String,
    /// The program and its arguments; for an entry with `serve`, the server's.
    pub command: Vec<String>,
    /// Variables to set, in alphabetical order, on top of the environment the runner gives every child.
    pub environment: Vec<(String, String)>,
    /// The file to connect to standard input; `/dev/null` when none.
    pub stdin: Option<PathBuf>,
    /// SHA-256 of standard output, in lower-case hexadecimal, where it does not depend on the program's version.
    pub expected_digest: Option<String>,
    /// The Debian package that brings the program.
    pub package: Option<String>,
    /// How many threads allocate at once.
    pub threads: u32,
    /// A regular expression for what the program writes to standard error: each named group is one of its own figures.
    pub figures: Option<String>,
    /// A regular expression for what of standard output differs from run to run: it is left out of the digest, and each
    /// named group is one of the program's own figures.
    pub varies: Option<String>,
    /// Present when the program is a server.
    pub serve: Option<PreparedServe>,
}

/// A server, the command that loads it, and how to read both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedServe {
    /// The server and its arguments.
    pub server: Vec<String>,
    /// The command that drives the server; run to its end once the server is ready.
    pub load: Vec<String>,
    /// A second load that takes memory and lets it go again, for those who want to see what of it comes back.
    pub burst: Option<Vec<String>>,
    /// A regular expression: the server is ready when a line of its output matches.
    pub ready: String,
    /// A regular expression for the load's output: each match is one figure's set, each named group a value.
    pub figures: Option<String>,
    /// The signal that stops the server cleanly, without `SIG`.
    pub stop: String,
}

/// What is run: a command, or a server and its load.
fn command_or_server(
    check: &Check<'_>,
    entry: &Entry,
) -> Result<(Vec<Template>, Option<ServeTemplates>), CatalogError> {
    match (&entry.command, &entry.serve) {
        (Some(command), None) => Ok((check.command(command, "command")?, None)),
        (None, Some(serve)) => {
            check.pattern(&serve.ready, "serve.ready", false)?;
            if let Some(figures) = &serve.figures {
                check.pattern(figures, "serve.figures", true)?;
            }
            check.signal(&serve.stop, "serve.stop")?;
            let templates = ServeTemplates {
                load: check.command(&serve.load, "serve.load")?,
                burst: serve.burst.as_ref().map(|words| check.command(words, "serve.burst")).transpose()?,
                ready: serve.ready.clone(),
                figures: serve.figures.clone(),
                stop: serve.stop.clone(),
            };
            Ok((check.command(&serve.server, "serve.server")?, Some(templates)))
        }
        _ => {
            let problem = "an entry has either a command or a [serve] table, and not both";
            Err(check.error("command", problem, "keep one of the two"))
        }
    }
}

/// Variables set for the program.
fn environment(check: &Check<'_>, entry: &Entry) -> Result<Vec<(String, Template)>, CatalogError> {
    let variable = |(key, value): (&String, &String)| {
        let field = format!("environment.{key}");
        if key.is_empty() || key.contains(['=', '\0']) {
            return Err(check.error(&field, "is not the name of a variable", "use letters, digits and `_`"));
        }
        Ok((key.clone(), check.template(value, &field)?))
    };
    entry.environment.iter().map(variable).collect()
}

/// The inputs of one size, and the digest of its output.
fn plan(check: &Check<'_>, entry: &Entry, size: Size, settings: &SizeEntry) -> Result<Plan, CatalogError> {
    if let Some(digest) = &settings.digest {
        check.digest(digest, &format!("sizes.{size}.digest"))?;
    }
    let mut inputs = BTreeMap::new();
    for (name, table) in &entry.inputs {
        let field = format!("inputs.{name}");
        check.name(name, &field)?;
        let generator = Generator::from_table(table, &settings.parameters).map_err(|problem| {
            check.error(
                &field,
                format!("{problem} (at size {size})"),
                "docs/reference/program-format.md lists the generators and their parameters",
            )
        })?;
        inputs.insert(name.clone(), generator);
    }
    Ok(Plan { parameters: settings.parameters.clone(), inputs, digest: settings.digest.clone() })
}

impl Program {
    /// Checks an entry and splits its templates.
    pub(crate) fn new(file: &Path, variant: Option<&String>, entry: &Entry) -> Result<Self, CatalogError> {
        let check = Check { file, variant };
        check.name(&entry.name, "name")?;
        if let Some(variant) = variant {
            // A variant of a variant is `a:b`.
            variant.split(':').try_for_each(|part| check.name(part, "variants"))?;
        }
        if entry.threads == 0 {
            return Err(check.error("threads", "0 threads run nothing", "give 1 or more"));
        }
        let (command, serve) = command_or_server(&check, entry)?;
        if let Some(figures) = &entry.figures {
            check.pattern(figures, "figures", true)?;
            if serve.is_some() {
                let problem = "a server's figures come from its load";
                return Err(check.error("figures", problem, "put the pattern into [serve]"));
            }
        }
        if let Some(varies) = &entry.varies {
            check.pattern(varies, "varies", false)?;
        }
        let mut requires = check.templates(&entry.requires, "requires")?;
        if requires.is_empty() {
            requires.extend(command.first().cloned());
        }
        let verified_by = check.templates(&entry.verified_by, "verified_by")?;
        let environment = environment(&check, entry)?;
        if entry.sizes.is_empty() {
            return Err(check.error(
                "sizes",
                "there is no size",
                "add [sizes.quick], [sizes.demo] and [sizes.full]",
            ));
        }
        let mut program = Program {
            file: file.to_owned(),
            name: variant.map_or_else(|| entry.name.clone(), |variant| format!("{}:{variant}", entry.name)),
            variant: variant.cloned(),
            about: entry.about.clone(),
            package: entry.package.clone(),
            added_by: entry.added_by.clone(),
            pools: entry.pools.clone(),
            digests_of: entry.digests_of.clone(),
            stat: entry.stat,
            requires,
            verified_by,
            threads: entry.threads,
            by_name: entry.by_name,
            command,
            serve,
            figures: entry.figures.clone(),
            varies: entry.varies.clone(),
            stdin: Stdin::of(&check, entry)?,
            environment,
            sizes: BTreeMap::new(),
        };
        for (&size, settings) in &entry.sizes {
            let plan = plan(&check, entry, size, settings)?;
            program.check_references(&check, &plan, size)?;
            program.sizes.insert(size, plan);
        }
        Ok(program)
    }

    /// `gawk`, or `reverse:8-byte` for a variant.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The part of the name after the colon, when the program is a variant of another.
    pub fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }

    /// One line on what the program does.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The Debian package that brings the program; none for a bundled one.
    pub fn package(&self) -> Option<&str> {
        self.package.as_deref()
    }

    /// The recipe by which the user adds the program; none for a bundled one, and one of a package.
    pub fn recipe(&self) -> Option<&str> {
        self.added_by.as_ref().map(|by| by.recipe.as_str())
    }

    /// What of its memory the program manages itself, in a few words; none where the entry does not state it.
    pub fn pools(&self) -> Option<&str> {
        self.pools.as_deref()
    }

    /// The version of the package whose output the digests are, where it depends on the version.
    pub fn digests_of(&self) -> Option<&str> {
        self.digests_of.as_deref()
    }

    /// What our own `stat` has found of the program at size full.
    pub fn stat(&self) -> Option<Stat> {
        self.stat
    }

    /// How many threads allocate at once.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// Whether it is run only when it is named: a variant, or a program made for one question, which has no place in a
    /// mean over all.
    pub fn is_by_name(&self) -> bool {
        self.by_name || self.variant.is_some()
    }

    /// Whether the program is a server that needs a load.
    pub fn is_server(&self) -> bool {
        self.serve.is_some()
    }

    /// The sizes that the program can be prepared at, smallest first.
    pub fn sizes(&self) -> impl Iterator<Item = Size> + '_ {
        self.sizes.keys().copied()
    }

    /// The entry the program comes from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What has to be installed before the program can run; `None` when all is there.
    pub fn missing(&self, places: &Places) -> Option<String> {
        let absent = self.absent(places)?;
        Some(match (&self.package, &self.added_by) {
            (Some(package), by) if by.is_none() || !absent.is_added => {
                format!("{} is not installed: apt-get install {package}", absent.path)
            }
            (_, Some(by)) => format!(
                "it is not installed, and heaptoll may not ship it: `heaptoll programs add {}` fetches and builds it \
                 for you (licence: {})",
                by.recipe, by.licence
            ),
            (_, None) if absent.is_bundled => format!("{} is not built: type `make build`", absent.path),
            (_, None) => format!("{} is not installed", absent.path),
        })
    }

    /// The first of what is required that is not there.
    fn absent(&self, places: &Places) -> Option<Absent> {
        self.requires.iter().find_map(|template| {
            let path = template.render(|piece| self.folder(piece, places)).ok()?;
            let is_bundled = template.pieces().contains(&Piece::Bin);
            let is_added = template.pieces().contains(&Piece::Added);
            (!exists(&path)).then_some(Absent { path, is_bundled, is_added })
        })
    }

    /// Generates the inputs that are not there yet and puts paths and parameters into the command.
    ///
    /// # Errors
    /// When the program has no such size, an input cannot be written, or a file that was recorded with its digest is
    /// another one.
    pub fn prepare(&self, size: Size, places: &Places) -> Result<Prepared, CatalogError> {
        let plan = self.sizes.get(&size).ok_or_else(|| CatalogError::NoSize {
            program: self.name.clone(),
            size: size.to_string(),
            known: self.sizes.keys().map(Size::to_string).collect(),
            file: self.file.clone(),
        })?;
        for list in &self.verified_by {
            let list = list.render(|piece| self.folder(piece, places))?;
            verified::verify(Path::new(&list))?;
        }
        let mut paths = BTreeMap::new();
        for (name, generator) in &plan.inputs {
            paths.insert(name.as_str(), cache::provide(name, generator, &places.inputs_cache)?);
        }
        let render = |template: &Template| {
            template.render(|piece| match piece {
                Piece::Input(name) => self.reference(paths.get(name.as_str()).map(|path| text(path)), piece),
                Piece::Parameter(name) => {
                    self.reference(plan.parameters.get(name).map(|value| Ok(value.to_string())), piece)
                }
                _ => self.folder(piece, places),
            })
        };
        let render_all = |templates: &[Template]| templates.iter().map(render).collect::<Result<Vec<_>, _>>();
        let command = render_all(&self.command)?;
        let serve = match &self.serve {
            None => None,
            Some(serve) => Some(PreparedServe {
                server: command.clone(),
                load: render_all(&serve.load)?,
                burst: serve.burst.as_deref().map(render_all).transpose()?,
                ready: serve.ready.clone(),
                figures: serve.figures.clone(),
                stop: serve.stop.clone(),
            }),
        };
        let mut environment = Vec::new();
        for (key, value) in &self.environment {
            environment.push((key.clone(), render(value)?));
        }
        Ok(Prepared {
            name: self.name.clone(),
            about: self.about.clone(),
            command,
            environment,
            stdin: match &self.stdin {
                None => None,
                Some(Stdin::Input(name)) => paths.get(name.as_str()).cloned(),
                Some(Stdin::File(path)) => Some(PathBuf::from(render(path)?)),
            },
            expected_digest: plan.digest.clone().filter(|_| self.digests_hold()),
            package: self.package.clone(),
            threads: self.threads,
            figures: self.figures.clone(),
            varies: self.varies.clone(),
            serve,
        })
    }

    /// Whether the digests are those of the version that is installed, or of every version.
    fn digests_hold(&self) -> bool {
        match (&self.digests_of, &self.package) {
            (Some(version), Some(package)) => installed_version(package).as_ref() == Some(version),
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// Every placeholder of the program must have a value at this size.
    fn check_references(&self, check: &Check<'_>, plan: &Plan, size: Size) -> Result<(), CatalogError> {
        let fixed = self.environment.iter().map(|(_, value)| value);
        let load = self.serve.iter().flat_map(|serve| serve.load.iter().chain(serve.burst.iter().flatten()));
        let stdin = self.stdin.iter().filter_map(Stdin::file);
        for piece in self.command.iter().chain(fixed).chain(load).chain(stdin).flat_map(Template::pieces) {
            match piece {
                Piece::Input(name) if !plan.inputs.contains_key(name) => {
                    let problem = format!("{{input:{name}}} is used, but there is no such input");
                    return Err(check.error("inputs", problem, format!("add [inputs.\"{name}\"]")));
                }
                Piece::Parameter(name) if !plan.parameters.contains_key(name) => {
                    let problem = format!("{{{name}}} is used, but size {size} has no such parameter");
                    let remedy = "add it to `parameters`, or correct the placeholder";
                    return Err(check.error(&format!("sizes.{size}.parameters"), problem, remedy));
                }
                _ => {}
            }
        }
        match &self.stdin {
            Some(Stdin::Input(name)) if !plan.inputs.contains_key(name) => Err(check.error(
                "stdin",
                format!("there is no input `{name}`"),
                format!("add [inputs.\"{name}\"]"),
            )),
            _ => Ok(()),
        }
    }

    /// What a placeholder for a folder stands for.
    fn folder(&self, piece: &Piece, places: &Places) -> Result<String, CatalogError> {
        match piece {
            Piece::Share => {
                let parent = self.file.parent().filter(|parent| !parent.as_os_str().is_empty());
                text(&absolute(parent.unwrap_or(Path::new("."))))
            }
            Piece::Bin => text(&absolute(&places.bin)),
            Piece::Added => text(&absolute(&places.added)),
            Piece::Tmp => Ok(scratch_word::TMP.to_owned()),
            other => self.reference(None, other),
        }
    }

    /// A looked-up value, or the error for a placeholder that names nothing.
    fn reference(
        &self,
        value: Option<Result<String, CatalogError>>,
        piece: &Piece,
    ) -> Result<String, CatalogError> {
        value.unwrap_or_else(|| {
            let (kind, name) = match piece {
                Piece::Input(name) => ("inputs", name.as_str()),
                Piece::Parameter(name) => ("parameters", name.as_str()),
                _ => ("placeholders", "?"),
            };
            Err(CatalogError::field(&self.file, kind, format!("`{name}` does not exist"), "add it"))
        })
    }
}

/// A command is run from another folder than ours, so a path in it must not depend on where we are.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn text(path: &Path) -> Result<String, CatalogError> {
    path.to_str().map(str::to_owned).ok_or_else(|| CatalogError::NotText { path: path.to_owned() })
}

/// Whether `program` is a file, on the `PATH` when it has no slash.
fn exists(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    std::env::var_os("PATH")
        .is_some_and(|paths| std::env::split_paths(&paths).any(|folder| folder.join(program).is_file()))
}
