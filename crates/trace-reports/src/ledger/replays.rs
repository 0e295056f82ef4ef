//! What other managers hold of the same program: the trace replayed under each of them with a ledger, blocks attributed to
//! the call sites of the recorded run.

use std::path::Path;
use std::time::Duration;

use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::places::Places;
use heaptoll_ledger::{Snapshot, Term};
use heaptoll_replay::error::ReplayError;
use heaptoll_replay::job::Touch;
use heaptoll_replay::ledger::{self as driven, Prepared, Replayed, Sampled};
use heaptoll_replay::start::Stack;

use super::figures::{ReplayedManager, ReplayedPoint, Replays};
use crate::replay::trace_file;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::preparation::{preflights, stand_ins};

pub mod section;

/// Under which managers a trace is replayed, and how.
#[derive(Debug, Clone)]
pub struct ReplayRequest {
    /// Managers, groups and stacks, by name or path. The one that the trace was recorded under comes first, and is added
    /// where it is known and not among them.
    pub manager: Vec<String>,
    /// What is done with blocks.
    pub touch: Touch,
    /// Longest that a replay may take.
    pub timeout: Duration,
    /// Memory that may be taken to make the trace ready, bytes.
    pub memory_limit_bytes: u64,
}

/// Replays a trace that was recorded under this manager, and has these snapshots.
///
/// # Errors
/// It is no file, or cannot be replayed; a manager is unknown; Ctrl-C before all was replayed.
pub fn replay(
    trace: &Path,
    (recorded, snapshots): (&str, &[Snapshot]),
    request: &ReplayRequest,
    context: &Context,
) -> Result<Replays, Failure> {
    trace_file::several_times(trace)?;
    let managers = managers(recorded, request, context)?;
    let mut after: Vec<u64> =
        snapshots.iter().map(|snapshot| snapshot.events).filter(|events| *events > 0).collect();
    after.sort_unstable();
    after.dedup();
    let prepared = Prepared::new(driven::Request {
        trace: trace.into(),
        after,
        touch: request.touch,
        memory_limit_bytes: request.memory_limit_bytes,
        timeout: request.timeout,
        driver: context.places.replay_driver(),
    })
    .map_err(failure)?;
    let progress = context.messages.progress(Some(managers.len() as u64));
    let mut replayed = Vec::new();
    for (manager, name) in managers.iter().zip(preflights::row_names(&managers)) {
        progress.set_text(&format!("replaying under {name}"));
        let driven = driven_manager(manager, &name, context.places);
        let result = match prepared.replay(&driven, &context.interrupt.flag()).map_err(failure)? {
            Replayed::Interrupted => return Err(Failure::Interrupted),
            Replayed::Failed(why) => Err(why),
            Replayed::Sampled(sampled) => Ok(sampled),
        };
        replayed.push((name, result));
        progress.advance(1);
    }
    let worst = snapshots
        .iter()
        .enumerate()
        .filter(|(_, snapshot)| snapshot.events > 0)
        .max_by_key(|(_, snapshot)| snapshot.pins.as_ref().map_or(0, |pins| pins.bytes))
        .map(|(at, snapshot)| (at, snapshot.events));
    Ok(compare(replayed, worst, request.touch))
}

/// That of the recorded run first, if it is known here.
fn managers(recorded: &str, request: &ReplayRequest, context: &Context) -> Result<Vec<Manager>, Failure> {
    let known = manager::known(context.places)?;
    stand_ins::note(&known, &request.manager, context.messages);
    match manager::find(&known, recorded) {
        Ok(first) => Ok(manager::choose_with_baseline(&known, &request.manager, &first.name)?),
        Err(_) => {
            context.messages.note(&format!(
                "the manager of the recorded run ({recorded}) is unknown here, and not replayed"
            ));
            Ok(manager::choose(&known, request.manager.iter().map(String::as_str))?)
        }
    }
}

fn driven_manager(manager: &Manager, name: &str, places: &Places) -> driven::Manager {
    let stack = Stack {
        name: name.to_owned(),
        preload: manager.preload(places),
        environment: manager.environment.clone(),
    };
    driven::Manager { stack, name: manager.base.clone() }
}

fn failure(error: ReplayError) -> Failure {
    match error {
        ReplayError::System { .. } => Failure::Trouble(Box::new(error)),
        _ => Failure::Refused(Box::new(error)),
    }
}

/// Compares at the worst snapshot of the recorded run, a number and its events, or where the first manager is worst.
fn compare(
    replayed: Vec<(String, Result<Vec<Sampled>, String>)>,
    worst: Option<(usize, u64)>,
    touch: Touch,
) -> Replays {
    let external = |sampled: &Sampled| sampled.snapshot.pins.as_ref().map_or(0, |pins| pins.bytes);
    let first = replayed.iter().find_map(|(_, result)| result.as_ref().ok());
    let worst_of_first = || Some(first?.iter().max_by_key(|sampled| external(sampled))?.events);
    let events = worst.map(|(_, events)| events).or_else(worst_of_first).unwrap_or_default();
    let managers = replayed.into_iter().map(|(name, result)| match result {
        Err(why) => ReplayedManager { name, failed: Some(why), ..ReplayedManager::default() },
        Ok(sampled) => ReplayedManager {
            name,
            failed: None,
            points: sampled.iter().map(|one| point(one, external(one))).collect(),
            pins: sampled.into_iter().find(|one| one.events == events).and_then(|one| one.snapshot.pins),
        },
    });
    Replays { events, recorded: worst.map(|(at, _)| at), touch, managers: managers.collect() }
}

fn point(sampled: &Sampled, external_bytes: u64) -> ReplayedPoint {
    ReplayedPoint {
        events: sampled.events,
        clock_bytes: sampled.snapshot.clock_bytes,
        resident_bytes: sampled.resident_bytes,
        live_bytes: sampled.snapshot.live_bytes,
        external_bytes,
        empty_bytes: empty(&sampled.snapshot),
    }
}

/// Resident bytes of the heap on pages without a live block, less what the manager's census has elsewhere.
fn empty(snapshot: &Snapshot) -> u64 {
    [Term::Caches, Term::Fresh].iter().map(|term| snapshot.amount(*term).resident).sum()
}
