//! One shard of a plan, measured on this node: refused where the node is not what the plan needs, measured on its own
//! disk, and put into the folder of the shards whole.

use std::path::{Path, PathBuf};

use heaptoll_catalog::Size;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::runner::{Ending, RunError};
use heaptoll_experiment::shards::{Part, Shard};
use heaptoll_experiment::store::{Store, StoreError};
use heaptoll_experiment::{machine, own_cost};
use heaptoll_report::ReportError;
use heaptoll_scratch::Scratch;
use serde::Serialize;

use super::digests;
use super::error::ClusterError;
use super::machine_class::MachineClass;
use super::plan::{CatalogEntries, Plan};
use super::publish::{Published, publish};
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_gate::sharded::{self, PlannedGate};
use heaptoll_runs::cells;
use heaptoll_runs::measurement;
use heaptoll_runs::preparation::resume::go_where_it_began;
use heaptoll_runs::preparation::settings_in_environment;
use heaptoll_runs::workload::Workload;

/// Which shard to measure, and where.
#[derive(Debug, Clone)]
pub struct WorkRequest {
    /// The plan.
    pub plan: PathBuf,
    /// The shard's number.
    pub shard: u32,
    /// The folder that gets its file.
    pub folder: PathBuf,
    /// A folder on a disk of this node; the temporary one without it.
    pub scratch: Option<PathBuf>,
    /// This node's name; Slurm's or the system's without one.
    pub node: Option<String>,
}

/// What became of a shard.
#[derive(Debug, Clone, PartialEq)]
pub enum Worked {
    /// It was measured: its file, its rows and how many of them did not end well.
    Measured {
        /// The file.
        path: PathBuf,
        /// Rows.
        rows: usize,
        /// Of these, such that did not end well.
        failed: usize,
    },
    /// Its file was there, whole.
    WasThere(PathBuf),
    /// Another node's was there first when it was measured.
    WasFirst(PathBuf),
    /// Ctrl-C, or the scheduler ended it; nothing is kept.
    Interrupted,
}

/// Measures a shard, unless its file is there.
///
/// # Errors
/// The plan cannot be used, this node is not what it needs, or the file cannot be kept.
pub fn work(request: &WorkRequest, context: &Context) -> Result<Worked, Failure> {
    let (plan, folder) = (Plan::read(&request.plan).map_err(refused)?, absolute(&request.folder)?);
    let here = env!("CARGO_PKG_VERSION");
    if plan.heaptoll != here {
        let (path, planned) = (request.plan.clone(), plan.heaptoll);
        return Err(refused(ClusterError::OtherHeaptoll { path, planned, here: here.into() }));
    }
    let planned = plan.shard(request.shard).map_err(refused)?;
    let name = plan.file_name(request.shard);
    let path = folder.join(&name);
    if is_there(&path, &plan, request.shard, context).map_err(refused)? {
        return Ok(Worked::WasThere(path));
    }
    std::fs::create_dir_all(&folder)
        .map_err(|cause| refused(ClusterError::Write { path: folder.clone(), cause }))?;
    let scratch = request.scratch.as_deref().map(absolute).transpose()?;
    let node = request.node.clone().unwrap_or_else(node_name);
    go_where_it_began(&plan.experiment)?;
    fits(&plan, &planned.part.class, &node, context)?;
    settings_in_environment::warn(&plan.experiment, context.messages);

    let mut experiment = plan.experiment.clone();
    experiment.machine = machine::read();
    experiment.own_cost = own_cost::measure(&context.places.launcher(), context.interrupt)?;
    experiment.settings.shards = vec![Shard {
        plan: plan.identity.clone(),
        number: request.shard,
        of: plan.shards.len() as u32,
        part: planned.part.clone(),
        node,
        machine: experiment.machine.clone(),
        own_cost: experiment.own_cost,
    }];
    let scratch =
        scratch.map_or_else(Scratch::make, |folder| Scratch::make_in(&folder)).map_err(RunError::Scratch)?;
    let local = scratch.path().join(&name);
    let ending = measured(&plan, &mut experiment, &local, context)
        .map_err(|failure| of_scratch(failure, request.shard, scratch.path()))?;
    if ending == Ending::Interrupted {
        return Ok(Worked::Interrupted);
    }
    let published = publish(&local, &folder, &name).map_err(|cause| {
        Failure::Trouble(Box::new(ClusterError::NotKept { number: request.shard, folder, cause }))
    })?;
    let failed = experiment.observations.iter().filter(|row| !row.outcome.is_ok()).count();
    Ok(match published {
        Published::New => Worked::Measured { path, rows: experiment.observations.len(), failed },
        Published::WasThere => Worked::WasFirst(path),
    })
}

/// Measures the experiment's only shard into a file of this node, which is whole and closed then.
fn measured(
    plan: &Plan,
    experiment: &mut Experiment,
    local: &Path,
    context: &Context,
) -> Result<Ending, Failure> {
    let mut store = Store::create(local, experiment)?;
    let part = experiment.settings.shards.first().map(|shard| shard.part.clone()).unwrap_or_default();
    if let Some(gate) = &plan.gate {
        store.attach(sharded::ATTACHED, &json(gate)?)?;
    }
    let ending = match &plan.gate {
        Some(gate) if part.counts => counted(gate, experiment, &part, &store, context)?,
        _ => {
            let made = cells::of_part(experiment, &part);
            measurement::measure_cells(experiment, &mut store, &made, context)?
        }
    };
    if ending == Ending::Interrupted {
        return Ok(ending);
    }
    experiment.complete = true;
    store.describe(experiment)?;
    Ok(Ending::Complete)
}

/// Names the scratch folder where its disk fails: the rows in it are lost with it.
fn of_scratch(failure: Failure, number: u32, scratch: &Path) -> Failure {
    match &failure {
        Failure::Store(error) | Failure::Run(RunError::Store(error)) if error.is_of_the_disk() => {
            let folder = scratch.parent().unwrap_or(scratch).to_path_buf();
            Failure::Trouble(Box::new(ClusterError::ScratchFull { number, folder }))
        }
        _ => failure,
    }
}

/// Counts one program of a gate, and keeps what was counted in the shard's file.
fn counted(
    gate: &PlannedGate,
    experiment: &Experiment,
    part: &Part,
    store: &Store,
    context: &Context,
) -> Result<Ending, Failure> {
    let traces = Scratch::make().map_err(RunError::Scratch)?;
    match sharded::count(gate, experiment, &part.program, traces.path(), context) {
        Ok(found) => {
            store.attach(&sharded::counts_of(&part.class, &part.program), &json(&found)?)?;
            Ok(Ending::Complete)
        }
        Err(Failure::Interrupted) => Ok(Ending::Interrupted),
        Err(failure) => Err(failure),
    }
}

fn json<T: Serialize>(value: &T) -> Result<String, Failure> {
    let encoded = |error: serde_json::Error| ReportError::Encode { form: "JSON", detail: error.to_string() };
    Ok(serde_json::to_string(value).map_err(encoded)?)
}

/// Whether a shard's file is there and whole. One that is cut or damaged is none; one of something else is not touched.
///
/// # Errors
/// Something else has its name.
fn is_there(path: &Path, plan: &Plan, number: u32, context: &Context) -> Result<bool, ClusterError> {
    let described = match Store::read_description(path) {
        Ok(described) => described,
        Err(StoreError::Missing(_)) => return Ok(false),
        Err(StoreError::Damaged { .. } | StoreError::Foreign { .. }) => {
            return discard(path, number, context);
        }
        Err(error) => return Err(error.into()),
    };
    match described.settings.shards.as_slice() {
        [shard] if shard.plan == plan.identity && shard.number == number => {
            if described.complete {
                Ok(true)
            } else {
                discard(path, number, context)
            }
        }
        _ => Err(ClusterError::Occupied { path: path.into(), number }),
    }
}

/// Makes way for a shard whose file is half written: it is kept under another name.
fn discard(path: &Path, number: u32, context: &Context) -> Result<bool, ClusterError> {
    let mut aside = path.to_path_buf();
    aside.set_extension("half");
    std::fs::rename(path, &aside).map_err(|cause| ClusterError::Write { path: aside.clone(), cause })?;
    context.messages.warning(&format!(
        "{} is incomplete: it is kept as {}, and shard {number} is measured again",
        path.display(),
        aside.display()
    ));
    Ok(false)
}

/// Refuses a node that is of another class, or has other files or settings.
fn fits(plan: &Plan, class: &str, node: &str, context: &Context) -> Result<(), Failure> {
    let found = plan.class(class).map_or(vec![], |class| class.differences(&MachineClass::here()));
    if !found.is_empty() {
        let (node, class) = (node.to_owned(), class.to_owned());
        return Err(refused(ClusterError::OtherClass { node, class, found }));
    }
    let here = settings_in_environment::set();
    let variables = plan.environment.keys().chain(here.keys());
    if let Some(variable) = variables.into_iter().find(|name| plan.environment.get(*name) != here.get(*name))
    {
        return Err(refused(ClusterError::OtherEnvironment {
            here: here.get(variable).cloned(),
            planned: plan.environment.get(variable).cloned(),
            variable: variable.clone(),
        }));
    }
    if let Some(entries) = &plan.catalog {
        generate_inputs(entries, context)?;
    }
    let others = plan.gate.as_ref().map_or(vec![], |gate| gate.files(context.places));
    let files = digests::of_experiment(&plan.experiment, &others, context.places).map_err(refused)?;
    digests::compare(&plan.files, &files).map_err(refused)
}

/// Generates the inputs of the catalog's entries that this node does not have yet.
fn generate_inputs(entries: &CatalogEntries, context: &Context) -> Result<(), Failure> {
    let Some(size) = Size::ALL.into_iter().find(|size| size.name() == entries.size) else { return Ok(()) };
    let names: Vec<&str> = entries.names.iter().map(String::as_str).collect();
    let catalog = entries.folder.as_ref().map(PathBuf::from);
    let workload = Workload { catalog, ..Workload::of_catalog(&names, size) };
    workload.resolve(context).map(drop)
}

/// What Slurm calls this node, or the system.
fn node_name() -> String {
    let of_slurm = std::env::var("SLURMD_NODENAME").ok().filter(|name| !name.is_empty());
    let of_system = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    of_slurm.or_else(of_system).map_or_else(|| "unknown".into(), |name| name.trim().to_owned())
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|cause| refused(ClusterError::Read { path: path.to_path_buf(), cause }))
}

fn refused(error: ClusterError) -> Failure {
    Failure::Refused(Box::new(error))
}
