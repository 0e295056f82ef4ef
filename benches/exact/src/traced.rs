//! A program under the tracer, heard by sinks of this bench.

use heaptoll_callgrind::profile::BOUND_AT_START;
use heaptoll_callgrind::symbols;
use heaptoll_catalog::Prepared;
use heaptoll_lab::manager::Manager;
use heaptoll_reference::{Event, Owner, Reference, Routine, Sink};
use heaptoll_tracer::{Image, Options, Traced, Tracer};

use crate::Error;
use crate::workshop::Workshop;

/// What a manager exports that tells of its collections.
const CONTROL: &str = "heaptoll_control_v1";

/// What is particular to a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Run {
    /// What the tracer is asked.
    pub options: Options,
    /// Whether all is bound at the start, and not at first calls.
    pub bound: bool,
    /// Whether collections are to be told, by a layer of heaptoll's before the manager.
    pub announced: bool,
}

/// Runs a program under the tracer.
///
/// # Errors
/// It fails, or is not heard to its end.
pub fn trace<S: Sink>(
    workshop: &Workshop,
    program: &Prepared,
    manager: &Manager,
    run: Run,
    begin: impl FnMut(&Image) -> S,
) -> Result<Traced<S>, Error> {
    let tracer = Tracer::find(&workshop.places)?;
    let tmp = workshop.scratch()?;
    let mut invocation = workshop.invocation(program, manager, tmp.path());
    if run.bound {
        invocation.environment.push((BOUND_AT_START.0.into(), BOUND_AT_START.1.into()));
    }
    if run.announced
        && let Some(object) = &manager.object
        && symbols::aliases(object, &[CONTROL])?.iter().any(|names| !names.is_empty())
    {
        invocation.preload.insert(0, workshop.places.announce_layer());
    }
    let launcher = workshop.places.launcher();
    let traced =
        heaptoll_tracer::trace(&tracer, &launcher, &invocation, &run.options, &workshop.interrupt, begin)?;
    workshop.check(program, &manager.name, "the tracer", &traced.finished)?;
    if !traced.is_whole() {
        let image = traced.images.iter().find(|image| !image.is_whole());
        let reason = match image {
            Some(image) => format!("{}: {}, damage: {:?}", image.image.name(), image.ending, image.damage),
            None => traced.stopped.clone().unwrap_or_default(),
        };
        return Err(workshop.failed(program, &manager.name, "the tracer", reason));
    }
    Ok(traced)
}

/// The sink of the process image that executed most, with its instructions.
///
/// # Errors
/// No image was heard.
pub fn main<S>(
    workshop: &Workshop,
    program: &Prepared,
    manager: &Manager,
    traced: Traced<S>,
) -> Result<(S, u64), Error> {
    let main = traced.images.into_iter().rev().max_by_key(|image| image.instructions());
    let main =
        main.ok_or_else(|| workshop.failed(program, &manager.name, "the tracer", "nothing was told".into()))?;
    let instructions = main.instructions();
    Ok((main.sink, instructions))
}

/// Hears nothing: what is left is the tracer's and the ring's.
#[derive(Debug, Default)]
pub struct Null {
    /// References heard.
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

/// Sums what each routine cost.
#[derive(Debug, Default)]
pub struct Routines {
    /// By [`Routine::ALL`].
    pub counts: [Count; Routine::ALL.len()],
    /// Calls that were left by `longjmp` or the like.
    pub abandoned: u64,
    /// Calls told but never left.
    pub open: i64,
    /// Loads and stores that were told one by one.
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
