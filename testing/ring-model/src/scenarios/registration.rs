//! Processes and threads that register, and the rings that they get.

use core::time::Duration;

use super::exploration::join;
use crate::program::Event::Free;
use crate::program::Program;
use crate::recording::Tool;
use crate::world;

/// Two processes claim entries and rings of one file at once.
pub fn processes_register_at_once() {
    let mut tool = Tool::new(2, 3, 4);
    let programs = [Program::new(1), Program::new(2)];
    tool.threads_begin();
    let threads = [(programs[0], 3, 5), (programs[1], 4, 6)].map(|(program, tid, number)| {
        program.new_thread(tid).start(move |program| program.record(Free(number)))
    });
    join(threads);
    tool.receive_rest();
    assert_eq!(tool.events_with(Free(5)), [Free(5)], "a process has its events");
    assert_eq!(tool.events_with(Free(6)), [Free(6)], "a process has its events");
}

/// The tool sleeps until a process registers.
pub fn a_registration_wakes_the_tool() {
    let mut tool = Tool::new(1, 2, 4);
    let program = Program::new(1);
    tool.threads_begin();
    let thread = program.new_thread(3).start(|program| program.record(Free(1)));
    while !tool.arrive() {
        tool.shared.wait(Duration::from_secs(10));
    }
    thread.join().expect("no panic");
    tool.receive_rest();
    assert_eq!(tool.events(0), [Free(1)], "the event arrives");
}

/// The tool gives the ring of a thread that has ended to the next.
pub fn a_ring_is_used_again() {
    let mut tool = Tool::new(1, 2, 6);
    let program = Program::new(1);
    let first = program.register(3);
    first.record(&[Free(1)]);
    tool.arrive();
    tool.threads_begin();
    world::be_hasty();
    world::end(3);
    let second = program.new_thread(4).start(|program| {
        program.record(Free(2));
        program.record(Free(3));
    });
    let tool = tool.concurrently(|tool| {
        tool.poll();
        tool.poll();
    });
    second.join().expect("no panic");
    let mut tool = tool.join().expect("no panic");
    tool.receive_rest();
    assert_eq!(tool.events(0), [1, 2, 3].map(Free), "each event arrives once, in order");
}

/// Two threads without rings of their own record in the shared one.
pub fn threads_share_a_ring() {
    let mut tool = Tool::new(1, 1, 6);
    let program = Program::new(1);
    let threads = [program.register(3), program.register(4)];
    threads[0].record(&[Free(8)]);
    tool.arrive();
    tool.receive(1);
    tool.threads_begin();
    let threads = [(threads[0], 1), (threads[1], 2)]
        .map(|(thread, number)| thread.start(move |program| program.record(Free(number))));
    join(threads);
    tool.receive_rest();
    let mut received: Vec<_> = tool.received[0].0[1..].to_vec();
    received.sort_by_key(|&(thread, _)| thread);
    assert_eq!(received, [(0, Free(1)), (1, Free(2))], "each thread's event arrives as its own");
}
