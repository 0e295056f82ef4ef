//! Which allocator the traced runs of a build follow: malloc, the manager that was named, or one that the program brings
//! along.

use std::sync::Arc;

use heaptoll_experiment::experiment::{ProgramInfo, StackInfo};
use heaptoll_reftrace_host::Tracer;
use heaptoll_reftrace_host::allocator_symbols::Table;

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::traced::{Follow, Scout, find_own};

/// What is followed in the runs of one build.
#[derive(Debug, Clone, Default)]
pub struct Followed {
    /// The routines.
    pub follow: Follow,
    /// Why the calls of its own allocator are not counted, where they cannot be followed.
    pub unseen: Option<String>,
}

/// What is followed in both builds.
///
/// # Errors
/// Ctrl-C, or a scratch folder cannot be made.
pub fn both(
    program: &ProgramInfo,
    stacks: [&StackInfo; 2],
    tracer: &Tracer,
    table: &Arc<Table>,
    context: &Context,
) -> Result<[Followed; 2], Failure> {
    let scout = Scout { tracer, table, context };
    let one = |stack: &StackInfo| {
        // A manager that was put into it serves it.
        if !stack.preload.is_empty() {
            return Ok(Followed { follow: Follow::of(table, None), unseen: None });
        }
        match find_own(program, stack.own_command.as_ref(), &scout) {
            Ok(own) => Ok(Followed { follow: Follow::of(table, own), unseen: None }),
            Err(Failure::Refused(error)) => {
                Ok(Followed { follow: Follow::of(table, None), unseen: Some(error.to_string()) })
            }
            Err(failure) => Err(failure),
        }
    };
    Ok([one(stacks[0])?, one(stacks[1])?])
}
