//! Words in a ring: groups, the wrap-around, growth.

use crate::program::Event::{Alloc, Free};
use crate::program::{Event, Program};
use crate::recording::Tool;

/// The tool reads groups while a thread writes them.
pub fn groups_arrive_whole() {
    let mut tool = Tool::new(1, 2, 4);
    let thread = Program::new(1).register(2);
    tool.arrive();
    tool.threads_begin();
    let thread = thread.start(|program| {
        program.record(Alloc(1));
        program.record(Free(1));
    });
    tool.receive(2);
    thread.join().expect("no panic");
    assert_eq!(tool.events(0), [Alloc(1), Free(1)], "each event arrives once, in order");
}

/// A thread fills its ring, waits for the tool, and continues at the first word.
pub fn a_full_ring_waits_and_wraps() {
    a_thread_records_17_events(4);
}

/// A ring grows while the tool reads it.
pub fn a_ring_grows_while_it_is_read() {
    a_thread_records_17_events(5);
}

/// A thread records 14 events before the tool arrives and 3 while it reads, in a ring of at most `2^ring_log2` words.
fn a_thread_records_17_events(ring_log2: u32) {
    let mut tool = Tool::new(1, 2, ring_log2);
    let thread = Program::new(1).register(2);
    // The first carries the time: 15 words.
    let before: Vec<Event> = (1..=14).map(Free).collect();
    thread.record(&before);
    tool.arrive();
    tool.threads_begin();
    let thread = thread.start(|program| (15..=17).for_each(|number| program.record(Free(number))));
    tool.receive(17);
    thread.join().expect("no panic");
    assert_eq!(tool.events(0), (1..=17).map(Free).collect::<Vec<_>>(), "each event arrives once, in order");
}
