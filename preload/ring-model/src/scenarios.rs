//! What threads do in the models, and what must hold then.

mod death;
mod gate;
mod order;
mod registration;
mod space;

use std::cell::Cell;

use loom::thread::JoinHandle;

use crate::mutant::{self, Mutant};

pub use death::a_killed_thread_leaves_whole_events;
pub use gate::{a_pause_ends, facts_arrive_whole};
pub use order::{events_that_depend_on_each_other_arrive_in_order, no_event_of_a_running_thread_is_given_up};
pub use registration::{
    a_registration_wakes_the_tool, a_ring_is_used_again, processes_register_at_once, threads_share_a_ring,
};
pub use space::{a_full_ring_waits_and_wraps, a_ring_grows_while_it_is_read, groups_arrive_whole};

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
fn join(threads: [JoinHandle<()>; 2]) {
    for thread in threads {
        thread.join().expect("no panic");
    }
}
