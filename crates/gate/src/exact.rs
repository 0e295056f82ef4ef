//! What does not depend on how often a program runs: the counts of traced runs, the recordings, and the functions, sizes
//! and call sites in which they differ. A shard of a gate is this alone, so it is a form of JSON.

use std::sync::Arc;

use heaptoll_instruction_counts::SizeClass;
use heaptoll_reftrace_host::Tracer;
use heaptoll_reftrace_host::allocator_symbols::Table;
use serde::{Deserialize, Serialize};

use super::causes;
use super::counted::{self, Counted};
use super::differences::Differences;
use super::figures::SizeFigures;
use super::followed;
use super::functions::Of;
use super::metric::Metric;
use super::recorded::{self, Recordings};
use super::sites::SiteDifferences;
use super::stack_pair::StackPair;
use super::subject::Subject;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;

/// A program whose processes hold less than this together, in memory that is no file's, has no heap to speak of.
const NO_HEAP_BYTES: u64 = 1 << 20;

/// What was counted of both builds.
#[derive(Serialize, Deserialize)]
pub struct Exact {
    /// The traced runs; `None` without the tracer.
    pub counted: Option<Counted>,
    /// The recordings.
    pub recordings: Recordings,
    /// Requests by size, where both were counted.
    pub sizes: Vec<SizeFigures>,
    /// Instructions by function.
    pub functions: Option<Differences>,
    /// Instructions of the libraries of C and C++ by the function that called them.
    pub library: Option<Differences>,
    /// Both, of every function; for the page, and in no file.
    #[serde(skip)]
    pub function_stacks: Option<StackPair>,
    /// Memory by call site, or why the recordings cannot be compared.
    pub sites: Option<Result<SiteDifferences, String>>,
}

/// Makes the traced runs and the recordings.
///
/// # Errors
/// Ctrl-C, or a scratch folder cannot be made.
pub fn count(
    subject: &Subject,
    tracer: Result<&Tracer, &String>,
    table: &Arc<Table>,
    context: &Context,
) -> Result<Exact, Failure> {
    // Without traced runs nothing else shows which counts vary by themselves.
    let record = || recorded::record(subject, tracer.is_err(), context);
    let (counted, recordings) = match tracer {
        Err(_) => (None, record()),
        Ok(tracer) => {
            let followed = followed::both(subject.program, subject.stacks, tracer, table, context)?;
            let (counted, recordings) = counted::count(subject, &followed, tracer, context, record);
            (Some(counted), recordings)
        }
    };
    let recordings = recordings.checked(requests(counted.as_ref(), subject.together_bytes));
    Ok(Exact {
        sizes: sizes(counted.as_ref()),
        functions: causes::functions(Of::Itself, counted.as_ref()),
        library: causes::functions(Of::Library, counted.as_ref()),
        function_stacks: causes::function_stacks(counted.as_ref()),
        sites: causes::sites(&recordings),
        counted,
        recordings,
    })
}

/// The base's calls that a traced run has shown. Where no routine was recognised, and so little memory was there that no
/// heap can be in it, that is none.
fn requests(counted: Option<&Counted>, together_bytes: u64) -> Option<u64> {
    let traced = counted?.base.as_ref().ok()?;
    let shown = traced.metrics.get(&Metric::Allocations).copied();
    shown.or((together_bytes < NO_HEAP_BYTES).then_some(0))
}

/// Requests by size of both, where both were counted.
fn sizes(counted: Option<&Counted>) -> Vec<SizeFigures> {
    let Some(Counted { base: Ok(base), new: Ok(new), .. }) = counted else { return vec![] };
    let mut classes: Vec<SizeClass> = base.sizes.keys().chain(new.sizes.keys()).copied().collect();
    classes.sort_unstable();
    classes.dedup();
    let row = |class: SizeClass| {
        let of = |counts: &counted::Counts| counts.sizes.get(&class).copied().unwrap_or_default();
        let (base, new) = (of(base), of(new));
        SizeFigures {
            up_to: class.up_to(),
            base_calls: base.calls,
            new_calls: new.calls,
            base_bytes: base.bytes,
            new_bytes: new.bytes,
        }
    };
    classes.into_iter().map(row).collect()
}
