//! Which managers run under the tracer, and whether they do there what they do natively: each is tried once.

use std::collections::BTreeMap;
use std::path::PathBuf;

use heaptoll_experiment::experiment::StackInfo;
use heaptoll_reftrace_host::{Fitness, Tracer, fitness};

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;

/// The beginning of the reason for which a manager has no exact counts.
pub const NOT_MEASURABLE: &str = "it does not run under the tracer";

/// The warning about a manager that takes another path under the tracer.
pub fn other_path(name: &str, why: &str) -> String {
    format!("under the tracer {name} takes another path than natively: {why}; the figures describe that path")
}

/// Whether the managers of these stacks run under the tracer, by name.
///
/// # Errors
/// The tracer or the launcher is at fault, or Ctrl-C.
pub fn fitness_of<'a>(
    stacks: impl Iterator<Item = &'a StackInfo>,
    tracer: &Tracer,
    context: &Context,
) -> Result<BTreeMap<String, Fitness>, Failure> {
    let mut found: BTreeMap<String, Fitness> = BTreeMap::new();
    let progress = context.messages.progress(None);
    for stack in stacks {
        if found.contains_key(&stack.name) || context.interrupt.is_set() {
            continue;
        }
        progress.set_text(&format!("does {} run under the tracer?", stack.name));
        let preload: Vec<PathBuf> = stack.preload.iter().map(PathBuf::from).collect();
        match fitness(tracer, &context.places.launcher(), &preload, &stack.environment, context.interrupt) {
            Ok(fitness) => found.insert(stack.name.clone(), fitness),
            Err(_) if context.interrupt.is_set() => break,
            Err(error) => return Err(Failure::Refused(Box::new(error))),
        };
    }
    drop(progress);
    if context.interrupt.is_set() { Err(Failure::Interrupted) } else { Ok(found) }
}
