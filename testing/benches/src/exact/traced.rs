//! A program under the tracer, with this bench's sinks.

use super::family;
use heaptoll_callgrind::profile::BOUND_AT_START;
use heaptoll_catalog::Prepared;
use heaptoll_experiment::manager::Manager;
use heaptoll_reftrace::{Event, Owner, Reference, Routine, Sink};
use heaptoll_reftrace_host::{Image, Options, Traced, Tracer};

use super::setup::Setup;
use crate::Error;
use crate::installation::scratch;

/// Symbol of a manager that can announce its collections.
const CONTROL: &str = "heaptoll_control_v1";

/// Options of a run.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// The tracer's options.
    pub options: Options,
    /// Whether all functions are bound at the start, not at their first calls.
    pub bound: bool,
    /// Whether a layer of heaptoll's before the manager announces collections.
    pub announced: bool,
}

/// Runs a program under the tracer.
///
/// # Errors
/// It fails, or is not traced to its end.
pub fn trace<S: Sink>(
    setup: &Setup,
    program: &Prepared,
    manager: &Manager,
    run: Run,
    begin: impl FnMut(&Image) -> S,
) -> Result<Traced<S>, Error> {
    let tracer = Tracer::find(&setup.installation.places)?;
    let tmp = scratch()?;
    let mut invocation = setup.invocation(program, manager, tmp.path());
    if run.bound {
        invocation.environment.push((BOUND_AT_START.0.into(), BOUND_AT_START.1.into()));
    }
    if run.announced
        && let Some(object) = &manager.object
        && family::aliases(object, &[CONTROL])?.iter().any(|names| !names.is_empty())
    {
        invocation.preload.insert(0, setup.installation.places.announce_layer());
    }
    let launcher = setup.installation.places.launcher();
    let traced = heaptoll_reftrace_host::trace(
        &tracer,
        &launcher,
        &invocation,
        &run.options,
        &setup.interrupt,
        begin,
    )?;
    setup.check(program, &manager.name, "the tracer", &traced.finished)?;
    if !traced.is_whole() {
        let image = traced.images.iter().find(|image| !image.is_whole());
        let reason = match image {
            Some(image) => format!("{}: {}, damage: {:?}", image.image.name(), image.ending, image.damage),
            None => traced.stopped.clone().unwrap_or_default(),
        };
        return Err(setup.failed(program, &manager.name, "the tracer", reason));
    }
    Ok(traced)
}

/// The sink of the process image that executed most, with its instructions.
///
/// # Errors
/// No image was recorded.
pub fn main<S>(
    setup: &Setup,
    program: &Prepared,
    manager: &Manager,
    traced: Traced<S>,
) -> Result<(S, u64), Error> {
    let main = traced.images.into_iter().rev().max_by_key(|image| image.instructions());
    let main = main
        .ok_or_else(|| setup.failed(program, &manager.name, "the tracer", "nothing was recorded".into()))?;
    let instructions = main.instructions();
    Ok((main.sink, instructions))
}

/// Discards references: the rest is the cost of the tracer and the ring.
#[derive(Debug, Default)]
pub struct Null {
    /// References received.
    pub references: u64,
}

impl Sink for Null {
    fn references(&mut self, _owner: Owner, references: &[Reference]) {
        self.references += references.len() as u64;
    }

    fn event(&mut self, _event: &Event<'_>) {}
}

/// Calls and instructions of one routine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Calls from outside of the family.
    pub calls: u64,
    /// Instructions in them, inclusive.
    pub instructions: u64,
}

/// Sums the cost of each routine.
#[derive(Debug, Default)]
pub struct Routines {
    /// By [`Routine::ALL`].
    pub counts: [Count; Routine::ALL.len()],
    /// Calls that were left by `longjmp` or the like.
    pub abandoned: u64,
    /// Calls entered but never left.
    pub open: i64,
    /// Loads and stores that were recorded one by one.
    pub references: [u64; 2],
}

impl Sink for Routines {
    fn references(&mut self, _owner: Owner, references: &[Reference]) {
        for reference in references {
            self.references[usize::from(reference.is_store())] += 1;
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        let (routine, cost) = match event {
            Event::Enter { .. } => {
                self.open += 1;
                return;
            }
            Event::Leave { routine, cost, .. } => (routine, cost),
            Event::Abandon { routine, cost, .. } => {
                self.abandoned += 1;
                (routine, cost)
            }
            _ => return,
        };
        self.open -= 1;
        let count = &mut self.counts[*routine as usize - 1];
        count.calls += 1;
        count.instructions += cost.instructions;
    }
}
