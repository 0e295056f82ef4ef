//! Comparison at equal memory: each collector of the run in heaps of several sizes, next to allocators at their own.
//!
//! A collector trades CPU time for memory, so one figure shows little of it: it runs in multiples of the
//! smallest heap in which the program completes. Each heap is a stack of its own among the others of the program.

use std::cell::RefCell;

use heaptoll_experiment::experiment::{Experiment, ProgramInfo, StackInfo};
use heaptoll_experiment::heap_limit::HeapLimit;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::store::Store;
use serde::{Deserialize, Serialize};

use super::request::RunRequest;
use crate::smallest_heap::{SmallestHeaps, is_searched};
use heaptoll_command::collector_options;
use heaptoll_command::context::{Context, Progress};
use heaptoll_command::failure::Failure;
use heaptoll_runs::chosen::Rows;
use heaptoll_runs::preparation::beginning::{self, Beginning};
use heaptoll_runs::preparation::derived::{DerivedStacks, Proved, proved_as};

/// Heaps by default, as multiples of the smallest.
pub const FACTORS: [f64; 5] = [1.25, 1.5, 2.0, 3.0, 4.0];

/// The heaps to run collectors in.
pub struct Heaps<'a> {
    /// Multiples of the smallest heap, each 1 or more.
    pub factors: &'a [f64],
    /// Managers by name.
    pub known: &'a [Manager],
    /// The file that keeps the rows of the searches.
    pub store: RefCell<Store>,
}

/// The search of smallest heaps that an experiment begins with, as its file has it.
#[derive(Serialize, Deserialize)]
pub struct Search {
    /// Multiples of the smallest heap, each 1 or more.
    pub factors: Vec<f64>,
    /// The managers of the run, the baseline first.
    pub managers: Vec<String>,
    /// Whether the baseline may be what the program uses by itself.
    pub chooses_baseline: bool,
    /// Programs of one block in lockstep each.
    pub together: Vec<Vec<String>>,
    /// Memory that runs in lockstep may take together, bytes.
    pub at_once_bytes: Option<u64>,
}

impl Search {
    /// Its name in the file.
    pub const NAME: &str = "heaps";
}

/// Searches the smallest heaps of an experiment that lacks some, which then has its stacks. Any other stays as it is.
///
/// # Errors
/// The baseline does not serve a program, or Ctrl-C.
pub fn search(
    store: Store,
    mut experiment: Experiment,
    context: &Context,
) -> Result<(Store, Experiment), Failure> {
    let found = if experiment.stacks.is_empty() { store.attached_value(Search::NAME)? } else { None };
    let Some(search): Option<Search> = found else { return Ok((store, experiment)) };
    experiment.settings.at_once_bytes = search.at_once_bytes;
    let known = manager::known_with_java(context.places)?;
    let managers: Vec<Manager> =
        search.managers.iter().map(|name| manager::find(&known, name)).collect::<Result<_, _>>()?;
    let heaps = Heaps { factors: &search.factors, known: &known, store: RefCell::new(store) };
    let beginning = Beginning {
        managers: &managers,
        chooses_baseline: search.chooses_baseline,
        together: &search.together,
        derived: Some(&heaps),
        ..Beginning::default()
    };
    let proofs = beginning::prove(&mut experiment, &beginning, context)?;
    beginning::announce(&experiment, &proofs, context);
    let store = heaps.store.into_inner();
    store.describe(&experiment)?;
    Ok((store, experiment))
}

/// Refuses a run whose heaps cannot be fixed, before anything is proved.
///
/// # Errors
/// No manager of the run can be limited, one of the programs is a server, or runs have a copy of the folder.
pub fn check(request: &RunRequest, managers: &[Manager], programs: &[ProgramInfo]) -> Result<(), Failure> {
    if let Some(server) = programs.iter().find(|program| program.serve.is_some()) {
        return Err(Failure::Usage(format!(
            "--heaps: {} is a server, and only a program that ends by itself has a smallest heap; leave it out",
            server.name
        )));
    }
    if request.protocol.working_copy {
        let why =
            "--heaps: the search of the smallest heap runs in the folder itself; leave out --working-copy";
        return Err(Failure::Usage(why.into()));
    }
    if !managers.iter().any(is_searched) {
        return Err(Failure::Usage(
            "--heaps: none of the managers is a collector with a heap that can be fixed (option heap=); add one, for \
             instance -m tithe-collect, or put the sweep layer in front of an allocator: -m sweep/glibc"
                .into(),
        ));
    }
    Ok(())
}

impl DerivedStacks for Heaps<'_> {
    fn of_program(
        &self,
        experiment: &mut Experiment,
        program: &ProgramInfo,
        proved: &[Proved],
        context: &Context,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<StackInfo>>, Failure> {
        let mut store = self.store.borrow_mut();
        let mut found = Vec::new();
        let mut searches: Option<Result<SmallestHeaps, String>> = None;
        for one in proved {
            if !is_searched(one.manager) {
                found.push(vec![]);
                continue;
            }
            progress.set_text(&format!("smallest heap: {} under {}", program.name, one.stack.name));
            let mut rows = Rows { experiment, store: &mut store, context };
            let searches = match &searches {
                Some(begun) => begun,
                None => searches.insert(self.begin(program, &mut rows, progress)?),
            };
            let smallest = match searches {
                Ok(searches) => searches.smallest(one.manager, one.stack, &mut rows)?,
                Err(why) => Err(why.clone()),
            };
            found.push(match smallest {
                Ok(bytes) => self.stacks(one, bytes)?,
                Err(why) => {
                    let name = format!("{} in fixed heaps", one.stack.name);
                    experiment.refused.push((program.name.clone(), name, why));
                    vec![]
                }
            });
        }
        Ok(found)
    }
}

impl Heaps<'_> {
    /// Begins the searches on a program; the inner error states why there can be none.
    fn begin<'a>(
        &'a self,
        program: &'a ProgramInfo,
        rows: &mut Rows,
        progress: &'a dyn Progress,
    ) -> Result<Result<SmallestHeaps<'a>, String>, Failure> {
        match SmallestHeaps::of(program, self.known, rows, progress) {
            Ok(searches) => Ok(Ok(searches)),
            Err(Failure::NothingToCompare(why)) => Ok(Err(why)),
            Err(other) => Err(other),
        }
    }

    /// The stack in each heap.
    fn stacks(&self, proved: &Proved, smallest_bytes: u64) -> Result<Vec<StackInfo>, Failure> {
        let limited = |factor: &f64| {
            let limit = HeapLimit::of(&proved.stack.name, *factor, smallest_bytes);
            let manager =
                collector_options::with(self.known, proved.manager, &format!("heap={}", limit.bytes))?;
            let stack = proved_as(proved.stack, &manager, &limit.stack(), "without a limit");
            Ok(StackInfo { heap: Some(limit), ..stack })
        };
        self.factors.iter().map(limited).collect()
    }
}
