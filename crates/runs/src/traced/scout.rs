//! A short traced run of a program as it is: which family of routines serves it?

use std::collections::BTreeMap;
use std::sync::Arc;

use heaptoll_experiment::experiment::{OwnCommand, ProgramInfo, Protocol, StackInfo};
use heaptoll_reftrace::{Clock, Event, Owner, Reference, Sink};
use heaptoll_reftrace_host::allocator_symbols::Table;
use heaptoll_reftrace_host::{FamilyCalls, Options, Tracer};

use super::cell::Cell;
use super::own::{Follow, OwnAllocator};
use super::single::TracedRunner;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;

/// Calls after which it is known which family serves a program.
const ENOUGH: u64 = 50_000;
/// Instructions after which too few calls are expected to decide otherwise. Time is no limit of either: on a loaded machine
/// nothing would be seen of a program, and managers preloaded that do not serve it.
const LONG: u64 = 1_000_000_000;
/// A limit for programs that wait, s.
const LIMIT_S: f64 = 3600.0;

/// What a run needs.
pub struct Scout<'a> {
    /// The tracer.
    pub tracer: &'a Tracer,
    /// The families.
    pub table: &'a Arc<Table>,
    /// Ctrl-C, progress, places.
    pub context: &'a Context<'a>,
}

/// Calls that a family served itself, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls {
    of_c: u64,
    families: BTreeMap<String, u64>,
}

impl Calls {
    /// Those of malloc by its own name.
    pub fn of_c(&self) -> u64 {
        self.of_c
    }

    /// Those of a family of the table.
    pub fn of(&self, name: &str) -> u64 {
        self.families.get(name).copied().unwrap_or(0)
    }

    fn add(&mut self, table: &Table, family: u8, calls: FamilyCalls) {
        let served = (calls.allocations + calls.frees).saturating_sub(calls.forwarded);
        match table.name(family) {
            None => self.of_c += served,
            Some(name) => *self.families.entry(name.to_owned()).or_default() += served,
        }
    }
}

/// Takes calls until they are enough.
#[derive(Debug, Default)]
struct Few {
    calls: u64,
    instructions: u64,
}

impl Sink for Few {
    fn references(&mut self, _: Owner, _: &[Reference]) {}

    fn event(&mut self, event: &Event<'_>) {
        self.calls += u64::from(matches!(event, Event::Enter { .. }));
    }

    fn executed(&mut self, _: Owner, cost: Clock) {
        self.instructions = self.instructions.saturating_add(cost.instructions);
    }

    fn full(&self) -> Option<String> {
        (self.calls >= ENOUGH || self.instructions >= LONG).then(|| "enough calls were counted".into())
    }
}

impl Scout<'_> {
    /// Runs the program and counts. A run that fails shows no call: the runs that follow state why.
    ///
    /// # Errors
    /// The scratch folder cannot be made, or Ctrl-C.
    pub fn calls(&self, program: &ProgramInfo, own_command: Option<&OwnCommand>) -> Result<Calls, Failure> {
        let stack = StackInfo { own_command: own_command.cloned(), ..as_it_is(program) };
        let follow =
            Follow { symbols: self.table.lines(|_| true).into(), table: self.table.clone(), own: None };
        let cell = Cell { follow, ..Cell::alone(program, stack) };
        let runner = TracedRunner {
            copied: None,
            tracer: self.tracer,
            context: *self.context,
            protocol: &Protocol { timeout_s: LIMIT_S, ..Protocol::default() },
        };
        let place = "which allocator serves it?";
        let run = runner.run(&cell, &Options::default(), place, &mut |_, _| Few::default())?;
        if self.context.interrupt.is_set() {
            return Err(Failure::Interrupted);
        }
        let mut calls = Calls::default();
        let images = run.iter().flat_map(|run| &run.traced.images);
        for (family, of_family) in images.flat_map(|image| &image.families) {
            calls.add(self.table, *family, *of_family);
        }
        Ok(calls)
    }
}

/// The program with nothing preloaded.
fn as_it_is(program: &ProgramInfo) -> StackInfo {
    let (name, binary, why) = ("any".into(), Default::default(), String::new());
    OwnAllocator { name, binary, why }.stack(&program.name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_a_family_only_forwards_is_not_its_own() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../reftrace-host/allocator-symbols.toml");
        let table = Table::read(&folder).expect("the tool's table");
        let mut calls = Calls::default();
        let rust = u8::try_from(table.families().len()).expect("few families");
        calls.add(&table, 0, FamilyCalls { allocations: 5, frees: 4, ..FamilyCalls::default() });
        calls.add(&table, 1, FamilyCalls { allocations: 100, frees: 90, ..FamilyCalls::default() });
        calls.add(&table, 2, FamilyCalls { allocations: 10, frees: 0, ..FamilyCalls::default() });
        calls.add(
            &table,
            rust,
            FamilyCalls { allocations: 50, frees: 50, forwarded: 99, ..FamilyCalls::default() },
        );
        assert_eq!((calls.of_c(), calls.of("mimalloc"), calls.of("Rust's global allocator")), (9, 200, 1));
    }
}
