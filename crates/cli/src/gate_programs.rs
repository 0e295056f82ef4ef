//! Which programs are gated: those of the command line, or of a file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_command::writable::are_same;
use heaptoll_gate::config::{self, Commands, Configured};
use heaptoll_gate::limits::Limits;
use heaptoll_gate::request::{Entry, Refs, Request, SideRequest};
use heaptoll_report::format::shell_command;
use heaptoll_runs::standard_input::StandardInput;

use crate::duration::duration;
use crate::protocol_arguments::Seeded;
use crate::{hints, terminal};

/// Programs, their builds and limits.
#[derive(Debug, Args)]
pub struct ProgramArguments {
    /// The old program; --new names the new one, and `--` their common arguments
    #[arg(long, value_name = "PROGRAM", requires = "new", conflicts_with_all = ["base_cmd", "command", "base_ref"])]
    base: Option<PathBuf>,
    /// The new program
    #[arg(long, value_name = "PROGRAM", requires = "base")]
    new: Option<PathBuf>,
    /// The whole command of the base, as one shell-quoted string
    #[arg(long, value_name = "COMMAND", requires = "new_cmd", conflicts_with_all = ["command", "arguments", "base_ref"])]
    base_cmd: Option<String>,
    /// The whole command of the new build
    #[arg(long, value_name = "COMMAND", requires = "base_cmd")]
    new_cmd: Option<String>,
    /// The command of both sides, as one shell-quoted string: of two commits (--base-ref) or of two managers
    #[arg(long, value_name = "COMMAND", conflicts_with = "arguments")]
    command: Option<String>,
    /// The commit of the base; it is checked out into a temporary folder and built there
    #[arg(long, value_name = "REF")]
    base_ref: Option<String>,
    /// The commit of the new build [default: the working tree with all files that git does not ignore]
    #[arg(long, value_name = "REF", requires = "base_ref")]
    new_ref: Option<String>,
    /// The command that builds a checked-out tree, for `sh`
    #[arg(long, value_name = "COMMAND", requires = "base_ref")]
    build: Option<String>,
    /// The manager of the base, by name or path [default: the program's own; glibc with --new-manager]
    #[arg(long, value_name = "MANAGER", conflicts_with = "base_ref")]
    base_manager: Option<String>,
    /// The manager of the new side
    #[arg(long, value_name = "MANAGER", conflicts_with = "base_ref")]
    new_manager: Option<String>,
    /// The file of programs and limits [default: heaptoll.toml, if no program is named]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["base", "base_cmd", "command", "arguments"])]
    config: Option<PathBuf>,
    /// Only this program of the file; may be given several times
    #[arg(long, value_name = "NAME", conflicts_with_all = ["base", "base_cmd", "command", "arguments"])]
    only: Vec<String>,
    /// A limit that replaces the file's or the default one: METRIC=PERCENT, or METRIC=none; may be given several
    /// times
    #[arg(long, value_name = "LIMIT")]
    limit: Vec<String>,
    /// Time for the timed runs of each program [default: 36 runs, between 4 s and a minute]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    budget: Option<f64>,
    /// Both sides may write different output
    #[arg(long)]
    outputs_differ: bool,
    /// Standard input of both sides [default: heaptoll's own; a pipe is kept for all runs. Programs of the file:
    /// theirs]
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// A file that names further allocators inside programs, besides share/heaptoll/allocator-symbols.toml
    /// (docs/questions/own-allocators.md)
    #[arg(long, value_name = "FILE")]
    allocator_symbols: Option<PathBuf>,
    /// Arguments of both sides (after --base and --new), or the command of both
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}

impl ProgramArguments {
    /// What to gate, and in how many repetitions, as the library takes it.
    ///
    /// # Errors
    /// Nothing is named, or what is named cannot be used.
    pub fn request(&self, seeded: &Seeded, repetitions: u32) -> Result<Request, Failure> {
        let mut programs = match self.of_command_line()? {
            Some(program) => vec![program],
            None => self.of_file()?,
        };
        for program in &mut programs {
            for word in &self.limit {
                program.limits.set_word(word).map_err(|error| usage(format!("--limit {word}: {error}")))?;
            }
            program.outputs_differ |= self.outputs_differ;
            program.expect_status = seeded.limits.expect_status.unwrap_or(program.expect_status);
            program.base.manager = self.manager(&self.base_manager, &self.new_manager);
            program.new.manager = self.manager(&self.new_manager, &self.base_manager);
        }
        Ok(Request {
            programs,
            refs: self.base_ref.as_ref().map(|base| Refs {
                base: base.clone(),
                new: self.new_ref.clone(),
                build: self.build.clone(),
            }),
            budget_s: self.budget,
            protocol: seeded.protocol(repetitions),
            allocator_symbols: self.allocator_symbols.clone(),
        })
    }

    /// The manager of a side. Where the other side has one, the C library's is one, too.
    fn manager(&self, own: &Option<String>, other: &Option<String>) -> Option<String> {
        own.clone().or_else(|| other.as_ref().map(|_| "glibc".into()))
    }

    fn of_command_line(&self) -> Result<Option<Entry>, Failure> {
        let with = |program: &PathBuf| -> Vec<OsString> {
            std::iter::once(program.clone().into()).chain(self.arguments.iter().cloned()).collect()
        };
        let (base, new) = if let (Some(base), Some(new)) = (&self.base, &self.new) {
            self.check_first_argument(base, new)?;
            (with(base), with(new))
        } else if let (Some(base), Some(new)) = (&self.base_cmd, &self.new_cmd) {
            (words("base-cmd", base)?, words("new-cmd", new)?)
        } else if let Some(command) = &self.command {
            let command = words("command", command)?;
            (command.clone(), command)
        } else if !self.arguments.is_empty() {
            (self.arguments.clone(), self.arguments.clone())
        } else {
            return Ok(None);
        };
        Ok(Some(Entry {
            name: Entry::name_of(&new),
            base: SideRequest { command: base, manager: None },
            new: SideRequest { command: new, manager: None },
            limits: Limits::default(),
            stdin: StandardInput::file_or_own(self.stdin.clone()),
            expect_status: 0,
            outputs_differ: false,
        }))
    }

    /// After --base and --new come arguments alone: the program once more would be their input.
    fn check_first_argument(&self, base: &Path, new: &Path) -> Result<(), Failure> {
        let Some((first, rest)) = self.arguments.split_first() else { return Ok(()) };
        let path = Path::new(first);
        let what = format!("`{}` is passed to both programs as an argument", path.display());
        let instead = match rest {
            [] => "leave it out".to_owned(),
            rest => format!("did you mean `-- {}`?", shell_command(&hints::texts(rest))),
        };
        if [base, new].iter().any(|side| are_same(side, path)) {
            return Err(usage(format!("{what}, and it is one of them: {instead}")));
        }
        if path.components().count() > 1 && hints::is_program(path) {
            let advice = match base.display() {
                same if base == new => format!(
                    "{same} is compared with itself. If it runs that program, name two builds of that in --base-cmd \
                     '{same} OLD' and --new-cmd '{same} NEW'"
                ),
                _ => format!("it is a program: {instead}"),
            };
            terminal::warning(&format!("{what}, and {advice}"));
        }
        Ok(())
    }

    fn of_file(&self) -> Result<Vec<Entry>, Failure> {
        let path = self.config.clone().unwrap_or_else(|| config::FILE.into());
        if self.config.is_none() && !path.exists() {
            return Err(usage(format!(
                "nothing to gate: give --base and --new, --base-cmd and --new-cmd, --base-ref with --command, or programs in {}",
                config::FILE
            )));
        }
        let mut found = config::read(&path).map_err(usage)?;
        if !self.only.is_empty() {
            let names: Vec<String> = found.iter().map(|one| one.name.clone()).collect();
            if let Some(missing) = self.only.iter().find(|name| !names.contains(name)) {
                let (path, names) = (path.display(), names.join(", "));
                return Err(usage(format!("--only {missing}: {path} has {names}")));
            }
            found.retain(|one| self.only.contains(&one.name));
        }
        found.into_iter().map(|one| self.entry(one, &path)).collect()
    }

    fn entry(&self, one: Configured, path: &Path) -> Result<Entry, Failure> {
        let two = self.base_ref.is_some() || self.base_manager.is_some() || self.new_manager.is_some();
        let (base, new) = match one.commands {
            Commands::Both(_) if !two => {
                return Err(usage(format!(
                    "{}: [gate.{}] has one command, which would be compared with itself: add --base-ref REF, or give \
                     it `base` and `new`",
                    path.display(),
                    one.name
                )));
            }
            Commands::Both(command) => (command.clone(), command),
            Commands::Each { base, new } => (base, new),
        };
        Ok(Entry {
            name: one.name,
            base: SideRequest { command: base, manager: None },
            new: SideRequest { command: new, manager: None },
            limits: one.limits,
            stdin: self.stdin.clone().or(one.stdin).map_or(StandardInput::Nothing, StandardInput::File),
            expect_status: one.expect_status,
            outputs_differ: one.outputs_differ,
        })
    }
}

fn words(option: &str, text: &str) -> Result<Vec<OsString>, Failure> {
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(words.into_iter().map(OsString::from).collect()),
        _ => Err(usage(format!("--{option} `{text}` is not a command: check its quotes"))),
    }
}
