//! The exploration of a scenario: every order of its steps.

use std::cell::Cell;

use loom::thread::JoinHandle;

use crate::mutant::{self, Mutant};

thread_local! {
    static EXECUTIONS: Cell<u64> = const { Cell::new(0) };
}

/// Explores a scenario, with an error of the protocol or without; a thread that could continue is interrupted at most
/// `preemptions` times. Returns the number of executions.
pub fn explore(scenario: fn(), preemptions: usize, mutant: Option<&Mutant>) -> u64 {
    mutant::place(mutant);
    EXECUTIONS.set(0);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        EXECUTIONS.set(EXECUTIONS.get() + 1);
        scenario();
    });
    EXECUTIONS.get()
}

/// Waits for threads to end.
pub fn join(threads: [JoinHandle<()>; 2]) {
    for thread in threads {
        thread.join().expect("no panic");
    }
}
