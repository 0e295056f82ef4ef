//! The runs to make: programs and managers are found, checked and proved before the first.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heaptoll_experiment::experiment::{Experiment, ProgramInfo, Protocol, StackInfo};
use heaptoll_experiment::extension::require_for;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::places::Places;
use heaptoll_reftrace::Sink;
use heaptoll_reftrace_host::allocator_symbols::{Table, TableError};
use heaptoll_reftrace_host::{Fitness, Image, Options, Tracer};

use super::cell::Cell;
use super::find_own;
use super::fit::{NOT_MEASURABLE, fitness_of, other_path};
use super::own::{Follow, OwnAllocator};
use super::scout::Scout;
use super::single::{Run, TracedRunner};
use crate::preparation::baseline;
use crate::preparation::experiment_file;
use crate::preparation::pairing;
use crate::preparation::preflights;
use crate::preparation::repeat_command::{repeating, with_input};
use crate::preparation::settings_in_environment;
use crate::preparation::stand_ins;
use crate::workload::{Workload, catalog};
use heaptoll_command::context::{Context, Messages};
use heaptoll_command::failure::Failure;

/// Default limit in seconds: a traced run takes some ten to a hundred times as long as the program alone.
pub const LIMIT_S: f64 = 3600.0;

/// What to run under which managers.
#[derive(Debug, Clone)]
pub struct Request {
    /// The programs.
    pub workload: Workload,
    /// Managers, groups and stacks, by name or path; the baseline alone where there are none.
    pub manager: Vec<String>,
    /// The manager that the others are compared with.
    pub baseline: String,
    /// How runs are made.
    pub protocol: Protocol,
    /// Whether the program's randomness is pinned.
    pub pin: bool,
    /// Whether the runs are kept.
    pub is_stored: bool,
    /// The file that keeps the runs; a new one in `$XDG_STATE_HOME/heaptoll` without one.
    pub db: Option<PathBuf>,
    /// A file with allocators besides those of the tool's table.
    pub allocator_symbols: Option<PathBuf>,
}

/// Runs to make, in order: each program under the baseline first.
pub struct Plan {
    /// The runs.
    pub cells: Vec<Cell>,
    /// What is stored: programs, managers, refusals, and rows as they are made.
    pub experiment: Experiment,
    /// The tracer.
    pub tracer: Tracer,
    pub(super) pin: bool,
    pub(super) db: Option<PathBuf>,
}

impl Plan {
    /// The tracer, and whether randomness was pinned.
    pub(super) fn tracer_facts(&self) -> [(String, String); 2] {
        let pinned = if self.pin { "pinned" } else { "not pinned" };
        [
            ("traced by".into(), format!("heaptoll's tracer on Valgrind {}", self.tracer.version())),
            ("randomness".into(), pinned.into()),
        ]
    }

    /// Each manager once, with its version and where it comes from.
    pub(super) fn manager_facts(&self) -> Vec<(String, String)> {
        let mut seen = HashSet::new();
        let each = self.experiment.stacks.iter().filter(|stack| seen.insert(&stack.name));
        each.map(|stack| {
            let words = [stack.version.as_str(), stack.origin.as_str()];
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            (stack.name.clone(), words.join(", "))
        })
        .collect()
    }

    /// What its runs share.
    pub(super) fn runner<'a>(&'a self, context: &Context<'a>) -> TracedRunner<'a> {
        TracedRunner {
            copied: None,
            tracer: &self.tracer,
            context: *context,
            protocol: &self.experiment.settings,
        }
    }

    /// Makes one of the runs without storing it. `begin` gives a sink for each process image, or none.
    ///
    /// # Errors
    /// The program cannot be traced.
    pub fn run_one<S: Sink>(
        &mut self,
        cell: &Cell,
        options: &Options,
        context: &Context,
        mut begin: impl FnMut(&Image) -> S,
    ) -> Result<Run<S>, Failure> {
        let options = Options { pin: self.pin, ..options.clone() };
        let run = self.runner(context).run(cell, &options, "1/1", &mut |_, image| begin(image))?;
        run.map_err(|error| Failure::Refused(Box::new(error)))
    }

    /// What was requested and left out: (program, manager, reason).
    pub fn refused(&self) -> &[(String, String, String)] {
        &self.experiment.refused
    }
}

/// Makes the plan.
///
/// # Errors
/// The tracer cannot run here, or the request cannot be carried out.
pub fn plan(request: &Request, context: &Context) -> Result<Plan, Failure> {
    let places = context.places;
    request.workload.require("--set or --all")?;
    let tracer = Tracer::find(places).map_err(|error| Failure::Refused(Box::new(error)))?;
    let table = Arc::new(symbol_table(request.allocator_symbols.as_deref(), places)?);
    if request.is_stored {
        experiment_file::check(request.db.as_deref())?;
    }
    let known = manager::known(places)?;
    let managers = choose(request, &known, context.messages)?;
    refuse_named_servers(&request.workload, places)?;
    let programs = without_servers(request.workload.resolve(context)?, request.workload.is_many())?;
    let mut experiment = begun(request, &managers, programs);
    let (words, programs) = (&request.manager, &request.workload.program);
    experiment.settings.named = Some(baseline::named(&known, words, &request.baseline, programs));
    let scout = Scout { tracer: &tracer, table: &table, context };
    let own = prove(&mut experiment, &managers, &scout)?;
    settings_in_environment::warn(&experiment, context.messages);
    if context.interrupt.is_set() {
        return Err(Failure::Interrupted);
    }
    let cautions = judge(&mut experiment, &own, &tracer, context)?;
    let cells: Vec<Cell> = experiment
        .programs
        .iter()
        .flat_map(|program| {
            experiment.stacks_of(&program.name).map(|stack| Cell {
                program: program.clone(),
                stack: stack.clone(),
                is_baseline: stack.name == experiment.baseline || own.contains_key(&program.name),
                cautions: cautions.get(&stack.name).cloned().into_iter().collect(),
                follow: Follow::of(&table, own.get(&program.name).cloned()),
            })
        })
        .collect();
    if cells.is_empty() {
        return Err(Failure::nothing("nothing is left to run", &experiment));
    }
    Ok(Plan { cells, experiment, tracer, pin: request.pin, db: request.db.clone() })
}

/// The baseline, and those that were named.
fn choose(request: &Request, known: &[Manager], messages: &dyn Messages) -> Result<Vec<Manager>, Failure> {
    let named = match request.manager.is_empty() {
        true => std::slice::from_ref(&request.baseline),
        false => &request.manager,
    };
    let chosen = manager::choose_with_baseline(known, named, &request.baseline)?;
    chosen.iter().try_for_each(require_for)?;
    stand_ins::note(known, named.iter().chain([&request.baseline]), messages);
    Ok(chosen)
}

fn without_servers(programs: Vec<ProgramInfo>, all: bool) -> Result<Vec<ProgramInfo>, Failure> {
    let (servers, others): (Vec<_>, Vec<_>) =
        programs.into_iter().partition(|program| program.serve.is_some());
    match servers.first() {
        Some(server) if !all => Err(is_server(&server.name)),
        _ if others.is_empty() => Err(Failure::NothingToCompare(
            "no program of the catalog is installed; `heaptoll programs` lists them with their packages"
                .into(),
        )),
        _ => Ok(others),
    }
}

/// Refuses servers that were named besides a set, which may be without its own.
fn refuse_named_servers(workload: &Workload, places: &Places) -> Result<(), Failure> {
    let mut catalog = catalog(places, workload.catalog.as_deref())?;
    workload.program.iter().try_for_each(|word| match catalog.meant(word)? {
        program if program.is_server() => Err(is_server(program.name())),
        _ => Ok(()),
    })
}

fn is_server(name: &str) -> Failure {
    Failure::Usage(format!(
        "{name} is a server whose load depends on time, so traced runs would not repeat; `heaptoll run` measures it"
    ))
}

fn begun(request: &Request, managers: &[Manager], programs: Vec<ProgramInfo>) -> Experiment {
    // No seed has to be made explicit.
    let mut protocol = request.protocol.clone();
    protocol.repeat_command = repeating(with_input(protocol.repeat_command, &programs), None);
    Experiment::begun(protocol, preflights::row_names(managers)[0].clone(), programs)
}

/// The tool's table of allocators, with the families of the user's file.
///
/// # Errors
/// One of them cannot be read or used.
pub fn symbol_table(users: Option<&Path>, places: &Places) -> Result<Table, Failure> {
    let refuse = |error: TableError| Failure::Refused(Box::new(error));
    let table = Table::read(&places.allocator_symbols()).map_err(refuse)?;
    match users {
        Some(path) => table.with(path).map_err(refuse),
        None => Ok(table),
    }
}

/// Preflight of every manager on every program, as before measured runs. Programs with an allocator of their own run as
/// they are, with nothing preloaded, and every manager is refused on them; they are returned.
fn prove(
    experiment: &mut Experiment,
    managers: &[Manager],
    scout: &Scout,
) -> Result<BTreeMap<String, OwnAllocator>, Failure> {
    let context = scout.context;
    let workload = experiment.programs.clone();
    let (mut owns, mut stacks) = (BTreeMap::new(), Vec::new());
    for program in &workload {
        let own = match find_own::find(program, None, scout) {
            Ok(None) => continue,
            Ok(Some(own)) => own,
            Err(Failure::Refused(error)) if workload.len() > 1 => {
                let of = (program.name.clone(), experiment.baseline.clone(), error.to_string());
                experiment.refused.push(of);
                experiment.programs.retain(|other| other.name != program.name);
                continue;
            }
            Err(failure) => return Err(failure),
        };
        context.messages.warning(&format!(
            "{}: no manager can be preloaded ({}); it runs as it is, and heaptoll follows {} by its symbols",
            program.name, own.why, own.name
        ));
        refuse_managers(experiment, managers, program, &own);
        stacks.push(own.stack(&program.name));
        owns.insert(program.name.clone(), own);
    }
    experiment.programs.retain(|program| !owns.contains_key(&program.name));
    if !experiment.programs.is_empty() {
        // Where one run is to come, Ctrl-C ends what it would end without heaptoll: the program, a service for example.
        let goes_on = managers.len() == 1 && workload.len() == 1;
        let machine = pairing::Machine::now();
        let together = preflights::Together { machine, goes_on, ..preflights::Together::default() };
        preflights::run(experiment, managers, &together, context)?;
        if context.interrupt.take_back() {
            context.messages.note(
                "Ctrl-C ended the first run, without the tracer; the traced run lasts until the program ends, or \
                 until another Ctrl-C",
            );
        }
    } else if let Some(stack) = stacks.first() {
        // There is none of the managers.
        experiment.baseline = stack.name.clone();
    }
    let kept: Vec<String> = experiment.programs.iter().map(|program| program.name.clone()).collect();
    experiment.programs = workload
        .into_iter()
        .filter(|program| kept.contains(&program.name) || owns.contains_key(&program.name))
        .collect();
    experiment.stacks.extend(stacks);
    Ok(owns)
}

/// Leaves out every manager but glibc, which stands for what a program has without one.
fn refuse_managers(
    experiment: &mut Experiment,
    managers: &[Manager],
    program: &ProgramInfo,
    own: &OwnAllocator,
) {
    for (manager, name) in managers.iter().zip(preflights::row_names(managers)) {
        if manager.object.is_some() || !manager.layers.is_empty() || !manager.environment.is_empty() {
            experiment.refused.push((program.name.clone(), name, own.why.clone()));
        }
    }
}

/// Finds what each manager does differently under the tracer. Those that do not run there at all are refused.
fn judge(
    experiment: &mut Experiment,
    own: &BTreeMap<String, OwnAllocator>,
    tracer: &Tracer,
    context: &Context,
) -> Result<BTreeMap<String, String>, Failure> {
    let managers = experiment.stacks.iter().filter(|stack| !own.contains_key(&stack.program));
    let found = fitness_of(managers, tracer, context)?;
    let mut cautions = BTreeMap::new();
    for (name, fitness) in found {
        match fitness {
            Fitness::NotMeasurable(why) => {
                let why = format!("{NOT_MEASURABLE}: {why}");
                let of = |stack: &StackInfo| stack.name == name && !own.contains_key(&stack.program);
                let stacks = experiment.stacks.iter().filter(|stack| of(stack));
                let refused: Vec<_> =
                    stacks.map(|stack| (stack.program.clone(), name.clone(), why.clone())).collect();
                experiment.stacks.retain(|stack| !of(stack));
                experiment.refused.extend(refused);
            }
            Fitness::OtherPath(why) => {
                let caution = other_path(&name, &why);
                cautions.insert(name, caution);
            }
            Fitness::Works => {}
        }
    }
    Ok(cautions)
}

#[cfg(test)]
mod tests {
    use heaptoll_catalog::Size;

    use super::*;

    /// Before, `--set twenty -p redis` left redis out without a word.
    #[test]
    fn a_server_that_is_named_besides_a_set_is_refused() {
        let home = tempfile::tempdir().expect("a folder");
        let places = Places::at(home.path());
        std::fs::create_dir_all(places.catalog()).expect("a folder");
        let entry = places.catalog().join("echo.toml");
        let text = "name = \"echo\"\nabout = \"a\"\n";
        let serve =
            "[serve]\nserver = [\"/bin/cat\"]\nload = [\"/bin/true\"]\nready = \"up\"\n[sizes.tiny]\n";
        std::fs::write(&entry, format!("{text}{serve}")).expect("written");
        let workload = Workload { set: Some("twenty".into()), ..Workload::of_catalog(&["echo"], Size::Tiny) };
        let refused = refuse_named_servers(&workload, &places).expect_err("a server");
        assert!(refused.to_string().contains("echo is a server"), "{refused}");
        refuse_named_servers(&Workload { program: vec![], ..workload }, &places).expect("none is named");
    }
}
