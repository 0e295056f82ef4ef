//! What the tool requests by the gate: pauses and facts.

use super::exploration::join;
use crate::layout::FACTS_BYTES;
use crate::program::Event::Free;
use crate::program::Program;
use crate::recording::Tool;
use crate::world;

/// The tool pauses a program and lets it continue.
pub fn a_pause_ends() {
    let mut tool = Tool::new(1, 2, 4);
    let thread = Program::new(1).register(3);
    thread.record(&[Free(8)]);
    tool.arrive();
    tool.threads_begin();
    let thread = thread.start(|program| {
        program.record(Free(1));
        program.record(Free(2));
    });
    let tool = tool.concurrently(|tool| drop(tool.shared.pause()));
    thread.join().expect("no panic");
    let mut tool = tool.join().expect("no panic");
    tool.receive_rest();
    assert_eq!(tool.events(0), [Free(8), Free(1), Free(2)], "each event arrives once, in order");
}

/// Writes two bytes that belong together.
fn answer(bytes: &mut [u8; FACTS_BYTES]) -> usize {
    let (_, thread) = world::numbers();
    bytes[..2].fill(thread as u8);
    2
}

/// Two threads find a request for facts; the tool reads the answer while they go on.
pub fn facts_arrive_whole() {
    let mut tool = Tool::new(1, 4, 4);
    let program = Program::new(1);
    program.answer_with(answer);
    let threads = [program.register(3), program.register(4)];
    threads[0].record(&[Free(8)]);
    threads[1].record(&[Free(9)]);
    tool.arrive();
    tool.threads_begin();
    let request = tool.taps[0].request_facts(0);
    let threads = [(threads[0], 1), (threads[1], 2)]
        .map(|(thread, number)| thread.start(move |program| program.record(Free(number))));
    let check = move |tool: &mut Tool| {
        let bytes = tool.taps[0].facts(request);
        let whole = bytes.is_none_or(|bytes| bytes.len() == 2 && bytes[0] == bytes[1]);
        assert!(whole, "the facts are one thread's");
    };
    let tool = tool.concurrently(check);
    join(threads);
    let mut tool = tool.join().expect("no panic");
    check(&mut tool);
    assert!(tool.taps[0].facts(request).is_some(), "the request is answered");
}
