//! Two builds of a program compared, and one verdict on time, instructions and memory.
//!
//! Each program is an experiment of two stacks, `base` and `new`, whose commands are the two builds. Paired runs give
//! time and resident memory with intervals, runs under the tracer exact counts, recordings the sites of a difference.

pub mod action_benchmark;
pub mod bencher;
mod causes;
pub mod config;
mod counted;
pub mod diagnosis;
pub mod differences;
mod document;
mod estimates;
mod evidence;
mod exact;
mod facts;
pub mod figures;
mod followed;
pub mod functions;
mod judge;
mod judged;
pub mod junit;
pub mod limits;
#[cfg(test)]
pub(crate) mod made_up;
mod measure;
mod measured;
pub mod metric;
mod notes;
mod prepare;
mod recorded;
pub mod request;
pub mod sharded;
mod side;
mod site_sums;
pub mod sites;
pub mod stack_pair;
pub mod step_summary;
mod subject;
mod timed;
mod tree_error;
mod unopened;
pub mod values;
mod worktrees;

use std::sync::Arc;

use heaptoll_experiment::experiment::Machine;
use heaptoll_experiment::machine;
use heaptoll_reftrace_host::Tracer;
use heaptoll_report::document::Document;
use heaptoll_report::format::shell_command;

use figures::{Figures, Refused, Verdict};
use heaptoll_command::clock;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::traced::symbol_table;
use measure::Gate;
use request::Request;
use side::{BuiltSide, Sameness};
use worktrees::Trees;

schemars::labelled!(Figures, "heaptoll-gate/1");

/// What a gate found.
pub struct Findings {
    /// The figures and the verdict.
    pub figures: Figures,
    facts: Vec<(String, String)>,
    command: Vec<String>,
}

impl Findings {
    /// The document that shows it.
    pub fn document(&self) -> Document {
        document::document(&self.figures, self.facts.clone(), shell_command(&self.command))
    }
}

/// Gates every program of a request.
///
/// # Errors
/// A build fails, a program or manager is not there, the only program cannot be gated (its base does not end well, outputs
/// differ that must not), or Ctrl-C before there is a figure.
pub fn run(request: &Request, context: &Context) -> Result<Findings, Failure> {
    let (created_unix_s, machine) = (clock::now().as_secs_f64(), machine::read());
    let table = Arc::new(symbol_table(request.allocator_symbols.as_deref(), context.places)?);
    // Before anything is built: a file may not be there, and what is piped comes now.
    request.programs.iter().try_for_each(|entry| entry.stdin.path(context).map(drop))?;
    let trees = request.refs.as_ref().map(|refs| Trees::make(refs, context)).transpose()?;
    let sides: Vec<(BuiltSide, BuiltSide)> = request
        .programs
        .iter()
        .map(|entry| {
            let base = BuiltSide::of(&entry.base, trees.as_ref().map(|trees| &trees.base));
            let new = BuiltSide::of(&entry.new, trees.as_ref().map(|trees| &trees.new));
            (base, new)
        })
        .collect();
    // Every program is found before the first is measured.
    let checked: Vec<Result<Sameness, Failure>> =
        sides.iter().map(|(base, new)| side::check(base, new)).collect();
    // A tree that cannot be read has changed.
    let differing = trees.as_ref().and_then(|trees| trees.differing().ok());
    let tracer = Tracer::find(context.places).map_err(|error| error.to_string());
    let mut sight = sight(&tracer, &machine);
    sight.iter().for_each(|sentence| context.messages.note(sentence));
    let (mut programs, mut refused) = (Vec::new(), Vec::new());
    let mut complete = true;
    for ((entry, (base, new)), checked) in request.programs.iter().zip(&sides).zip(checked) {
        let differing = differing.as_ref();
        let gate =
            Gate { entry, base, new, differing, tracer: tracer.as_ref(), table: &table, request, context };
        let gated = match checked.and_then(|same| gate.run(same)) {
            Ok(gated) => gated,
            // What the programs before it have shown is kept.
            Err(Failure::Interrupted) if !programs.is_empty() => {
                complete = false;
                break;
            }
            Err(failure) if request.programs.len() == 1 || matches!(failure, Failure::Interrupted) => {
                return Err(failure);
            }
            Err(failure) => {
                let why = failure.to_string();
                context.messages.warning(&format!("{} could not be run: {why}", entry.name));
                refused.push(Refused { name: entry.name.clone(), why });
                continue;
            }
        };
        sight.extend(gated.sight.map(|sentence| format!("{}: {sentence}", entry.name)));
        programs.push(gated.program);
        if !gated.whole {
            complete = false;
            break;
        }
    }
    let figures = Figures {
        complete,
        created_unix_s,
        machine,
        sight,
        refused,
        verdict: programs.iter().map(|program| program.verdict).max().unwrap_or(Verdict::Undecided),
        programs,
    };
    let facts = document::facts(&figures);
    Ok(Findings { figures, facts, command: request.protocol.repeat_command.clone() })
}

/// What this machine can see now, before anything runs.
fn sight(tracer: &Result<Tracer, String>, machine: &Machine) -> Vec<String> {
    let tracer = match tracer {
        Ok(tracer) => format!(
            "counts are exact here: instructions, calls and live bytes, by heaptoll's tracer on Valgrind {}",
            tracer.version()
        ),
        Err(why) => format!("no instructions are counted here: {why}"),
    };
    let load = format!(
        "load average {:.1} on {} processors{}",
        machine.load[0],
        machine.cores,
        if machine.load[0] > f64::from(machine.cores) { ": intervals of time will be wide" } else { "" }
    );
    vec![tracer, load]
}
