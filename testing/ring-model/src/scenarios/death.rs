//! A thread that is killed while it records.

use std::cell::Cell;

use super::exploration::explore;
use crate::mutant::Mutant;
use crate::program::Event::{Alloc, Free};
use crate::program::{Event, Program};
use crate::recording::Tool;
use crate::world;

thread_local! {
    static LIFE: Cell<u32> = const { Cell::new(0) };
}

/// A thread is killed after any number of steps, and its process with it.
pub fn a_killed_thread_leaves_whole_events(preemptions: usize, mutant: Option<&Mutant>) {
    for steps in 0..60 {
        LIFE.set(steps);
        explore(one_thread_is_killed, preemptions, mutant);
    }
}

fn one_thread_is_killed() {
    let mut tool = Tool::new(1, 4, 6);
    let program = Program::new(1);
    let threads = [program.register(3), program.register(4)];
    threads[0].record(&[Free(8)]);
    threads[1].record(&[Free(9)]);
    tool.arrive();
    tool.receive(2);
    world::kill_after(3, LIFE.get());
    tool.threads_begin();
    let killed = threads[0].start(|program| {
        program.record(Alloc(1));
        program.record(Alloc(2));
        program.record(Alloc(3));
    });
    let other = threads[1].start(|program| program.record(Free(4)));
    killed.join().expect("no panic");
    other.join().expect("no panic");
    tool.end(1);
    let events = tool.events(0);
    assert!(events.contains(&Free(4)), "the other thread's event arrives");
    let whole: Vec<Event> = events.into_iter().filter(|event| matches!(event, Alloc(_))).collect();
    assert_eq!(
        whole,
        [1, 2, 3].map(Alloc)[..whole.len()],
        "what arrives is the beginning of what was recorded"
    );
    assert!(tool.missing <= 1, "a thread takes one number with it");
    assert_eq!(tool.taps[0].losses().damaged, 0, "a death is no damage");
}
