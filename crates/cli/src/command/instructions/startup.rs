//! What comes before `main`: the loader's work and that of constructors, of the same program under the same manager.
//!
//! It is the program's by where it is executed and the manager's by what it is for: a manager that needs the C++ library
//! has that loaded and relocated. So it is counted apart, in a run that ends where `main` would begin.

use std::path::PathBuf;
use std::time::Duration;

use heaptoll_lab::launch::Invocation;
use heaptoll_lab::places::Places;
use heaptoll_lab::runner::PINNED;
use heaptoll_launcher::Ended;
use heaptoll_reference::{Event, Owner, Reference, Sink};
use heaptoll_tracer::{Options, trace};

use crate::traced::{Cell, Plan};

/// What the start layer ends with when it has reached `main`.
const STARTED: i32 = 113;

/// Hears nothing: the totals are the decoder's.
struct Nothing;

impl Sink for Nothing {
    fn references(&mut self, _: Owner, _: &[Reference]) {}
    fn event(&mut self, _: &Event<'_>) {}
}

/// The program's instructions before `main`, of each cell that wants it and for which it is known.
pub fn all(
    plan: &Plan,
    options: &Options,
    cells: &[Cell],
    places: &Places,
    wanted: impl Fn(&Cell) -> bool,
) -> Vec<(String, String, u64)> {
    let known = |cell: &Cell| {
        let instructions = before_main(plan, options, cell, places)?;
        Some((cell.program.name.clone(), cell.stack.name.clone(), instructions))
    };
    let cells = cells.iter().filter(|cell| !cell.is_static && wanted(cell));
    cells.take_while(|_| !plan.interrupt.is_set()).filter_map(known).collect()
}

fn before_main(plan: &Plan, options: &Options, cell: &Cell, places: &Places) -> Option<u64> {
    let layer = places.start_layer();
    if !layer.is_file() {
        return None;
    }
    let mut environment: Vec<(String, String)> = PINNED
        .iter()
        .filter(|(name, _)| std::env::var_os(name).is_none())
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect();
    environment.extend(cell.program.environment.iter().cloned());
    environment.extend(cell.stack.environment.iter().cloned());
    let mut preload = vec![layer];
    if cell.stack.tells && places.announce_layer().is_file() {
        preload.push(places.announce_layer());
    }
    preload.extend(cell.stack.preload.iter().map(PathBuf::from));
    let invocation = Invocation {
        command: cell.program.command.clone(),
        environment,
        preload,
        timeout: Duration::from_secs_f64(plan.experiment.settings.timeout_s),
        ..Invocation::default()
    };
    let traced =
        trace(&plan.tracer, &places.launcher(), &invocation, options, &plan.interrupt, |_| Nothing).ok()?;
    let whole = traced.is_whole() && matches!(traced.finished.ended, Ended::Exit(STARTED));
    let first = traced.images.first().filter(|_| whole)?;
    Some(first.totals[Owner::Program as usize].instructions)
}
